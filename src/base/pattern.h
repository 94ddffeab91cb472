/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What blocks are filled with: every 8 bytes depend on the block's number and on the
 * offset, so that a swap, a shift and a stale copy all show.
 */
#ifndef CONFORM_PATTERN_H
#define CONFORM_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes bytes [from, to) of the pattern of block number `block` to p[from] ... */
void pattern_fill_range(void *p, size_t from, size_t to, uint64_t block);

/* The offset of the first of `size` bytes at p that differs from the pattern, or size. */
size_t pattern_mismatch(const void *p, size_t size, uint64_t block);

/* The same of bytes [from, to), or to. */
size_t pattern_mismatch_range(const void *p, size_t from, size_t to, uint64_t block);

/* The offset at which the pattern of block number `block` has the 8 bytes at p; one beyond any
 * block where they are not of it. */
size_t pattern_offset(const void *p, uint64_t block);

/* The byte that the pattern has at that offset. */
unsigned char pattern_byte(uint64_t block, size_t offset);

/* Of a large block, of which most is not to be touched, places: its first and its last bytes, its
 * last edges of pages, all powers of two, and a dozen between.  `reach` bytes to either side belong
 * to a place, as far as they are the block's. */
#define for_each_sample(size, reach, from, to)                                                     \
    for (size_t from, to, sample_ = 0; sample_range(size, sample_, reach, &from, &to); sample_++)
bool sample_range(size_t size, size_t index, size_t reach, size_t *from, size_t *to);

/* Wide enough for an edge that a header has moved. */
enum { SAMPLE_REACH = 128 };

/* Writes the pattern of block number `block` there.  A block that is to shrink has to be filled as
 * one of its later size as well. */
void sample_fill(void *p, size_t size, uint64_t block);

/* The offset of a byte there that differs from the pattern, or size. */
size_t sample_mismatch(const void *p, size_t size, uint64_t block);

#endif
