/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes that blocks are filled with.  Every 8 bytes depend on the block's number and on the
 * offset, so that a swap, a shift, and a stale copy all show.
 *
 * A pattern fills a range of bytes.  A sample is the pattern at selected places of a large block,
 * most of which must stay untouched.  A fill is for blocks that come by the million: the pattern in
 * as few places as are quick to write and to check.
 */
#ifndef CONFORM_FILL_H
#define CONFORM_FILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- patterns ------------------------------------------------------------------------------ */

/* Writes bytes [from, to) of the pattern of block `number` to p[from] and so on. */
void pattern_fill_range(void *p, size_t from, size_t to, uint64_t number);

/* Returns the offset of the first of bytes [from, to) that differs from the pattern, or `to`. */
size_t pattern_mismatch_range(const void *p, size_t from, size_t to, uint64_t number);

/* The same for bytes [0, size). */
size_t pattern_mismatch(const void *p, size_t size, uint64_t number);

/* Returns the offset at which the pattern of block `number` has the 8 bytes at p, or an offset that
 * is larger than any block. */
size_t pattern_offset(const void *p, uint64_t number);

unsigned char pattern_byte(uint64_t number, size_t offset);

/* ---- samples ------------------------------------------------------------------------------- */

/* The places of a sample: the first and the last bytes, the last page boundaries, all powers of
 * two, and a dozen places between.  Each extends `reach` bytes to both sides, within the block. */
#define for_each_sample(size, reach, from, to)                                                     \
    for (size_t from, to, sample_ = 0; sample_range(size, sample_, reach, &from, &to); sample_++)
bool sample_range(size_t size, size_t index, size_t reach, size_t *from, size_t *to);

/* Wide enough for an edge that a header has moved. */
enum { SAMPLE_REACH = 128 };

/* Writes the sample of block `number`.  A block that will shrink needs the sample of its later size
 * as well. */
void sample_fill(void *p, size_t size, uint64_t number);

/* Returns the offset of a sampled byte that differs from the pattern, or `size`. */
size_t sample_mismatch(const void *p, size_t size, uint64_t number);

/* ---- fills --------------------------------------------------------------------------------- */

/* A block of up to FILL_WHOLE bytes, or of up to `whole`, has the pattern in all bytes.  A larger
 * block has it in four stretches of FILL_STRETCH bytes: the first, the last, and one in each half
 * at an offset that depends on number and size.  With `marks`, a block of many pages also has 8
 * bytes at offset FILL_MARK_AT of each page (counted in the address space, so that they show in the
 * next block on the page), or of each 2nd, 4th, ... page if there are more than FILL_MARKS_MOST. */
enum { FILL_STRETCH = 32, FILL_WHOLE = 128 };
enum { FILL_MARKS_MOST = 64, FILL_MARK_AT = 0x7f0, FILL_MARK_BYTES = 8 };
struct fill_rules {
    size_t whole;
    bool marks;
};

/* True if all bytes of a block of that size are filled. */
bool fill_is_whole(size_t size, const struct fill_rules *rules);

/* Fills the block of `size` bytes at p, which has that number. */
void fill_write(void *p, size_t size, const struct fill_rules *rules, uint64_t number);

/* Returns the offset of a byte that is not as fill_write left it, or `size`. */
size_t fill_check(const void *p, size_t size, const struct fill_rules *rules, uint64_t number);

/* Returns the offset of a byte that fill_write would write and that is not 0, or `size`. */
size_t fill_check_zero(const void *p, size_t size, const struct fill_rules *rules, uint64_t number);

/* To be called before a realloc that keeps `kept` bytes of a block: fills the last of them. */
void fill_last(void *p, size_t kept, uint64_t number);

/* Returns the offset of one of the first `kept` bytes, now at p, that is not as fill_write and
 * fill_last left it; or `kept`.  The block had `size` bytes at address `before`, which is not read.
 */
size_t fill_check_kept(const void *p, size_t kept, uintptr_t before, size_t size,
                       const struct fill_rules *rules, uint64_t number);

#endif
