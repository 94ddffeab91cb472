/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between a subject and libc: this program defines malloc and its kin, mmap and its kin itself, so
 * that what a subject asks for from inside one of its four functions can be counted, tracked
 * of, and refused.  Calls from anywhere else go straight through.
 *
 * It does not see a subject that is linked with -Bsymbolic or statically, makes system calls by
 * itself, or asks on threads of its own; and it steps aside in a build with sanitizers and under
 * memcheck, which replace malloc themselves.  Behind it stands libc, or an allocator
 * that was preloaded.
 */
#ifndef CONFORM_INTERPOSE_H
#define CONFORM_INTERPOSE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether calls of libc's functions come through here at all in this process. */
bool interpose_works(void);

/* One line on an allocator that was preloaded, as text(), or NULL: which file it is, and whether it
 * is asked in the place of libc. */
const char *interpose_preloaded(void);

/* Around every call into the subject, by the thread that makes it.  The fences are for a compiler
 * that knows malloc by its name, and so that it reads no variable of this program's. */
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

/* Where this thread notes, as REFUSED_BELOW of record.h, that a request of its call was refused;
 * NULL where nobody asks. */
extern _Thread_local int *interpose_trouble;

/* From now on requests are counted, and tracked what was taken and not given back. */
void interpose_watch(void);

/* The nth request from now on (1: the next one) is refused with ENOMEM, and with `keep_failing`
 * every one after it.  0 refuses none. */
void interpose_refuse(size_t nth, bool keep_failing);

/* As on a kernel that knows none: madvise fails with EINVAL. */
void interpose_refuse_advice(bool refuse);

/* As where there are no more mappings to be had: mprotect fails with ENOMEM. */
void interpose_refuse_protection(bool refuse);

struct interpose_counts {
    size_t requests; /* for memory, since interpose_refuse or interpose_watch */
    size_t refused;  /* of them */
    size_t blocks;   /* taken from malloc and its kin since interpose_watch, and not given back */
    size_t bytes;    /* in them, and in what was mapped and not unmapped */
    size_t left_out; /* of these two, because the table was full */
};
struct interpose_counts interpose_counts(void);

/* Whether p was taken since interpose_watch, and not given back; says nothing where
 * interpose_works says no. */
bool interpose_holds(const void *p);

/* From now on it is so many seconds later, for all that is in this process and asks libc. */
void clock_jump(unsigned seconds);

/* From now on what is asked for is noted.  False where it does not come through here. */
bool getenv_watch(void);

/* What was asked for since, in calls of one thread at a time. */
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
