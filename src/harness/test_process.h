/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of this room share about the process that they are in, which belongs to one
 * property. Nobody else includes this.
 */
#ifndef CONFORM_TEST_PROCESS_H
#define CONFORM_TEST_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/property_child.h"

/* The state of this process. */
extern struct own {
    struct property_setup setup;
    struct subject subject;
    PyDataMem_Handler as_loaded; /* the struct, to be compared at the end */
    struct random random;
    atomic_int ended; /* 1 once a thread has begun to write the verdict */
    bool loaded;
    bool is_child; /* of in_child */
    bool is_trial; /* a child of child_survives */
    uint64_t begun;
    uint64_t memcheck_errors_before;
    char short_of[256]; /* why it has not tried all that it is about, or "" */
} own;

enum { SURVIVED = 49 }; /* the status of a child that came to its end */

/* The first thread that gets here ends the process; any other stops where it is. */
void only_once(void);

/* Writes the verdict down and ends the process. */
_Noreturn void leave(enum verdict verdict);

/* Ends a child in which all was well. */
_Noreturn void end_child(void);

/* Fails where the struct is there, and is not what it was when it was loaded. */
void expect_struct_as_loaded(void);

void count_memcheck_errors(void);

/* In whatever process comes of a fork: memcheck's log of it is looked at, too. */
void note_child(void);

/* Whether what is done here is a control. */
bool in_control(void);

/* What is in NumPy's hands twice breaks whatever uses it. */
void note_overlap(struct record *record);

/* Records fatal signals, until the default action ends the process. */
void catch_fatal_signals(void);

/* Before the first call into the subject. */
void calls_prepare(void);

/* The call that this thread is in, and the one that made the block in hand, where it is one of no
 * bytes. */
struct call *own_call(void);
struct call *own_making(void);

/* The call that this thread made last and that has returned, and the subject's function. */
struct latest {
    struct call call;
    void (*code)(void);
};
const struct latest *own_latest(void);

#endif
