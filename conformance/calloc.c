/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calloc: what it hands out.
 */
#include <sys/mman.h>

#include "base/sanitizer_detect.h"
#include "block_checks.h"

GROUP(calloc, 3,
      "What calloc hands out: zeroed, of the right size, and refused where the product wraps.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 35}, .function = STEP_CALLOC);

/* Two arguments whose product is the size: NumPy gives (n, 1), and the contract knows others. */
static void split(size_t size, size_t *nelem, size_t *elsize)
{
    size_t divisor = size % 8 == 0 ? 8 : size % 3 == 0 ? 3 : size % 4 == 1 ? size : 1;
    *nelem = size / divisor;
    *elsize = divisor;
}

static void *ask_calloc(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return subject_calloc(nelem, elsize);
}

static void *calloc_or_else(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return must_calloc(nelem, elsize);
}

static const char *calloc_in_words(size_t size)
{
    size_t nelem, elsize;
    split(size, &nelem, &elsize);
    return fmt("calloc(%zu, %zu)", nelem, elsize);
}

static const struct maker by_calloc = {ask_calloc, calloc_or_else, calloc_in_words,
                                       "calloc.neighbours", 1};

/* ---- zero ------------------------------------------------------------------------------------ */

/* All are kept until the end, so that each is memory that was in nobody's hands before. */
static void small_and_fresh(void)
{
    enum { MOST = 4096 };
    void *kept[MOST + 1] = {NULL};
    for (size_t size = 1; size <= MOST; size += is_instrumented() && size > 100 ? 29 : 1) {
        kept[size] = calloc_or_else(size);
        expect_zero(kept[size], size, "after %s", calloc_in_words(size));
    }
    for (size_t size = 1; size <= MOST; size++) {
        if (kept[size] != NULL)
            subject_free(kept[size], size);
    }
}

PROPERTY(calloc_zeroed,
    .id     = "calloc.zeroed", .level = MUST, .basis = BASIS_C, .rule = HEAP_ZEROED,
    .rank = {RANK_FRESH, RANK_RESIZED, 20}, .answers_for = ABOUT(CALLOC_NOT_ZERO),
    .answers_next_for = ABOUT(LITTLE_CALLOC), .quick = true,
    .clause = "every byte that calloc hands out is zero, from 1 byte to 64 MiB",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "np.zeros writes no zeros itself; np.empty of objects reads the elements as pointers",
    .hint   = "zero all of nelem * elsize bytes, or take the memory from libc's calloc",
    .looks  = "byte 8 of 13 to be 0, after calloc(13, 1): 0xa5")
{
    static const size_t large[] = {100000,  131071,  131073,           262144,  524289,
                                   1 << 20, 2097151, (4 << 20) + 4104, 16 << 20};
    small_and_fresh();
    for_each_size (size, 65536) {
        if (size <= 4096 || (is_instrumented() && size % 3 != 0))
            continue;
        void *p = calloc_or_else(size);
        expect_zero(p, size, "after %s", calloc_in_words(size));
        subject_free(p, size);
    }
    for (size_t i = 0; i < LENGTH(large); i++) {
        void *p = large[i] <= 1 << 20 ? calloc_or_else(large[i]) : ask_calloc(large[i]);
        if (p == NULL)
            continue;
        expect_zero(p, large[i], "after %s", calloc_in_words(large[i]));
        subject_free(p, large[i]);
    }
    check_edges_zero(&by_calloc, 65536);
    check_large_zero(&by_calloc);
}

/* A block of that size, made by one or another function and full of ones.  malloc.one-byte tests
 * malloc(1). */
static void *dirty_block(size_t size, size_t way)
{
    void *p = size == 1 || way % 4 == 1  ? calloc_or_else(size)
              : way % 4 == 2             ? must_calloc(1, size)
              : way % 4 == 3 && size > 8 ? must_realloc(must_malloc(size / 2 + 1), size)
                                         : must_malloc(size);
    return memset(p, 0xff, size);
}

static void expect_clean(size_t size, int error, const char *before)
{
    errno = error;
    void *p = calloc_or_else(size);
    expect_zero(p, size, "in what %s gave, errno being %d, %s", calloc_in_words(size), error,
                before);
    memset(p, 0xff, size);
    subject_free(p, size);
}

/* As many blocks as a cache may keep, freed together. */
static void reuse_many(size_t size, int error)
{
    enum { MANY = 12 };
    void *p[MANY];
    for (size_t i = 0; i < MANY; i++)
        p[i] = dirty_block(size, i);
    for (size_t i = 0; i < MANY; i++)
        subject_free(p[i], size);
    for (size_t i = 0; i < MANY; i++) {
        errno = error;
        p[i] = calloc_or_else(size);
        expect_zero(p[i], size, "in what %s gave, errno being %d, after %d such blocks were freed",
                    calloc_in_words(size), error, MANY);
    }
    for (size_t i = 0; i < MANY; i++)
        subject_free(p[i], size);
}

/* The memory was dirty all over, and the last who had it asked for little of it. */
static void reuse_shrunken(size_t size, int error)
{
    size_t more = size + size / 8;
    subject_free(dirty_block(more, 0), more);
    void *p = must_malloc(size / 2 + 1);
    subject_free(p, size / 2 + 1);
    expect_clean(size, error,
                 fmt("after malloc(%zu) and malloc(%zu) were freed", more, size / 2 + 1));
    void *q = must_realloc(dirty_block(more, 1), size - size / 4);
    subject_free(q, size - size / 4);
    expect_clean(size, error,
                 fmt("after a block shrank from %zu to %zu and was freed", more, size - size / 4));
}

/* A block that was dirty all over keeps a little of what it had, and callocs while it lives may be
 * given the rest. */
static void reuse_cut_off(size_t size, size_t little)
{
    enum { LEAST = 64, MOST = 12 };
    void *p[MOST];
    size_t sizes[MOST], count = 0;
    unsigned char *cut = subject_malloc(size);
    if (cut == NULL)
        return;
    cut = must_realloc(memset(cut, 0xff, size), little);
    for (size_t left = size - little; left >= LEAST && count < MOST; left -= sizes[count++]) {
        sizes[count] = count < 2 ? left / 2 : MIN(left, 500);
        p[count] = ask_calloc(sizes[count]);
        if (p[count] == NULL)
            break;
        expect_zero(p[count], sizes[count],
                    "in what %s gave, after a block was cut from %zu to %zu",
                    calloc_in_words(sizes[count]), size, little);
    }
    while (count-- > 0)
        subject_free(p[count], sizes[count]);
    subject_free(cut, little);
}

static void reuse_what_was_cut_off(void)
{
    static const size_t sizes[] = {200, 1000, 3000, 5000, 10000, 65536, 300000, 1 << 20, 3 << 20};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        if (is_instrumented() && sizes[i] > 70000)
            break;
        reuse_cut_off(sizes[i], sizes[i] / 3);
        if (sizes[i] > 70000) /* takes its time */
            continue;
        reuse_cut_off(sizes[i], 1 + i);
        reuse_cut_off(sizes[i], sizes[i] / 8);
    }
}

/* A handler may treat one block in some thousand in a way of its own: guarded, sampled. */
static void reuse_often(void)
{
    enum { SIZE = 40, OFTEN = 200000 };
    void *dirty;
    size_t done = subject_calloc_and_free(SIZE, is_instrumented() ? 1000 : OFTEN, &dirty);
    if (dirty != NULL)
        expect_zero(dirty, SIZE, "in what calloc(%d, 1) gave, after %zu times calloc and free",
                    SIZE, done);
}

/* What was locked into memory, as a program does by mlockall, cannot be zeroed by advice: madvise
 * fails with EINVAL. */
static void reuse_locked(size_t size)
{
    void *p = subject_malloc(size);
    if (p == NULL)
        return;
    bool is_locked = mlock(p, size) == 0; /* the pages stay so while they are mapped */
    if (is_locked)
        memset(p, 0xff, size);
    subject_free(p, size);
    void *q = is_locked ? ask_calloc(size) : NULL;
    if (q != NULL)
        expect_zero(q, size, "in what %s gave, after such a block of locked pages was freed",
                    calloc_in_words(size));
    if (q != NULL)
        munlock(q, size);
    give_back(q, size);
}

static void reuse_what_was_locked(void)
{
    static const size_t sizes[] = {140000, 1100000};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        reuse_locked(sizes[i]);
}

/* Where there is no room for the stack of a thread, which might have helped. */
static void reuse_without_room(size_t size)
{
    enum { ROOM = 64 << 10, END = 100 };
    const size_t places[] = {0, size / 3, size / 2, size - END};
    unsigned char *p = subject_malloc(size);
    for (size_t i = 0; p != NULL && i < LENGTH(places); i++)
        memset(p + places[i], 0xff, END);
    if (p == NULL)
        return;
    subject_free(p, size);
    limit_mapped_bytes(ROOM);
    p = ask_calloc(size);
    lift_limit();
    for (size_t i = 0; p != NULL && i < LENGTH(places); i++)
        expect_zero(p + places[i], END,
                    "from byte %zu of %zu on, in what %s gave, after such a block was freed and "
                    "with no room for a thread",
                    places[i], size, calloc_in_words(size));
    give_back(p, size);
}

static void reuse_without_threads(void)
{
    static const size_t sizes[] = {200000, 3 << 20, 20 << 20};
    if (is_instrumented())
        return;
    for (size_t i = 0; i < LENGTH(sizes); i++)
        reuse_without_room(sizes[i]);
}

/* Several blocks of sizes that nobody asked for before, and freed none of. */
enum { FOREIGN = 9 };
static const size_t foreign_sizes[FOREIGN] = {1, 40, 200, 500, 1000, 3000, 9000, 40000, 100000};

static void free_foreign(void *data)
{
    void **blocks = data;
    for (size_t i = 0; i < FOREIGN; i++)
        subject_free(blocks[i], foreign_sizes[i]);
}

static void reuse_of_another_thread(void)
{
    void *blocks[FOREIGN];
    for (size_t i = 0; i < FOREIGN; i++)
        blocks[i] = memset(calloc_or_else(foreign_sizes[i]), 0xff, foreign_sizes[i]);
    in_threads(1, free_foreign, blocks, sizeof blocks);
    for (size_t i = FOREIGN; i-- > 0;)
        expect_clean(foreign_sizes[i], 0, "after such a block was freed on another thread");
}

PROPERTY(calloc_zeroed_when_reused,
    .id     = "calloc.zeroed-when-reused", .level = MUST, .basis = BASIS_C,
    .answers_next_for = ABOUT(CALLOC_NOT_ZERO), .slow_ms = 49,
    .clause = "calloc returns zeros where freed or cut-off memory held other bytes, for any "
              "errno, after many calls, in locked memory, and without new threads",
    .source = "C17 7.22.3.2 paragraph 2; 7.5 paragraph 3: no library function sets errno to zero",
    .why    = "np.zeros would show what a deleted array held",
    .hint   = "zero what a cache or free list returns; check madvise: it cannot drop locked pages",
    .looks  = "byte 0 of 64 to be 0, in what calloc(8, 8) gave, errno being 12: 0xff")
{
    static const int errors[] = {0, ENOMEM, EINVAL, ERANGE};
    static const size_t large[] = {70000, 131072, 300000, 1 << 20};
    size_t round = 0;
    reuse_without_threads(); /* before there is one, whose stack libc would keep */
    reuse_of_another_thread();
    for_each_size (size, 16384) {
        if (size > 300 && size % (is_instrumented() ? 127 : 17) != 0)
            continue;
        int error = errors[++round % 4];
        subject_free(dirty_block(size, round), size);
        expect_clean(size, error, "after such a block was freed");
        if (size > 8)
            reuse_shrunken(size, errors[(round / 4) % 4]);
        if (round % 4 == 0)
            reuse_many(size, ENOMEM);
    }
    for (size_t i = 0; i < LENGTH(large); i++) {
        subject_free(dirty_block(large[i], i), large[i]);
        expect_clean(large[i], errors[i % 4], "after such a block was freed");
        if (i < 2)
            reuse_shrunken(large[i], ENOMEM);
    }
    reuse_what_was_cut_off();
    reuse_often();
    reuse_what_was_locked();
    check_edges_zero_when_reused(&by_calloc);
    check_large_zero_when_reused(&by_calloc);
    check_huge_zero_when_reused(&by_calloc);
}

/* ---- the two arguments ----------------------------------------------------------------------- */

/* Blocks side by side, of which each would reach into another were it too short. */
static void expect_product(size_t nelem, size_t elsize)
{
    enum { MOST = 8 };
    struct block at[MOST];
    struct blocks blocks = {.at = at, .room = MOST};
    size_t size = nelem * elsize, count = size > 50000 ? 3 : MOST;
    for (; blocks.count < count; blocks.count++) {
        void *p = must_calloc(nelem, elsize);
        at[blocks.count] = (struct block){p, size, nelem + blocks.count};
    }
    step("looking at what calloc(%zu, %zu) gave", nelem, elsize);
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < count; i++)
        pattern_fill(at[i].p, size, at[i].number);
    blocks_verify(&blocks, "in a block of calloc(%zu, %zu)", nelem, elsize);
    while (blocks.count > 0)
        blocks_free(&blocks, blocks.count - 1);
}

PROPERTY(calloc_product,
    .id     = "calloc.product", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_PLACE, RANK_BESIDE, 11}, .quick = true,
    .clause = "calloc gives nelem times elsize bytes, however the size is shared between the two",
    .source = "C17 7.22.3.2 paragraph 2; NEP 49, the calloc function",
    .why    = "NumPy passes an element size of 1 so far; the contract allows others",
    .hint   = "multiply the two, and mind their order",
    .looks  = "8 live blocks not to overlap: 80 bytes at 0x55d0c8 and 80 bytes at 0x55d0f8")
{
    static const size_t pairs[][2] = {
        {10, 8},   {7, 13},    {2, 2},     {3, 1000},  {97, 89},  {257, 257},
        {31, 641}, {65537, 3}, {5, 65536}, {2, 70001}, {128, 16}, {4099, 17},
    };
    static const size_t alone[] = {2, 24, 100, 997, 4096, 10007, 70001};
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        expect_product(pairs[i][0], pairs[i][1]);
        expect_product(pairs[i][1], pairs[i][0]);
    }
    for (size_t i = 0; i < LENGTH(alone); i++) {
        expect_product(alone[i], 1);
        expect_product(1, alone[i]);
    }
    check_huge_extent(&by_calloc);
}

/* What nobody can have, right after a small block was freed, which must not come back for it. */
static void expect_no_calloc(size_t nelem, size_t elsize)
{
    size_t small = 8 + (nelem * elsize) % 1024, product;
    bool wraps = __builtin_mul_overflow(nelem, elsize, &product);
    if (!wraps && product < POWER_OF_2(ABSURD_BITS))
        return; /* where a size_t has 32 bits, some that are tried are no more than usual */
    if (!wraps && memcheck_is_running() && product > SIZE_MAX - 4096 && nelem > 1 && elsize > 1)
        return; /* valgrind 3.19 adds to that itself, and ends */
    subject_free(must_malloc(small), small);
    void *p = subject_calloc(nelem, elsize);
    if (p != NULL)
        fail(fmt("calloc(%zu, %zu) to return NULL: %s", nelem, elsize,
                 wraps ? fmt("the product does not fit, and wraps to %zu", product)
                       : "no block can be that large"),
             "%p", p);
}

/* The x for which x * odd is 1 modulo SIZE_MAX + 1, by Newton's iteration. */
static size_t inverse(size_t odd)
{
    size_t x = odd; /* right in the lowest 3 bits, and each step doubles them */
    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

/* Pairs whose product wraps to exactly `small`. */
static void refuse_what_wraps_to(size_t small)
{
    for (unsigned shift = 0; shift < SIZE_BITS - 4; shift += shift < 8 ? 1 : 13) {
        for (size_t i = 1; i <= (is_instrumented() ? 3 : 40); i++) {
            size_t odd = ((size_t)1 << shift) * 2 * i + 1, other = small * inverse(odd), product;
            if (!__builtin_mul_overflow(odd, other, &product))
                continue;
            expect_no_calloc(odd, other);
            expect_no_calloc(other, odd);
        }
    }
}

/* Elements that are padded, to a power of two or to 8 or 16 bytes, make the product larger: it may
 * be looked at before, and wrap after. */
static void refuse_what_padding_wraps(void)
{
    static const size_t sizes[] = {1, 3, 5, 6, 7, 9, 12, 20, 24, 33, 48, 100, 1000, 5000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        for (size_t padded = 4; padded <= 1024; padded *= 2) {
            for (size_t k = 0; padded > sizes[i] && k < 100; k = 3 * k + 1)
                expect_no_calloc(SIZE_MAX / padded + 1 + k, sizes[i]);
        }
        for (size_t k = 0; k < 10000; k = 3 * k + 1)
            expect_no_calloc(SIZE_MAX / sizes[i] - k, sizes[i]);
    }
}

PROPERTY(calloc_overflow,
    .id     = "calloc.overflow", .level = MUST, .basis = BASIS_C, .rule = HEAP_OVERFLOW,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 18}, .answers_for = ABOUT(CALLOC_TOO_LARGE), .quick = true,
    .clause = "calloc returns NULL and changes nothing if the product overflows or is too large",
    .source = "C17 7.22.3.2, 7.22.3 paragraph 1: space for nelem objects or a null pointer",
    .why    = "a product that wraps becomes a small block, and its user writes past it",
    .hint   = "use __builtin_mul_overflow; check that header, padding and rounding do not wrap",
    .looks  = "calloc(9223372036854775809, 2) to return NULL: the product wraps to 2: 0x55d0c8")
{
    static const size_t half = POWER_OF_2(SIZE_BITS / 2), top = POWER_OF_2(SIZE_BITS - 1),
                        root = POWER_OF_2(SIZE_BITS / 4);
    static const size_t pairs[][2] = {
        {SIZE_MAX, 2},
        {top, 2},
        {top + 1, 2},
        {half, half},
        {half + 1, half},
        {half << 1, half},
        {SIZE_MAX, SIZE_MAX},
        {SIZE_MAX / 8 + 2, 8},
        {top / 8 + 1, 16},
        {SIZE_MAX / 3, 4},
        {SIZE_MAX / 12 + 1, 12},
        {half << 8, half >> 4},
        {top, 1},
        {top / 2, 1},
        {top / 2, 2},
        {top - 1, 2},
    };
    static const size_t smalls[] = {1, 8, 16, 24, 64, 100, 1000, 4096};
    struct blocks company = {0};
    blocks_add_neighbours(&company, 60);
    for (size_t size = 8; size <= 2048; size += 8) /* what keeps freed blocks has some of each */
        subject_free(must_malloc(size), size);
    absurd_begin();
    for (size_t i = 0; i < LENGTH(pairs); i++) {
        expect_no_calloc(pairs[i][0], pairs[i][1]);
        expect_no_calloc(pairs[i][1], pairs[i][0]);
    }
    absurd_end();
    /* wraps to a little more than either factor; a handler that falls for it may well touch all */
    if (lacking_memory(5 * (half / 4)) == NULL)
        expect_no_calloc(half - root + 6, half + root - 4);
    for (size_t i = 0; i < LENGTH(smalls); i++) {
        refuse_what_wraps_to(smalls[i]);
        blocks_verify(&company, "after products that wrap to %zu", smalls[i]);
    }
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += k < 130 && !is_instrumented() ? 1 : 61) {
        expect_no_calloc(SIZE_MAX - k, 1);
        expect_no_calloc(1, SIZE_MAX - k);
    }
    for_each_wrapping_size (size) {
        expect_no_calloc(size, 1);
        expect_no_calloc(1, size);
    }
    refuse_what_padding_wraps();
    absurd_end();
    blocks_verify(&company, "after sizes that no block can have");
    blocks_free_all(&company);
}

static void make_and_free_none(void *data)
{
    static const size_t pairs[][2] = {
        {0, 1},
        {1, 0},
        {0, 0},
        {0, 8},
        {8, 0},
        {0, 4096},
        {4096, 0},
        {1000003, 0},
        {0, SIZE_MAX},
        {SIZE_MAX, 0},
        {0, POWER_OF_2(32)},
        {POWER_OF_2(32), 0},
    };
    enum { PAIRS = LENGTH(pairs), LARGE = 2, ROUNDS = 20 };
    const struct blocks *company = data;
    /* a handler may make 4 GiB of them, of which a checker writes down each byte */
    size_t count = is_instrumented() ? PAIRS - LARGE : PAIRS;
    for (int round = 0; round < ROUNDS; round++) {
        void *p[PAIRS] = {NULL};
        for (size_t i = 0; i < count; i++) {
            p[i] = subject_calloc(pairs[i][0], pairs[i][1]);
            blocks_verify(company, "after calloc(%zu, %zu)", pairs[i][0], pairs[i][1]);
        }
        for (size_t i = 0; i < PAIRS; i++) {
            void *next = p[(i * 5 + (size_t)round) % PAIRS];
            give_back(next, 0);
        }
        blocks_verify(company, "after such blocks were freed");
    }
}

PROPERTY(calloc_zero_arguments,
    .id     = "calloc.zero-arguments", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 7}, .answers_for = ABOUT(CALLOC_ZERO),
    .ends_process = true, .quick = true,
    .clause = "calloc(0, n) and calloc(n, 0) return NULL or a pointer that free accepts",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "the contract lets NumPy ask for no elements, or for elements of no size",
    .hint   = "add the header to the product, not to a factor; check an argument before you divide",
    .looks  = "CRASH: SIGFPE, inside calloc(1, 0)")
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 40);
    make_and_free_none(&company);
    in_threads(1, make_and_free_none, &company, sizeof company);
    blocks_free_all(&company);
}

/* ---- as malloc ------------------------------------------------------------------------------- */

/* Several in a row of few elements each, which may be packed. */
static void align_few_elements(size_t nelem)
{
    enum { IN_A_ROW = 3, MOST = 1000, STEP = 8 };
    for (size_t elsize = STEP; elsize <= MOST; elsize += (is_instrumented() ? 9 : 1) * STEP) {
        void *p[IN_A_ROW];
        for (size_t i = 0; i < IN_A_ROW; i++) {
            p[i] = must_calloc(nelem, elsize);
            expect_aligned(p[i], nelem * elsize, "calloc(%zu, %zu)", nelem, elsize);
        }
        for (size_t i = 0; i < IN_A_ROW; i++)
            subject_free(p[i], nelem * elsize);
    }
}

PROPERTY(calloc_alignment,
    .id     = "calloc.alignment", .level = MUST, .basis = BASIS_C, .rule = HEAP_CALLOC_ALIGNMENT,
    .rank = {RANK_FRESH, RANK_AT_LENGTH, 19}, .quick = true,
    .clause = "a block of calloc's is aligned for max_align_t or, if that is larger than the "
              "block, for the largest power of two in its size",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy takes np.zeros to be aligned for its dtype, and does not pass that size",
    .hint   = "make the header a multiple of max_align_t's alignment; ignore elsize",
    .looks  = "calloc(3, 8) to be aligned to 16 bytes: 0x55d0c8, which is aligned to 8")
{
    check_alignment(&by_calloc);
    for (size_t nelem = 3; nelem <= 7; nelem += 2)
        align_few_elements(nelem);
}

PROPERTY(calloc_disjoint,
    .id     = "calloc.disjoint", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_PLACE, RANK_FRESH, 12}, .slow_ms = 62,
    .clause = "no two live blocks of calloc's share a byte: small or large, more than 65536, "
              "recycled on two threads, or one left alone",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other",
    .why    = "two arrays would share memory, and writing one would change the other",
    .hint   = "check the width of indices, the sizes in a free list, and double entries",
    .looks  = "66048 live blocks not to overlap: 17 bytes at 0x7f1200 and 17 bytes at 0x7f1200")
{
    enum { LARGE = 6 };
    check_edges_disjoint(&by_calloc);
    check_disjoint(&by_calloc, LARGE);
}

PROPERTY(calloc_neighbours,
    .id     = "calloc.neighbours", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BESIDE, RANK_FRESH, 17},
    .clause = "calloc, and free of its blocks, keep the bytes of all other blocks, then and later",
    .source = "C17 7.22.3 paragraph 1, 6.2.4 paragraph 2: an object keeps its last-stored value",
    .why    = "arrays would lose their ends when another one is made by np.zeros",
    .hint   = "zero all requested bytes, not a rounded size, before you return the block",
    .looks  = "byte 0 of 100 to be 0x3c as it was written, after calloc(100, 1): 0x00")
{
    check_neighbours(&by_calloc);
}
