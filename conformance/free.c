/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what it takes.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include <time.h>

#include "harness/growth.h"
#include "harness/harness.h"

GROUP(free, 5, "What free takes: NULL, wrong sizes, any order.");

/* Two blocks of that size can be had, and are two. */
static void expect_two_blocks(size_t size, const char *when)
{
    unsigned char *p = must_malloc(size), *q = must_malloc(size);
    expect(p != q, text("malloc(%zu), %s, to return two blocks", size, when), "%p twice",
           (void *)p);
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
    .id     = "free.null",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "free of NULL with size 0 does nothing, at any time",
    .source = "C17 7.22.3.3 paragraph 2",
    .why    = "cleanup paths free what they may not have allocated",
    .hint   = "return where the pointer is NULL, before a header is read or a counter lowered",
    .looks  = "CRASH: SIGSEGV at address 0xfffffffffffffff0, inside free((nil), 0)")
{
    control_run(free_no_nulls, NULL, "where NULL is never freed");
    free_nulls(true);
}

/* free(NULL, size) before blocks of that size are made, or those blocks alone. */
static void free_sized_nulls(bool nulls)
{
    static const size_t large[] = {5000,        65536,   1 << 20, (size_t)1 << 31, (size_t)1 << 40,
                                   PTRDIFF_MAX, SIZE_MAX};
    for (size_t size = 1; size <= 4096; size += stride(53)) {
        for (size_t i = 0; nulls && i <= size % 3; i++)
            subject_free(NULL, size);
        expect_two_blocks(size, text("after free(NULL, %zu)", size));
        if (size % 8 != 0)
            continue;
        if (nulls)
            subject_free(NULL, size);
        unsigned char *p = must_calloc(size / 8, 8);
        expect_zero(p, size, "after free(NULL, %zu) and calloc(%zu, 8)", size, size / 8);
        subject_free(p, size);
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        if (nulls)
            subject_free(NULL, large[i]);
        expect_two_blocks(MIN(large[i], 65536), text("after free(NULL, %zu)", large[i]));
    }
}

static void free_no_sized_nulls(void *unused)
{
    (void)unused;
    free_sized_nulls(false);
}

PROPERTY(free_null_with_size,
    .id     = "free.null-with-size",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "free of NULL does nothing, whatever the size",
    .source = "C17 7.22.3.3 paragraph 2; NumPy 1.22 to 2.5: item_selection.c _new_argsortlike "
              "frees an index buffer that it did not need; up to 1.24 _new_sortlike does so too",
    .why    = "every argsort of a contiguous array calls free(NULL, 8 * n), and a sort whose "
              "buffer was refused free(NULL, n * itemsize)",
    .hint   = "return where the pointer is NULL, before the size picks a list or a counter",
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

/* A large block between two others, of which samples are written, is freed as `given` bytes, or as
 * what it is, and then blocks of either size are made. */
static void free_large_by_guess(size_t size, size_t given, bool rightly)
{
    size_t told = rightly ? size : given;
    enum { MOST = 7 };
    struct block at[MOST];
    struct blocks blocks = {.at = at, .room = MOST};
    for (size_t i = 0; i < 3; i++) {
        void *p = subject_malloc(size);
        if (p != NULL)
            blocks_add_large(&blocks, p, size);
    }
    if (blocks.count == 3) {
        subject_free(at[1].p, told);
        at[1] = at[--blocks.count];
    }
    for (size_t i = 0; i < 4; i++) {
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
    while (blocks.count > 0)
        blocks_free(&blocks, 0);
}

static const size_t large_guesses[][2] = {
    {100000, 120000},   {1 << 20, (1 << 20) + 4096},  {1 << 20, (1 << 20) - 4096},
    {1 << 20, 2 << 20}, {5 << 20, (5 << 20) + 65536}, {4 << 20, 1 << 20},
};
enum { LARGE_GUESSES = sizeof large_guesses / sizeof *large_guesses };

static void free_large(bool rightly)
{
    size_t most = largest_to_try();
    for (size_t i = 0; i < LARGE_GUESSES; i++) {
        size_t size = large_guesses[i][0], given = large_guesses[i][1];
        if (size <= most)
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
static void use_and_free(void *data)
{
    const struct guesses *guesses = data;
    for (size_t i = 0; i < guesses->count; i++) {
        const struct guess *guess = &guesses->at[i];
        unsigned char *p = guess_make(guess);
        p[0] = p[guess->size - 1] = 1;
        subject_free(p, guess->given);
    }
}

static void use_and_free_rightly(void *data)
{
    const struct guesses *guesses = data;
    for (size_t i = 0; i < guesses->count; i++) {
        unsigned char *p = guess_make(&guesses->at[i]);
        p[0] = p[guesses->at[i].size - 1] = 1;
        subject_free(p, guesses->at[i].size);
    }
}

PROPERTY(free_best_guess_size,
    .id     = "free.best-guess-size",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "the wrong sizes that NumPy is known to pass harm nothing: the block is freed, and "
              "blocks allocated later are whole",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess; NumPy 1.22 to 2.5: "
              "arrayobject.c array_dealloc, ctors.c array_from_text, PyArray_FromIter and "
              "PyArray_FromFile, alloc.c PyDataMem_UserNEW_ZEROED; 1.22: methods.c array_setstate",
    .why    = "a.resize(0), fromstring('x', sep=' '), fromiter of an empty iterator and others "
              "free a block with the size of another",
    .hint   = "find the block's size by itself (a header, a table, the size class of its page): "
              "the size given can pick no list, length to unmap, or number to book",
    .looks  = "FAIL: byte 32 of 1000 to be 0x1f as it was written, after blocks of 1 bytes were "
              "freed as 1000, and new ones made; seen 0x5a")
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
    enum { KNOWN = sizeof known / sizeof *known, LARGE = 2 };
    struct guesses small = {known, KNOWN - LARGE};
    control_run(free_rightly, &small, "where each block is freed with its own size");
    for (size_t i = 0; i < KNOWN - LARGE; i++)
        free_by_guess(&known[i]);
    struct guesses all = {known, KNOWN};
    expect_no_growth(300, use_and_free, use_and_free_rightly, &all,
                     "blocks are freed with the wrong sizes that NumPy is known to pass");
}

PROPERTY(free_any_size,
    .id     = "free.any-size",
    .level  = SHOULD, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "no size given to free, be it 0, one off, or SIZE_MAX, does any harm",
    .source = "NEP 49, NumPy C-API functions: the size is a best guess, without a bound",
    .why    = "extension modules call the handler as well, and the next version of NumPy may "
              "guess in another way",
    .hint   = "do not read the size at all, or only to report it",
    .looks  = "WARN: memory to stop growing while blocks are freed with sizes that are wrong")
{
    static const size_t sizes[] = {1, 2, 8, 24, 100, 1000, 4096, 5000, 33000};
    enum { SIZES = sizeof sizes / sizeof *sizes, WAYS = 5 };
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

/* ---- order ------------------------------------------------------------------------------- */

/* Blocks that are looked up by number, so that they can be freed in an order of their own. */
enum { MANY = 360 };
struct set {
    struct block at[MANY]; /* p is NULL where it is freed */
    size_t order[MANY];
    uint64_t last_number;
};

static void set_make(struct set *set, size_t i)
{
    size_t size = 1 + random_below(rng(), i % 16 == 0 ? 3000 : i % 2 == 0 ? 64 : 128);
    struct block *b = &set->at[i];
    *b = (struct block){must_malloc(size), size, ++set->last_number};
    pattern_fill(b->p, size, b->number);
}

static void set_free(struct set *set, size_t i)
{
    struct block *b = &set->at[i];
    subject_free(b->p, b->size);
    b->p = NULL;
}

static void set_verify(const struct set *set, const char *order)
{
    for (size_t i = 0; i < MANY; i++) {
        const struct block *b = &set->at[i];
        if (b->p != NULL)
            expect_pattern(b->p, b->size, b->number, "while blocks are freed %s", order);
    }
}

enum order { LAST_FIRST, FIRST_FIRST, RANDOM, EVERY_OTHER, OUTSIDE_IN, ORDERS };

static void arrange(size_t order[MANY], enum order which)
{
    for (size_t i = 0; i < MANY; i++)
        order[i] = which == LAST_FIRST    ? MANY - 1 - i
                   : which == EVERY_OTHER ? (i * 2 < MANY ? i * 2 : i * 2 % MANY + 1)
                   : which == OUTSIDE_IN  ? (i % 2 == 0 ? i / 2 : MANY - 1 - i / 2)
                                          : i;
    for (size_t i = MANY - 1; which == RANDOM && i > 0; i--) {
        size_t j = random_below(rng(), i + 1), kept = order[i];
        order[i] = order[j];
        order[j] = kept;
    }
}

/* Half of the blocks are freed in that order and made anew, a quarter, all but one, and all. */
static void free_in_order(struct set *set, enum order which)
{
    static const char *const names[ORDERS] = {"the last one first", "the first one first",
                                              "in random order", "every other one first",
                                              "from both ends"};
    static const size_t parts[] = {MANY / 2, MANY / 4, MANY - 1, MANY};
    for (size_t i = 0; i < MANY; i++)
        set_make(set, i);
    for (size_t part = 0; part < sizeof parts / sizeof *parts; part++) {
        arrange(set->order, which);
        for (size_t i = 0; i < parts[part]; i++)
            set_free(set, set->order[i]);
        set_verify(set, names[which]);
        for (size_t i = 0; i < parts[part]; i++)
            set_make(set, set->order[i]);
        set_verify(set, names[which]);
    }
    for (size_t i = 0; i < MANY; i++)
        set_free(set, set->order[i]);
}

/* Blocks that cannot stand beside each other do not wait for a free. */
static void free_none(void *data)
{
    struct set *set = data;
    for (size_t round = 0; round < 4; round++) {
        for (size_t i = 0; i < MANY; i++)
            set_make(set, i);
        set_verify(set, "never");
    }
}

PROPERTY(free_any_order,
    .id     = "free.any-order",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "blocks can be freed in any order, whatever the one they were made in",
    .source = "C17 7.22.3 paragraph 1: the order of successive allocations is unspecified, and "
              "the lifetime of each ends with its own deallocation",
    .why    = "Python drops arrays as their references go, the garbage collector in an order of "
              "its own",
    .hint   = "a freed block merges only with neighbours that are free now; a stack of blocks is "
              "not enough",
    .looks  = "FAIL: byte 0 of 51 to be 0xb0 as it was written, while blocks are freed the first "
              "one first")
{
    struct set set = {.last_number = 0};
    control_run(free_none, &set, "where nothing is freed");
    for (enum order which = 0; which < ORDERS; which++) {
        for (size_t round = 0; round < 3; round += stride(3))
            free_in_order(&set, which);
    }
}

/* ---- what is written into freed blocks --------------------------------------------------- */

/* The ends of a block of `size` bytes, where a neighbour's poison shows first. */
static void expect_ends(const unsigned char *p, size_t size, uint64_t number)
{
    size_t begin = MIN(size, 64);
    expect_pattern(p, begin, number, "after free of its neighbour of %zu bytes", size);
    for (size_t at = size - begin; at < size; at++) {
        unsigned char right = pattern_byte(number, at);
        expect(p[at] == right,
               text("byte %zu of %zu to be 0x%02x as it was written, after free of its neighbour",
                    at, size, right),
               "0x%02x, in the block at %p", p[at], (const void *)p);
    }
}

/* Three blocks of a size, side by side more often than not. */
static void make_three(unsigned char *p[3], size_t size)
{
    for (size_t i = 0; i < 3; i++) {
        p[i] = must_malloc(size);
        pattern_fill(p[i], size, i);
    }
}

static void make_threes(void *data)
{
    unsigned char *p[3];
    (void)data;
    for_each_size (size, 1 << 11) {
        if (size % 16 > 1)
            continue;
        make_three(p, size);
        for (size_t i = 0; i < 3; i++)
            expect_ends(p[i], size, i);
    }
}

/* The middle one of three is freed. */
static unsigned char *free_between(size_t size)
{
    unsigned char *p[3];
    make_three(p, size);
    subject_free(p[1], size);
    expect_ends(p[0], size, 0);
    expect_ends(p[2], size, 2);
    subject_free(p[2], size);
    return p[0];
}

PROPERTY(free_poison_stays_inside,
    .id     = "free.poison-stays-inside",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "whatever free does to the bytes of a block, it does to no other block's, at once "
              "or later",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "debugging handlers overwrite what is freed, and others keep their lists there",
    .hint   = "poison as many bytes as were asked for, not the size given to free or a rounded "
              "one, and none once the block has gone back, by this free or a later one",
    .looks  = "FAIL: byte 0 of 1000 to be 0x7c as it was written, after free of a block of 1000 "
              "bytes; seen 0xdd")
{
    enum { COMPANY = 7 };
    struct blocks blocks = {0};
    control_run(make_threes, NULL, "where nothing is freed");
    for_each_size (size, 1 << 16) {
        if (size % stride(16) > 1)
            continue;
        blocks_add(&blocks, free_between(size), size);
        if (blocks.count <= COMPANY)
            continue;
        size_t oldest = size % COMPANY;
        attribute_to("free.leaves-recycled-alone", &(struct call){.function = OUTSIDE});
        expect_pattern(blocks.at[oldest].p, blocks.at[oldest].size, blocks.at[oldest].number,
                       "after many other blocks were freed");
        attribute_to("", &(struct call){.function = OUTSIDE});
        blocks_free(&blocks, oldest);
    }
    blocks_verify(&blocks, "at the end");
    blocks_free_all(&blocks);
}

/* Blocks of many sizes that were freed, and whose memory is in use again. */
struct recycled {
    struct blocks small, large;
};

static void recycle(struct recycled *recycled)
{
    enum { SMALL = 400, LARGE = 3, LARGE_SIZE = (1 << 20) + 100 };
    while (recycled->small.count > 0)
        blocks_free(&recycled->small, recycled->small.count - 1);
    while (recycled->large.count > 0)
        blocks_free(&recycled->large, recycled->large.count - 1);
    for (size_t i = 0; i < SMALL; i++) {
        size_t size = i % 40 == 39 ? 500 * i : 1 + i % 200;
        blocks_add(&recycled->small, must_malloc(size), size);
    }
    for (size_t i = 0; i < LARGE; i++) {
        void *p = subject_malloc(LARGE_SIZE);
        if (p != NULL)
            blocks_add_large(&recycled->large, p, LARGE_SIZE);
    }
}

static void verify_recycled(const struct recycled *recycled, const char *when)
{
    blocks_verify(&recycled->small, "%s", when);
    blocks_verify_samples(&recycled->large, "%s", when);
}

PROPERTY(free_leaves_recycled_alone,
    .id     = "free.leaves-recycled-alone",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "what is left to do with a freed block is over when its memory is handed out again, "
              "or is not done: nobody writes there in the tens of milliseconds that follow",
    .source = "C17 6.2.4 paragraph 2: an object keeps its last-stored value throughout its "
              "lifetime",
    .why    = "an array would change by itself, long after the one that was deleted",
    .hint   = "look at the thread or timer that poisons, wipes or gives pages back: it has to see "
              "whether the block is still free, under the lock that malloc takes",
    .looks  = "FAIL: byte 0 of 36 to be 0xe4 as it was written, 24 ms after it was made of what "
              "had been freed, and no call since; seen 0xdd")
{
    enum { ROUNDS = 3, WAITS = 3, MILLISECONDS = 12 };
    struct recycled recycled = {.small = {0}};
    recycle(&recycled);
    verify_recycled(&recycled, "where nothing was freed before");
    for (int round = 0; round < ROUNDS; round++)
        recycle(&recycled);
    for (int waits = 1; waits <= WAITS; waits++) {
        nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
        verify_recycled(&recycled, text("%d ms after it was made of what had been freed, and no "
                                        "call since",
                                        waits * MILLISECONDS));
    }
    blocks_free_all(&recycled.small);
    blocks_free_all(&recycled.large);
}

/* ---- memory, errno, exceptions ----------------------------------------------------------- */

/* Blocks of all kinds, made by all functions; how many of each changes from turn to turn. */
static void make_and_free(void *data)
{
    size_t turn = ++*(size_t *)data;
    struct {
        unsigned char *p;
        size_t size;
    } kept[40];
    size_t count = 0;
    for (size_t i = 0; i < 30 + turn % 8; i++, count++) {
        size_t size = i % 10 == 9 ? 3000 + 100 * i : 16 + 11 * i;
        kept[count].p = i % 3 == 0   ? must_calloc(size, 1)
                        : i % 3 == 1 ? subject_realloc(NULL, size)
                                     : NULL;
        if (kept[count].p == NULL)
            kept[count].p = must_malloc(size);
        kept[count].size = size;
    }
    kept[count].p = turn % 4 == 0 ? must_calloc(262144, 1) : must_malloc(262144);
    kept[count++].size = 262144;
    for (size_t i = 0; i < count; i++) {
        size_t at = i % 2 == 0 ? i / 2 : count - 1 - i / 2;
        kept[at].p[0] = kept[at].p[kept[at].size - 1] = 1;
        subject_free(kept[at].p, kept[at].size);
    }
}

PROPERTY(free_reclaims,
    .id     = "free.reclaims",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "what is freed is given back or used again: memory does not grow over cycles of the "
              "same work",
    .source = "C17 7.22.3.3: free makes the space available for further allocation; how soon that "
              "shows is good practice",
    .why    = "a loop over temporaries would otherwise end in MemoryError",
    .hint   = "bound what is kept back, in caches and in quarantine, and free on every path",
    .looks  = "WARN: memory to stop growing while blocks of up to 262144 bytes are made and "
              "freed; 75000 KiB more mapped and 1300 KiB more resident")
{
    size_t turn = 0;
    control_run(make_and_free, &turn, "where it is done once");
    expect_no_growth(200, make_and_free, NULL, &turn,
                     "blocks of up to 262144 bytes are made and freed");
}

static void free_with_errno(void *p, size_t size, const char *what)
{
    static const int values[] = {0, ENOENT, 12345};
    static size_t turn;
    int before = values[turn++ % 3];
    errno = before;
    subject_free(p, size);
    int after = errno;
    expect(after == before, text("errno to be %d still, after free of %s", before, what), "%d",
           after);
}

PROPERTY(free_keeps_errno,
    .id     = "free.keeps-errno",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "free leaves errno as it was",
    .source = "POSIX.1-2024, free(): errno is preserved; glibc does so since 2.33",
    .why    = "cleanup code runs between a call that failed and the look at errno",
    .hint   = "save errno first and put it back last, around munmap and madvise in particular",
    .looks  = "WARN: errno to be 2 still, after free of a block of 1048576 bytes by malloc; 22")
{
    static const size_t sizes[] = {1, 8, 100, 4096, 70000, 300000, 1 << 20, 4 << 20};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    for (size_t round = 0; round < 9; round++) {
        free_with_errno(NULL, 0, "NULL");
        free_with_errno(NULL, 40, "NULL with size 40");
        for (size_t i = 0; i < SIZES; i++) {
            void *p = round % 3 == 0   ? subject_malloc(sizes[i])
                      : round % 3 == 1 ? subject_calloc(sizes[i], 1)
                                       : subject_realloc(NULL, sizes[i]);
            static const char *const makers[] = {"malloc", "calloc", "realloc"};
            if (p != NULL)
                free_with_errno(p, round < 6 ? sizes[i] : 1,
                                text("a block of %zu bytes by %s", sizes[i], makers[round % 3]));
        }
    }
    struct blocks blocks = {0};
    blocks_add_neighbours(&blocks, 300); /* lists fill up, and have to be emptied */
    for (size_t i = 0; i < blocks.count; i++)
        free_with_errno(blocks.at[i].p, blocks.at[i].size, "one of 300 blocks");
    free(blocks.at);
}

/* Frees with `exception` pending, and takes it back: the same object, and nothing else. */
static void free_with_exception(PyObject *exception, void *p, size_t size, const char *what)
{
    PyObject *type, *value, *traceback;
    PyErr_SetObject((PyObject *)Py_TYPE(exception), exception);
    subject_free(p, size);
    PyErr_Fetch(&type, &value, &traceback);
    expect(type != NULL,
           text("the ValueError that was pending to be pending still, after free of %s", what),
           "no exception is");
    expect(type == (PyObject *)Py_TYPE(exception) && value == exception,
           text("the ValueError that was pending to be pending still, after free of %s", what),
           "another %s is", ((PyTypeObject *)type)->tp_name);
    Py_DECREF(type);
    Py_DECREF(value);
    Py_XDECREF(traceback);
}

PROPERTY(free_keeps_pending_exception,
    .id     = "free.keeps-pending-exception",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a Python exception that is pending when free is called is pending afterwards, "
              "unchanged",
    .source = "NumPy 1.22 to 2.5: ctors.c PyArray_FromIter, textreading/rows.c and the ufunc "
              "loops drop the array they were filling while the error is set",
    .why    = "the error would be lost, or replaced by one that has nothing to do with it",
    .hint   = "do not call Python from free; where it cannot be helped, PyErr_Fetch before and "
              "PyErr_Restore after",
    .looks  = "FAIL: the ValueError that was pending to be pending still, after free of a block "
              "of 24 bytes by malloc; no exception is",
    .fixture  = FIXTURE_PYTHON)
{
    static const size_t sizes[] = {1, 24, 80, 4096, 70000, 300000};
    PyObject *exception = PyObject_CallFunction(PyExc_ValueError, "s", "pending");
    if (exception == NULL)
        harness_broke("ValueError: %s", python_error());
    free_with_exception(exception, NULL, 0, "NULL");
    free_with_exception(exception, NULL, 40, "NULL with size 40");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        free_with_exception(exception, must_malloc(size), size,
                            text("a block of %zu bytes by malloc", size));
        free_with_exception(exception, must_calloc(size, 1), size,
                            text("a block of %zu bytes by calloc", size));
        free_with_exception(exception, must_realloc(must_malloc(1), size), size,
                            text("a block of %zu bytes by realloc", size));
        free_with_exception(exception, must_malloc(size), 1,
                            text("a block of %zu bytes as 1", size));
    }
    Py_DECREF(exception);
}

/* ---- threads ----------------------------------------------------------------------------- */

static void free_every_other(void *data)
{
    struct blocks *blocks = data;
    for (size_t i = 0; i < blocks->count; i++)
        blocks_free(blocks, i);
}

static void free_all_here(void *data)
{
    struct blocks *blocks = data;
    while (blocks->count > 0)
        blocks_free(blocks, blocks->count - 1);
}

static void make_some(struct blocks *blocks)
{
    for (size_t i = 0; i < 48; i++) {
        size_t size = i % 8 == 7 ? 5000 : 10 + 20 * i;
        unsigned char *p = i % 2 == 0 ? must_malloc(size) : must_calloc(1, size);
        blocks_add(blocks, p, size);
    }
}

/* What is made here is freed in a thread that has never called the subject before. */
static void make_here_free_there(void *data)
{
    make_some(data);
    in_threads(1, free_all_here, data, sizeof(struct blocks));
}

static void make_and_free_here(void *data)
{
    make_some(data);
    free_all_here(data);
}

/* As the property, by one thread alone. */
static void free_every_other_here(void *unused)
{
    struct blocks blocks = {0};
    (void)unused;
    blocks_add_neighbours(&blocks, 400);
    for (size_t i = 0; i < 3; i++) {
        free_every_other(&blocks);
        blocks_verify(&blocks, "after every other block was freed");
        blocks_add_neighbours(&blocks, 100);
        blocks_verify(&blocks, "after blocks were freed and new ones made");
        blocks_expect_disjoint(&blocks);
    }
    blocks_free_all(&blocks);
}

PROPERTY(free_in_another_thread,
    .id     = "free.in-another-thread",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block can be freed in another thread than the one that made it, and is not lost",
    .source = "NEP 49, High level design: an array keeps the handler it was made with; NumPy 1.22 "
              "to 2.5: arrayobject.c array_dealloc, in whichever thread drops the last reference",
    .why    = "arrays travel through queues and futures, and threads that never installed the "
              "handler free them",
    .hint   = "keep with the block what free has to know; hand it back to its owner's list under "
              "a lock, and empty a thread's cache when the thread ends",
    .looks  = "FAIL: memory to stop growing while blocks are made in one thread and freed in "
              "others")
{
    struct blocks blocks = {0};
    control_run(free_every_other_here, NULL, "in one thread alone");
    blocks_add_neighbours(&blocks, is_instrumented() ? 100 : 400);
    for (size_t i = 0; i < 3; i++) {
        in_threads(1, free_every_other, &blocks, sizeof blocks);
        blocks_verify(&blocks, "after every other block was freed in another thread");
        blocks_add_neighbours(&blocks, 100);
        blocks_verify(&blocks, "after blocks were freed in another thread and new ones made");
        blocks_expect_disjoint(&blocks);
    }
    blocks_free_all(&blocks);
    expect_no_growth(30, make_here_free_there, make_and_free_here, &blocks,
                     "blocks are made in one thread and freed in others");
    blocks_free_all(&blocks);
}
