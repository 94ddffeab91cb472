/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Keeping blocks with contents, and checking them.
 */
#include "harness/blocks.h"

#include <stdlib.h>
#include <string.h>

#include "harness/property_child.h"
#include "harness/sizes.h"
#include "harness/test_process.h"
#include "heap/heap.h"

size_t required_alignment(size_t size)
{
    return heap_alignment(0, size);
}

size_t alignment_of(const void *p)
{
    return (size_t)((uintptr_t)p & -(uintptr_t)p);
}

_Noreturn void pattern_fail_at(int line, const void *p, size_t at, size_t size, uint64_t number,
                               const char *when)
{
    test_process.setup.record->overwritten = 1;
    fail_at(line,
            fmt("byte %zu of %zu to be 0x%02x as it was written, %s", at, size,
                pattern_byte(number, at), when),
            "0x%02x, in the block at %p", ((const unsigned char *)p)[at], p);
}

size_t first_nonzero(const void *p, size_t size)
{
    const unsigned char *bytes = p;
    if (size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0))
        return size;
    size_t at = 0;
    while (bytes[at] == 0)
        at++;
    return at;
}

size_t blocks_add_unwritten(struct blocks *blocks, void *p, size_t size)
{
    static _Atomic uint64_t last_number; /* no two blocks of a process share a pattern */
    if (blocks->count == blocks->room) {
        size_t room = blocks->room != 0 ? blocks->room * 2 : 256;
        struct block *at = realloc(blocks->at, room * sizeof *at);
        if (at == NULL)
            harness_broke("out of memory for the list of blocks");
        blocks->at = at;
        blocks->room = room;
    }
    blocks->at[blocks->count] = (struct block){p, size, ++last_number};
    blocks->bytes += size;
    return blocks->count++;
}

size_t blocks_add(struct blocks *blocks, void *p, size_t size)
{
    size_t place = blocks_add_unwritten(blocks, p, size);
    pattern_fill(p, size, blocks->at[place].number);
    return place;
}

size_t blocks_add_large(struct blocks *blocks, void *p, size_t size)
{
    size_t place = blocks_add_unwritten(blocks, p, size);
    sample_fill(p, size, blocks->at[place].number);
    return place;
}

static bool overlap(const struct block *a, const struct block *b)
{
    return a->p < b->p + b->size && b->p < a->p + a->size;
}

/* Another of them whose pattern stands at byte `at` of this one, or soon after it (behind a
 * header), at addresses of its own: the same memory is mapped twice. */
static const struct block *twin_of(const struct blocks *blocks, const struct block *b, size_t at)
{
    enum { HEADER = 64 };
    for (size_t from = at / 8 * 8; from < at + HEADER && from + 8 <= b->size; from += 8) {
        for (size_t i = 0; i < blocks->count; i++) {
            const struct block *other = &blocks->at[i];
            if (!overlap(b, other) && pattern_offset(b->p + from, other->number) + 8 <= other->size)
                return other;
        }
    }
    return NULL;
}

static _Noreturn void block_broken_at(int line, const struct blocks *blocks, const struct block *b,
                                      size_t at, const char *when)
{
    const struct block *twin = twin_of(blocks, b, at);
    if (twin == NULL)
        pattern_fail_at(line, b->p, at, b->size, b->number, when);
    if (!blocks->after_fork)
        attribute_to(property_about(TOPIC_BLOCKS_OVERLAP), NULL);
    fail_at(line, fmt("%zu live blocks not to share memory, %s", blocks->count, when),
            "byte %zu of %zu bytes at %p is what was written into %zu bytes at %p", at, b->size,
            (void *)b->p, twin->size, (void *)twin->p);
}

static void verify(int line, const struct blocks *blocks, const char *when,
                   size_t mismatch(const void *p, size_t size, uint64_t number))
{
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *b = &blocks->at[i];
        size_t at = mismatch(b->p, b->size, b->number);
        if (at != b->size)
            block_broken_at(line, blocks, b, at, when);
    }
}

void blocks_verify_at(int line, const struct blocks *blocks, const char *when)
{
    verify(line, blocks, when, pattern_mismatch);
}

void blocks_verify_samples_at(int line, const struct blocks *blocks, const char *when)
{
    verify(line, blocks, when, sample_mismatch);
}

static int by_address(const void *left, const void *right)
{
    const struct block *a = left, *b = right;
    return a->p < b->p ? -1 : a->p > b->p;
}

void blocks_expect_disjoint_at(int line, const struct blocks *blocks)
{
    struct block *sorted = malloc((blocks->count + 1) * sizeof *sorted);
    if (sorted == NULL)
        harness_broke("out of memory for sorting the blocks");
    if (blocks->count > 0)
        memcpy(sorted, blocks->at, blocks->count * sizeof *sorted);
    qsort(sorted, blocks->count, sizeof *sorted, by_address);
    for (size_t i = 1; i < blocks->count; i++) {
        const struct block *a = &sorted[i - 1], *b = &sorted[i];
        if ((uintptr_t)a->p + a->size > (uintptr_t)b->p)
            fail_at(line, fmt("%zu live blocks not to overlap", blocks->count),
                    "%zu bytes at %p and %zu bytes at %p", a->size, (void *)a->p, b->size,
                    (void *)b->p);
    }
    free(sorted);
}

void blocks_free(struct blocks *blocks, size_t place)
{
    struct block gone = blocks->at[place];
    blocks->at[place] = blocks->at[--blocks->count];
    blocks->bytes -= gone.size;
    subject_free(gone.p, gone.size);
}

void blocks_free_each(struct blocks *blocks)
{
    while (blocks->count > 0)
        blocks_free(blocks, 0);
}

void blocks_free_all(struct blocks *blocks)
{
    while (blocks->count > 0)
        blocks_free(blocks, blocks->count - 1);
    free(blocks->at);
    *blocks = (struct blocks){0};
}

size_t largest_to_try(void)
{
    enum { LARGEST = 64 << 20, LITTLE = 2 << 20 };
    return is_instrumented() || lacking_memory(2 * LARGEST) != NULL ? LITTLE : LARGEST;
}

void blocks_add_neighbours(struct blocks *blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t size = 1 + random_below(rng(), i % 8 == 0 ? 4096 : 256);
        blocks_add(blocks, must_malloc(size), size);
    }
}
