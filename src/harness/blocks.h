/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks with contents: what a property writes into memory, and what it expects to read back.
 * Each function ends the property where its expectation does not hold.
 */
#ifndef CONFORM_BLOCKS_H
#define CONFORM_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/fill.h"
#include "base/text.h"

struct block {
    unsigned char *p;
    size_t size;
    uint64_t number; /* of its pattern */
};

/* Writes the pattern of block `number` over all of it. */
static inline void pattern_fill(void *p, size_t size, uint64_t number)
{
    pattern_fill_range(p, 0, size, number);
}

/* Fails where the first `size` bytes at p are not the pattern of block `number`; `when` says
 * after what. */
#define expect_pattern(p, size, number, ...)                                                       \
    do {                                                                                           \
        size_t at_ = pattern_mismatch(p, size, number);                                            \
        if (at_ != (size))                                                                         \
            pattern_fail_at(__LINE__, p, at_, size, number, fmt(__VA_ARGS__));                     \
    } while (0)
_Noreturn void pattern_fail_at(int line, const void *p, size_t at, size_t size, uint64_t number,
                               const char *when);

/* The same of its samples. */
#define expect_samples(p, size, number, ...)                                                       \
    do {                                                                                           \
        size_t at_ = sample_mismatch(p, size, number);                                             \
        if (at_ != (size))                                                                         \
            pattern_fail_at(__LINE__, p, at_, size, number, fmt(__VA_ARGS__));                     \
    } while (0)

/* Fails where one of `size` bytes is not zero. */
#define expect_zero(p, size, ...)                                                                  \
    do {                                                                                           \
        size_t at_ = first_nonzero(p, size);                                                       \
        if (at_ != (size))                                                                         \
            fail_at(__LINE__,                                                                      \
                    fmt("byte %zu of %zu to be 0, %s", at_, (size_t)(size), fmt(__VA_ARGS__)),     \
                    "0x%02x, in the block at %p", ((const unsigned char *)(p))[at_],               \
                    (const void *)(p));                                                            \
    } while (0)
/* The same of the pages that samples are on. */
#define expect_zero_samples(p, size, ...)                                                          \
    do {                                                                                           \
        for_each_sample(size, SAMPLE_PAGES, from_, to_)                                            \
            expect_zero((const unsigned char *)(p) + from_, to_ - from_,                           \
                        "from byte %zu of %zu on, %s", from_, (size_t)(size), fmt(__VA_ARGS__));   \
    } while (0)
enum { SAMPLE_PAGES = 2048 };

/* The offset of the first byte that is not 0, or size. */
size_t first_nonzero(const void *p, size_t size);

/* Fails where p is not aligned for a block of `size` bytes, see required_alignment; the text
 * says what made it, as in "malloc(17)". */
#define expect_aligned(p, size, ...)                                                               \
    do {                                                                                           \
        size_t alignment_ = required_alignment(size);                                              \
        if ((uintptr_t)(p) % alignment_ != 0)                                                      \
            fail_at(__LINE__, fmt("%s to be aligned to %zu bytes", fmt(__VA_ARGS__), alignment_),  \
                    "%p, which is aligned to %zu", (const void *)(p), alignment_of(p));            \
    } while (0)
/* The largest power of two that the address is a multiple of. */
size_t alignment_of(const void *p);

/* What a block of that size has to be aligned to without a claim, as heap_alignment has it. */
size_t required_alignment(size_t size);

/* Live blocks with contents, of which a property keeps many. */
struct blocks {
    struct block *at;
    size_t count, room;
    size_t bytes;
    bool after_fork; /* what is shared is shared with the other process */
};

/* Fills the block with the next pattern and keeps it.  Returns its place. */
size_t blocks_add(struct blocks *blocks, void *p, size_t size);
/* Keeps it as it is; the pattern of its number is then to be written. */
size_t blocks_add_unwritten(struct blocks *blocks, void *p, size_t size);
/* Fails where any block's contents are not what was written. */
#define blocks_verify(blocks, ...) blocks_verify_at(__LINE__, blocks, fmt(__VA_ARGS__))
void blocks_verify_at(int line, const struct blocks *blocks, const char *when);
/* Fails where two of them overlap. */
#define blocks_expect_disjoint(blocks) blocks_expect_disjoint_at(__LINE__, blocks)
void blocks_expect_disjoint_at(int line, const struct blocks *blocks);
/* The same of large blocks, of which samples alone were written (with the number of each). */
#define blocks_verify_samples(blocks, ...)                                                         \
    blocks_verify_samples_at(__LINE__, blocks, fmt(__VA_ARGS__))
void blocks_verify_samples_at(int line, const struct blocks *blocks, const char *when);
/* Takes one out (the last takes its place) and frees it by the subject, with its size. */
void blocks_free(struct blocks *blocks, size_t place);
/* Frees all of them, the first one first, and keeps the list. */
void blocks_free_each(struct blocks *blocks);
/* Frees what is left, and the list. */
void blocks_free_all(struct blocks *blocks);

/* As blocks_add, of a large block, of which samples are written. */
size_t blocks_add_large(struct blocks *blocks, void *p, size_t size);

/* The largest block to try: 64 MiB, of which two fit here, or 2 where memory is scarce or a checker
 * keeps track of each byte. */
size_t largest_to_try(void);

/* Small blocks of many sizes (1 to 4096), for properties that want company for the block
 * under test. */
void blocks_add_neighbours(struct blocks *blocks, size_t count);

#endif
