/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Patterns, samples and fills.  The fills avoid work and branches that depend on the size: sizes
 * vary, and a branch that the processor cannot predict costs as much as all the rest.
 */
#include "base/fill.h"

#include <string.h>

#include "base/random.h"

/* The word at offset o, a multiple of 8, is the block's base plus o / 8 steps.  The step is odd: no
 * two words of a block are equal. */
#define STEP 0x9e3779b97f4a7c15u

enum { WORD = 8, STRETCHES = 4, PAGE = 4096 };
_Static_assert(FILL_WHOLE == STRETCHES * FILL_STRETCH,
               "the stretches of such a block are all of it");

/* A stretch, in the vectors that every x86-64 has. */
typedef uint64_t half __attribute__((vector_size(16)));
struct words {
    half low, high;
};
_Static_assert(sizeof(struct words) == FILL_STRETCH, "a stretch is four words");

static inline uint64_t base_of(uint64_t number)
{
    return random_mix(number + 1);
}

static inline struct words words_at(uint64_t base, size_t offset)
{
    uint64_t first = base + offset / WORD * STEP;
    return (struct words){(half){0, STEP} + first, (half){2 * STEP, 3 * STEP} + first};
}

/* Adds to `difference` the bits in which the stretch at p is not `words`. */
static inline void compare(half *difference, const unsigned char *p, struct words words)
{
    struct words seen;
    memcpy(&seen, p, sizeof seen);
    *difference |= (seen.low ^ words.low) | (seen.high ^ words.high);
}

static inline bool any(half v)
{
    return (v[0] | v[1]) != 0;
}

static unsigned char byte_at(uint64_t base, size_t offset)
{
    uint64_t word = base + offset / WORD * STEP;
    unsigned char bytes[WORD];
    memcpy(bytes, &word, WORD);
    return bytes[offset % WORD];
}

/* ---- ranges -------------------------------------------------------------------------------- */

static void write_range(unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    for (; from < to && from % WORD != 0; from++)
        bytes[from] = byte_at(base, from);
    for (; from + FILL_STRETCH <= to; from += FILL_STRETCH) {
        struct words words = words_at(base, from);
        memcpy(bytes + from, &words, sizeof words);
    }
    struct words words = words_at(base, from);
    memcpy(bytes + from, &words, to - from);
}

static size_t check_bytes(const unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    while (from < to && bytes[from] == byte_at(base, from))
        from++;
    return from;
}

/* Returns the first offset in [from, to) that differs, or `to`; `from` is a multiple of 8. */
static size_t check_range(const unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    half difference = {0};
    size_t at = from;
    for (; at + FILL_STRETCH <= to; at += FILL_STRETCH)
        compare(&difference, bytes + at, words_at(base, at));
    struct words words = words_at(base, at);
    if (any(difference) || memcmp(bytes + at, &words, to - at) != 0)
        return check_bytes(bytes, from, to, base);
    return to;
}

static size_t check_zero_range(const unsigned char *bytes, size_t from, size_t to)
{
    half difference = {0};
    size_t at = from;
    for (; at + FILL_STRETCH <= to; at += FILL_STRETCH)
        compare(&difference, bytes + at, (struct words){{0}, {0}});
    if (any(difference))
        at = from;
    while (at < to && bytes[at] == 0)
        at++;
    return at;
}

/* ---- patterns ------------------------------------------------------------------------------ */

void pattern_fill_range(void *p, size_t from, size_t to, uint64_t number)
{
    write_range(p, from, to, base_of(number));
}

size_t pattern_mismatch_range(const void *p, size_t from, size_t to, uint64_t number)
{
    uint64_t base = base_of(number);
    size_t even = (from + WORD - 1) / WORD * WORD;
    size_t end = even < to ? even : to, at = check_bytes(p, from, end, base);
    return at < end || end == to ? at : check_range(p, even, to, base);
}

size_t pattern_mismatch(const void *p, size_t size, uint64_t number)
{
    return check_range(p, 0, size, base_of(number));
}

unsigned char pattern_byte(uint64_t number, size_t offset)
{
    return byte_at(base_of(number), offset);
}

size_t pattern_offset(const void *p, uint64_t number)
{
    uint64_t word, inverse = STEP; /* of the step, modulo 2^64: right in the lowest 3 bits, and each
                                    * turn doubles them */
    for (int i = 0; i < 5; i++)
        inverse *= 2 - STEP * inverse;
    memcpy(&word, p, WORD);
    uint64_t index = (word - base_of(number)) * inverse;
    return index < SIZE_MAX / 16 ? index * WORD : SIZE_MAX / 2;
}

/* ---- samples ------------------------------------------------------------------------------- */

/* The middle of the index-th place, or SIZE_MAX after the last one. */
static size_t sample_middle(size_t size, size_t index)
{
    enum { SPREAD = 12 };
    size_t last_edge = size / PAGE * PAGE;
    const size_t fixed[] = {0, size, last_edge, last_edge > 0 ? last_edge - PAGE : 0};
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

void sample_fill(void *p, size_t size, uint64_t number)
{
    for_each_sample(size, SAMPLE_REACH, from, to) pattern_fill_range(p, from, to, number);
}

size_t sample_mismatch(const void *p, size_t size, uint64_t number)
{
    for_each_sample(size, SAMPLE_REACH, from, to)
    {
        size_t at = pattern_mismatch_range(p, from, to, number);
        if (at != to)
            return at;
    }
    return size;
}

/* ---- stretches of a fill ------------------------------------------------------------------- */

static inline size_t rounded(size_t offset)
{
    return offset - offset % WORD;
}

/* Where the stretches of a block begin that is no smaller than one.  Up to FILL_WHOLE bytes they
 * follow each other, and cover the block except for the last bytes of an odd size. */
static inline void choose(size_t begin[STRETCHES], size_t size, uint64_t base)
{
    size_t last = rounded(size - FILL_STRETCH);
    size_t middle = last / 2; /* below 2^47: a product with 16 bits fits */
    size_t left = (base & 0xffff) * middle >> 16;
    size_t right = middle + ((base >> 16 & 0xffff) * middle >> 16);
    bool whole = size <= FILL_WHOLE;
    begin[0] = 0;
    begin[1] = whole ? FILL_STRETCH : rounded(left);
    begin[2] = whole ? 2 * FILL_STRETCH : rounded(right);
    begin[3] = last;
    for (int i = 1; i < STRETCHES - 1; i++)
        begin[i] = begin[i] < last ? begin[i] : last;
}

/* True if a block is filled as one range: on request, or because no stretch fits. */
static inline bool is_one_range(size_t size, const struct fill_rules *rules)
{
    return __builtin_expect(size <= rules->whole || size < FILL_STRETCH, 0);
}

bool fill_is_whole(size_t size, const struct fill_rules *rules)
{
    return size <= rules->whole || size <= FILL_WHOLE;
}

static void write_stretches(unsigned char *bytes, size_t size, uint64_t base)
{
    size_t begin[STRETCHES];
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES; i++) {
        struct words words = words_at(base, begin[i]);
        memcpy(bytes + begin[i], &words, sizeof words);
    }
    if (size % WORD != 0)
        write_range(bytes, rounded(size), size, base);
}

/* The first difference in the stretches, when it is known that there is one. */
static size_t find_difference(const unsigned char *bytes, size_t size, const size_t *begin,
                              uint64_t base)
{
    for (int i = 0; i < STRETCHES; i++) {
        size_t end = begin[i] + FILL_STRETCH, at = check_bytes(bytes, begin[i], end, base);
        if (at != end)
            return at;
    }
    return size;
}

static inline size_t check_stretches(const unsigned char *bytes, size_t size, uint64_t base)
{
    size_t begin[STRETCHES];
    half difference = {0};
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES; i++)
        compare(&difference, bytes + begin[i], words_at(base, begin[i]));
    if (any(difference))
        return find_difference(bytes, size, begin, base);
    return size % WORD == 0 ? size : check_range(bytes, rounded(size), size, base);
}

/* ---- marks of a fill ----------------------------------------------------------------------- */

/* Smaller blocks have a stretch on each page but one or two anyway. */
static inline bool has_marks(size_t size, const struct fill_rules *rules)
{
    enum { LEAST = 1 << 14 };
    return __builtin_expect(rules->marks, 0) && size >= LEAST && size > rules->whole;
}

/* The distance of two marks. */
static size_t mark_distance(size_t size)
{
    size_t pages = 1;
    while (size / PAGE / pages > FILL_MARKS_MOST)
        pages *= 2;
    return pages * PAGE;
}

#define for_each_mark(at, begin, size, end)                                                        \
    for (size_t apart_ = mark_distance(size), at = (FILL_MARK_AT - (begin)) & (apart_ - 1);        \
         at + FILL_MARK_BYTES <= (end); at += apart_)

static size_t check_marks(const unsigned char *bytes, size_t kept, uintptr_t before, size_t size,
                          uint64_t base)
{
    for_each_mark(at, before, size, kept)
    {
        size_t end = at + FILL_MARK_BYTES, seen = check_bytes(bytes, at, end, base);
        if (seen != end)
            return seen;
    }
    return kept;
}

/* ---- fills --------------------------------------------------------------------------------- */

void fill_write(void *p, size_t size, const struct fill_rules *rules, uint64_t number)
{
    uint64_t base = base_of(number);
    if (is_one_range(size, rules)) {
        write_range(p, 0, size, base);
        return;
    }
    write_stretches(p, size, base);
    if (has_marks(size, rules)) {
        for_each_mark(at, (uintptr_t)p, size, size) write_range(p, at, at + FILL_MARK_BYTES, base);
    }
}

size_t fill_check(const void *p, size_t size, const struct fill_rules *rules, uint64_t number)
{
    uint64_t base = base_of(number);
    if (is_one_range(size, rules))
        return check_range(p, 0, size, base);
    size_t at = check_stretches(p, size, base);
    return at == size && has_marks(size, rules) ? check_marks(p, size, (uintptr_t)p, size, base)
                                                : at;
}

size_t fill_check_zero(const void *p, size_t size, const struct fill_rules *rules, uint64_t number)
{
    size_t begin[STRETCHES];
    if (is_one_range(size, rules))
        return check_zero_range(p, 0, size);
    choose(begin, size, base_of(number));
    for (int i = 0; i < STRETCHES; i++) {
        size_t end = begin[i] + FILL_STRETCH, at = check_zero_range(p, begin[i], end);
        if (at != end)
            return at;
    }
    size_t last = check_zero_range(p, rounded(size), size);
    if (last != size || !has_marks(size, rules))
        return last;
    for_each_mark(at, (uintptr_t)p, size, size)
    {
        size_t end = at + FILL_MARK_BYTES, seen = check_zero_range(p, at, end);
        if (seen != end)
            return seen;
    }
    return size;
}

static size_t last_begin(size_t kept)
{
    return kept > FILL_STRETCH ? rounded(kept - FILL_STRETCH) : 0;
}

void fill_last(void *p, size_t kept, uint64_t number)
{
    write_range(p, last_begin(kept), kept, base_of(number));
}

size_t fill_check_kept(const void *p, size_t kept, uintptr_t before, size_t size,
                       const struct fill_rules *rules, uint64_t number)
{
    size_t begin[STRETCHES];
    uint64_t base = base_of(number);
    if (fill_is_whole(size, rules))
        return check_range(p, 0, kept, base);
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES && begin[i] < kept; i++) {
        size_t end = begin[i] + FILL_STRETCH < kept ? begin[i] + FILL_STRETCH : kept;
        size_t at = check_range(p, begin[i], end, base);
        if (at != end)
            return at;
    }
    size_t at = check_range(p, last_begin(kept), kept, base);
    return at == kept && has_marks(size, rules) ? check_marks(p, kept, before, size, base) : at;
}
