/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what becomes of the memory where no size comes again.
 */
#include <stdio.h>
#include <time.h>

#include "harness/harness.h"
#include "harness/proc_count.h"

enum { KIB = 1 << 10, MIB = 1 << 20, PAGE = 4096 /* or more */ };

/* More than this is no cache any more that nobody has asked for.  After the first sizes 168 MiB
 * were mapped by a handler that keeps all for a while, 118 by jemalloc, 125 by one with guard
 * pages, and up to 101 by the other reference and sound ones. */
static const size_t LEFT_BEHIND = (size_t)256 << 20;

/* How many sizes there have been. */
struct turns {
    size_t small, large;
};

/* In no order, and no two in the same number of pages: 64 KiB to 3.6 MiB, and 8 to 32 MiB. */
static size_t next_small(struct turns *turns)
{
    enum { SIZES = 521, APART = 197, STEP = 7208 };
    return 64 * KIB + turns->small++ * APART % SIZES * STEP;
}

static size_t next_large(struct turns *turns)
{
    enum { SIZES = 233, APART = 89, STEP = 108008 };
    return 8 * MIB + turns->large++ * APART % SIZES * STEP;
}

static bool make_and_free(size_t size, bool is_touched)
{
    unsigned char *p = subject_malloc(size);
    if (p == NULL)
        return false;
    for (size_t at = 0; is_touched && at < size; at += PAGE)
        p[at] = 1;
    subject_free(p, size);
    return true;
}

/* Blocks of sizes that do not come again, one at a time.  Where they are touched it is enough when
 * too much is left behind. */
static void go_on(struct turns *turns, size_t large, bool are_touched)
{
    enum { SMALL = 170, SLACK = 32 * MIB };
    size_t most = resident_bytes() + LEFT_BEHIND + SLACK;
    for (size_t i = 0; i < SMALL + large; i++) {
        size_t size = i < SMALL ? next_small(turns) : next_large(turns);
        if (!make_and_free(size, are_touched) || (are_touched && resident_bytes() > most))
            break;
        if (time_is_up()) {
            mark_incomplete("half of its %g s were over after %zu sizes of blocks", time_limit(),
                            turns->small + turns->large);
            break;
        }
    }
}

/* What is in memory, but for what the kernel may take when it wants to (MADV_FREE). */
static size_t resident_for_good(void)
{
    size_t resident = resident_bytes(), kib = 0;
    char line[128];
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kib == 0 && fgets(line, sizeof line, file) != NULL)
        (void)sscanf(line, "LazyFree: %zu", &kib);
    if (file != NULL)
        fclose(file);
    return resident - MIN(resident, kib * KIB);
}

/* Whether it is more by that much, and still is when what is kept for a time has been given back,
 * by calls or by a thread. */
static bool stays(size_t resident)
{
    enum { PAUSES = 3, MILLISECONDS = 450 };
    for (int pause = 0; resident_for_good() > resident + LEFT_BEHIND; pause++) {
        if (pause == PAUSES)
            return true;
        nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
        make_and_free(100, false);
        make_and_free(MIB, false);
    }
    return false;
}

/* What is lost whatever its size, free.reclaims has to tell. */
static void attribute_where_one_size_is_lost(void)
{
    enum { TIMES = 300 };
    size_t before = mapped_bytes();
    for (int i = 0; i < TIMES; i++)
        make_and_free(MIB, false);
    if (mapped_bytes() > before + LEFT_BEHIND)
        attribute_to("free.reclaims", NULL);
}

PROPERTY(free_reclaims_other_sizes,
    .id     = "free.reclaims-other-sizes", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "freed memory serves other sizes",
    .clause = "Freed memory is released or serves other sizes, even if no size repeats.",
    .tests  = "With one block live and no size repeated, growth has to stop below 1 GiB.",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "Arrays read from files have varying sizes: one free list per size kept 960 MiB.",
    .hint   = "Limit caches and quarantines by their total bytes, and release the oldest blocks "
              "first.",
    .looks  = "expected freed memory to be released or to serve blocks of other sizes; seen 290 "
              "MiB more in memory")
{
    enum { FEW = 30, MANY = 100 };
    struct turns turns = {0}, before;
    if (is_instrumented())
        skip("the memory of a checker grows by itself");
    if (subject_fills_blocks())
        skip("it takes its time over blocks that nobody writes to");
    size_t mapped = mapped_bytes();
    go_on(&turns, FEW, false);
    if (mapped_bytes() <= mapped + LEFT_BEHIND)
        return;
    mapped = mapped_bytes(); /* it may be a cache of up to a gibibyte, which is full now */
    go_on(&turns, MANY, false);
    if (mapped_bytes() <= mapped + LEFT_BEHIND)
        return;
    ask_for_memory(2 * LEFT_BEHIND); /* it may be addresses alone that are kept */
    forgo_huge_pages();
    before = turns;
    size_t resident = resident_for_good();
    go_on(&turns, MANY, true);
    if (!stays(resident))
        return;
    size_t more = resident_for_good() - resident, all = turns.small + turns.large;
    attribute_where_one_size_is_lost();
    fail("freed memory to be released or to serve blocks of other sizes",
         "%zu MiB more in memory after the last %zu of %zu sizes, one block at a time", more >> 20,
         all - before.small - before.large, all);
}
