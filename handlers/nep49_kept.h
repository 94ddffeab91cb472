/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_kept.h - keeps a few large blocks that were freed, for others of the same length.
 *
 *     void *start = nep49_take_kept(length, munmap);
 *     if (start == NULL)
 *         start = mmap(...);
 *     ...
 *     nep49_keep(start, length, munmap);
 *
 * A temporary mostly has the size of the one before, and the page faults of fresh memory take
 * longer than what is done with it.  Four are kept, of up to 32 MiB: libc keeps freed blocks up to
 * that size as well.  They are not zero.  No lock is taken, so that a forked child may go on.
 * Nothing to link.
 */
#ifndef NEP49_KEPT_H
#define NEP49_KEPT_H

#include <stdatomic.h>
#include <stddef.h>

enum { NEP49_KEPT = 4, NEP49_LARGEST_KEPT = 32 << 20 };

/* How one that is not kept goes back. */
typedef int nep49_release(void *start, size_t length);

/* Each begins with its length.  Whoever exchanges the pointer at a place owns what it got there. */
static _Atomic(size_t *) nep49_kept[NEP49_KEPT];

/* One of exactly that length, or NULL. */
static inline void *nep49_take_kept(size_t length, nep49_release *release)
{
    for (size_t i = 0; i < NEP49_KEPT; i++) {
        size_t *start = atomic_exchange(&nep49_kept[i], NULL);
        if (start != NULL && *start == length)
            return start;
        start = start ? atomic_exchange(&nep49_kept[i], start) : NULL; /* back */
        if (start != NULL)                                             /* somebody was faster */
            release(start, *start);
    }
    return NULL;
}

static inline void nep49_keep(void *block, size_t length, nep49_release *release)
{
    size_t *start = block;

    *start = length;
    for (size_t i = 0; length <= NEP49_LARGEST_KEPT && i < NEP49_KEPT && start != NULL; i++)
        start = atomic_exchange(&nep49_kept[i], start); /* what was there moves one place on */
    if (start != NULL)
        release(start, *start);
}

#endif
