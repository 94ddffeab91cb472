/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of up to 64 MiB, as far as memory allows, of which samples alone are touched: what malloc,
 * calloc and realloc owe for them.  What is refused is not tried, for that is a handler's right.
 */
#ifndef CONFORM_LARGE_H
#define CONFORM_LARGE_H

#include <stdbool.h>

#include "allocating.h"

/* Fails where a large block cannot be written, a recycled one included that has to be larger than
 * it was. */
void check_large_extent(void);
void check_reuse_for_more(void *unused);

/* Fails where large live blocks share memory, `turns` blocks long. */
void check_large_disjoint(const struct maker *maker, size_t turns);

/* Fails where what calloc makes is not zero, or was full of other bytes when it was freed. */
void check_large_zero(const struct maker *by_calloc);
void check_large_zero_when_reused(const struct maker *by_calloc);

/* Fails where a large block that realloc makes of NULL cannot be written, or is another's. */
void check_large_from_null(void);

/* Fails where realloc does not keep the contents of large blocks, in one step or in many. */
void check_large_realloc(void);
void check_large_of(bool is_calloc);
void check_large_chain(void);
void check_large_ratios(void);
void check_large_shrink(void);

/* Fails where a large block that grows to what it was before it shrank takes what others have. */
void check_large_growth_back(void);

/* Fails where what was kept of a large block that shrank is lost when memory is scarce. */
void check_large_pressure(void);

/* Fails where a large block that shrinks or grows is aligned to less than malloc's are. */
void check_large_realloc_alignment(void);

#endif
