/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This program defines malloc, mmap and their relatives, so that requests of a handler, from inside
 * one of its four functions, can be counted, tracked and refused.  Other calls go straight to libc
 * or a preloaded allocator.
 *
 * It does not see a handler that is linked with -Bsymbolic or statically, makes system calls
 * itself, or allocates on threads of its own.  It does nothing in a build with sanitizers and under
 * memcheck, which replace malloc themselves.
 */
#ifndef CONFORM_INTERPOSE_H
#define CONFORM_INTERPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/step.h"

/* True if calls of libc's functions come through here in this process. */
bool interpose_works(void);

/* One line on a preloaded allocator and whether it is used in place of libc, as fmt(), or NULL. */
const char *interpose_preloaded(void);

/* Around every call into the handler, by the thread that makes it.  The fences are for a compiler
 * that knows that malloc reads no variable of this program. */
extern _Thread_local int interpose_depth;

static inline void interpose_enter(void)
{
    interpose_depth++;
    __asm__ volatile("" ::: "memory");
}

static inline void interpose_leave(void)
{
    __asm__ volatile("" ::: "memory");
    interpose_depth--;
}

/* Set to REFUSED_BELOW (record.h) if a request in this thread's call was refused; or NULL. */
extern _Thread_local uint8_t *interpose_trouble;

/* Starts to count requests, and to track what was taken and not given back. */
void interpose_watch(void);

/* Refuses the nth request from now on with ENOMEM (1: the next one), and with `keep_failing` all
 * after it; 0: none. */
void interpose_refuse(size_t nth, bool keep_failing);
/* The same for a list of calls, see execute.h.  It tracks nothing without interpose_watch(), as a
 * table of blocks takes more time than the calls. */
void interpose_refuse_watched(size_t nth, enum refusal how);

/* Makes madvise fail with EINVAL, or mprotect with ENOMEM. */
void interpose_refuse_advice(bool refuse);
void interpose_refuse_protection(bool refuse);

struct interpose_counts {
    size_t requests; /* for memory, since interpose_refuse or interpose_watch */
    size_t refused;  /* of them */
    size_t blocks;   /* of malloc since interpose_watch, not freed */
    size_t bytes;    /* in them, and in mappings that are not unmapped */
    size_t left_out; /* of these two, because the table was full */
};
struct interpose_counts interpose_counts(void);

/* True if p was taken since interpose_watch and not given back; meaningless unless
 * interpose_works(). */
bool interpose_holds(const void *p);

/* Called by free, with a NULL `size`, and by realloc, see auditor_owns(). */
typedef bool interpose_owner(void *p, const void *caller, size_t *size);
void interpose_set_owner(interpose_owner *owns);

/* Has the number at `count` go up by one for each process that begins to run Python's interpreter
 * by execv, execve or posix_spawn, except multiprocessing's resource tracker.  It may be in memory
 * that is shared. */
void interpose_count_pythons(_Atomic size_t *count);

/* Moves the clocks of this process forward, except those of processor time. */
void clock_jump(unsigned seconds);

/* Starts to note variables that the handler asks getenv for; false if that does not work here. */
bool getenv_watch(void);

/* Variables that were asked for, by one thread at a time. */
struct asked_variable {
    char name[64];
    const void *by; /* the code that asked first */
    size_t times;
};
enum { ASKED_VARIABLES = 16 };

/* The first of them, up to one without a name. */
const struct asked_variable *getenv_asked(void);

/* ---- Python's allocators ----------------------------------------------------------------- */

/* From now on the property fails if the handler, in a call of calls.h, calls a PyMem_* or
 * PyObject_* memory function in a thread that does not hold the GIL.  Called with the GIL held,
 * once. */
void gil_watch(void);

/* The nth request from now on is refused.  python_allocators_restore() ends that, and returns
 * whether there were so many. */
void python_allocators_refuse(size_t nth);
bool python_allocators_restore(void);

#endif
