/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contents for blocks that come by the million: quick to write and to check, because of a large
 * block only a part is.  A byte depends on the block's number and on the offset, so that a swap, a
 * shift and a stale copy show.  (pattern.h is for all bytes, and mixes them better.)
 *
 * A block of up to 128 bytes, or up to `whole`, is written and checked whole.  Of a larger one
 * there are four stretches: the first and the last 32 bytes, and 32 bytes in either half, at an
 * offset that number and size choose.
 */
#ifndef CONFORM_CONTENTS_H
#define CONFORM_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONTENTS_STRETCH = 32, CONTENTS_WHOLE = 128 };

/* Whether all bytes of such a block are written. */
bool contents_are_whole(size_t size, size_t whole);

/* Writes what block `number` has, into the `size` bytes at p. */
void contents_write(void *p, size_t size, size_t whole, uint64_t number);

/* The offset of a byte that is not as contents_write left it, or `size`. */
size_t contents_check(const void *p, size_t size, size_t whole, uint64_t number);

/* The offset of a byte that is not 0, of those that contents_write writes; or `size`. */
size_t contents_check_zero(const void *p, size_t size, size_t whole, uint64_t number);

/* Around a realloc of a block that is not whole, of which it must keep the first `kept` bytes:
 * writes the last stretch of them, before. */
void contents_write_last(void *p, size_t kept, uint64_t number);
/* The offset of one of the first `kept` bytes that is not as contents_write left it (and where the
 * block is not whole, contents_write_last), or `kept`. */
size_t contents_check_kept(const void *p, size_t kept, size_t size, size_t whole, uint64_t number);

/* The byte that belongs at that offset. */
unsigned char contents_byte(uint64_t number, size_t offset);

#endif
