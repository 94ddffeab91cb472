/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generators of call sequences for special cases: large and huge blocks, long runs, idle time.
 *
 * A few blocks of many pages come zeroed, grow by little and much, are refused, shrink and go.
 * Their defects are at the end of a page, or between what was kept of one and the next.
 */
#include "search/generators.h"

#include <sys/param.h>

static size_t below(struct writer *writer, size_t bound)
{
    return (size_t)random_below(&writer->random, bound);
}

enum { PAGE = 4096, MIB = 1 << 20, LIVE = 4, FEW = 3 };

/* A history has a few sizes, of which each block is, so that what one left is for the next one; or
 * any. */
struct large {
    struct writer *writer;
    size_t sizes[FEW];
    size_t count; /* 0: any */
    size_t last;  /* size of a block, which the next one may be like */
};

/* A little more or less than that, as headers and counters are; or just that. */
static size_t beside(struct writer *writer, size_t size)
{
    static const int steps[] = {0, 0,  0,  0,   1,  1,   1,   -1,  -1,   8,     -8,
                                9, -7, 16, -16, 17, -15, -17, -32, PAGE, -PAGE, 100};
    return size + (size_t)steps[below(writer, sizeof steps / sizeof *steps)];
}

/* One of the edges that are known from a page on; or so many of a unit, or of pages near `last`.
 * Small ones come oftener, as they cost less. */
static size_t any_size(struct writer *writer, size_t last)
{
    enum { UNITS = 12, TIMES = 16, MOST = 48 * MIB };
    size_t edge =
        below(writer, 4) == 0 ? size_dict_edge_from(writer->size_dict, &writer->random, PAGE) : 0;
    if (edge != 0)
        return edge;
    if (below(writer, 8) == 0)
        return size_dict_neighbour(writer->size_dict, &writer->random, last);
    size_t unit = (size_t)PAGE << MIN(below(writer, UNITS), below(writer, UNITS));
    size_t base =
        below(writer, 2) == 0 ? unit * (1 + below(writer, TIMES)) : (last / PAGE + 1) * PAGE;
    return MAX(MIN(beside(writer, base), (size_t)MOST), (size_t)1);
}

/* An edge as often as not. */
static size_t a_favourite(struct large *large)
{
    struct writer *writer = large->writer;
    size_t edge =
        below(writer, 3) == 0 ? size_dict_edge_from(writer->size_dict, &writer->random, PAGE) : 0;
    return edge != 0 ? edge : any_size(writer, large->last);
}

static size_t a_size(struct large *large)
{
    if (large->count > 0 && below(large->writer, 8) != 0)
        return large->sizes[below(large->writer, large->count)];
    return any_size(large->writer, large->last);
}

static void make(struct large *large)
{
    struct writer *writer = large->writer;
    size_t size = a_size(large);
    if (below(writer, 2) == 0)
        write_malloc(writer, size);
    else if (below(writer, 4) == 0)
        write_zeroed(writer, size);
    else
        write_calloc(writer, size, 1);
}

/* To a part of what it was, and zeroed memory of the length that it lost. */
static void shrink(struct writer *writer, uint32_t slot)
{
    enum { PARTS = 8 };
    size_t size = (size_t)writer->size[slot], less = size / (2 + below(writer, PARTS - 1));
    write_realloc(writer, slot, MAX(less, (size_t)1));
    size_t lost = size - less;
    write_calloc(writer, MAX(lost / (1 + below(writer, 3)), (size_t)1), 1);
}

/* It goes, and zeroed memory of its length is there in its stead, or of some less. */
static void make_again(struct writer *writer, uint32_t slot)
{
    size_t size = (size_t)writer->size[slot];
    size_t less = below(writer, 2) == 0 ? 0 : below(writer, 2) == 0 ? size / 2 : PAGE;
    write_free(writer, slot);
    write_calloc(writer, MAX(size - MIN(less, size), (size_t)1), 1);
}

static void step(struct large *large)
{
    enum { WAYS = 6 };
    struct writer *writer = large->writer;
    uint32_t slot = writer_any(writer);
    if (slot != NO_SLOT)
        large->last = (size_t)writer->size[slot];
    if (slot == NO_SLOT || (writer->live_count < LIVE && below(writer, 2) == 0)) {
        make(large);
        return;
    }
    switch (below(writer, WAYS)) {
    case 0:
        shrink(writer, slot);
        return;
    case 1:
        make_again(writer, slot);
        return;
    case 2:
        write_free(writer, slot);
        return;
    default:
        write_realloc(writer, slot, a_size(large));
    }
}

/* With so little memory to be had that some are refused, and the same ones once more behind it. */
static void with_a_limit(struct large *large)
{
    enum { ROOM_LOG2 = 14, STEPS = 6 };
    struct writer *writer = large->writer;
    write_other(writer, STEP_LIMIT, (size_t)PAGE << below(writer, ROOM_LOG2), 0);
    for (size_t i = 1 + below(writer, STEPS); i > 0; i--)
        step(large);
    write_other(writer, STEP_LIMIT, 0, 0);
    for (size_t i = below(writer, LIVE); i > 0 && writer->live_count > 0; i--)
        write_realloc(writer, writer_any(writer), a_size(large));
}

void write_large(struct writer *writer, const struct behaviour_options *options)
{
    enum { MOST = 48, LIMIT_EVERY = 10 };
    struct large large = {.writer = writer, .last = any_size(writer, 0)};
    large.count = below(writer, 2) == 0 ? 1 + below(writer, FEW) : 0;
    for (size_t i = 0; i < large.count; i++)
        large.sizes[i] = a_favourite(&large);
    writer->wrong_sizes = below(writer, 8) == 0 ? 4 : 0;
    for (size_t i = 4 + below(writer, MOST); i > 0; i--) {
        if (options->limits && below(writer, LIMIT_EVERY) == 0)
            with_a_limit(&large);
        else
            step(&large);
    }
}

/* ---- huge ones ------------------------------------------------------------------------------- */

/* 128 MiB to more than 4 GiB, of which nothing but a few pages is touched. */
static size_t a_huge_size(struct writer *writer, unsigned most_log2)
{
    enum { LEAST_LOG2 = 27 };
    size_t size = (size_t)1 << (LEAST_LOG2 + below(writer, most_log2 - LEAST_LOG2 + 1));
    return beside(writer, below(writer, 4) == 0 ? size / 2 * 3 : size) + PAGE * below(writer, 4);
}

/* Of zeroed memory somebody may clear all. */
static void one_huge(struct writer *writer)
{
    enum { MOST_LOG2 = 32, MOST_ZEROED_LOG2 = 29, ZEROED_EVERY = 8 };
    uint32_t slot = writer_any(writer);
    bool by_calloc = below(writer, ZEROED_EVERY) == 0;
    if (slot != NO_SLOT && below(writer, 2) == 0)
        write_huge_realloc(writer, slot, a_huge_size(writer, MOST_LOG2));
    else
        slot = write_huge(writer, a_huge_size(writer, by_calloc ? MOST_ZEROED_LOG2 : MOST_LOG2),
                          by_calloc);
    if (slot == NO_SLOT)
        return;
    if (below(writer, 2) == 0)
        write_realloc(writer, slot, 1 + below(writer, MIB));
    else if (below(writer, 4) != 0)
        write_free(writer, slot);
}

/* More than 4 GiB live, in several blocks. */
static void huge_row(struct writer *writer)
{
    enum { MOST_LOG2 = 30, MOST = 16 };
    uint32_t slots[MOST];
    size_t size = a_huge_size(writer, MOST_LOG2), count = 2 + below(writer, MOST - 1);
    for (size_t i = 0; i < count; i++)
        slots[i] = write_huge(writer, size, false);
    for (size_t i = 0; i < count; i++) {
        if (slots[i] != NO_SLOT)
            write_free(writer, slots[i]);
    }
}

/* It goes, and zeroed memory of its length is there in its stead: 4 GiB and a little, which is all
 * that is left of it in 32 bits. */
static void huge_again(struct writer *writer)
{
    enum { MOST_LOG2 = 32 };
    size_t size =
        below(writer, 4) == 0
            ? a_huge_size(writer, MOST_LOG2)
            : beside(writer, (size_t)(UINT64_C(4) << 30) + PAGE * (1 + below(writer, PAGE)));
    uint32_t slot = write_huge(writer, size, false);
    if (slot != NO_SLOT)
        write_free(writer, slot);
    write_huge(writer, size, true);
}

void write_huge_blocks(struct writer *writer, bool zeroed)
{
    enum { MOST = 16, ROW_EVERY = 4 };
    struct large large = {.writer = writer, .last = any_size(writer, 0)};
    if (zeroed)
        huge_again(writer);
    for (size_t i = 1 + below(writer, MOST); i > 0; i--) {
        if (below(writer, 2) == 0)
            step(&large);
        if (below(writer, ROW_EVERY) == 0)
            huge_row(writer);
        else
            one_huge(writer);
    }
}

/* ---- long runs ---- */

static size_t size_below_power(struct writer *writer, size_t log2)
{
    size_t power = (size_t)1 << below(writer, log2);
    return power + below(writer, power);
}

/* Blocks of any size at any time, as many large ones as small ones: the more that come, grow and
 * go, the more they find that another kind left.  The number of live blocks stays about the same.
 */
void write_long_run(struct writer *writer)
{
    enum { LEAST_LOG2 = 4, MOST_LOG2 = 22, BYTES_LOG2 = 28, FEW_LOG2 = 5, MANY_LOG2 = 12 };
    size_t log2 = LEAST_LOG2 + below(writer, MOST_LOG2 - LEAST_LOG2 + 1);
    size_t room = MAX((size_t)1 << (BYTES_LOG2 - log2), (size_t)1 << MANY_LOG2);
    size_t live = (size_t)1 << (FEW_LOG2 + below(writer, MANY_LOG2 - FEW_LOG2 + 1));
    for (size_t left = MIN(room, writer_left(writer)); left > 0; left--) {
        uint32_t slot = writer_any(writer);
        if (slot == NO_SLOT || below(writer, 2 * live) >= writer->live_count)
            write_made(writer, size_below_power(writer, log2));
        else if (below(writer, 2) == 0)
            write_realloc(writer, slot, size_below_power(writer, log2));
        else
            write_free(writer, slot);
    }
}

/* ---- idle time ---- */

/* Each power of two is as likely as any other. */
static size_t idle_size(struct writer *writer)
{
    enum { MOST_LOG2 = 23, SMALL = 1 << 20 };
    size_t power = (size_t)1 << below(writer, MOST_LOG2);
    if (below(writer, 2) == 0)
        return size_dict_size(writer->size_dict, &writer->random, SMALL);
    return power + below(writer, power);
}

/* Blocks of all sizes come and go, some come again, and no call is made for a second or two: a
 * handler that returns memory after a time without use does so then, or in the next call. */
void write_idle(struct writer *writer)
{
    enum { SIZES = 24, EACH = 4, SHORT = 100, LONG = 1100, LONGEST = 1000, BEHIND = 8 };
    static const size_t longer[] = {0, 0, 0, LONGEST};
    size_t size[SIZES];
    uint32_t slot[SIZES][EACH];
    for (size_t i = 0; i < SIZES; i++) {
        size[i] = idle_size(writer);
        for (size_t k = 0; k < EACH; k++)
            slot[i][k] = write_made(writer, size[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = below(writer, EACH); k < EACH; k++) {
            if (slot[i][k] != NO_SLOT)
                write_free(writer, slot[i][k]);
        }
    }
    if (below(writer, 2) == 0)
        write_other(writer, STEP_PAUSE, 1 + below(writer, SHORT), 0);
    for (size_t i = 0; i < SIZES; i++) {
        if (below(writer, 4) != 0)
            write_malloc(writer, size[i]);
        if (below(writer, 2) == 0)
            write_made(writer, size[i]);
    }
    write_other(writer, STEP_PAUSE, LONG + longer[below(writer, sizeof longer / sizeof *longer)],
                0);
    for (size_t i = 0; i < BEHIND * SIZES; i++) {
        uint32_t any = writer_any(writer);
        if (any != NO_SLOT && below(writer, 2) == 0)
            write_free(writer, any);
        else
            write_made(writer, size[below(writer, SIZES)]);
    }
}
