/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the process of one property, for the files of this folder only.
 */
#ifndef CONFORM_TEST_PROCESS_H
#define CONFORM_TEST_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "harness/property_child.h"

extern struct test_process {
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
    char incomplete_because[256]; /* why it is incomplete, or "" */
} test_process;

enum { SURVIVED = 49 }; /* the status of a child that reached its end */

/* The first thread that calls this ends the process; others stop here. */
void enter_exit_path(void);

/* Writes the verdict and ends the process. */
_Noreturn void leave(enum verdict verdict);

/* Ends a child that has passed. */
_Noreturn void end_child(void);

/* Fails if the struct has changed since it was loaded. */
void expect_struct_as_loaded(void);

void count_memcheck_errors(void);

/* Records a forked process, whose memcheck log is read as well. */
void note_child(void);

/* True between control_begin and control_end. */
bool in_control(void);

/* Attributes what follows to overlapping blocks if NumPy was given any. */
void note_overlap(struct record *record);

/* Records fatal signals, until the default action ends the process. */
void catch_fatal_signals(void);

/* The function of the handler as loaded, or NULL if the kind is no call. */
void (*function_of(enum step_kind kind))(void);

/* Before the first call into the subject. */
void calls_prepare(void);

/* The call that this thread is in, and the call that made its block if that has size zero. */
struct step *own_call(void);
struct step *own_making(void);

/* The latest call of this thread that has returned, and the handler's function. */
struct latest {
    struct step call;
    void (*code)(void);
};
const struct latest *own_latest(void);

#endif
