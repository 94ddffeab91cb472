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

static const size_t KIB = 1 << 10, MIB = 1 << 20, GIB = 1 << 30;

/* NULL, or why blocks that are not touched take memory all the same. */
static const char *why_not(void)
{
    if (is_instrumented())
        return "the checker keeps track of each byte";
    return subject_fills_blocks() ? "it takes its time over blocks that nobody writes to" : NULL;
}

/* ---- in little memory ------------------------------------------------------------------------ */

struct in_little {
    void (*body)(const struct maker *maker);
    const struct maker *maker;
};

static void do_in_little(void *data)
{
    const struct in_little *in_little = data;
    in_little->body(in_little->maker);
}

/* In a child that is ended where the handler comes to zero, copy or fill gigabytes, as it may: one
 * that does so to all of a block has not cut its size. */
static void in_little_memory(void (*body)(const struct maker *maker), const struct maker *maker)
{
    struct in_little in_little = {body, maker};
    if (!is_instrumented() && lacking_memory(256 * MIB) == NULL)
        in_child_within(hang_limit() / 4, 24 * MIB, do_in_little, &in_little);
}

static void align_huge(const struct maker *maker)
{
    const size_t sizes[] = {100 * MIB,     300 * MIB + 5,        600 * MIB + 1,
                            GIB + 8 * KIB, POWER_OF_2(31) + 100, POWER_OF_2(32) + 64 * KIB};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *p = maker->ask(sizes[i]);
        if (p == NULL)
            continue;
        expect_aligned(p, sizes[i], "%s", maker->call(sizes[i]));
        subject_free(p, sizes[i]);
    }
}

void check_huge_alignment(const struct maker *maker)
{
    in_little_memory(align_huge, maker);
}

/* ---- live at once ---------------------------------------------------------------------------- */

enum { END = ENDS, SHRUNK = 5000 };

static void expect_all_ends(const struct blocks *blocks, const char *when)
{
    step("looking at the ends of %zu huge blocks %s", blocks->count, when);
    for (size_t i = 0; i < blocks->count; i++)
        expect_ends(&blocks->at[i], when);
}

/* Two at once, for what is behind the end of one may be memory of somebody's.  The last size is one
 * that calloc is asked for as NumPy does, in elements of one byte. */
static void hold_huge(const struct maker *maker)
{
    const size_t sizes[] = {513 * MIB, 800 * MIB, GIB, GIB + 512 * MIB,
                            SIZE_BITS > 32 ? POWER_OF_2(32) + POWER_OF_2(29) + 2 : 2 * MIB};
    enum { EACH = 2 };
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        struct block at[EACH];
        struct blocks blocks = {.at = at, .room = EACH};
        for (void *p; blocks.count < EACH && (p = maker->ask(sizes[i])) != NULL;)
            blocks_add_unwritten(&blocks, p, sizes[i]);
        blocks_expect_disjoint(&blocks);
        for (size_t j = 0; j < blocks.count; j++)
            expect(is_readable(blocks.at[j].p + sizes[i] - END, END),
                   fmt("the last %d bytes of %s to be memory", END, maker->call(sizes[i])),
                   "nothing can be read there");
        for (size_t j = 0; j < blocks.count; j++)
            fill_ends(&blocks.at[j]);
        expect_all_ends(&blocks, "when all were written");
        blocks_free_each(&blocks);
    }
}

void check_huge_extent(const struct maker *maker)
{
    in_little_memory(hold_huge, maker);
}

/* Takes one out, which is shrunk or freed. */
static void let_go(struct blocks *blocks, size_t place, bool shrinks)
{
    struct block b = blocks->at[place];
    unsigned char *q = shrinks ? subject_realloc(b.p, SHRUNK) : NULL;
    if (q != NULL) {
        expect_pattern(q, END, b.number, "after realloc from %zu to %d, with gigabytes live",
                       b.size, SHRUNK);
        blocks->at[place] = (struct block){q, SHRUNK, b.number};
    }
    blocks_free(blocks, place);
}

PROPERTY(malloc_live_past_4gib,
    .id     = "malloc.live-past-4gib", .level = MUST, .basis = BASIS_C,
    .title  = "more than 4 GiB can be live",
    .clause = "With more than 4 GiB of live blocks, none overlap, and realloc and free find the "
              "right block.",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "Five arrays of a gigabyte are common.",
    .hint   = "Keep offsets and the addresses that index a table in 64 bits.",
    .looks  = "expected two live blocks not to overlap; seen 268435456 bytes at 0x7f0c00000010 and "
              "others")
{
    /* The second, and the one before the last, are 4 GiB apart where nothing is between them. */
    static const unsigned mebibytes[] = {256, 256, 512, 512, 512, 512, 512, 512, 512, 512, 256};
    struct block at[LENGTH(mebibytes)];
    struct blocks blocks = {.at = at, .room = LENGTH(mebibytes)};
    const char *why = why_not();
    if (why != NULL)
        skip("%s, and this needs gigabytes", why);
    ask_for_memory(64 * MIB); /* the ends may be huge pages */
    for (void *p; blocks.count < LENGTH(mebibytes);) {
        size_t size = mebibytes[blocks.count] * MIB;
        if ((p = subject_malloc(size)) == NULL)
            break;
        fill_ends(&at[blocks_add_unwritten(&blocks, p, size)]);
    }
    size_t held = blocks.bytes / MIB;
    blocks_expect_disjoint(&blocks);
    expect_all_ends(&blocks, "when all were made");
    if (blocks.count == LENGTH(mebibytes))
        let_go(&blocks, 1, true);
    while (blocks.count > 0) {
        expect_all_ends(&blocks, "after another was resized or freed");
        let_go(&blocks, blocks.count / 2, blocks.count % 2 == 0);
    }
    if (held == 0)
        skip("it refuses a block of %u MiB", mebibytes[0]);
    if (held <= 4096)
        skip("it refuses more than %zu MiB at once; those do not overlap", held);
}

/* ---- calloc ---------------------------------------------------------------------------------- */

enum { PLACES = 4 };

static size_t place(size_t size, size_t i)
{
    const size_t places[PLACES] = {0, size / 3, size / 2, size - END};
    return places[i];
}

/* False where it is refused, or filled, as one that was kept has to be: larger ones would take too
 * much memory and time. */
static bool reuse(const struct maker *by_calloc, size_t size)
{
    unsigned char *p = subject_malloc(size);
    for (size_t i = 0; p != NULL && i < PLACES; i++)
        memset(p + place(size, i), 0xff, END);
    give_back(p, size);
    size_t before = resident_bytes();
    p = p != NULL ? by_calloc->ask(size) : NULL;
    bool fills = resident_bytes() > before + size / 4;
    for (size_t i = 0; p != NULL && i < PLACES; i++)
        expect_zero(p + place(size, i), END,
                    "from byte %zu of %zu on, in what %s gave, after such a block was freed",
                    place(size, i), size, by_calloc->call(size));
    give_back(p, size);
    return p != NULL && !fills;
}

/* Of which a length of 32 bits has little left. */
static void reuse_little(const struct maker *by_calloc)
{
    reuse(by_calloc, POWER_OF_2(32) + 64 * KIB);
}

void check_huge_zero_when_reused(const struct maker *by_calloc)
{
    const size_t sizes[] = {160 * MIB, POWER_OF_2(31) + 200 * MIB, POWER_OF_2(32) + 300 * MIB};
    size_t i = 0;
    if (why_not() != NULL)
        return;
    while (i < LENGTH(sizes) && lacking_memory(sizes[i]) == NULL && reuse(by_calloc, sizes[i]))
        i++;
    if (i < LENGTH(sizes))
        in_little_memory(reuse_little, by_calloc);
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* From a size of which 32 bits are next to nothing, and from more to a little less than that. */
static void resize_beyond_32_bits(const struct maker *unused)
{
    const size_t sizes[] = {POWER_OF_2(32) + 512 * MIB, POWER_OF_2(32) + 80};
    size_t size = POWER_OF_2(32) + 100;
    unsigned char *p = subject_malloc(size), *q = p;
    (void)unused;
    for (size_t i = 0; q != NULL && i < LENGTH(sizes); i++) {
        size_t kept = MIN(size, sizes[i]);
        for (size_t j = 0; j < PLACES; j++)
            pattern_fill_range(p, place(kept, j), place(kept, j) + END, i);
        step("resizing %zu bytes to %zu, and looking at them", size, sizes[i]);
        q = subject_realloc(p, sizes[i]);
        if (q == NULL)
            break;
        for (size_t j = 0; j < PLACES; j++) {
            size_t end = place(kept, j) + END;
            size_t at = pattern_mismatch_range(q, place(kept, j), end, i);
            if (at != end)
                pattern_fail_at(__LINE__, q, at, kept, i,
                                fmt("after realloc from %zu to %zu", size, sizes[i]));
        }
        p = q;
        size = sizes[i];
    }
    give_back(p, size);
}

void check_huge_realloc(void)
{
    if (why_not() == NULL)
        in_little_memory(resize_beyond_32_bits, NULL);
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
    .title  = "address space of huge blocks is freed",
    .clause = "The address space of a freed block of more than 2 GiB is released or used again.",
    .source = "C17 7.22.3.3: free makes the space available for further allocation",
    .why    = "A program that frees such an array each minute loses a terabyte of address space a "
              "day.",
    .wrong  = "int length = size;\n"
              "munmap(block, length);",
    .right  = "size_t length = size;\n"
              "munmap(block, length);",
    .hint   = "Pass munmap a size_t length. An int truncates it, and everything beyond 4 GiB stays "
              "mapped.",
    .looks  = "expected memory to stop growing while blocks of more than 2 GiB are made and freed")
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

enum { CYCLES = 80 };

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
        subject_free(must_malloc(SHRUNK), SHRUNK);
    }
}

PROPERTY(realloc_shrunk_part_available,
    .id     = "realloc.shrunk-part-available", .level = MUST, .basis = BASIS_C,
    .title  = "memory cut off by realloc is reusable",
    .clause = "The memory that a block loses when it shrinks is available for other blocks.",
    .tests  = "After many blocks were shrunk and freed, the next malloc has to succeed.",
    .source = "C17 7.22.3.5 paragraph 2: realloc deallocates the old object; 7.22.3.3",
    .why    = "fromstring and loadtxt shrink a block each time, and a server calls them for years.",
    .hint   = "If you limit live bytes, subtract the old size and add the new size in realloc.",
    .looks  = "expected malloc(1073741824) to return a block; seen NULL, when 32 had been shrunk")
{
    const char *why = why_not();
    if (why != NULL)
        skip("%s, and this needs gigabytes", why);
    in_child(without_shrinking, NULL);
    for (size_t made = 0; made < CYCLES; made++) {
        void *p = gibibyte(made);
        for (size_t i = 0; p != NULL && i < 3; i++)
            p = subject_realloc(p, i % 2 == 0 ? SHRUNK : GIB);
        if (p == NULL && made == 0)
            skip("it refuses to resize a block of 1 GiB");
        if (p == NULL)
            fail(fmt("malloc(%zu), and realloc from there to %d bytes and back, to return blocks: "
                     "next to nothing is live",
                     GIB, SHRUNK),
                 "NULL, when %zu such blocks had been shrunk and freed", made);
        subject_free(p, SHRUNK);
    }
}
