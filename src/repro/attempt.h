/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trying whether a list of calls shows a defect, in a process of its own.
 */
#ifndef CONFORM_ATTEMPT_H
#define CONFORM_ATTEMPT_H

#include "repro/call_list.h"
#include "subject/subject.h"

/* What every attempt is about. */
struct tried {
    const char *path; /* of the object; "" is libc's allocator */
    const char *entry;
    bool is_getter;
    bool names_python; /* and may crash because that is not there */
    int seconds;       /* after which a call has no end */
};

enum attempt_end { NOT_REPRODUCED, REPRODUCED, NOT_TRIED };
struct attempt {
    enum attempt_end outcome;
    char line[320]; /* what was seen, or why it could not be tried */
    char what[64];  /* the kind of it */
    bool no_end;    /* it is that a call has none */
    size_t at;      /* the step in which it was seen; the list's count: behind the last */
    double seconds;
};

/* `about` is a struct tried. */
struct attempt attempt(const void *about, const struct call_list *list);

/* In the process of an attempt: makes the calls as the reproducer of the list will, prints what it
 * prints, and exits as it exits.  `at` is shared: the step that is under way. */
_Noreturn void try_list(const struct tried *tried, const struct call_list *list, size_t *at);

/* How the object hands its handler out and what it claims, told by a process that loads it.  NULL,
 * or why that does not come back. */
struct entry {
    bool is_getter;
    size_t alignment;
};
const char *entry_find(const struct subject_place *place, struct entry *entry);

#endif
