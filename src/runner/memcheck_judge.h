/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What memcheck's errors say about a property: only those count that libc's allocator does not
 * show in its place, in the same property and the same interpreter.
 */
#ifndef CONFORM_MEMCHECK_JUDGE_H
#define CONFORM_MEMCHECK_JUDGE_H

#include "model/record.h"

struct memcheck_case {
    const char *folder; /* where the logs are */

    /* Runs the property again, on libc's allocator, and returns its record, which is valid until
     * the next call, or NULL if that fails. */
    const struct record *(*run_control)(const void *data);
    const void *data;
};

/* The errors fail a property that passes otherwise, and explain one that crashed: the verdict, with
 * what goes with it in the record. */
enum verdict memcheck_judge(const struct memcheck_case *property, struct record *record,
                            enum verdict verdict);

#endif
