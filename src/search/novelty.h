/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a handler was seen to do: of each call a tuple of what was called, the class of its size,
 * its result and how far from the last block.  A call sequence in which something is new is worth
 * going on from.
 */
#ifndef CONFORM_NOVELTY_H
#define CONFORM_NOVELTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "base/size_bits.h"

enum { NOVELTY_LOG2 = 16 };

/* Shared by all processes, which may lose a bit to each other: then it is new once more. */
struct novelty {
    uint8_t met[1 << NOVELTY_LOG2];
    uint64_t count; /* of those */
};

/* Whether it is new. */
static inline bool novelty_meet(struct novelty *novelty, uint64_t key)
{
    size_t at = random_mix(key) >> (64 - NOVELTY_LOG2);
    if (__builtin_expect(novelty->met[at] != 0, 1))
        return false;
    novelty->met[at] = 1;
    novelty->count++;
    return true;
}

/* Logarithmic, with four steps to each power of two. */
static inline unsigned novelty_class(uint64_t size)
{
    unsigned bits = size == 0 ? 0 : 63 - (unsigned)__builtin_clzll(size);
    return bits < 2 ? (unsigned)size : bits * 4 + (unsigned)(size >> (bits - 2) & 3);
}

/* Of a call that returned p, NULL where it was refused; `before` is what the last one returned, or
 * what realloc was given. */
static inline void novelty_of_call(struct novelty *novelty, unsigned kind, size_t size,
                                   uintptr_t before, uintptr_t p)
{
    uintptr_t distance = p > before ? p - before : before - p;
    unsigned direction = p == 0 ? 3 : p > before ? 2 : p < before;
    unsigned far = p == 0 || distance == 0 ? 0 : 64 - (unsigned)__builtin_clzll(distance);
    novelty_meet(novelty, (uint64_t)kind << 32 | novelty_class(size) << 16 | far << 2 | direction);
}

#endif
