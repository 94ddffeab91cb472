/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim that judges every call, of both sides: what the handler returns, and what NumPy hands it.
 * A violation is attributed to one of them, told once for each kind, and not followed up by others:
 * a block that is wrong is forgotten.
 *
 * The findings live in memory that the creator provides, shared between processes if need be, so
 * that they outlast a crash.
 */
#ifndef CONFORM_AUDITOR_H
#define CONFORM_AUDITOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "nep49.h"

enum party { BY_HANDLER, BY_NUMPY, BY_THIRD_PARTY };

enum violation_kind {
    /* the handler's */
    GAVE_OVERLAPPING,
    GAVE_MISALIGNED,
    GAVE_DIRTY,
    LOST_CONTENTS,
    CHANGED_STRUCT,
    CHANGED_ERRNO,
    CHANGED_FLOAT_STATE,
    LOST_EXCEPTION,
    SET_EXCEPTION,
    /* the program's, or of one of its libraries */
    FREED_BY_LIBC,
    OWNED_WITHOUT_HANDLER,
    CALLED_WITHOUT_GIL,
    /* NumPy's */
    FREED_TWICE,
    RESIZED_DEAD,
    SAID_WRONG_SIZE,
    /* NumPy's as well, but known and harmless, each by where the block has been: docs/auditing.md
     */
    SAID_ONE_FOR_TEXT,
    SAID_ONE_FOR_EMPTIED,
    SAID_ONE_FOR_DTYPE,
    SAID_ONE_FOR_EMPTY,
    SAID_AFTER_SETSTATE,
    SAID_FIRST_AFTER_REFUSAL,
    SAID_SIZE_SO_FAR,
};
enum { VIOLATION_KINDS = SAID_SIZE_SO_FAR + 1, SIZE_CLASSES = 48, LARGEST = 5 };

/* Of the first VIOLATION_SAMPLES of a kind, the Python lines are noted. */
enum { VIOLATION_LINES = 5, VIOLATION_LINE = 256, VIOLATION_SAMPLES = 64 };
struct violation {
    _Atomic size_t times;
    char text[384];                              /* the first one */
    char where[VIOLATION_LINES][VIOLATION_LINE]; /* Python lines that were running; "" if unknown */
};

/* All that an audit has found. */
struct audit {
    _Atomic size_t malloc_calls, calloc_calls, realloc_calls, free_calls, null_frees;
    _Atomic size_t refused; /* by the handler */
    _Atomic size_t without_gil;
    _Atomic size_t live_blocks, live_bytes, peak_bytes;
    _Atomic size_t by_size[SIZE_CLASSES]; /* requests below 2^i bytes and not below 2^(i-1) */
    _Atomic size_t largest[LARGEST];      /* requests, largest first */
    _Atomic uint64_t nanoseconds_inside;  /* estimated from one call in 64 */
    _Atomic size_t blocks_before;         /* frees of blocks that are older than the audit */
    _Atomic size_t untracked; /* blocks that there was no memory to keep track of: not judged */
    struct violation violations[VIOLATION_KINDS];
};

struct violation_facts {
    enum party party;
    bool counts;      /* false: known and harmless */
    const char *name; /* "memory that overlaps a live block" and the like */
};
extern const struct violation_facts violation_facts[VIOLATION_KINDS];

/* How many kinds were violated, by that party, that count. */
size_t audit_violations(const struct audit *audit, enum party party);

struct auditor_options {
    size_t alignment;  /* that the handler claims, or 0 */
    unsigned features; /* of NumPy's C-API, which say what sizes it is known to tell */
    bool stacks;       /* remember the Python line of each block, for what is live at the end */
};

struct auditor;

/* An auditor before `inner`, which has to outlive it.  Pointers that it never gave out are taken
 * for blocks of `before`, the handler that was in force earlier.  There is one in a process.  NULL
 * where there is no memory. */
struct auditor *auditor_create(PyDataMem_Handler *inner, const PyDataMem_Handler *before,
                               struct audit *audit, const struct auditor_options *options);

/* What NumPy is to be given: name and version are those of the handler behind. */
PyDataMem_Handler *auditor_handler(struct auditor *auditor);

/* For libc's free, with a NULL `size`, and realloc: true if p is a live block of the handler's,
 * which libc must leave alone then, and its size.  `caller` is an address in the code that called;
 * unless that is the handler's, reports a violation.  For interpose_set_owner(). */
bool auditor_owns(void *p, const void *caller, size_t *size);

/* What has been done to the array that a block is of; free is told another size then. */
enum array_change { EMPTIED_BY_DTYPE, EMPTY_OF_FROMITER, LEFT_BY_SETSTATE };
void auditor_note(struct auditor *auditor, const void *block, enum array_change change);

/* An array ends that has OWNDATA and no handler, with the GIL held. */
void auditor_note_unowned(struct auditor *auditor, const void *data);

/* From now on the auditor is told of arrays that `a.dtype =` leaves or np.fromiter makes without
 * elements, of those whose `__setstate__` fails after the change of their dtype, and of those that
 * end without a handler.  Needs NumPy and the GIL.  Returns false with an exception. */
bool array_watch_begin(struct auditor *auditor);

/* In a child that was forked: goes on counting into `audit`.  Without this a child keeps its counts
 * to itself; violations it always shares. */
void auditor_share(struct auditor *auditor, struct audit *audit);

/* Writes the block that is nearest to the address, its size and the line that made it, for a signal
 * handler: takes no lock. */
void auditor_describe(const struct auditor *auditor, const void *address, bool has_guard, char *to,
                      size_t room);

/* Prints the blocks that are live, by the Python line that asked for them where that is known, most
 * bytes first, `most` lines at the most. */
void auditor_print_live(struct auditor *auditor, FILE *file, size_t most);

#endif
