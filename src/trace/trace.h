/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Traces: every call that a handler received, in a file (docs/trace-format.md).  Writing one, where
 * the calls come in with addresses, and reading one, where blocks have numbers.
 *
 * Neither is thread-safe: the caller holds a lock.
 */
#ifndef CONFORM_TRACE_H
#define CONFORM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/step.h"
#include "nep49.h"

/* What realloc and free were given. */
enum trace_pointer {
    TRACE_BLOCK, /* a live block of the trace */
    TRACE_NULL,
    TRACE_FOREIGN, /* an address that no live block of the trace begins at */
};

/* The most blocks that may be live at once; more are not written, and not read. */
#define TRACE_MOST_LIVE ((uint32_t)1 << 26)

/* ---- writing ------------------------------------------------------------------------------- */

struct trace_writer;

/* Begins a trace in a new file, or over an old one.  Where `path` is a regular file, every record
 * is in it when the function that wrote it returns, whatever then ends the process; into a pipe or
 * a terminal they go 64 KiB at a time.  NULL with one line in `why`, which does not name
 * the file; errno is that of the open() that failed, and 0 where the file was opened. */
struct trace_writer *trace_create(const char *path, bool timed, char *why, size_t room);

/* Text about the trace, such as ("numpy", "1.24.2"), before the first call: 64 entries, keys to
 * 64 bytes, values to 4096, longer ones are cut. */
void trace_note(struct trace_writer *writer, const char *key, const char *value);

/* The calls from here on belong to that part of the program: text of up to 256 bytes. */
void trace_begin_part(struct trace_writer *writer, const char *name);

/* Who made a call, and when. */
struct trace_caller {
    uint32_t thread; /* a number of the caller's choice; the fewer bits, the shorter the trace */
    bool gil;        /* whether the thread held the GIL */
    uint64_t time;   /* nanoseconds from any beginning; unused where the trace is not timed */
};

/* A call of malloc or calloc that has returned. */
void trace_malloc(struct trace_writer *writer, const struct trace_caller *caller, size_t size,
                  const void *result);
void trace_calloc(struct trace_writer *writer, const struct trace_caller *caller, size_t nelem,
                  size_t elsize, const void *result);

/* What is about to be handed to realloc or free.  To be asked for before the handler is called,
 * because afterwards the address may already be another thread's. */
struct trace_given {
    enum trace_pointer pointer;
    uint32_t slot;
    size_t size;
    const void *p;
};
struct trace_given trace_give(struct trace_writer *writer, const void *p);

/* A call of realloc that has returned, and one of free that will be made or was.  Where realloc
 * returned NULL, the block is live as before, whatever the size. */
void trace_realloc(struct trace_writer *writer, const struct trace_caller *caller,
                   struct trace_given given, size_t size, const void *result);
void trace_free(struct trace_writer *writer, const struct trace_caller *caller,
                struct trace_given given, size_t size);

/* Returns false after an error (no space, no memory), in a forked child, whose parent owns the
 * trace, and for NULL.  Nothing is written then. */
bool trace_works(const struct trace_writer *writer);

/* Ends the trace and frees the writer.  False with one line in `why`, which does not name the
 * file, where any of it could not be written; what was written before that can be read. */
bool trace_close(struct trace_writer *writer, char *why, size_t room);

/* Puts a shim, the only one of the process, before `inner`, with its name and version.  It records
 * each call that comes through it, from any thread.  Arguments, `why` and errno are as in
 * trace_create. */
PyDataMem_Handler *trace_shim_begin(PyDataMem_Handler *inner, const char *path, bool timed,
                                    char *why, size_t room);
/* NULL without a trace. */
struct trace_writer *trace_shim_writer(void);
void trace_shim_begin_part(const char *name);
/* Ends the trace, as trace_close; calls that come later go through and are not written. */
bool trace_shim_close(char *why, size_t room);

/* ---- reading ------------------------------------------------------------------------------- */

struct trace_reader;

/* One call as it was recorded. */
struct trace_call {
    struct step step; /* `block` is the slot: a small number, used again when the block is gone */
    enum trace_pointer pointer; /* TRACE_NULL for malloc and calloc */
    bool refused;               /* the result was NULL */
    bool moved;                 /* realloc: the block has another address than before */
    bool gil;
    uint64_t block;    /* its number, counted from 1 in the order in which blocks were made; 0 for
                        * a call without one */
    uint64_t old_size; /* realloc, free: what the block was asked for with last */
    uint64_t time;     /* nanoseconds since the first call, in a trace with times */
    uint64_t number;   /* of the call, counted from 1 */
    uint64_t offset;   /* of its record in the file */
};

enum trace_state {
    TRACE_CALL,  /* `call` is filled in */
    TRACE_PART,  /* another part begins, see trace_part; only where trace_tell_parts asks for it */
    TRACE_END,   /* the trace ends here as it should */
    TRACE_CUT,   /* the program that wrote it ended before it could close it; all that it wrote was
                  * read */
    TRACE_WRONG, /* damaged, truncated, or no trace: see trace_wrong */
};

/* Opens a trace; "-" is stdin.  NULL with one line in `why`, which does not name the file. */
struct trace_reader *trace_open(const char *path, char *why, size_t room);
/* The same of bytes in memory, which have to stay. */
struct trace_reader *trace_open_bytes(const void *bytes, size_t length, char *why, size_t room);

/* The next call.  After anything but TRACE_CALL and TRACE_PART the same comes again. */
enum trace_state trace_next(struct trace_reader *reader, struct trace_call *call);

/* From now on trace_next tells where a part begins. */
void trace_tell_parts(struct trace_reader *reader);
/* The part that the last call belongs to, or that begins; "" before the first.  It is not safe to
 * show before escape. */
const char *trace_part(const struct trace_reader *reader);

/* What TRACE_WRONG or TRACE_CUT means here: one line that begins with the offset. */
const char *trace_wrong(const struct trace_reader *reader);

/* Entry `index` of the text about the trace, or false where there are no more.  Neither string is
 * safe to show before escape. */
bool trace_noted(const struct trace_reader *reader, size_t index, const char **key,
                 const char **value);

struct trace_totals {
    bool timed;
    uint64_t calls, live; /* calls that were read, and blocks that are live after them */
    uint32_t slots;       /* every slot so far is below this */
};
struct trace_totals trace_totals(const struct trace_reader *reader);

void trace_reader_close(struct trace_reader *reader);

/* Shows a trace as text, a line for each call.  False with one line in `why`, which does not name
 * the file, where it is damaged; what could be read was shown.  One that was never closed is shown
 * and its last line says so.  Whether `out` could be written is in ferror(out). */
bool trace_print(FILE *out, const char *path, char *why, size_t room);
/* A call as trace_print shows it, without its number and offset. */
const char *trace_call_text(const struct trace_call *call);

#endif
