/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc: what it hands out.
 */
#include "block_checks.h"
#include "heap/heap.h"
#include "scenarios.h"

GROUP(malloc, 2, "Blocks from malloc, and refused requests.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 34}, .function = STEP_MALLOC);

static const char *malloc_in_words(size_t size)
{
    return fmt("malloc(%zu)", size);
}

static const struct maker by_malloc = {subject_malloc, must_malloc, malloc_in_words};

/* ---- every byte of it ------------------------------------------------------------------------ */

enum { PAGE = 4096 };

/* Of a large block, its ends and 8 bytes in every `stride`. */
static void fill_here_and_there(unsigned char *p, size_t size, size_t stride, uint64_t number)
{
    for (size_t at = 0; at + 8 <= size; at += stride)
        pattern_fill_range(p, at, at + 8, number);
    pattern_fill_range(p, (size - 64) & ~(size_t)7, size, number);
}

static void expect_here_and_there(const unsigned char *p, size_t size, size_t stride,
                                  uint64_t number)
{
    for (size_t at = 0; at < size; at += at % stride != 7 ? 1 : stride - 7) {
        if (p[at] != pattern_byte(number, at))
            pattern_fail_at(__LINE__, p, at, size, number, fmt("after malloc(%zu)", size));
    }
    for (size_t at = size - 64; at < size; at++) {
        if (p[at] != pattern_byte(number, at))
            pattern_fail_at(__LINE__, p, at, size, number, fmt("after malloc(%zu)", size));
    }
}

/* Two blocks at once, of which each could reach into the other. */
static void two_hold(size_t size)
{
    unsigned char *p = must_malloc(size), *q = must_malloc(size);
    step("writing the %zu bytes that malloc(%zu) gave", size, size);
    pattern_fill(p, size, size);
    pattern_fill(q, size, ~size);
    expect_pattern(p, size, size, "after malloc(%zu)", size);
    expect_pattern(q, size, ~size, "after malloc(%zu)", size);
    subject_free(size % 2 == 0 ? p : q, size);
    subject_free(size % 2 == 0 ? q : p, size);
}

static void large_holds(size_t size, size_t stride)
{
    unsigned char *p = subject_malloc(size);
    if (p == NULL && !heap_may_refuse(size, 0, 0))
        fail(fmt("malloc(%zu) to return a block: little else is live", size), "NULL");
    if (p == NULL)
        return;
    step("writing what malloc(%zu) gave", size);
    fill_here_and_there(p, size, stride, size);
    expect_here_and_there(p, size, stride, size);
    subject_free(p, size);
}

PROPERTY(malloc_extent,
    .id     = "malloc.extent", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_PLACE, RANK_BESIDE, 10}, .ends_process = true, .quick = true,
    .title  = "every requested byte is usable",
    .clause = "Every requested byte can be written and read back.",
    .tests  = "New blocks and blocks in reused memory are written and read back.",
    .source = "C17 7.22.3.4; NEP 49, the malloc function",
    .why    = "NumPy writes all data of an array into the block.",
    .hint   = "Request the full size plus the header. Before you reuse a freed block, compare its "
              "whole size.",
    .looks  = "CRASH: SIGSEGV, or a byte that differs from what was written")
{
    enum { WHOLE = 65536 + 64 };
    size_t count = 0;
    for_each_size (size, 1 << 20) {
        if (is_instrumented() && size > 300 && size % 16 > 1)
            continue;
        if (size <= WHOLE)
            two_hold(size);
        else
            large_holds(size, ++count % 8 == 0 ? PAGE : 16 * PAGE);
    }
    for (size_t size = 5000; size < WHOLE; size += size / 16) /* no class is far from one */
        two_hold(size);
    large_holds((2 << 20) + 1, PAGE);
    check_edges_extent(WHOLE);
    check_large_extent();
    check_huge_extent(&by_malloc);
    check_page_edges_extent();
    check_kernel_writes();
}

/* ---- where it is ----------------------------------------------------------------------------- */

PROPERTY(malloc_alignment,
    .id     = "malloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_MALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .scenarios = true, .quick = true,
    .answers_for = ABOUT(NOT_ALIGNED),
    .title  = "blocks are aligned for their size",
    .clause = "A block is aligned for max_align_t, or for the largest power of two in its size if "
              "that is smaller.",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy expects data to be aligned for its dtype, and the compiler vectorizes its "
              "loops.",
    .wrong  = "return (char *)malloc(size + 8) + 8; /* an 8-byte header */",
    .right  = "enum { HEADER = 16 }; /* a multiple of alignof(max_align_t) */\n"
              "char *block = malloc(size + HEADER);\n"
              "return block != NULL ? block + HEADER : NULL;",
    .hint   = "Make the header a multiple of alignof(max_align_t). Round sizes up before you split "
              "a region.",
    .looks  = "expected malloc(24) to be aligned to 16 bytes; seen 0x55d0c8, which is aligned to 8")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 16 << 20,
                                           .level[FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC)};
    check_scenarios(20000, &limits);
    check_scenarios_in_thread(10000, &limits);
    check_huge_alignment(&by_malloc);
}

static size_t claimed;

static void *as_claimed(void *p, const char *call)
{
    if ((uintptr_t)p % claimed != 0)
        fail(fmt("%s to be aligned to %zu bytes, as claimed", call, claimed),
             "%p, which is aligned to %zu", p, alignment_of(p));
    return p;
}

/* Aligned in each of the ways in which a block of that size comes about. */
static void claimed_for_size(size_t size)
{
    size_t other = 1 + random_below(rng(), size <= 4096 ? 8192 : 2 * size);
    void *p = subject_malloc(size), *q = subject_calloc(size, 1), *r = subject_realloc(NULL, other);
    as_claimed(p, fmt("malloc(%zu)", size));
    as_claimed(q, fmt("calloc(%zu, 1)", size));
    as_claimed(r, fmt("realloc(NULL, %zu)", other));
    void *moved = r != NULL ? subject_realloc(r, size) : NULL;
    as_claimed(moved, fmt("realloc of %zu bytes to %zu", other, size));
    if (p == NULL || q == NULL || (moved == NULL && !heap_may_refuse(MAX(size, other), 0, 0)))
        fail(fmt("malloc, calloc and realloc to give %zu bytes: little else is live", size),
             "malloc: %p, calloc: %p, realloc: %p", p, q, moved);
    subject_free(p, size);
    subject_free(q, size);
    subject_free(moved != NULL ? moved : r, moved != NULL ? size : other);
}

/* Through growth and shrinkage, beside another block that is in the way. */
static void claimed_through_chain(void *(*begin)(size_t size))
{
    size_t size = 1 + random_below(rng(), 64);
    void *p = as_claimed(begin(size), fmt("a block of %zu bytes", size));
    for (int i = 0; i < 40; i++) {
        void *beside = must_malloc(1 + random_below(rng(), 600));
        size_t next = random_below(rng(), 3) == 0 ? 1 + size / 2 : size + size / 2 + 1;
        if (next > 1 << 18)
            next = 1 + random_below(rng(), 4096);
        p = as_claimed(must_realloc(p, next), fmt("realloc of %zu bytes to %zu", size, next));
        size = next;
        subject_free(beside, 0);
    }
    subject_free(p, size);
}

static void *calloc_of_ones(size_t size)
{
    return must_calloc(size, 1);
}

static void claimed_everywhere(void *unused)
{
    (void)unused;
    for_each_size (size, is_instrumented() ? 20000 : 1 << 20) {
        if ((size <= 200 && !is_instrumented()) || size > 4096 || size % 13 == 0)
            claimed_for_size(size);
    }
    for (int i = 0; i < 10; i++) {
        claimed_through_chain(must_malloc);
        claimed_through_chain(calloc_of_ones);
    }
}

/* One in many may come from elsewhere.  They are not written to. */
static void claimed_in_a_row(void)
{
    enum { COUNT = 1100, LITTLE = 20000 };
    static const size_t sizes[] = {40, 3000, 30000, 200000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t count = is_instrumented() ? 10 : COUNT;
        if (sizes[i] > LITTLE && subject_fills_blocks())
            return;
        for (size_t n = 0; n < count && !time_is_up(); n++) {
            void *p = must_malloc(sizes[i]);
            as_claimed(p, fmt("block %zu in a row of %zu bytes", n + 1, sizes[i]));
            subject_free(p, sizes[i]);
        }
    }
}

/* What realloc makes of a small one may come from elsewhere as well. */
static void claimed_huge(void)
{
    static const size_t sizes[] = {(size_t)100 << 20, (size_t)300 << 20, (size_t)600 << 20};
    if (is_instrumented() || subject_fills_blocks())
        return;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *p = must_malloc(100), *q = subject_realloc(p, sizes[i]);
        if (q != NULL)
            as_claimed(q, fmt("realloc of 100 bytes to %zu", sizes[i]));
        subject_free(q != NULL ? q : p, q != NULL ? sizes[i] : 100);
    }
}

PROPERTY(malloc_claimed_alignment,
    .id     = "malloc.claimed-alignment", .level = MUST, .basis = BASIS_CLAIM,
    .rule = HEAP_CLAIMED_ALIGNMENT, .quick = true,
    .title  = "blocks have the claimed alignment",
    .clause = "Every block has the alignment that the handler claims, for every size and from "
              "every function.",
    .tests  = "Blocks of malloc, calloc and realloc are checked, on every thread and in forked "
              "children.",
    .source = "nep49.h, alignment=N",
    .why    = "Callers use aligned vector loads or pass blocks to a device, and crash otherwise.",
    .wrong  = "return realloc(p, size); /* aligned for max_align_t only */",
    .right  = "void *q = aligned_alloc(64, (size + 63) / 64 * 64);\n"
              "if (q != NULL && p != NULL) {\n"
              "    memcpy(q, p, old_size < size ? old_size : size);\n"
              "    free(p);\n"
              "}\n"
              "return q;",
    .hint   = "In realloc check the alignment of the result and move the bytes if it is too small: "
              "libc's realloc guarantees only max_align_t.",
    .looks  = "expected realloc of 64 bytes to 4000 to be aligned to 64 bytes, as claimed; seen "
              "0x55d0d0")
{
    claimed = subject_claims().alignment;
    if (claimed == 0)
        skip_unclaimed();
    claimed_everywhere(NULL);
    claimed_in_a_row();
    claimed_huge();
    in_threads(1, claimed_everywhere, NULL, 0);
    in_child(claimed_everywhere, NULL);
}

PROPERTY(malloc_disjoint,
    .id     = "malloc.disjoint", .level = MUST, .basis = BASIS_C, .rule = HEAP_DISJOINT,
    .rank = {RANK_PLACE, RANK_FRESH, 8}, .answers_for = ABOUT(BLOCKS_OVERLAP),
    .scenarios = true, .slow_ms = 89,
    .title  = "live blocks never overlap",
    .clause = "Live blocks never overlap, regardless of their sizes and number.",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other",
    .why    = "Two arrays would share memory, and a write to one array would change the other.",
    .hint   = "Check the width of indices, the sizes in free lists, blocks freed into a list "
              "twice, and overlapping mappings.",
    .looks  = "expected 66048 live blocks not to overlap; seen 17 bytes at 0x7f1200 and 17 bytes "
              "at 0x7f1200")
{
    const struct scenario_limits any = {.most_size = 1 << 20, .most_bytes = 64 << 20};
    const struct scenario_limits left = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_LIVE_BLOCKS] = FROM_TO(0, 1),
                  [FACTOR_REPETITION] = FROM_TO(0, 1),
                  [FACTOR_FREE_ORDER] = FROM_TO(ALL_BUT_ONE, NO_FREE)}};
    const struct scenario_limits many_live = {.most_size = 256,
                                              .most_bytes = 256 << 20,
                                              .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_129),
                                                        [FACTOR_LIVE_BLOCKS] = FROM_TO(7, 7),
                                                        [FACTOR_REPETITION] = FROM_TO(0, 1)}};
    enum { LARGE = 36 };
    check_slabs_disjoint();
    check_full_classes_disjoint();
    check_page_runs_disjoint();
    check_large_disjoint(&by_malloc, is_instrumented() ? 6 : LARGE);
    check_scenarios(10000, &left);
    check_scenarios(35000, &any);
    check_scenarios(ONE_ROW, &many_live);
}

PROPERTY(malloc_neighbours,
    .id     = "malloc.neighbours", .level = MUST, .basis = BASIS_C, .rule = HEAP_NEIGHBORS,
    .rank = {RANK_BESIDE, RANK_FRESH, 13}, .scenarios = true, .quick = true,
    .title  = "calls keep the bytes of other blocks",
    .clause = "Allocating, resizing or freeing a block never changes the bytes of another live "
              "block.",
    .tests  = "The other blocks are compared right after each call and again later.",
    .source = "C17 7.22.3 paragraph 1, 6.2.4 paragraph 2: an object keeps its last-stored value",
    .why    = "Arrays would change when another array is created or deleted.",
    .hint   = "Check for fills and trailers that reach past a block, and for threads that write "
              "late.",
    .looks  = "expected byte 112 of 120 to be 0x3c as it was written, after another block was "
              "freed; seen 0x00")
{
    const struct scenario_limits any = {.most_size = 128 << 10, .most_bytes = 64 << 20};
    const struct scenario_limits by_calloc = {.most_size = 8 << 10,
                                              .most_bytes = 16 << 20,
                                              .level[FACTOR_MADE_BY] =
                                                  FROM_TO(BY_CALLOC_N_1, BY_CALLOC_N_K)};
    check_scenarios(40000, &any);
    check_scenarios(20000, &by_calloc);
}

/* ---- the smallest ---------------------------------------------------------------------------- */

static void make_and_free_nothing(void *data)
{
    const struct blocks *company = data;
    enum { ROUNDS = 50, AT_ONCE = 16 };
    for (int round = 0; round < ROUNDS; round++) {
        void *p[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++)
            p[i] = subject_malloc(0);
        blocks_verify(company, "after malloc(0)");
        for (int i = 0; i < AT_ONCE; i++) {
            void *next = p[(i * 5 + round) % AT_ONCE];
            give_back(next, 0);
        }
        blocks_verify(company, "after free(p, 0) of what malloc(0) gave");
    }
}

PROPERTY(malloc_zero,
    .id     = "malloc.zero", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 6}, .answers_for = ABOUT(MALLOC_ZERO),
    .ends_process = true, .quick = true,
    .title  = "malloc(0) is valid",
    .clause = "malloc(0) returns NULL or a pointer that free accepts, and changes no other block.",
    .source = "C17 7.22.3 paragraph 1; NumPy arraytypes.c.src VOID_compare, 1.22 and later",
    .why    = "Sorting np.zeros(3, dtype=[('x', 'i1'), ('y', 'U0')]) calls malloc(0) in NumPy "
              "1.24.",
    .hint   = "Add the header before you round up, or allocate 1 byte instead.",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c8, 0)")
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 40);
    make_and_free_nothing(&company);
    in_threads(1, make_and_free_nothing, &company, 0);
    blocks_free_all(&company);
}
