/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What blocks are filled with: every 8 bytes depend on the block's number and on the
 * offset, so that a swap, a shift and a stale copy all show.
 */
#ifndef CONFORM_PATTERN_H
#define CONFORM_PATTERN_H

#include <stddef.h>
#include <stdint.h>

/* Writes bytes [from, to) of the pattern of block number `block` to p[from] ... */
void pattern_fill_range(void *p, size_t from, size_t to, uint64_t block);

/* The offset of the first of `size` bytes at p that differs from the pattern, or size. */
size_t pattern_mismatch(const void *p, size_t size, uint64_t block);

/* The byte that the pattern has at that offset. */
unsigned char pattern_byte(uint64_t block, size_t offset);

#endif
