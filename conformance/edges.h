/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The edges of size classes between powers of two, 5, 6 and 7 times one, to 1 MiB: what malloc,
 * calloc and realloc owe for a block that fills its class, or has just gone past it.
 */
#ifndef CONFORM_EDGES_H
#define CONFORM_EDGES_H

#include "allocating.h"

/* Fails where two blocks cannot both be filled; sizes up to `from` are tried elsewhere. */
void check_edges_extent(size_t from);

/* Fails where live blocks share memory. */
void check_edges_disjoint(const struct maker *maker);

/* Fails where what calloc makes is not zero, or was full of other bytes when it was freed. */
void check_edges_zero(const struct maker *by_calloc, size_t from);
void check_edges_zero_when_reused(const struct maker *by_calloc);

/* Fails where realloc across an edge does not keep the contents, or gives no room. */
void check_edges_realloc(void);
void check_edges_growth(void);

#endif
