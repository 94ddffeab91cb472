/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generators of call sequences for special cases: huge blocks and long runs.
 */
#include "search/generators.h"
#include "search/scenario.h"

#include <sys/param.h>

static size_t below(struct writer *writer, size_t bound)
{
    return (size_t)random_below(&writer->random, bound);
}

enum { PAGE = 4096, MIB = 1 << 20 };

/* A little more or less than that, as headers and counters are; or just that. */
static size_t beside(struct writer *writer, size_t size)
{
    static const int steps[] = {0, 0,  0,  0,   1,  1,   1,   -1,  -1,   8,     -8,
                                9, -7, 16, -16, 17, -15, -17, -32, PAGE, -PAGE, 100};
    return size + (size_t)steps[below(writer, sizeof steps / sizeof *steps)];
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
    const struct scenario_limits large = {
        .least_size = 64 << 10, .most_bytes = writer->most_bytes, .most_steps = 64};
    if (zeroed)
        huge_again(writer);
    for (size_t i = 1 + below(writer, MOST); i > 0; i--) {
        if (below(writer, 2) == 0) {
            struct scenario scenario = scenario_draw(&writer->random, &large);
            scenario_write(&scenario, writer);
        }
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
