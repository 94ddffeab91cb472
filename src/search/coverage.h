/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which branches a handler took that was compiled with clang's -fsanitize-coverage=trace-pc-guard
 * or inline-8bit-counters, or with gcc's trace-pc: what it calls for that is here.
 */
#ifndef CONFORM_COVERAGE_H
#define CONFORM_COVERAGE_H

#include "search/novelty.h"

/* Adds what was taken in this process to what was met, and how often, as the logarithm. */
void coverage_tell(struct novelty *novelty);

#endif
