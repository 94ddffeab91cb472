/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process that measures for --bench.
 */
#ifndef CONFORM_BENCH_H
#define CONFORM_BENCH_H

#include <jansson.h>

#include "subject/subject.h"

/* Starts this Python, forks a process for each of these handlers, and measures as the options say,
 * which bench.py reads.  Ends this process. */
_Noreturn void bench_run(const struct subject_place *places, const char *python, json_t *options);

#endif
