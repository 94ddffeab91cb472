/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large blocks.
 */
#include "block_checks.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* Odd sizes from 2^24 on are no floats, and those beside a multiple of the page need one more. */
static const size_t sizes[] = {
    MIB + 1,      2 * MIB,      5 * MIB + 4095, 12 * MIB + 1, 16 * MIB - 16,   16 * MIB + 1,
    24 * MIB + 1, 32 * MIB - 8, 33 * MIB + 1,   40 * MIB + 5, 48 * MIB + 4097, 64 * MIB,
};

/* A handler that fills or copies all of a block takes its time: then one in three will do. */
static size_t pace(uint64_t begun)
{
    static const double a_moment = 0.3;
    return clock_since(begun) < a_moment ? 1 : 3;
}

/* ---- malloc ---------------------------------------------------------------------------------- */

/* The block that is freed has others of its kind beside it, and may come back for more than it
 * has. */
static void reuse_for_more(size_t size, size_t more, size_t others)
{
    enum { MOST = 4, TAIL = 64 * KIB };
    struct block at[MOST];
    struct blocks blocks = {.at = at, .room = MOST};
    void *p = subject_malloc(size);
    for (; p != NULL && blocks.count < others; p = subject_malloc(size))
        blocks_add_large(&blocks, p, size);
    give_back(p, size);
    p = blocks.count == others ? subject_malloc(more) : NULL;
    if (p != NULL) {
        const struct block *b = &at[blocks_add_unwritten(&blocks, p, more)];
        blocks_expect_disjoint(&blocks);
        step("writing what malloc(%zu) gave after a block of %zu bytes was freed", more, size);
        sample_fill(p, more, b->number);
        pattern_fill_range(p, more > size + TAIL ? more - TAIL : size, more, b->number);
        blocks_verify_samples(&blocks, "after malloc(%zu), when %zu bytes had been freed", more,
                              size);
    }
    blocks_free_each(&blocks);
}

void check_reuse_for_more(void *unused)
{
    static const size_t pairs[][2] = {
        {3000, 3900},
        {70000, 90000},
        {300 * KIB, 400 * KIB},
        {MIB, MIB + 4096},
        {MIB + 1, MIB + 512 * KIB},
        {2 * MIB + 256 * KIB, 2 * MIB + 900 * KIB},
        {5 * MIB, 9 * MIB},
        {16 * MIB + 4096, 16 * MIB + 800 * KIB},
        {17 * MIB, 30 * MIB},
    };
    size_t most = largest_to_try();
    uint64_t begun = clock_now();
    (void)unused;
    for (size_t i = 0; i < LENGTH(pairs); i += pace(begun)) {
        size_t size = pairs[i][0], more = pairs[i][1];
        for (size_t others = 2; others > 0; others--) {
            if ((others + 1) * size + more <= most)
                reuse_for_more(size, more, others);
        }
    }
}

void check_large_extent(void)
{
    size_t most = largest_to_try();
    uint64_t begun = clock_now();
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(sizes) && sizes[i] <= most; i += pace(begun)) {
        unsigned char *p = subject_malloc(sizes[i]);
        if (p == NULL)
            continue;
        step("writing what malloc(%zu) gave", sizes[i]);
        sample_fill(p, sizes[i], i);
        expect_samples(p, sizes[i], i, "after malloc(%zu)", sizes[i]);
        subject_free(p, sizes[i]);
    }
    check_reuse_for_more(NULL);
}

void check_large_disjoint(const struct maker *maker, size_t turns)
{
    static const size_t wanted[] = {MIB,     2 * MIB + 1,   3 * MIB, 5 * MIB + 4097,
                                    8 * MIB, 12 * MIB - 16, MIB,     16 * MIB + 1,
                                    2 * MIB, 24 * MIB + 1,  3 * MIB};
    size_t most = largest_to_try();
    struct blocks blocks = {0};
    uint64_t begun = clock_now();
    forgo_huge_pages();
    for (size_t turn = 0; turn < turns; turn += pace(begun)) {
        size_t size = wanted[turn % LENGTH(wanted)];
        while (blocks.count > 0 && blocks.bytes + size > most)
            blocks_free(&blocks, random_below(rng(), blocks.count));
        void *p = size <= most ? maker->ask(size) : NULL;
        if (p != NULL)
            blocks_add_large(&blocks, p, size);
        if (turn % 4 != 3 && turn + 1 < turns)
            continue;
        blocks_expect_disjoint(&blocks);
        blocks_verify_samples(&blocks, "with %zu large blocks live", blocks.count);
    }
    blocks_free_all(&blocks);
}

/* ---- calloc ---------------------------------------------------------------------------------- */

void check_large_zero(const struct maker *by_calloc)
{
    static const size_t wanted[] = {32 * MIB + 1, 48 * MIB - 15, 64 * MIB};
    size_t most = largest_to_try();
    for (size_t i = 0; i < LENGTH(wanted) && wanted[i] <= most; i++) {
        void *p = by_calloc->ask(wanted[i]);
        if (p == NULL)
            continue;
        expect_zero_samples(p, wanted[i], "after %s", by_calloc->call(wanted[i]));
        subject_free(p, wanted[i]);
    }
}

static void free_dirty(unsigned char *p, size_t size)
{
    if (p == NULL)
        return;
    for_each_sample(size, SAMPLE_PAGES, from, to) memset(p + from, 0xff, to - from);
    subject_free(p, size);
}

static void expect_clean(const struct maker *by_calloc, size_t size, const char *before)
{
    unsigned char *p = by_calloc->ask(size);
    if (p != NULL)
        expect_zero_samples(p, size, "in what %s gave, %s", by_calloc->call(size), before);
    free_dirty(p, size);
}

/* The rest of a block that shrank, of which the ends were written. */
static void calloc_of_rest(const struct maker *by_calloc, size_t old, size_t new, size_t size)
{
    enum { END = 64 * KIB };
    unsigned char *p = subject_malloc(old);
    if (p == NULL)
        return;
    memset(p + new, 0xff, END);
    memset(p + old - END, 0xff, END);
    unsigned char *kept = subject_realloc(p, new), *rest = by_calloc->ask(size);
    if (rest != NULL)
        expect_zero_samples(rest, size, "in what %s gave, after a block was cut from %zu to %zu",
                            by_calloc->call(size), old, new);
    give_back(rest, size);
    subject_free(kept != NULL ? kept : p, kept != NULL ? new : old);
}

void check_large_zero_when_reused(const struct maker *by_calloc)
{
    static const size_t wanted[] = {MIB + 1, 2 * MIB + 24, 5 * MIB + 1, 17 * MIB, 33 * MIB + 4097};
    static const size_t cuts[][3] = {{24 * MIB, 8 * MIB + 100, 16 * MIB - 9000},
                                     {40 * MIB + 5, 33 * MIB, 4 * MIB}};
    size_t most = largest_to_try();
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(wanted) && wanted[i] <= most; i++) {
        size_t size = wanted[i];
        free_dirty(subject_malloc(size), size);
        expect_clean(by_calloc, size, "after such a block was freed");
        if (size > 8 * MIB && size < 32 * MIB)
            expect_clean(by_calloc, size / 4 * 3, fmt("after %zu bytes were freed", size));
        if (size > 8 * MIB) /* to zero it costs time */
            continue;
        expect_clean(by_calloc, size - 5000, fmt("after %zu bytes were freed", size));
        free_dirty(subject_malloc(size / 2 + 1), size / 2 + 1);
        expect_clean(by_calloc, size, fmt("after %zu bytes were freed", size / 2 + 1));
    }
    for (size_t i = 0; i < LENGTH(cuts) && cuts[i][0] <= most; i++)
        calloc_of_rest(by_calloc, cuts[i][0], cuts[i][1], cuts[i][2]);
}

/* ---- realloc --------------------------------------------------------------------------------- */

/* Of what is to shrink the places are filled that it has then.  NULL where it is refused, and then
 * the block is freed. */
static unsigned char *resized_samples(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    size_t kept = MIN(old, new);
    step("resizing %zu bytes to %zu, and looking at them", old, new);
    sample_fill(p, old, number);
    sample_fill(p, kept, number);
    unsigned char *q = subject_realloc(p, new);
    if (q != NULL) {
        expect_samples(q, kept, number, "after realloc from %zu to %zu", old, new);
        return q;
    }
    expect_samples(p, old, number, "after realloc from %zu to %zu was refused", old, new);
    subject_free(p, old);
    return NULL;
}

/* In the end it is small, so that libc does not come to keep large ones, which it then has to
 * copy. */
static void resize_large(size_t old, size_t new)
{
    enum { LITTLE = 5000 };
    unsigned char *p = subject_malloc(old);
    if (p != NULL)
        p = resized_samples(p, old, new, 1);
    if (p != NULL)
        p = resized_samples(p, new, LITTLE, 2);
    give_back(p, LITTLE);
}

void check_large_realloc(void)
{
    static const size_t leaps[][2] = {{301, 5 * MIB}, {3001, 17 * MIB + 1}, {70001, 40 * MIB}};
    size_t most = largest_to_try();
    uint64_t begun = clock_now();
    forgo_huge_pages();
    resize_large(300000, MIN(sizes[0], most));
    for (size_t i = 0; i < LENGTH(leaps) && leaps[i][1] <= most; i++)
        resize_large(leaps[i][0], leaps[i][1]);
    for (size_t i = 0; i + 1 < LENGTH(sizes) && sizes[i + 1] <= most; i += pace(begun)) {
        resize_large(sizes[i], sizes[i + 1]);
        resize_large(sizes[i + 1], sizes[i]);
    }
}

/* Of calloc's, say, of which realloc has to know nelem times elsize. */
void check_large_of(bool is_calloc)
{
    enum { ELSIZE = 8 };
    static const size_t pairs[][2] = {
        {MIB + 8, 3 * MIB}, {5 * MIB, 2 * MIB + 1}, {17 * MIB + 8, 33 * MIB}, {40 * MIB, 19 * MIB}};
    size_t most = largest_to_try();
    uint64_t begun = clock_now();
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(pairs); i += pace(begun)) {
        size_t old = pairs[i][0], new = pairs[i][1];
        if (MAX(old, new) > most)
            break;
        unsigned char *p = is_calloc ? subject_calloc(old / ELSIZE, ELSIZE) : subject_malloc(old);
        if (p != NULL)
            p = resized_samples(p, old, new, 1);
        give_back(p, new);
    }
}

/* The ends of what is kept of a block that shrinks, where what was behind it may be given back a
 * page or more too early; the block's other pages are not touched. */
static bool keeps_ends(size_t old, size_t new)
{
    enum { END = 128, ONE = 1 };
    const size_t places[] = {0, new / 2, new - 64 * KIB, new - 5000, new - END};
    enum { PLACES = LENGTH(places) };
    unsigned char *p = subject_malloc(old), *q = NULL;
    for (size_t i = 0; p != NULL && i < LENGTH(places); i++)
        pattern_fill_range(p, places[i], places[i] + END, ONE);
    if (p != NULL)
        q = subject_realloc(p, new);
    for (size_t i = 0; q != NULL && i < LENGTH(places); i++) {
        size_t at = pattern_mismatch_range(q, places[i], places[i] + END, ONE);
        if (at != places[i] + END)
            pattern_fail_at(__LINE__, q, at, new, ONE,
                            fmt("after realloc from %zu to %zu", old, new));
    }
    if (p != NULL)
        subject_free(q != NULL ? q : p, q != NULL ? new : old);
    return q != NULL;
}

void check_large_shrink(void)
{
    static const size_t pairs[][2] = {{3 * MIB, MIB + 100},
                                      {24 * MIB, 9 * MIB + 100},
                                      {40 * MIB + 5, 20 * MIB + 4000},
                                      {64 * MIB, 40 * MIB + 100}};
    size_t most = largest_to_try();
    uint64_t begun = clock_now();
    for (size_t i = 0; i < LENGTH(pairs) && pairs[i][0] <= most; i += pace(begun)) {
        if (!keeps_ends(pairs[i][0], pairs[i][1]))
            return;
    }
}

/* Others take what a block lost when it shrank, and then it grows to what it was. */
static void grow_back(size_t size, size_t less, size_t others)
{
    enum { COUNT = 3 };
    struct block at[COUNT];
    struct blocks blocks = {.at = at, .room = COUNT};
    unsigned char *p = subject_malloc(size), *q = p != NULL ? subject_realloc(p, less) : NULL;
    if (q == NULL) {
        give_back(p, size);
        return;
    }
    blocks_add_unwritten(&blocks, q, less);
    for (void *other; blocks.count < COUNT && (other = subject_malloc(others)) != NULL;)
        blocks_add_large(&blocks, other, others);
    if ((q = subject_realloc(at[0].p, size)) != NULL) {
        at[0].p = q;
        at[0].size = size;
        blocks_expect_disjoint(&blocks);
        sample_fill(q, size, at[0].number);
        blocks_verify_samples(&blocks, "after a block of %zu bytes shrank to %zu and grew again",
                              size, less);
    }
    blocks_free_each(&blocks);
}

void check_large_growth_back(void)
{
    static const size_t turns[][3] = {{8 * MIB, 3 * MIB, MIB},
                                      {5 * MIB, 2 * MIB + 5000, 600 * KIB},
                                      {3 * MIB, 300 * KIB, 2 * MIB},
                                      {600 * KIB, 200 * KIB, 100 * KIB},
                                      {60 * KIB, 20 * KIB, 9000}};
    size_t most = largest_to_try();
    for (size_t i = 0; i < LENGTH(turns); i++) {
        if (2 * turns[i][0] <= most)
            grow_back(turns[i][0], turns[i][1], turns[i][2]);
    }
}

/* Two at once, for what is behind the end of one may be the other. */
void check_large_from_null(void)
{
    static const size_t wanted[] = {MIB + 1, 5 * MIB + 4095, 17 * MIB + 1, 30 * MIB};
    enum { EACH = 2 };
    size_t most = largest_to_try();
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(wanted) && EACH * wanted[i] <= most; i++) {
        struct block at[EACH];
        struct blocks blocks = {.at = at, .room = EACH};
        for (void *p; blocks.count < EACH && (p = subject_realloc(NULL, wanted[i])) != NULL;)
            blocks_add_unwritten(&blocks, p, wanted[i]);
        blocks_expect_disjoint(&blocks);
        step("writing what realloc(NULL, %zu) gave", wanted[i]);
        for (size_t j = 0; j < blocks.count; j++)
            sample_fill(at[j].p, wanted[i], at[j].number);
        blocks_verify_samples(&blocks, "after realloc(NULL, %zu), twice", wanted[i]);
        blocks_free_each(&blocks);
    }
}

/* As the kernel does where memory is scarce: pages that were given back by MADV_FREE are zero then,
 * and others as they were.  Memory that is locked, say, it leaves alone. */
static void take_pages_away(const unsigned char *p, size_t size)
{
    enum { ADVICE = 21 /* MADV_PAGEOUT, of Linux 5.4 */ };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    size_t tail = MIN(size, 2 * MIB);
    uintptr_t from = (uintptr_t)(p + size - tail) & ~(page - 1);
    madvise((void *)from, (uintptr_t)(p + size) - from, ADVICE);
}

void check_large_pressure(void)
{
    static const size_t pairs[][2] = {{150000, 100001},          {300 * KIB, 200 * KIB + 1},
                                      {MIB + 1, 300 * KIB + 77}, {2 * MIB, MIB + 1},
                                      {5 * MIB, MIB + 3000},     {6 * MIB + 5, 5 * MIB + 100},
                                      {12 * MIB, 7 * MIB + 9}};
    enum { ONE = 1 };
    for (size_t i = 0; i < LENGTH(pairs) && pairs[i][0] <= largest_to_try(); i++) {
        size_t old = pairs[i][0], new = pairs[i][1];
        unsigned char *p = subject_malloc(old), *q = NULL;
        if (p == NULL)
            continue;
        sample_fill(p, old, ONE);
        sample_fill(p, new, ONE);
        q = subject_realloc(p, new);
        if (q != NULL) {
            take_pages_away(q, new);
            expect_samples(q, new, ONE,
                           "after realloc from %zu to %zu and madvise(MADV_PAGEOUT) of what is "
                           "left, as where memory is scarce",
                           old, new);
        }
        subject_free(q != NULL ? q : p, q != NULL ? new : old);
    }
}

void check_large_realloc_alignment(void)
{
    static const size_t of[] = {MIB, 3 * MIB + 5, 9 * MIB + 4097, 31 * MIB + 9};
    for (size_t i = 0; i < LENGTH(of) && 2 * of[i] <= largest_to_try(); i++) {
        const size_t to[] = {of[i] / 2 + 1, of[i] / 5, of[i] / 3, of[i] / 3 + 100000, of[i],
                             2 * of[i] + 7, of[i] / 2, 40000,     of[i] / 2 + 7};
        size_t old = of[i];
        unsigned char *p = subject_malloc(old);
        for (size_t j = 0; p != NULL && j < LENGTH(to); j++) {
            unsigned char *q = subject_realloc(p, to[j]);
            if (q == NULL)
                break;
            expect_aligned(q, to[j], "realloc from %zu to %zu", old, to[j]);
            p = q;
            old = to[j];
        }
        give_back(p, old);
    }
}

/* A block that grows by half at a time, as np.fromiter has it, and is looked at in between. */
struct chain {
    unsigned char *p;
    size_t size;
    uint64_t number;
};

static struct chain chain_begin(size_t size, uint64_t number)
{
    struct chain chain = {must_malloc(size), size, number};
    sample_fill(chain.p, size, number);
    return chain;
}

/* False where it is refused, and then the block is as it was. */
static bool chain_to(struct chain *chain, size_t size)
{
    size_t kept = MIN(size, chain->size);
    sample_fill(chain->p, kept, chain->number);
    unsigned char *p = subject_realloc(chain->p, size);
    if (p == NULL) {
        expect_samples(chain->p, chain->size, chain->number,
                       "after realloc from %zu to %zu was refused", chain->size, size);
        return false;
    }
    expect_samples(p, kept, chain->number, "after realloc from %zu to %zu", chain->size, size);
    sample_fill(p, size, chain->number);
    *chain = (struct chain){p, size, chain->number};
    return true;
}

/* Twice in a row, of which the first may leave a wrong length behind. */
static void grow_by_tenths(size_t size, size_t tenths)
{
    size_t more = size / 10 * tenths, most = more + more / 2;
    struct chain chain = chain_begin(size, tenths);
    if (most <= largest_to_try() && chain_to(&chain, more))
        chain_to(&chain, most);
    subject_free(chain.p, chain.size);
}

void check_large_ratios(void)
{
    static const size_t tenths[] = {22, 33, 45, 53, 68, 85, 120};
    for (size_t i = 0; i < LENGTH(tenths); i++) {
        grow_by_tenths(140000, tenths[i]);
        if (i % 2 == 1 && tenths[i] < 60)
            grow_by_tenths(MIB, tenths[i]);
    }
}

void check_large_chain(void)
{
    size_t most = largest_to_try();
    struct chain chains[] = {chain_begin(100000, 1), chain_begin(100001, 2)};
    for (bool grows = true; grows;) {
        size_t next = chains[0].size + chains[0].size / 2 + 1;
        grows = next <= most && chain_to(&chains[0], next);
        if (grows && next <= most / 4)
            grows = chain_to(&chains[1], next + next / 8);
    }
    for (size_t i = 0; i < 2; i++) {
        expect_samples(chains[i].p, chains[i].size, chains[i].number, "when it had grown");
        chain_to(&chains[i], chains[i].size / 3 + 1);
        chain_to(&chains[i], 40000);
        subject_free(chains[i].p, chains[i].size);
    }
}
