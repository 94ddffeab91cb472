/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what it keeps, and what can be done with the block then.
 */
#include "base/clock.h"
#include "block_checks.h"

GROUP(realloc, 4, "What realloc keeps, moves and refuses.",
      .rank = {RANK_RESIZED, RANK_ONE_FUNCTION, 33}, .function = STEP_REALLOC);

enum { ONE = 1 }; /* the pattern of a block that is alone */

/* Keeps the block, which it fills, in the company of the last few, and frees the one that has been
 * there longest: a block that is too short, or not its own, shows in one of them. */
static void keep_for_a_while(struct blocks *company, void *p, size_t size)
{
    enum { COMPANY = 8 };
    if (company->count == COMPANY) {
        struct block oldest = company->at[0];
        expect_pattern(oldest.p, oldest.size, oldest.number, "%d blocks later", COMPANY);
        blocks_free(company, 0);
        struct block newest = company->at[0];
        memmove(company->at, company->at + 1, (company->count - 1) * sizeof newest);
        company->at[company->count - 1] = newest;
    }
    blocks_add(company, p, size);
}

static void end_company(struct blocks *company)
{
    blocks_verify(company, "at the end");
    blocks_free_all(company);
}

static void *realloc_of_null(size_t size)
{
    return must_realloc(NULL, size);
}

PROPERTY(realloc_null_allocates,
    .id     = "realloc.null-allocates", .level = MUST, .basis = BASIS_C,
    .answers_for = ABOUT(REALLOC_NULL), .ends_process = true, .quick = true,
    .clause = "realloc of NULL is malloc: it returns a new block, aligned and whole",
    .source = "C17 7.22.3.5 paragraph 3",
    .why    = "code that grows a buffer from nothing relies on it, and shims that forward calls",
    .hint   = "check the pointer before you read its header: if it is NULL, call malloc",
    .looks  = "CRASH: SIGSEGV, inside realloc((nil), 1)")
{
    struct blocks company = {0};
    check_alone(realloc_of_null, "realloc.neighbours");
    for_each_size (size, 1 << 16) {
        if (size % stride(16) > 1)
            continue;
        void *p = must_realloc(NULL, size);
        expect_aligned(p, size, "realloc(NULL, %zu)", size);
        keep_for_a_while(&company, p, size);
    }
    end_company(&company);
    check_large_from_null();
}

/* Of a small one. */
static void *grow_to(size_t size)
{
    void *p = must_malloc(100), *q = subject_realloc(p, size);
    if (q == NULL)
        subject_free(p, 100);
    return q;
}

static const char *growth_in_words(size_t size)
{
    return fmt("realloc of 100 bytes to %zu", size);
}

static const struct maker by_realloc = {.ask = grow_to, .call = growth_in_words};

/* Every size from 1 to 4096, one more, twice as much, one less and half. */
static void resize_one_by_one(void)
{
    for (size_t n = 1; n <= 4096; n += stride(37)) {
        unsigned char *p = filled(n, n);
        p = resized(p, n, n + 1, n);
        p = resized(p, n, 2 * n, n);
        p = resized(p, n, n - (n > 1), n);
        p = resized(p, n - (n > 1), (n + 1) / 2, n);
        subject_free(p, (n + 1) / 2);
    }
}

PROPERTY(realloc_keeps_contents,
    .id     = "realloc.keeps-contents", .level = MUST, .basis = BASIS_C,
    .rule = HEAP_KEEPS_CONTENTS, .rank = {RANK_RESIZED, RANK_RESIZED, 24},
    .answers_next_for = ABOUT(LITTLE_REALLOC), .quick = true,
    .clause = "realloc keeps the first min(old, new) bytes of the block",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: shape.c PyArray_Resize, ctors.c, textreading",
    .why    = "every ndarray.resize, fromiter, fromfile, fromstring and loadtxt rests on it",
    .hint   = "copy min(old, new) bytes; keep the old size where realloc can find it",
    .looks  = "FAIL: byte 4095 of 4096 to be 0x8d, after realloc from 4096 to 8193; seen 0x00")
{
    size_t turn = 0;
    resize_one_by_one();
    for_each_size_pair (old, new) {
        if (turn++ % stride(11) != 0)
            continue;
        unsigned char *p = filled(old, ONE);
        p = resized(p, old, new, ONE);
        subject_free(p, new);
    }
    check_edges_realloc();
    check_large_realloc();
    check_large_shrink();
    check_large_pressure();
}

/* ---- again and again --------------------------------------------------------------------- */

/* A block that grows as it is filled, the way text and iterators fill one. */
struct chain {
    unsigned char *p;
    size_t size;
    uint64_t number;
};

/* Resizes it, checks what was there, and fills what has come. */
static void chain_to(struct chain *chain, size_t size)
{
    chain->p = resized(chain->p, chain->size, size, chain->number);
    if (size > chain->size)
        pattern_fill_range(chain->p, chain->size, size, chain->number);
    chain->size = size;
}

static struct chain chain_begin(size_t size, uint64_t number)
{
    return (struct chain){filled(size, number), size, number};
}

/* The block is cut to `size` bytes at last, and freed. */
static void chain_end(struct chain *chain, size_t size)
{
    chain_to(chain, MIN(size, chain->size));
    subject_free(chain->p, chain->size);
}

/* Elements in the block after the next growth of np.fromiter, which needs room for one more. */
static size_t fromiter_next(size_t count)
{
    return (count >> 1) + (count < 4 ? 4 : 2) + count;
}

/* Rows after the next growth of np.loadtxt: a quarter more, but at least a block of 512. */
static size_t loadtxt_next(size_t rows)
{
    return rows / 4 <= 512 ? rows + 512 : (rows + rows / 4 + 511) & ~(size_t)512;
}

/* Four at once, so that each is in the other's way. */
static void grow_as_numpy_does(size_t most)
{
    struct chain iterators[2] = {chain_begin(1, 11), chain_begin(1, 12)};
    struct chain text = chain_begin(32768, 13), rows = chain_begin(512 * 24, 14);
    struct chain doubling = chain_begin(32768, 15);
    size_t count = 0, row_count = 512;
    while (text.size < most || iterators[0].size < most) {
        count = iterators[0].size < most ? fromiter_next(count) : count;
        chain_to(&iterators[0], count * 8);
        chain_to(&iterators[1], count);
        if (text.size < most)
            chain_to(&text, text.size + 32768);
        row_count = rows.size < most ? loadtxt_next(row_count) : row_count;
        chain_to(&rows, row_count * 24);
        if (doubling.size < most)
            chain_to(&doubling, doubling.size * 2);
    }
    chain_end(&iterators[0], count * 8 - 16);
    chain_end(&iterators[1], count - 1);
    chain_end(&text, 40000);
    chain_end(&rows, 32);
    chain_end(&doubling, 3);
}

/* Up and down without a plan. */
static void wander(size_t steps)
{
    enum { CHAINS = 8 };
    struct chain chains[CHAINS];
    for (size_t i = 0; i < CHAINS; i++)
        chains[i] = chain_begin(1 + random_below(rng(), 500), 20 + i);
    for (size_t step = 0; step < steps; step++) {
        size_t room = step % 20 == 0 ? 100000 : step % 3 == 0 ? 9000 : 600;
        chain_to(&chains[step % CHAINS], 1 + random_below(rng(), room));
    }
    for (size_t i = 0; i < CHAINS; i++)
        chain_end(&chains[i], 1);
}

/* One block, oftener than its handler may have counted on.  It is written anew each time, for its
 * places come back with what was in them. */
static void resize_often(size_t times)
{
    enum { LITTLE = 40, MORE = 150, NUMBER = 1 << 20, ENOUGH = 600 };
    static const double long_enough = 0.2; /* seconds, for whom each is a mapping */
    uint64_t begun = clock_now();
    size_t size = LITTLE;
    unsigned char *p = filled(size, NUMBER);
    for (size_t i = 0; i < times && !time_is_up(); i++) {
        if (i >= ENOUGH && clock_since(begun) > long_enough)
            break;
        size_t before = size;
        size = i % 2 == 0 ? MORE : LITTLE;
        p = resized(p, before, size, NUMBER + i);
        pattern_fill(p, size, NUMBER + i + 1);
    }
    subject_free(p, size);
}

PROPERTY(realloc_keeps_contents_again,
    .id     = "realloc.keeps-contents-again", .level = MUST, .basis = BASIS_C,
    .clause = "a block that is resized again and again keeps what was written at each step",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: ctors.c, textreading/rows.c and growth.c",
    .why    = "fromiter over a long iterator resizes one block dozens of times",
    .hint   = "write the new size into the header or table after each success, in place or moved",
    .looks  = "FAIL: byte 32 of 64 to be 0x1c, after realloc from 64 to 112; seen 0x00")
{
    grow_as_numpy_does(is_instrumented() ? 100000 : 400000);
    wander(is_instrumented() ? 100 : 1000);
    check_large_chain();
    check_large_ratios();
    resize_often(is_instrumented() ? 600 : 70000);
}

/* ---- room -------------------------------------------------------------------------------- */

/* All blocks of a batch are resized, and filled, before any is looked at. */
static void resize_batch(struct blocks *batch, size_t turn)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct block *b = &batch->at[i];
        size_t size = turn == 0 ? b->size + 1 + 15 * (b->size % 2) : b->size + b->size / 2 + 17;
        b->p = must_realloc(b->p, size);
        b->size = size;
        b->number += 1u << 20; /* none of blocks_add's */
        pattern_fill(b->p, size, b->number);
    }
    blocks_verify(batch, "after all of %zu blocks were resized and filled", batch->count);
}

PROPERTY(realloc_grown_part_usable,
    .id     = "realloc.grown-part-usable", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_FRESH, RANK_RESIZED, 28}, .slow_ms = 103,
    .clause = "every byte of a grown block can be written and read back, and is in no other block",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5",
    .why    = "NumPy fills the new part at once, with zeros or with what it reads",
    .hint   = "keep a block in place only if its own room is large enough; else take a new one",
    .looks  = "FAIL: byte 0 of 90 to be 0x6e as it was written, after all 32 were resized")
{
    enum { BATCH = 32 };
    for (size_t n = 1; n <= 4096; n += stride(20) * BATCH) {
        struct blocks batch = {0};
        for (size_t i = 0; i < BATCH; i++)
            blocks_add(&batch, must_malloc(n + i), n + i);
        resize_batch(&batch, 0);
        resize_batch(&batch, 1);
        blocks_free_all(&batch);
    }
    check_edges_growth();
    check_page_edges_growth();
    check_large_growth_back();
    check_huge_extent(&by_realloc);
}

PROPERTY(realloc_same_size,
    .id     = "realloc.same-size", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_RESIZED, RANK_RESIZED, 25}, .quick = true,
    .clause = "realloc to the size that the block already has returns the block or an equal one",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: ctors.c array_from_text, after a failed growth too",
    .why    = "NumPy cuts blocks to what was read without asking whether that changes anything",
    .hint   = "return the pointer if there is nothing to do",
    .looks  = "FAIL: realloc(0x55d0c8a0b2a0, 24) to return a block; NULL")
{
    for_each_size (size, 1 << 17) {
        if (size % stride(16) > 1)
            continue;
        unsigned char *p = resized(filled(size, size), size, size, size);
        unsigned char *other = filled(size, size + 1);
        expect(other != p, fmt("two live blocks of %zu bytes to be at two addresses", size),
               "%p for both", (void *)p);
        p = must_realloc(p, size);
        expect_pattern(p, size, size, "after realloc to the same size, twice, and malloc(%zu)",
                       size);
        expect_pattern(other, size, size + 1, "beside a block that kept its size");
        subject_free(other, size);
        subject_free(p, size);
    }
}

PROPERTY(realloc_to_one,
    .id     = "realloc.to-one", .level = MUST, .basis = BASIS_C, .answers_for = ABOUT(REALLOC_ONE),
    .quick = true,
    .clause = "a block of any size can be shrunk to 1 byte, which is kept, and grown again",
    .source = "C17 7.22.3.5; shape.c PyArray_Resize, 2.4 and later; textreading/rows.c",
    .why    = "a.resize(0) and an empty loadtxt do it",
    .hint   = "treat 1 as any size: do not take it for 0 after rounding or halving",
    .looks  = "FAIL: realloc(0x55d0c8a0b2a0, 1) to return a block; NULL")
{
    struct blocks company = {0};
    for_each_size (size, 1 << 17) {
        if (size % stride(16) > 1)
            continue;
        unsigned char *p = filled(size, size);
        p = resized(p, size, 1, size);
        unsigned char *other = must_malloc(1);
        *other = (unsigned char)~*p;
        p = resized(p, 1, 1, size);
        expect(other != p, "two live blocks of 1 byte to be at two addresses", "%p for both",
               (void *)p);
        if (size % 2 == 0)
            p = resized(p, 1, size, size);
        subject_free(other, 1);
        keep_for_a_while(&company, p, size % 2 == 0 ? size : 1);
    }
    end_company(&company);
}

static void *aligned_resize(void *p, size_t size, const char *origin)
{
    void *q = must_realloc(p, size);
    expect_aligned(q, size, "realloc to %zu of a block by %s", size, origin);
    return q;
}

PROPERTY(realloc_alignment,
    .id     = "realloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_REALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .quick = true,
    .clause = "what realloc returns is aligned as malloc's blocks, moved or not, grown or shrunk",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "NumPy's loops load vectors, and an array stays marked as aligned after resize",
    .hint   = "align the place in the new memory, and move the bytes if it differs from the old",
    .looks  = "FAIL: realloc to 5000 of a block by malloc to be aligned to 16; 0x55d0c8a0b2a8")
{
    void *blockers[64] = {0}; /* so that what grows has to move */
    for (size_t n = 1; n <= 4096; n += stride(41)) {
        const char *origin = step_function(STEP_MALLOC + n % 3);
        void *p = must_make(n, n);
        subject_free(blockers[n % 64], 1);
        blockers[n % 64] = must_malloc(1);
        p = aligned_resize(p, n + 1, origin);
        p = aligned_resize(p, 5 * n + 1000, origin);
        p = aligned_resize(p, (n + 1) / 2, origin);
        if (n % 16 == 5)
            p = aligned_resize(p, 40 * n + 100000, origin);
        subject_free(p, n % 16 == 5 ? 40 * n + 100000 : (n + 1) / 2);
    }
    for (size_t i = 0; i < 64; i++)
        subject_free(blockers[i], 1);
    check_large_realloc_alignment();
    check_huge_alignment(&by_realloc);
}

/* As resize_calloc, with a block of malloc's; and calloc's own part. */
static void resize_malloc(size_t size)
{
    size_t more = size + size / 2 + 1, less = size / 2 + 1;
    unsigned char *p = must_calloc(size, 1);
    expect_zero(p, size, "after calloc(%zu, 1)", size);
    subject_free(p, size);
    p = must_malloc(size);
    pattern_fill(p, size, ONE);
    p = must_realloc(p, more);
    expect_pattern(p, size, ONE, "after malloc(%zu) and realloc to %zu", size, more);
    p = must_realloc(p, less);
    expect_pattern(p, less < size ? less : size, ONE, "after malloc(%zu) and realloc to %zu", size,
                   less);
    subject_free(p, less);
}

static void resize_mallocs(void *unused)
{
    (void)unused;
    for (size_t n = 1; n <= 4096; n += n < 600 ? stride(151) : 13 * stride(11))
        resize_malloc(n);
    resize_malloc(80);
    resize_malloc(90033);
    resize_malloc(280063);
    check_large_of(false);
    size_t factors[][2] = {{10, 8}, {3, 5}, {30011, 3}};
    for (size_t i = 0; i < LENGTH(factors); i++) {
        size_t nelem = factors[i][0], elsize = factors[i][1];
        unsigned char *p = must_calloc(nelem, elsize);
        expect_zero(p, nelem * elsize, "after calloc(%zu, %zu)", nelem, elsize);
        subject_free(p, nelem * elsize);
    }
}

/* A block of calloc(nelem, elsize) is grown as it is, zero, and then with contents shrunk and
 * grown. */
static void resize_calloc(size_t nelem, size_t elsize)
{
    size_t size = nelem * elsize, more = size + size / 2 + 1, less = size / 2 + 1;
    unsigned char *p = must_realloc(must_calloc(nelem, elsize), more);
    expect_zero(p, size, "after calloc(%zu, %zu) and realloc to %zu", nelem, elsize, more);
    subject_free(p, more);
    p = must_calloc(nelem, elsize);
    pattern_fill(p, size, ONE);
    p = must_realloc(p, more);
    expect_pattern(p, size, ONE, "after calloc(%zu, %zu) and realloc to %zu", nelem, elsize, more);
    p = must_realloc(p, less);
    expect_pattern(p, less < size ? less : size, ONE,
                   "after calloc(%zu, %zu) and realloc to %zu and to %zu", nelem, elsize, more,
                   less);
    subject_free(p, less);
}

PROPERTY(realloc_of_calloc,
    .id     = "realloc.of-calloc", .level = MUST, .basis = BASIS_C, .quick = true,
    .clause = "a block of calloc's is resized as one of malloc's with nelem * elsize bytes",
    .source = "C17 7.22.3.5: a pointer that calloc returned; NumPy 1.22 to 2.5: PyArray_Resize",
    .why    = "np.zeros(n).resize(m) is the usual way to a buffer that grows",
    .hint   = "write the product into the header in calloc, not one of its arguments",
    .looks  = "FAIL: byte 10 of 80 to be 0x3f, after calloc(10, 8) and realloc to 121; seen 0x00")
{
    control_run(resize_mallocs, NULL, "with blocks of malloc's, or calloc's that stay as they are");
    for (size_t n = 1; n <= 4096; n += n < 600 ? stride(151) : 13 * stride(11)) {
        resize_calloc(n, 1);
        resize_calloc(1, n);
        if (n % 4 == 0)
            resize_calloc(n / 4, 4);
        if (n % 10 == 0)
            resize_calloc(10, n / 10);
    }
    resize_calloc(10, 8);
    resize_calloc(8, 10);
    resize_calloc(30011, 3);
    resize_calloc(7, 40009);
    check_large_of(true);
}
