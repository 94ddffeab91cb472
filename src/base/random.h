/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The finalizer of splitmix64: a number whose bits all depend on all bits of z.
 */
#ifndef CONFORM_RANDOM_H
#define CONFORM_RANDOM_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#ifndef REPRODUCER /* which needs the finalizer alone */
struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *r)
{
    return random_mix(r->state += 0x9e3779b97f4a7c15u);
}

/* From 0 to bound - 1; bound is not 0.  The bias is below bound / 2^64.  It is the upper half of a
 * product of 128 bits, which not every machine has a type for. */
static inline uint64_t random_below(struct random *r, uint64_t bound)
{
    uint64_t x = random_next(r), low = bound & UINT32_MAX, high = bound >> 32;
    uint64_t middle = (x >> 32) * low + ((x & UINT32_MAX) * low >> 32),
             carried = middle & UINT32_MAX;
    return (x >> 32) * high + (middle >> 32) + ((carried + (x & UINT32_MAX) * high) >> 32);
}

/* A stream of its own for each name: the same seed gives each property other numbers. */
static inline struct random random_for(uint64_t seed, const char *name)
{
    uint64_t hash = random_mix(seed + 0x9e3779b97f4a7c15u);
    for (; *name != '\0'; name++)
        hash = random_mix(hash ^ (unsigned char)*name);
    return (struct random){hash};
}
#endif

#endif
