/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As many blocks as fill a slab, a run of pages or the cache of a class, and one more.
 */
#include "block_checks.h"

#include <stdlib.h>
#include <string.h>

/* Where a slab is searched by words of 64 bits, 100 are more than one word has.  Of two classes at
 * a time all are live. */
void check_slabs_disjoint(void)
{
    enum { EACH = 100, LEAST = 1024 + 20, MOST = 4096, CLOSE = 20 };
    struct block at[2 * EACH];
    struct blocks blocks = {.at = at, .room = 2 * EACH};
    for (size_t size = LEAST; size <= MOST; size += (is_instrumented() ? 8 : 1) * (size / CLOSE)) {
        for (size_t i = 0; i < EACH; i++)
            blocks_add_large(&blocks, must_malloc(size), size);
        blocks_expect_disjoint(&blocks);
        blocks_verify_samples(&blocks, "with %d blocks of %zu bytes live", EACH, size);
        for (size_t i = blocks.count - EACH; i > 0; i--) /* those of the class before */
            blocks_free(&blocks, i - 1);
    }
    blocks_free_each(&blocks);
}

/* Makes it, with its number at both ends. */
static void make_stamped(struct block *b, size_t size, uint64_t number)
{
    *b = (struct block){.p = must_malloc(size), .size = size, .number = number};
    memcpy(b->p, &b->number, sizeof b->number);
    memcpy(b->p + b->size - sizeof b->number, &b->number, sizeof b->number);
}

static void expect_stamp(const struct block *b, size_t count)
{
    uint64_t first, last;
    memcpy(&first, b->p, sizeof first);
    memcpy(&last, b->p + b->size - sizeof last, sizeof last);
    expect(first == b->number && last == b->number,
           fmt("both ends of a block of %zu bytes to be as they were written, with %zu such live",
               b->size, count),
           "another block's mark is there, or none");
}

/* Quarter by quarter, as a slab that is full may not be the next to be asked, every seventh is
 * freed and made again: where its place is mistaken, a live one is given. */
static void recycle_class(struct block *at, size_t size, size_t count)
{
    enum { PARTS = 4, EVERY = 7 };
    size_t made = 0;
    for (size_t part = 1; part <= PARTS; part++) {
        for (; made < part * count / PARTS; made++)
            make_stamped(&at[made], size, made);
        for (size_t i = 0; i < made; i += EVERY)
            subject_free(at[i].p, size);
        for (size_t i = 0; i < made; i += EVERY)
            make_stamped(&at[i], size, ~i);
    }
    for (size_t i = 0; i < count; i++)
        expect_stamp(&at[i], count);
    for (size_t i = 0; i < count; i++)
        subject_free(at[i].p, size);
}

void check_full_classes_disjoint(void)
{
    enum { MUCH = 4 << 20, LEAST = 208 };
    static const size_t sizes[] = {LEAST, 1024, 5200};
    struct block *at = calloc(MUCH / LEAST, sizeof *at);
    if (at == NULL)
        harness_broke("no memory for a table of blocks");
    for (size_t i = 0; i < LENGTH(sizes); i++)
        recycle_class(at, sizes[i], MUCH / sizes[i] / (is_instrumented() ? 8 : 1));
    free(at);
}

void check_page_runs_disjoint(void)
{
    enum { PAGE = 4096, COUNT = 2 };
    static const size_t pages[] = {31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256};
    static const size_t headers[] = {0, 24, 64};
    enum { PAGES = LENGTH(pages), HEADERS = LENGTH(headers) };
    for (size_t i = 0; i < PAGES * HEADERS; i++) {
        size_t size = pages[i / HEADERS] * PAGE - headers[i % HEADERS];
        struct block at[COUNT];
        struct blocks blocks = {.at = at, .room = COUNT};
        while (blocks.count < COUNT)
            blocks_add_large(&blocks, must_malloc(size), size);
        blocks_expect_disjoint(&blocks);
        blocks_verify_samples(&blocks, "with two blocks of %zu bytes live", size);
        blocks_free_each(&blocks);
    }
}
