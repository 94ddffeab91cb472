/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of hundreds of mebibytes and more, of which hardly a page is touched: that a handler fills
 * what it makes is its right, and then it is not asked for these.
 */
#include "block_checks.h"

#include <unistd.h>

#include "base/clock.h"
#include "harness/growth.h"
#include "harness/proc_count.h"
#include "scenarios.h"

static const size_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

/* NULL, or why blocks that are not touched take memory all the same. */
static const char *why_not(void)
{
    if (is_instrumented())
        return "the checker keeps track of each byte";
    return subject_fills_blocks() ? "it takes its time over blocks that nobody writes to" : NULL;
}

/* ---- live at once ---------------------------------------------------------------------------- */

/* How many blocks of 512 MiB are granted at once, of which none is touched. */
static size_t granted_at_once(void)
{
    enum { COUNT = 10 };
    void *p[COUNT];
    size_t count = 0;
    while (count < COUNT && (p[count] = subject_malloc(GIB / 2)) != NULL)
        count++;
    for (size_t i = 0; i < count; i++)
        subject_free(p[i], GIB / 2);
    return count;
}

PROPERTY(malloc_live_past_4gib,
    .id     = "malloc.live-past-4gib", .level = MUST, .basis = BASIS_C,
    .clause = "more than 4 GiB of live blocks do not overlap, and realloc and free confuse none",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "five arrays of a gigabyte are nothing unusual",
    .hint   = "keep offsets, and addresses that are keys of a table, in all of their 64 bits",
    .looks  = "FAIL: two live blocks not to overlap; 268435456 bytes at 0x7f0c00000010 and others")
{
    const struct scenario_limits few = {
        .level = {[FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1), [FACTOR_REPETITION] = FROM_TO(0, 1)}};
    const struct scenario_limits many = {
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_128_MIB, SIZE_128_MIB),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(2, 2),
                  [FACTOR_REPETITION] = FROM_TO(0, 0)}};
    enum { PAST_4_GIB = 9 };
    const char *why = why_not();
    if (why != NULL)
        skip("%s, and this needs gigabytes", why);
    ask_for_memory(64 * MIB); /* the ends may be huge pages */
    check_huge_scenarios(8000, &few);
    check_huge_scenarios(25000, &many);
    size_t granted = granted_at_once();
    if (granted < PAST_4_GIB)
        skip("it grants no more than %zu blocks of 512 MiB at once; those do not overlap", granted);
}

/* ---- free ------------------------------------------------------------------------------------ */

enum { TEXTS = 80 };

/* A handler may free on a thread of its own, which may lag behind. */
static bool waits_long(uint64_t since)
{
    usleep(1000);
    return clock_since(since) > hang_limit() / 4;
}

/* Makes and frees so many, 80 GiB in all.  How many were not refused. */
static size_t free_texts(size_t given)
{
    size_t made = 0;
    uint64_t last = clock_now();
    while (made < TEXTS) {
        void *p = subject_malloc(GIB);
        if (p == NULL && waits_long(last))
            break;
        if (p == NULL)
            continue;
        subject_free(p, given);
        last = clock_now();
        made++;
    }
    return made;
}

/* How much more is mapped than `before`, when that has come down to `least` or does not. */
static size_t left_mapped(size_t before, uint64_t least)
{
    uint64_t begin = clock_now();
    size_t now = mapped_bytes();
    while (now > before + least && !waits_long(begin))
        now = mapped_bytes();
    return now - MIN(now, before);
}

void check_huge_best_guess(void)
{
    enum { FIRST_BUFFER = 32768 };
    static const uint64_t may_be_kept = (uint64_t)8 << 30;
    if (why_not() != NULL)
        return;
    size_t before = mapped_bytes();
    if (free_texts(GIB) < TEXTS)
        return;
    size_t kept = left_mapped(before, may_be_kept);
    before = mapped_bytes();
    size_t made = free_texts(FIRST_BUFFER);
    if (made < TEXTS)
        fail(fmt("malloc(%zu) to return a block: next to nothing is live", GIB),
             "NULL, when %zu such blocks had been freed as %d bytes", made, FIRST_BUFFER);
    size_t left = left_mapped(before, kept + may_be_kept);
    expect(left <= kept + may_be_kept,
           fmt("%d blocks of %zu bytes that were freed as %d to be gone", TEXTS, GIB, FIRST_BUFFER),
           "%zu MiB more are mapped", left / MIB);
}

/* ---- free ------------------------------------------------------------------------------------ */

/* Blocks that an int, or 32 bits, have no length for. */
static void make_and_free_huge(void *granted)
{
    const size_t sizes[] = {POWER_OF_2(31) + 64 * KIB, 3 * GIB + 5, POWER_OF_2(32) + GIB};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *p = subject_malloc(sizes[i]);
        give_back(p, sizes[i]);
        *(bool *)granted = *(bool *)granted || p != NULL;
    }
}

PROPERTY(free_reclaims_huge,
    .id     = "free.reclaims-huge", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "the address space of a freed block of more than 2 GiB is given back or used again",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "a program that frees such an array each minute loses a terabyte of addresses a day",
    .hint   = "pass munmap a size_t length: an int is cut, and what is beyond 4 GiB stays",
    .looks  = "WARN: memory to stop growing while blocks of more than 2 GiB are made and freed")
{
    bool granted = false;
    const char *why = sizeof(size_t) == 4 ? "a size_t has 32 bits here" : why_not();
    if (why != NULL)
        skip("%s, and this needs gigabytes", why);
    expect_no_growth(2, make_and_free_huge, NULL, &granted,
                     "blocks of more than 2 GiB are made and freed");
    if (!granted)
        skip("it refuses blocks of 2 GiB");
}

/* ---- realloc that shrinks -------------------------------------------------------------------- */

enum { CYCLES = 80, SHRUNK_TO = 5000 };

static void *gibibyte(size_t made)
{
    void *p = subject_malloc(GIB);
    if (p == NULL && made == 0)
        skip("it refuses a block of 1 GiB");
    return p;
}

static void without_shrinking(void *unused)
{
    (void)unused;
    for (size_t made = 0; made < 2 * CYCLES; made++) {
        void *p = gibibyte(made);
        if (p == NULL)
            skip("it refuses 1 GiB when %zu such blocks were made and freed, none of them resized",
                 made);
        subject_free(p, GIB);
        subject_free(must_malloc(SHRUNK_TO), SHRUNK_TO);
    }
}

PROPERTY(realloc_shrunk_part_available,
    .id     = "realloc.shrunk-part-available", .level = MUST, .basis = BASIS_C,
    .clause = "what a block lost when it shrank is available again: after many were shrunk and "
              "freed, the next is not refused",
    .source = "C17 7.22.3.5 paragraph 2: realloc deallocates the old object; 7.22.3.3",
    .why    = "fromstring and loadtxt shrink a block each time, and a server calls them for years",
    .hint   = "for a limit on live bytes, subtract the old size and add the new one",
    .looks  = "FAIL: malloc(1073741824) to return a block; NULL, when 32 had been shrunk")
{
    const char *why = why_not();
    if (why != NULL)
        skip("%s, and this needs gigabytes", why);
    in_child(without_shrinking, NULL);
    for (size_t made = 0; made < CYCLES; made++) {
        void *p = gibibyte(made);
        for (size_t i = 0; p != NULL && i < 3; i++)
            p = subject_realloc(p, i % 2 == 0 ? SHRUNK_TO : GIB);
        if (p == NULL && made == 0)
            skip("it refuses to resize a block of 1 GiB");
        if (p == NULL)
            fail(fmt("malloc(%zu), and realloc from there to %d bytes and back, to return blocks: "
                     "next to nothing is live",
                     GIB, SHRUNK_TO),
                 "NULL, when %zu such blocks had been shrunk and freed", made);
        subject_free(p, SHRUNK_TO);
    }
}
