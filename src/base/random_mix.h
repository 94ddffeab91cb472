/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The finalizer of splitmix64: a number whose bits all depend on all bits of z.
 */
#ifndef CONFORM_RANDOM_MIX_H
#define CONFORM_RANDOM_MIX_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
