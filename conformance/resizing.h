/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A block that is resized, and whose bytes are looked at.
 */
#ifndef CONFORM_RESIZING_H
#define CONFORM_RESIZING_H

#include <stddef.h>
#include <stdint.h>

/* A new block of malloc's, full of that pattern. */
unsigned char *filled(size_t size, uint64_t number);

/* The block at p, which has `old` bytes of pattern `number`, with `new` bytes.  fail where what it
 * had to keep is not there. */
unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number);

#endif
