/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Class edges.
 */
#include "block_checks.h"

enum { MOST = 1 << 20, WHOLE = 1 << 16 };

/* Each in turn is filled to its last byte, and the others looked at: of four, two lie side by side
 * even where a class gives out what was freed in any order. */
static void four_hold(size_t size)
{
    enum { COUNT = 4 };
    unsigned char *p[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        p[i] = must_malloc(size);
    for (size_t full = 0; full < COUNT; full++) {
        for (size_t i = 0; i < COUNT; i++)
            sample_fill(p[i], size, size + i);
        step("writing the %zu bytes that malloc(%zu) gave", size, size);
        memset(p[full], 0xff, size);
        for (size_t i = 0; i < COUNT; i++) {
            if (i != full)
                expect_samples(p[i], size, size + i, "after another block of %zu bytes was filled",
                               size);
        }
    }
    for (size_t i = 0; i < COUNT; i++)
        subject_free(p[i], size);
}

/* Also a little beyond the edges themselves: a class may begin there that says it is longer. */
void check_edges_extent(size_t from)
{
    enum { BEYOND = 200, ROUND = 1024 };
    for_each_edge(size, is_instrumented() ? WHOLE : MOST)
    {
        if (size <= from)
            continue;
        four_hold(size);
        if (size % ROUND == 0)
            four_hold(size + BEYOND);
    }
}

/* Each is written before the next is made, which may have its header in there. */
void check_edges_disjoint(const struct maker *maker)
{
    enum { COUNT = 3 };
    for_each_edge(size, is_instrumented() ? WHOLE : MOST)
    {
        struct block at[COUNT];
        struct blocks blocks = {.at = at, .room = COUNT};
        while (blocks.count < COUNT)
            blocks_add_large(&blocks, maker->must(size), size);
        blocks_expect_disjoint(&blocks);
        blocks_verify_samples(&blocks, "in one of %d blocks of %zu bytes", COUNT, size);
        blocks_free_each(&blocks);
    }
}

void check_edges_zero(const struct maker *by_calloc, size_t from)
{
    for_each_edge(size, is_instrumented() ? WHOLE : MOST)
    {
        if (size <= from)
            continue;
        void *p = by_calloc->must(size);
        expect_zero(p, size, "after %s", by_calloc->call(size));
        subject_free(p, size);
    }
}

/* Of what is larger than WHOLE, samples are dirty, and looked at. */
static void reuse(const struct maker *by_calloc, size_t size)
{
    unsigned char *p = must_malloc(size);
    for_each_sample(size, SAMPLE_PAGES, from, to) memset(p + from, 0xff, to - from);
    if (size <= WHOLE)
        memset(p, 0xff, size);
    subject_free(p, size);
    p = by_calloc->must(size);
    const char *call = by_calloc->call(size);
    if (size <= WHOLE)
        expect_zero(p, size, "in what %s gave, after such a block was freed", call);
    else
        expect_zero_samples(p, size, "in what %s gave, after such a block was freed", call);
    subject_free(p, size);
}

void check_edges_zero_when_reused(const struct maker *by_calloc)
{
    for_each_edge(size, is_instrumented() ? WHOLE : MOST) reuse(by_calloc, size);
}

static void fill(unsigned char *p, size_t size)
{
    if (size <= WHOLE)
        pattern_fill(p, size, 1);
    else
        sample_fill(p, size, 1);
}

/* Filled before it is resized, and looked at after. */
static unsigned char *resized_across(unsigned char *p, size_t old, size_t new)
{
    size_t kept = MIN(old, new);
    fill(p, kept);
    p = must_realloc(p, new);
    if (kept <= WHOLE)
        expect_pattern(p, kept, 1, "after realloc from %zu to %zu", old, new);
    else
        expect_samples(p, kept, 1, "after realloc from %zu to %zu", old, new);
    return p;
}

void check_edges_realloc(void)
{
    for_each_edge(size, is_instrumented() ? WHOLE : MOST - 1)
    {
        size_t more = MIN(size + size / 2, MOST), less = size / 2 + 1;
        unsigned char *p = must_malloc(size);
        p = resized_across(p, size, size + 1);
        p = resized_across(p, size + 1, more);
        p = resized_across(p, more, size);
        p = resized_across(p, size, more);
        p = resized_across(p, more, size - 1);
        p = resized_across(p, size - 1, less);
        subject_free(p, less);
    }
}

/* Two blocks that fill their class, and each gets a little more, or a part of a class. */
static void grow_two(size_t size, size_t more)
{
    enum { COUNT = 2 };
    struct block at[COUNT];
    struct blocks blocks = {.at = at, .room = COUNT};
    for (size_t i = 0; i < COUNT; i++)
        blocks_add_unwritten(&blocks, must_malloc(size), size);
    for (size_t i = 0; i < COUNT; i++) {
        at[i].p = must_realloc(at[i].p, more);
        at[i].size = more;
    }
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < COUNT; i++) {
        sample_fill(at[i].p, more, at[i].number);
        pattern_fill_range(at[i].p, size, more, at[i].number);
    }
    blocks_verify_samples(&blocks, "after %d blocks of %zu bytes were resized to %zu and filled",
                          COUNT, size, more);
    blocks_free_each(&blocks);
}

void check_edges_growth(void)
{
    for (size_t power = 1 << 10; power <= (is_instrumented() ? WHOLE : MOST) / 8; power *= 2) {
        for (size_t fourths = 5; fourths <= 7; fourths++) {
            grow_two(fourths * power, fourths * power + 1);
            if (power * 8 <= 2 * WHOLE)
                grow_two(fourths * power, fourths * power + power / 2);
        }
    }
}
