/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of hundreds of mebibytes and more, of which hardly a page is touched.
 */
#ifndef CONFORM_HUGE_H
#define CONFORM_HUGE_H

#include "allocating.h"

/* Fails where such a block of the maker's overlaps another, or has no memory at its end. */
void check_huge_extent(const struct maker *maker);

/* Fails where such a block of calloc's has what was written into one that was freed. */
void check_huge_zero_when_reused(const struct maker *by_calloc);

/* Fails where such a block of the maker's is aligned to less than a small one is. */
void check_huge_alignment(const struct maker *maker);

/* Fails where blocks of a text that grew, which are freed as what its first buffer was, are lost in
 * part, or counted in part against a limit. */
void check_huge_best_guess(void);

/* Fails where realloc loses what was in a block of 4 GiB and a little more. */
void check_huge_realloc(void);

#endif
