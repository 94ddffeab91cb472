/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Contents of blocks.  What is done for a block does not depend on its size as far as that can be:
 * sizes vary, and a branch that the processor cannot foresee costs as much as all the rest.
 */
#include "base/contents.h"

#include <string.h>

#include "base/random.h"

/* The word at offset o, a multiple of 8, is the block's base plus o steps.  The step is odd: no two
 * words of a block are the same. */
#define STEP 0x9e3779b97f4a7c15u

enum { WORD = 8, STRETCHES = 4 };
_Static_assert(CONTENTS_WHOLE == STRETCHES * CONTENTS_STRETCH, "so much is whole");

/* A stretch, in the vectors that every x86-64 has. */
typedef uint64_t half __attribute__((vector_size(16)));
struct words {
    half low, high;
};
_Static_assert(sizeof(struct words) == CONTENTS_STRETCH, "a stretch is four words");

static inline uint64_t base_of(uint64_t number)
{
    return random_mix(number);
}

static inline struct words words_at(uint64_t base, size_t offset)
{
    uint64_t first = base + offset * STEP;
    return (struct words){(half){0, 8 * STEP} + first, (half){16 * STEP, 24 * STEP} + first};
}

/* Adds to `difference` the bits in which the stretch at p is not `words`. */
static inline void compare(half *difference, const unsigned char *p, struct words words)
{
    struct words seen;
    memcpy(&seen, p, sizeof seen);
    *difference |= (seen.low ^ words.low) | (seen.high ^ words.high);
}

static unsigned char byte_at(uint64_t base, size_t offset)
{
    uint64_t word = base + (offset - offset % WORD) * STEP;
    unsigned char bytes[WORD];
    memcpy(bytes, &word, WORD);
    return bytes[offset % WORD];
}

static inline bool any(half v)
{
    return (v[0] | v[1]) != 0;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/* Writes bytes [from, to), where `from` is a multiple of 8. */
static void write_range(unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    for (; from + CONTENTS_STRETCH <= to; from += CONTENTS_STRETCH) {
        struct words words = words_at(base, from);
        memcpy(bytes + from, &words, sizeof words);
    }
    struct words words = words_at(base, from);
    memcpy(bytes + from, &words, to - from);
}

/* The first offset in [from, to) that is not as written, or `to`. */
static size_t check_bytes(const unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    while (from < to && bytes[from] == byte_at(base, from))
        from++;
    return from;
}

/* The same, where `from` is a multiple of 8. */
static size_t check_range(const unsigned char *bytes, size_t from, size_t to, uint64_t base)
{
    half difference = {0};
    size_t at = from;
    for (; at + CONTENTS_STRETCH <= to; at += CONTENTS_STRETCH)
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
    for (; at + CONTENTS_STRETCH <= to; at += CONTENTS_STRETCH)
        compare(&difference, bytes + at, (struct words){{0}, {0}});
    if (any(difference))
        at = from;
    while (at < to && bytes[at] == 0)
        at++;
    return at;
}

/* ---- stretches ------------------------------------------------------------------------------ */

static inline size_t rounded(size_t offset)
{
    return offset - offset % WORD;
}

/* Where the stretches of a block begin that has room for one: with up to CONTENTS_WHOLE bytes one
 * behind the other, so that they are all of it but for the last bytes of an odd size. */
static inline void choose(size_t begin[STRETCHES], size_t size, uint64_t base)
{
    size_t last = rounded(size - CONTENTS_STRETCH);
    size_t middle = last / 2; /* below 2^47: a product with 16 bits fits */
    size_t left = (base & 0xffff) * middle >> 16;
    size_t right = middle + ((base >> 16 & 0xffff) * middle >> 16);
    bool whole = size <= CONTENTS_WHOLE;
    begin[0] = 0;
    begin[1] = whole ? CONTENTS_STRETCH : rounded(left);
    begin[2] = whole ? 2 * CONTENTS_STRETCH : rounded(right);
    begin[3] = last;
    for (int i = 1; i < STRETCHES - 1; i++)
        begin[i] = begin[i] < last ? begin[i] : last;
}

/* Whether a block is done from its first byte to its last: because it is asked for, or because it
 * has no room for a stretch. */
static inline bool in_one_go(size_t size, size_t whole)
{
    return __builtin_expect(size <= whole || size < CONTENTS_STRETCH, 0);
}

bool contents_are_whole(size_t size, size_t whole)
{
    return size <= whole || size <= CONTENTS_WHOLE;
}

void contents_write(void *p, size_t size, size_t whole, uint64_t number)
{
    unsigned char *bytes = p;
    size_t begin[STRETCHES];
    uint64_t base = base_of(number);
    if (in_one_go(size, whole)) {
        write_range(bytes, 0, size, base);
        return;
    }
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES; i++) {
        struct words words = words_at(base, begin[i]);
        memcpy(bytes + begin[i], &words, sizeof words);
    }
    if (size % WORD != 0)
        write_range(bytes, rounded(size), size, base);
}

/* The first difference in the stretches, when it is known that there is one. */
static size_t find_difference(const unsigned char *bytes, size_t size, uint64_t base)
{
    size_t begin[STRETCHES];
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES; i++) {
        size_t end = begin[i] + CONTENTS_STRETCH;
        size_t at = check_bytes(bytes, begin[i], end, base);
        if (at != end)
            return at;
    }
    return check_bytes(bytes, rounded(size), size, base);
}

size_t contents_check(const void *p, size_t size, size_t whole, uint64_t number)
{
    const unsigned char *bytes = p;
    size_t begin[STRETCHES];
    uint64_t base = base_of(number);
    half difference = {0};
    if (in_one_go(size, whole))
        return check_range(bytes, 0, size, base);
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES; i++)
        compare(&difference, bytes + begin[i], words_at(base, begin[i]));
    if (any(difference))
        return find_difference(bytes, size, base);
    return size % WORD == 0 ? size : check_range(bytes, rounded(size), size, base);
}

size_t contents_check_zero(const void *p, size_t size, size_t whole, uint64_t number)
{
    const unsigned char *bytes = p;
    size_t begin[STRETCHES];
    if (in_one_go(size, whole))
        return check_zero_range(bytes, 0, size);
    choose(begin, size, base_of(number));
    for (int i = 0; i < STRETCHES; i++) {
        size_t end = begin[i] + CONTENTS_STRETCH;
        size_t at = check_zero_range(bytes, begin[i], end);
        if (at != end)
            return at;
    }
    return check_zero_range(bytes, rounded(size), size);
}

/* ---- a part of a block ---------------------------------------------------------------------- */

static size_t last_begin(size_t kept)
{
    return kept > CONTENTS_STRETCH ? rounded(kept - CONTENTS_STRETCH) : 0;
}

void contents_write_last(void *p, size_t kept, uint64_t number)
{
    write_range(p, last_begin(kept), kept, base_of(number));
}

size_t contents_check_kept(const void *p, size_t kept, size_t size, size_t whole, uint64_t number)
{
    size_t begin[STRETCHES];
    uint64_t base = base_of(number);
    if (contents_are_whole(size, whole))
        return check_range(p, 0, kept, base);
    choose(begin, size, base);
    for (int i = 0; i < STRETCHES && begin[i] < kept; i++) {
        size_t end = begin[i] + CONTENTS_STRETCH < kept ? begin[i] + CONTENTS_STRETCH : kept;
        size_t at = check_range(p, begin[i], end, base);
        if (at != end)
            return at;
    }
    return check_range(p, last_begin(kept), kept, base);
}

unsigned char contents_byte(uint64_t number, size_t offset)
{
    return byte_at(base_of(number), offset);
}
