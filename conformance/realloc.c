/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what it keeps, and what can be done with the block then.
 */
#include "base/clock.h"
#include "block_checks.h"
#include "scenarios.h"

GROUP(realloc, 4, "What realloc keeps, moves and refuses.",
      .rank = {RANK_RESIZED, RANK_ONE_FUNCTION, 33}, .function = STEP_REALLOC);

enum { ONE = 1 }; /* the pattern of a block that is alone */

PROPERTY(realloc_null_allocates,
    .id     = "realloc.null-allocates", .level = MUST, .basis = BASIS_C,
    .answers_for = ABOUT(REALLOC_NULL), .scenarios = true, .ends_process = true, .quick = true,
    .title  = "realloc(NULL, n) is malloc(n)",
    .clause = "realloc(NULL, size) works as malloc(size): it returns a new, aligned block of that "
              "size.",
    .source = "C17 7.22.3.5 paragraph 3",
    .why    = "Code that grows a buffer from nothing relies on it, and so do wrappers that forward "
              "calls.",
    .wrong  = "struct header *old = (struct header *)p - 1; /* p may be NULL */",
    .right  = "if (p == NULL)\n"
              "    return mine_malloc(ctx, size);",
    .hint   = "Check the pointer before you read its header. If it is NULL, call malloc.",
    .looks  = "CRASH: SIGSEGV, inside realloc((nil), 1)")
{
    const struct level_range from_null = FROM_TO(BY_REALLOC_NULL, BY_REALLOC_NULL);
    const struct scenario_limits any = {
        .most_size = 1 << 20, .most_bytes = 16 << 20, .level[FACTOR_MADE_BY] = from_null};
    const struct scenario_limits left = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_MADE_BY] = from_null,
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_REPETITION] = FROM_TO(0, 1),
                  [FACTOR_FREE_ORDER] = FROM_TO(ALL_BUT_ONE, NO_FREE)}};
    check_scenarios(5000, &left);
    check_scenarios(25000, &any);
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

PROPERTY(realloc_keeps_contents,
    .id     = "realloc.keeps-contents", .level = MUST, .basis = BASIS_C,
    .rule = HEAP_KEEPS_CONTENTS, .rank = {RANK_RESIZED, RANK_RESIZED, 24},
    .answers_for = ABOUT(REALLOC_ONE), .answers_next_for = ABOUT(LITTLE_REALLOC),
    .scenarios = true, .quick = true,
    .title  = "the first min(old, new) bytes stay",
    .clause = "realloc keeps the first min(old, new) bytes of the block.",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: shape.c PyArray_Resize, ctors.c, textreading",
    .why    = "ndarray.resize, fromiter, fromfile, fromstring and loadtxt rely on it.",
    .wrong  = "memcpy(q, p, new_size); /* reads past a block that grows */",
    .right  = "memcpy(q, p, old_size < new_size ? old_size : new_size);",
    .hint   = "Copy min(old, new) bytes. Store the old size where realloc can find it.",
    .looks  = "expected byte 4095 of 4096 to be 0x8d, after realloc from 4096 to 8193; seen 0x00")
{
    const struct scenario_limits resized = {.most_size = 1 << 20,
                                            .most_bytes = 64 << 20,
                                            .level[FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY)};
    const struct scenario_limits often = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_4096),
                  [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_CALLOC_N_K),
                  [FACTOR_RESIZES] = FROM_TO(RESIZED_256, RESIZED_1000),
                  [FACTOR_REPETITION] = FROM_TO(0, 1)}};
    check_large_chain(); /* first: later libc has such blocks in its heap, and copies them */
    check_large_realloc();
    check_large_ratios();
    check_edges_realloc();
    check_large_shrink();
    check_large_pressure();
    check_scenarios(35000, &resized);
    check_scenarios(25000, &often);
}

/* ---- room -------------------------------------------------------------------------------- */

PROPERTY(realloc_grown_part_usable,
    .id     = "realloc.grown-part-usable", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_FRESH, RANK_RESIZED, 28},
    .title  = "the grown part is usable",
    .clause = "Every byte of a grown block can be written and read back, and belongs to no other "
              "block.",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5",
    .why    = "NumPy fills the new part right away, with zeros or with the data that it reads.",
    .hint   = "Keep a block in place only if its own space is large enough. Otherwise allocate a "
              "new block.",
    .looks  = "expected byte 0 of 90 to be 0x6e as it was written, after all 32 were resized")
{
    check_edges_growth();
    check_page_edges_growth();
    check_large_growth_back();
    check_huge_extent(&by_realloc);
}

PROPERTY(realloc_alignment,
    .id     = "realloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_REALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .answers_next_for = ABOUT(NOT_ALIGNED),
    .title  = "resized blocks stay aligned",
    .clause = "A block that realloc returns has the alignment that malloc guarantees.",
    .tests  = "Blocks are grown and shrunk, in place and moved.",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "NumPy's loops use aligned vector loads, and an array stays marked as aligned after "
              "resize.",
    .hint   = "Align the address in the new memory, and move the bytes if the offset differs from "
              "the old one.",
    .looks  = "expected realloc to 5000 of a block by malloc to be aligned to 16; seen "
              "0x55d0c8a0b2a8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY)};
    check_scenarios(25000, &limits);
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
    .title  = "blocks from calloc can be resized",
    .clause = "realloc handles a block from calloc like a block of nelem * elsize bytes from "
              "malloc.",
    .source = "C17 7.22.3.5: a pointer that calloc returned; NumPy 1.22 to 2.5: PyArray_Resize",
    .why    = "np.zeros(n).resize(m) is a common way to grow a buffer.",
    .wrong  = "header->size = nelem;",
    .right  = "header->size = nelem * elsize;",
    .hint   = "In calloc store the product in the header, not one of the factors.",
    .looks  = "expected byte 10 of 80 to be 0x3f, after calloc(10, 8) and realloc to 121; seen "
              "0x00")
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
