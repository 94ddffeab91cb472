/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A few blocks of many pages: they come zeroed, grow by little and much, are refused, shrink and
 * go.  What is wrong with them is at an end of a page, or between what was kept of one and the
 * next.
 */
#include "search/large.h"

#include <sys/param.h>

enum { PAGE = 4096, MIB = 1 << 20, LIVE = 4 };

static size_t below(struct writer *writer, size_t bound)
{
    return (size_t)random_below(&writer->random, bound);
}

/* A little more or less than that, as headers and counters are; or just that. */
static size_t beside(struct writer *writer, size_t size)
{
    static const int steps[] = {0,  0,  0,   0,  1,   1,   1,   -1,   -1,    8,
                                -8, 16, -16, 17, -15, -17, -32, PAGE, -PAGE, 100};
    return size + (size_t)steps[below(writer, sizeof steps / sizeof *steps)];
}

/* So many of a unit, or of pages near `last`; small ones come oftener, as they cost less. */
static size_t a_size(struct writer *writer, size_t last)
{
    enum { UNITS = 12, TIMES = 16, MOST = 48 * MIB };
    size_t edge =
        below(writer, 4) == 0 ? palette_edge_from(writer->palette, &writer->random, PAGE) : 0;
    if (edge != 0)
        return edge;
    if (below(writer, 8) == 0)
        return palette_neighbour(writer->palette, &writer->random, last);
    size_t unit = (size_t)PAGE << MIN(below(writer, UNITS), below(writer, UNITS));
    size_t base =
        below(writer, 2) == 0 ? unit * (1 + below(writer, TIMES)) : (last / PAGE + 1) * PAGE;
    return MAX(MIN(beside(writer, base), (size_t)MOST), (size_t)1);
}

static void make(struct writer *writer, size_t size)
{
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

static void step(struct writer *writer, size_t last)
{
    enum { SHRINKS_EVERY = 5 };
    uint32_t slot = writer_any(writer);
    if (slot == NO_SLOT || (writer->live_count < LIVE && below(writer, 2) == 0))
        make(writer, a_size(writer, last));
    else if (below(writer, SHRINKS_EVERY) == 0)
        shrink(writer, slot);
    else if (below(writer, 5) < 3)
        write_realloc(writer, slot, a_size(writer, (size_t)writer->size[slot]));
    else
        write_free(writer, slot);
}

/* With so little memory to be had that some are refused, and the same ones once more behind it. */
static void with_a_limit(struct writer *writer, size_t last)
{
    enum { ROOM_LOG2 = 14, STEPS = 6 };
    write_other(writer, STEP_LIMIT, (size_t)PAGE << below(writer, ROOM_LOG2), 0);
    for (size_t i = 1 + below(writer, STEPS); i > 0; i--)
        step(writer, last);
    write_other(writer, STEP_LIMIT, 0, 0);
    for (size_t i = below(writer, LIVE); i > 0 && writer->live_count > 0; i--)
        write_realloc(writer, writer_any(writer), a_size(writer, last));
}

/* 128 MiB to more than 4 GiB, of which nothing but a few pages is touched. */
static size_t a_huge_size(struct writer *writer, unsigned most_log2)
{
    enum { LEAST_LOG2 = 27 };
    size_t size = (size_t)1 << (LEAST_LOG2 + below(writer, most_log2 - LEAST_LOG2 + 1));
    return beside(writer, below(writer, 4) == 0 ? size / 2 * 3 : size) + PAGE * below(writer, 4);
}

static void one_huge(struct writer *writer)
{
    enum { MOST_LOG2 = 32 };
    size_t size = a_huge_size(writer, MOST_LOG2);
    uint32_t slot = writer_any(writer);
    if (slot != NO_SLOT && below(writer, 2) == 0)
        write_huge_realloc(writer, slot, size);
    else
        slot = write_huge(writer, size, below(writer, 4) == 0);
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

void large_write(struct writer *writer, const struct behaviour_options *options)
{
    enum { MOST = 64, LIMIT_EVERY = 12, HUGE_EVERY = 16, ROW_EVERY = 4 };
    bool can_be_huge = options->huge && sizeof(size_t) > 4;
    size_t last = a_size(writer, 0);
    writer->wrong_sizes = below(writer, 8) == 0 ? 4 : 0;
    for (size_t i = 4 + below(writer, MOST); i > 0; i--) {
        if (options->limits && below(writer, LIMIT_EVERY) == 0)
            with_a_limit(writer, last);
        else if (can_be_huge && below(writer, HUGE_EVERY) == 0)
            (below(writer, ROW_EVERY) == 0 ? huge_row : one_huge)(writer);
        else
            step(writer, last);
        if (writer->live_count > 0)
            last = (size_t)writer->size[writer_any(writer)];
    }
}
