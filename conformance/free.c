/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: the pointer and the size it is given, NULL and wrong ones among them.
 */
#include "block_checks.h"
#include "harness/leak_check.h"
#include "harness/proc_count.h"

GROUP(free, 5, "What free takes: NULL, wrong sizes, any order.",
      .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 36}, .function = STEP_FREE);

/* Two blocks of that size can be had, and are two. */
static void expect_two_blocks(size_t size, const char *when)
{
    unsigned char *p = must_malloc(size), *q = must_malloc(size);
    expect(p != q, fmt("malloc(%zu), %s, to return two blocks", size, when), "%p twice", (void *)p);
    pattern_fill(p, size, 1);
    pattern_fill(q, size, 2);
    expect_pattern(p, size, 1, "after malloc(%zu) of another block, %s", size, when);
    expect_pattern(q, size, 2, "beside another block of %zu bytes, %s", size, when);
    subject_free(p, size);
    subject_free(q, size);
}

/* free(NULL, 0) here and there, between calls that are sound, or those calls alone. */
static void free_nulls(bool nulls)
{
    struct blocks company = {0};
    for (size_t i = 0; nulls && i < 3; i++)
        subject_free(NULL, 0); /* the first calls of all */
    expect_two_blocks(40, "after free(NULL, 0)");
    blocks_add_neighbours(&company, 64);
    for (size_t i = 0; nulls && i < 1000; i++)
        subject_free(NULL, 0);
    blocks_verify(&company, "after a thousand times free(NULL, 0)");
    for (size_t i = 0; i < 64; i++) {
        blocks_free(&company, i % company.count);
        if (nulls)
            subject_free(NULL, 0);
        expect_two_blocks(1 + i * 7, "after free of a block and free(NULL, 0)");
    }
    blocks_free_all(&company);
}

static void free_no_nulls(void *unused)
{
    (void)unused;
    free_nulls(false);
}

PROPERTY(free_null,
    .id     = "free.null", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 5}, .answers_for = ABOUT(FREE_NULL_ZERO),
    .ends_process = true, .quick = true,
    .clause = "free of NULL with size 0 does nothing, at any time",
    .source = "C17 7.22.3.3 paragraph 2",
    .why    = "cleanup paths free what they may not have allocated",
    .hint   = "return if the pointer is NULL, before a header is read or a counter lowered",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 0)")
{
    control_run(free_no_nulls, NULL, "where NULL is never freed");
    free_nulls(true);
}

/* free(NULL, size) before blocks of that size are made, beside others, or those blocks alone. */
static void free_sized_nulls(bool nulls)
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 16);
    static const size_t large[] = {5000,           65536,       1 << 20, POWER_OF_2(31),
                                   POWER_OF_2(40), PTRDIFF_MAX, SIZE_MAX};
    for (size_t size = 1; size <= 4096; size += stride(53)) {
        unsigned char *newest = must_malloc(size);
        pattern_fill(newest, size, size);
        for (size_t i = 0; nulls && i <= size % 3; i++)
            subject_free(NULL, size);
        expect_two_blocks(size, fmt("after free(NULL, %zu)", size));
        expect_pattern(newest, size, size, "after free(NULL, %zu) and others came and went", size);
        subject_free(newest, size);
        if (size % 8 != 0)
            continue;
        if (nulls)
            subject_free(NULL, size);
        unsigned char *p = must_calloc(size / 8, 8);
        expect_zero(p, size, "after free(NULL, %zu) and calloc(%zu, 8)", size, size / 8);
        subject_free(p, size);
    }
    for (size_t i = 0; i < LENGTH(large); i++) {
        if (nulls)
            subject_free(NULL, large[i]);
        expect_two_blocks(MIN(large[i], 65536), fmt("after free(NULL, %zu)", large[i]));
    }
    blocks_verify(&company, "after free(NULL, n) of many sizes");
    blocks_free_all(&company);
}

static void free_no_sized_nulls(void *unused)
{
    (void)unused;
    free_sized_nulls(false);
}

PROPERTY(free_null_with_size,
    .id     = "free.null-with-size", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 5}, .answers_for = ABOUT(FREE_NULL),
    .ends_process = true, .quick = true,
    .clause = "free of NULL does nothing, whatever the size",
    .source = "C17 7.22.3.3; item_selection.c _new_argsortlike, 1.22 to 2.5; _new_sortlike to 1.24",
    .why    = "every argsort of a contiguous array calls free(NULL, 8 * n)",
    .hint   = "return if the pointer is NULL, before the size picks a list or a counter",
    .looks  = "CRASH: SIGSEGV, inside free((nil), 40)")
{
    control_run(free_no_sized_nulls, NULL, "where NULL is never freed");
    free_sized_nulls(true);
}

/* ---- wrong sizes ------------------------------------------------------------------------- */

/* A block that is freed with another size than it has. */
struct guess {
    size_t size, given;
    bool by_calloc;
};

static unsigned char *guess_make(const struct guess *guess)
{
    return guess->by_calloc ? must_calloc(guess->size, 1) : must_malloc(guess->size);
}

/* New blocks of `size` bytes, which can hold so much, and are zero where calloc made them. */
static void add_new(struct blocks *blocks, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned char *p = i % 4 == 3 ? must_calloc(size, 1) : must_malloc(size);
        if (i % 4 == 3)
            expect_zero(p, size, "after calloc(%zu, 1)", size);
        blocks_add(blocks, p, size);
    }
}

/* Several such blocks side by side, with others between, are freed with the size that is given;
 * the others are as they were, and what is allocated then, of either size, is whole. */
static void free_by_guess(const struct guess *guess)
{
    enum { COUNT = 12, LARGEST = 1 << 17 };
    unsigned char *wrong[COUNT];
    struct blocks others = {0};
    for (size_t i = 0; i < COUNT; i++) {
        wrong[i] = guess_make(guess);
        pattern_fill(wrong[i], guess->size, i);
        if (i % 3 == 0)
            add_new(&others, MIN(guess->size, 4096), 1);
    }
    for (size_t i = 0; i < COUNT; i++) {
        expect_pattern(wrong[i], guess->size, i, "after others of its size were freed as %zu bytes",
                       guess->given);
        subject_free(wrong[i], guess->given);
    }
    blocks_verify(&others, "after blocks of %zu bytes were freed as %zu", guess->size,
                  guess->given);
    for (size_t round = 0; round < 2; round++) {
        if (guess->given > 0 && guess->given <= LARGEST)
            add_new(&others, guess->given, COUNT);
        add_new(&others, guess->size, COUNT);
        blocks_verify(&others, "after blocks of %zu bytes were freed as %zu, and new ones made",
                      guess->size, guess->given);
        blocks_expect_disjoint(&others);
        while (others.count > COUNT)
            blocks_free(&others, others.count - 1);
    }
    blocks_free_all(&others);
}

/* A large block beside others, of which samples are written, is freed as `given` bytes, or as what
 * it is, and then blocks of either size are made.  Of very large ones there are fewer, and what is
 * beside is as long as one that is too short would reach. */
static void free_large_by_guess(size_t size, size_t given, bool rightly)
{
    size_t told = rightly ? size : given;
    enum { MOST = 7, BESIDE_OTHERS = 8 << 20 };
    bool are_many = size <= BESIDE_OTHERS;
    size_t count = are_many ? 3 : 2, again = are_many ? 4 : 1;
    struct block at[MOST];
    struct blocks blocks = {.at = at, .room = MOST};
    for (size_t i = 0; i < count; i++) {
        size_t wanted = i == 1 || are_many ? size : given - size;
        void *p = subject_malloc(wanted);
        if (p != NULL)
            blocks_add_large(&blocks, p, wanted);
    }
    if (blocks.count == count) {
        subject_free(at[1].p, told);
        at[1] = at[--blocks.count];
    }
    for (size_t i = 0; i < again; i++) {
        size_t next = i % 2 == 0 ? given : size;
        void *p = next <= 4 * size ? subject_malloc(next) : NULL;
        if (p == NULL)
            continue;
        size_t place = blocks_add_unwritten(&blocks, p, next);
        blocks_expect_disjoint(&blocks);
        step("writing what malloc(%zu) gave after a block of %zu bytes was freed as %zu", next,
             size, told);
        sample_fill(p, next, at[place].number);
    }
    blocks_verify_samples(&blocks, "after a block of %zu bytes was freed as %zu, and new ones made",
                          size, told);
    blocks_free_each(&blocks);
}

static const size_t large_guesses[][2] = {
    {100000, 120000},   {1 << 20, (1 << 20) + 4096},  {1 << 20, (1 << 20) - 4096},
    {1 << 20, 2 << 20}, {5 << 20, (5 << 20) + 65536}, {4 << 20, 1 << 20},
    {8 << 20, 9 << 20}, {18 << 20, 31 << 20},         {34 << 20, 47 << 20},
};

static void free_large(bool rightly)
{
    size_t most = largest_to_try();
    forgo_huge_pages();
    for (size_t i = 0; i < LENGTH(large_guesses); i++) {
        size_t size = large_guesses[i][0], given = large_guesses[i][1];
        if (MAX(size, given) <= most)
            free_large_by_guess(size, given, rightly);
    }
}

struct guesses {
    const struct guess *at;
    size_t count;
};

/* The same blocks, each freed with its own size. */
static void free_rightly(void *data)
{
    const struct guesses *guesses = data;
    for (size_t i = 0; i < guesses->count; i += stride(3)) {
        struct guess right = guesses->at[i];
        right.given = right.size;
        free_by_guess(&right);
    }
}

static void free_all_rightly(void *data)
{
    free_rightly(data);
    free_large(true);
}

/* Every block of the list once, its ends touched. */
static void use_and_free_each(const struct guesses *guesses, bool rightly)
{
    for (size_t i = 0; i < guesses->count; i++) {
        const struct guess *guess = &guesses->at[i];
        unsigned char *p = guess_make(guess);
        p[0] = p[guess->size - 1] = 1;
        subject_free(p, rightly ? guess->size : guess->given);
    }
}

static void use_and_free(void *guesses)
{
    use_and_free_each(guesses, false);
}

static void use_and_free_rightly(void *guesses)
{
    use_and_free_each(guesses, true);
}

PROPERTY(free_best_guess_size,
    .id     = "free.best-guess-size", .level = MUST, .basis = BASIS_NEP,
    .answers_for = ABOUT(FREE_WRONG_SIZE), .slow_ms = 44,
    .clause = "the wrong sizes that NumPy is known to pass harm nothing: the block is freed, and "
              "later blocks are whole",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess; NumPy 1.22 to 2.5: "
              "arrayobject.c array_dealloc, ctors.c array_from_text, PyArray_FromIter and "
              "PyArray_FromFile, alloc.c PyDataMem_UserNEW_ZEROED; 1.22: methods.c array_setstate",
    .why    = "a.resize(0), fromstring('x', sep=' ') and others free a block with another's size",
    .hint   = "find the size by the block (header, table, size class); do not use the one given",
    .looks  = "FAIL: byte 32 of 1000 to be 0x1f as it was written, after wrong sizes; seen 0x5a")
{
    /* with the version and the route that passes them; the last ones are not filled */
    static const struct guess known[] = {
        {2, 1, false},         /* 1.22: np.empty(0, 'i2') */
        {4, 1, false},         /* all: np.fromstring('', 'i4', sep=' ') */
        {8, 1, false},         /* all: np.fromstring('x', sep=' ') */
        {8, 1, true},          /* 1.22: np.zeros(0) */
        {12, 1, false},        /* to 2.2: np.fromfile(empty, '(3,)i4', count=4) */
        {16, 1, false},        /* to 2.2: np.fromfile(empty, 'c16', count=4) */
        {16, 1, true},         /* to 2.2: resize of np.zeros(9, 'c16') to (2, 0, 3) */
        {56, 1, false},        /* 1.24 to 2.2: np.fromiter that was promised seven, and got none */
        {112, 1, false},       /* likewise, 'c16' */
        {72, 24, false},       /* 1.22: np.fromiter(range(3), 'i8', count=9) */
        {448, 400, false},     /* 1.22: np.fromiter that ends in an error */
        {1000, 1, false},      /* 1.22: np.empty((0, 125)) */
        {4000, 1, true},       /* 1.22: np.zeros((0, 500)) */
        {65536, 1, true},      /* 1.22: np.zeros((0, 8192)) */
        {65536, 32768, false}, /* all: a text of 5000 numbers whose last cut is refused */
        {98304, 32768, false}, /* all: one of 9000 */
        {8136, 8000, false},   /* 1.22: likewise, after 1000 items */
        {1 << 20, 1, false},   /* 1.22: np.empty((0, 1 << 17)) */
        {1 << 20, 1, false},
    };
    enum { KNOWN = LENGTH(known), LARGE = 2 };
    struct guesses small = {known, KNOWN - LARGE};
    control_run(free_rightly, &small, "where each block is freed with its own size");
    for (size_t i = 0; i < KNOWN - LARGE; i++)
        free_by_guess(&known[i]);
    struct guesses all = {known, KNOWN};
    expect_no_growth(300, use_and_free, use_and_free_rightly, &all,
                     "blocks are freed with the wrong sizes that NumPy is known to pass");
    check_huge_best_guess();
}

PROPERTY(free_any_size,
    .id     = "free.any-size", .level = SHOULD, .basis = BASIS_NEP,
    .answers_next_for = ABOUT(FREE_WRONG_SIZE),
    .clause = "no size given to free, be it 0, one off, or SIZE_MAX, does any harm",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess, without a bound",
    .why    = "extension modules call the handler too, and the next NumPy may guess differently",
    .hint   = "do not read the size at all, or only to report it",
    .looks  = "WARN: memory to stop growing while blocks are freed with sizes that are wrong")
{
    static const size_t sizes[] = {1, 2, 8, 24, 100, 1000, 4096, 5000, 33000};
    enum { SIZES = LENGTH(sizes), WAYS = 5 };
    struct guess guesses[SIZES * WAYS + 6] = {
        {1, 8, false}, {1, 16, true}, {1, 64, false}, {1, 1000, false}};
    size_t count = 4;
    for (size_t i = 0; i < SIZES; i++) {
        const size_t given[WAYS] = {0, sizes[i] - 1, sizes[i] + 1, PTRDIFF_MAX, SIZE_MAX};
        for (size_t way = 0; way < WAYS; way++)
            guesses[count++] = (struct guess){sizes[i], given[way], (i + way) % 3 == 2};
    }
    struct guesses small = {guesses, count};
    control_run(free_all_rightly, &small, "where each block is freed with its own size");
    for (size_t i = 0; i < count; i += stride(3))
        free_by_guess(&guesses[i]);
    free_large(false);
    guesses[count++] = (struct guess){300000, 0, false};
    guesses[count++] = (struct guess){300000, SIZE_MAX, false};
    struct guesses all = {guesses, count};
    expect_no_growth(60, use_and_free, use_and_free_rightly, &all,
                     "blocks are freed with sizes that are wrong");
}
