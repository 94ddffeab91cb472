/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Locks that survive a fork.  A process can be forked while another thread is inside of a handler,
 * without the GIL, in realloc; the child has no such thread, and must not inherit a lock that
 * nobody will ever open.  So fork takes all of these first, and gives them back on both sides.
 */
#ifndef EMBED_DEMO_LOCK_H
#define EMBED_DEMO_LOCK_H

#include <pthread.h>

struct lock {
    pthread_mutex_t mutex;
    struct lock *next; /* all that there are, those opened first first */
};

/* Where a thread takes two of them, the first one it takes was opened first. */
void lock_open(struct lock *lock);
void lock_close(struct lock *lock);

void lock_take(struct lock *lock);
void lock_give(struct lock *lock);

#endif
