/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sizes where bugs live.
 */
#ifndef CONFORM_SIZES_H
#define CONFORM_SIZES_H

#include <stddef.h>

#include "base/size_bits.h"

/* Sizes in rising order from 1 to `most`: 1 to 4096 one by one, then powers of two, multiples of
 * the page, the edges of classes between powers of two, and their neighbours. */
#define for_each_size(size, most)                                                                  \
    for (size_t size = 1; size != 0 && size <= (most); size = size_after(size))
size_t size_after(size_t size);

/* Above 4096 the edges alone: 5, 6 and 7 times a power of two, one less and one more. */
#define for_each_edge(size, most)                                                                  \
    for (size_t size = edge_after(4096); size != 0 && size <= (most); size = edge_after(size))
size_t edge_after(size_t size);

#endif
