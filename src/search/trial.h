/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list of calls executed in a process of its own, which loads the handler anew.
 */
#ifndef CONFORM_TRIAL_H
#define CONFORM_TRIAL_H

#include <stdbool.h>

#include "search/execute.h"
#include "search/size_dict.h"

/* Has a handler in a process that was forked for it: NULL where there is none, which has been told
 * to whom it concerns. */
typedef PyDataMem_Handler *get_handler(void *data);

/* What a process of a trial writes, in memory that is shared with whoever waits for it. */
struct trial_room {
    struct executions executions;
    struct size_dict size_dict;
    _Atomic int learnt; /* 1: it is */
    int huge_pages;     /* 1: the kernel may make them; set before a trial */
    double seconds;     /* that the calls took */
};

struct trial {
    get_handler *get;
    void *get_data;                 /* for it */
    struct execute_options options; /* but what is watched, and slots; novelty is shared */
    unsigned tries;                 /* of an attempt: for what does not show each time */
    struct trial_room *room;        /* shared */
    double hangs;                   /* seconds in one call */
    double longest;                 /* as is_late: seconds in all, or 0 */
    bool is_exact; /* of an attempt: it has to show the same failure, and not any that hangs or any
                    * other */
    bool lacks_python; /* likewise: the handler calls Python, which does not run; so that a crash in
                        * a call that has returned when it was recorded shows nothing */
    bool (*is_over)(void *data); /* asked twenty times a second, or NULL */
    bool (*is_late)(void *data); /* likewise: an end to it, but not in a call that seems to hang */
    void *data;                  /* for both */
};

enum trial_outcome {
    TRIAL_PASSED,
    TRIAL_WRONG,  /* `found` says what */
    TRIAL_BROKEN, /* nothing can be said: no memory, no process, or the handler is not to be had */
    TRIAL_OVER,   /* is_over or is_late said so */
};

enum found_kind { FOUND_DIES, FOUND_HANGS, FOUND_WRONG };
struct found {
    enum found_kind kind;
    enum heap_rule rule;
    char seen[512];    /* in one line, without the call */
    char history[320]; /* of the block, or "" */
    size_t at;         /* the step; their number: behind the last */
    uint64_t calls;    /* up to there */
    bool in_fork;      /* in a process that was forked half-way */
};

/* Before the first of several trials that are to find libc's heap alike, whichever process of this
 * one's makes them. */
void trial_prepare(void);

/* Whoever calls has child_prepare()d. */
enum trial_outcome trial_run(const struct trial *trial, const struct call_list *list,
                             struct found *found);

/* Learns the edges of the handler's size classes, if it bears that. */
void trial_learn(const struct trial *trial);

/* True if the list shows the failure of `found`, in one of so many tries; `found` is then what it
 * has shown now. */
bool trial_shows(const struct trial *trial, const struct call_list *list, struct found *found);

#endif
