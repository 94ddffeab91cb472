/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How many bits a size_t has: 64, or 32.
 */
#ifndef CONFORM_SIZE_BITS_H
#define CONFORM_SIZE_BITS_H

#include <stddef.h>
#include <stdint.h>

enum { SIZE_BITS = 8 * sizeof(size_t) };

/* 2 to the `bits`, or where a size_t has not so many PTRDIFF_MAX + 1, which no block has either. */
#define POWER_OF_2(bits)                                                                           \
    ((bits) < SIZE_BITS ? (size_t)1 << (bits) % SIZE_BITS : (size_t)PTRDIFF_MAX + 1)

#endif
