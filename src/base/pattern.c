/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pattern of a block, eight bytes at a time.
 */
#include "base/pattern.h"

#include <string.h>

#include "base/random.h"

/* From one word to the next: an addition is five times as fast as mixing each word anew. */
static const uint64_t pattern_step = 0x9e3779b97f4a7c15u;

static inline uint64_t word_at(uint64_t block, size_t index)
{
    return random_mix(block + 1) + index * pattern_step;
}

unsigned char pattern_byte(uint64_t block, size_t offset)
{
    uint64_t word = word_at(block, offset / 8);
    unsigned char bytes[8];
    memcpy(bytes, &word, 8);
    return bytes[offset % 8];
}

void pattern_fill_range(void *p, size_t from, size_t to, uint64_t block)
{
    unsigned char *bytes = p;
    while (from < to && from % 8 != 0) {
        bytes[from] = pattern_byte(block, from);
        from++;
    }
    uint64_t word = word_at(block, from / 8);
    for (; from + 8 <= to; from += 8, word += pattern_step)
        memcpy(bytes + from, &word, 8);
    for (; from < to; from++)
        bytes[from] = pattern_byte(block, from);
}

size_t pattern_mismatch(const void *p, size_t size, uint64_t block)
{
    const unsigned char *bytes = p;
    size_t i = 0;
    uint64_t word = word_at(block, 0);
    for (; i + 8 <= size; i += 8, word += pattern_step) {
        if (memcmp(bytes + i, &word, 8) != 0)
            break;
    }
    while (i < size && bytes[i] == pattern_byte(block, i))
        i++;
    return i;
}
