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

/* The number by which the step is 1 modulo 2^64. */
static uint64_t step_inverse(void)
{
    uint64_t inverse = pattern_step; /* right in the lowest 3 bits, and each turn doubles them */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - pattern_step * inverse;
    return inverse;
}

size_t pattern_offset(const void *p, uint64_t block)
{
    uint64_t word;
    memcpy(&word, p, 8);
    uint64_t index = (word - word_at(block, 0)) * step_inverse();
    return index < SIZE_MAX / 16 ? index * 8 : SIZE_MAX / 2;
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

size_t pattern_mismatch_range(const void *p, size_t from, size_t to, uint64_t block)
{
    const unsigned char *bytes = p;
    size_t i = from;
    for (; i < to && i % 8 != 0; i++) {
        if (bytes[i] != pattern_byte(block, i))
            return i;
    }
    uint64_t word = word_at(block, i / 8);
    for (; i + 8 <= to; i += 8, word += pattern_step) {
        if (memcmp(bytes + i, &word, 8) != 0)
            break;
    }
    while (i < to && bytes[i] == pattern_byte(block, i))
        i++;
    return i;
}

size_t pattern_mismatch(const void *p, size_t size, uint64_t block)
{
    return pattern_mismatch_range(p, 0, size, block);
}

/* ---- samples ------------------------------------------------------------------------------ */

enum { SAMPLE_PAGE = 4096, SPREAD = 12 };

/* The middle of the index-th place, or SIZE_MAX behind the last one. */
static size_t sample_middle(size_t size, size_t index)
{
    size_t last_edge = size / SAMPLE_PAGE * SAMPLE_PAGE;
    const size_t fixed[] = {0, size, last_edge, last_edge > 0 ? last_edge - SAMPLE_PAGE : 0};
    enum { FIXED = sizeof fixed / sizeof *fixed };
    if (index < FIXED)
        return fixed[index];
    if (index < FIXED + SPREAD)
        return size / (SPREAD + 1) * (index - FIXED + 1);
    size_t shift = 12 + index - FIXED - SPREAD;
    return shift < 8 * sizeof size && (size_t)1 << shift < size ? (size_t)1 << shift : SIZE_MAX;
}

bool sample_range(size_t size, size_t index, size_t reach, size_t *from, size_t *to)
{
    size_t middle = sample_middle(size, index);
    if (middle == SIZE_MAX)
        return false;
    *from = middle > reach ? middle - reach : 0;
    *to = size - middle > reach ? middle + reach : size;
    return true;
}

void sample_fill(void *p, size_t size, uint64_t block)
{
    for_each_sample(size, SAMPLE_REACH, from, to) pattern_fill_range(p, from, to, block);
}

size_t sample_mismatch(const void *p, size_t size, uint64_t block)
{
    for_each_sample(size, SAMPLE_REACH, from, to)
    {
        size_t at = pattern_mismatch_range(p, from, to, block);
        if (at != to)
            return at;
    }
    return size;
}
