/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc: what it hands out.
 */
#include <sys/resource.h>
#include <time.h>

#include "allocating.h"
#include "base/clock.h"
#include "edges.h"
#include "harness/harness.h"
#include "large.h"

GROUP(malloc, 2, "What malloc hands out, and what it does when it cannot.");

static const char *malloc_in_words(size_t size)
{
    return text("malloc(%zu)", size);
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
            pattern_broken_at(__LINE__, p, at, size, number, text("after malloc(%zu)", size));
    }
    for (size_t at = size - 64; at < size; at++) {
        if (p[at] != pattern_byte(number, at))
            pattern_broken_at(__LINE__, p, at, size, number, text("after malloc(%zu)", size));
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
    if (p == NULL && !refusal_is_fair(size, 0, 0))
        fail(text("malloc(%zu) to return a block: little else is live", size), "NULL");
    if (p == NULL)
        return;
    step("writing what malloc(%zu) gave", size);
    fill_here_and_there(p, size, stride, size);
    expect_here_and_there(p, size, stride, size);
    subject_free(p, size);
}

PROPERTY(malloc_extent,
    .id     = "malloc.extent",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "every byte that was asked for can be written and read back, also where the memory "
              "was another block's before",
    .source = "C17 7.22.3.4; NEP 49, the malloc function",
    .why    = "NumPy writes all of an array's data into the block",
    .hint   = "pass on the size that was asked for, plus what the handler itself needs; and compare "
              "all of a freed block's size with all of the request's before it is given out again",
    .looks  = "CRASH: SIGSEGV, or a byte that is not what was written")
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
    large_holds((2 << 20) + 1, PAGE);
    check_edges_extent(WHOLE);
    check_large_extent();
}

/* ---- where it is ----------------------------------------------------------------------------- */

PROPERTY(malloc_alignment,
    .id     = "malloc.alignment",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a block is aligned for max_align_t or, where that is larger than the block, for the "
              "largest power of two in its size",
    .source = "C17 7.22.3 paragraph 1, 6.2.8",
    .why    = "NumPy takes a new array's data to be aligned for its dtype and lets the compiler "
              "vectorise accordingly; complex long double wants 16 bytes",
    .hint   = "make the header a multiple of max_align_t's alignment, and round the start of what "
              "is carved out of a larger piece",
    .looks  = "malloc(24) to be aligned to 16 bytes: 0x55d0c8, which is aligned to 8")
{
    check_alignment(&by_malloc);
}

static size_t claimed;

static void *as_claimed(void *p, const char *call)
{
    if ((uintptr_t)p % claimed != 0)
        fail(text("%s to be aligned to %zu bytes, as claimed", call, claimed),
             "%p, which is aligned to %zu", p, alignment_of(p));
    return p;
}

/* Aligned in each of the ways in which a block of that size comes about. */
static void claimed_for_size(size_t size)
{
    size_t other = 1 + random_below(rng(), size <= 4096 ? 8192 : 2 * size);
    void *p = subject_malloc(size), *q = subject_calloc(size, 1), *r = subject_realloc(NULL, other);
    as_claimed(p, text("malloc(%zu)", size));
    as_claimed(q, text("calloc(%zu, 1)", size));
    as_claimed(r, text("realloc(NULL, %zu)", other));
    void *moved = r != NULL ? subject_realloc(r, size) : NULL;
    as_claimed(moved, text("realloc of %zu bytes to %zu", other, size));
    if (p == NULL || q == NULL || (moved == NULL && !refusal_is_fair(MAX(size, other), 0, 0)))
        fail(text("malloc, calloc and realloc to give %zu bytes: little else is live", size),
             "malloc: %p, calloc: %p, realloc: %p", p, q, moved);
    subject_free(p, size);
    subject_free(q, size);
    subject_free(moved != NULL ? moved : r, moved != NULL ? size : other);
}

/* Through growth and shrinkage, beside another block that is in the way. */
static void claimed_through_chain(void *(*begin)(size_t size))
{
    size_t size = 1 + random_below(rng(), 64);
    void *p = as_claimed(begin(size), text("a block of %zu bytes", size));
    for (int i = 0; i < 40; i++) {
        void *beside = must_malloc(1 + random_below(rng(), 600));
        size_t next = random_below(rng(), 3) == 0 ? 1 + size / 2 : size + size / 2 + 1;
        if (next > 1 << 18)
            next = 1 + random_below(rng(), 4096);
        p = as_claimed(must_realloc(p, next), text("realloc of %zu bytes to %zu", size, next));
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

PROPERTY(malloc_claimed_alignment,
    .id     = "malloc.claimed-alignment",
    .level  = MUST, .basis = BASIS_CLAIM, .target = TARGET_HANDLER,
    .clause = "every block is aligned as nep49_claims says, whatever its size and whichever of "
              "malloc, calloc and realloc made or moved it",
    .source = "nep49.h, alignment=N",
    .why    = "whoever installs such a handler reads arrays with aligned vector loads, or hands "
              "them to a device, and crashes at the first block that is not",
    .hint   = "libc's realloc does not keep an alignment beyond max_align_t: look where the block "
              "went and move its bytes",
    .looks  = "realloc of 64 bytes to 4000 to be aligned to 64 bytes, as claimed: 0x55d0d0, which "
              "is aligned to 16")
{
    claimed = subject_claims().alignment;
    if (claimed == 0)
        skip("it makes no such claim");
    claimed_everywhere(NULL);
    in_threads(1, claimed_everywhere, NULL, 0);
}

PROPERTY(malloc_disjoint,
    .id     = "malloc.disjoint",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "no two live blocks share a byte, also where there are more than 65536, where blocks "
              "are recycled on two threads, and where they are of many mebibytes",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other",
    .why    = "two arrays would share memory, and writing one would change the other",
    .hint   = "look at the width of indices and counters, at what a free list says of a block's "
              "size, at blocks that enter it twice, and at what is mapped twice from one file",
    .looks  = "66048 live blocks not to overlap: 17 bytes at 0x7f1200 and 17 bytes at 0x7f1200")
{
    enum { LARGE = 36 };
    check_disjoint(&by_malloc, LARGE);
}

PROPERTY(malloc_neighbours,
    .id     = "malloc.neighbours",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "making or freeing one block leaves the bytes of every other alone, at once and a "
              "few milliseconds later",
    .source = "C17 7.22.3 paragraph 1, 6.2.4 paragraph 2: an object keeps its last-stored value "
              "throughout its lifetime",
    .why    = "arrays would change by themselves when another one comes or goes",
    .hint   = "look at fills, wipes and trailers that reach past a block, and at a thread that "
              "still works on a block after it was handed out again",
    .looks  = "byte 112 of 120 to be 0x3c as it was written, after another block of 120 bytes was "
              "freed: 0x00")
{
    check_neighbours(&by_malloc);
}

/* ---- the smallest ---------------------------------------------------------------------------- */

static void hold_single_bytes(void *unused)
{
    enum { COUNT = 2000 };
    struct blocks blocks = {0};
    (void)unused;
    while (blocks.count < COUNT)
        blocks_add(&blocks, must_malloc(1), 1);
    blocks_expect_disjoint(&blocks);
    blocks_verify(&blocks, "with %d blocks of one byte live", COUNT);
    blocks_free_all(&blocks);
}

PROPERTY(malloc_one_byte,
    .id     = "malloc.one-byte",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "malloc(1) gives a byte that nobody else has",
    .source = "NumPy ctors.c PyArray_NewFromDescr_int: an array of size 0 asks for 1 byte (1.22: "
              "for one element)",
    .why    = "np.empty(0) raises MemoryError where it fails; and NumPy resizes such an array as "
              "any other",
    .hint   = "treat 1 as any other size",
    .looks  = "malloc(1) to return a block: little else is live: NULL")
{
    hold_single_bytes(NULL);
    in_threads(1, hold_single_bytes, NULL, 0);
}

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
            if (next != NULL)
                subject_free(next, 0);
        }
        blocks_verify(company, "after free(p, 0) of what malloc(0) gave");
    }
}

PROPERTY(malloc_zero,
    .id     = "malloc.zero",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "malloc(0) gives NULL or a pointer that free takes, and harms no other block",
    .source = "C17 7.22.3 paragraph 1; NumPy arraytypes.c.src VOID_compare, 1.22 and later: copies "
              "of the fields of a structured array, one of which can be empty",
    .why    = "sorting np.zeros(3, dtype=[('x', 'i1'), ('y', 'U0')]) does it with NumPy 1.24",
    .hint   = "add the header first and round afterwards, or ask for 1 byte instead",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c8, 0)")
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 40);
    make_and_free_nothing(&company);
    in_threads(1, make_and_free_nothing, &company, 0);
    blocks_free_all(&company);
}

/* ---- the largest ----------------------------------------------------------------------------- */

static void expect_refused(size_t size, const char *size_in_words)
{
    void *p = subject_malloc(size);
    expect(p == NULL, text("malloc(%s) to return NULL", size_in_words), "%p", p);
}

PROPERTY(malloc_too_large,
    .id     = "malloc.too-large",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a size that no block can have (SIZE_MAX and 8192 below it, and from PTRDIFF_MAX + 1 "
              "on) gives NULL and changes nothing, also right after a small block was freed",
    .source = "C17 7.22.3.4 paragraph 3; 6.5.6 paragraph 9, as PTRDIFF_MAX bounds an object",
    .why    = "a size that wraps becomes a small block, and NumPy writes past it",
    .hint   = "check that size plus header plus rounding does not wrap before anything else",
    .looks  = "malloc(SIZE_MAX - 15) to return NULL: 0x55d0c8")
{
    static const size_t beyond[] = {1, 2, 16, 17, 4096, 4097, (size_t)1 << 32, (size_t)1 << 62};
    struct blocks company = {0};
    blocks_add_neighbours(&company, 60);
    for (size_t size = 8; size <= 2048; size += 8) /* what keeps freed blocks has some of each */
        subject_free(must_malloc(size), size);
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += is_instrumented() ? 61 : 1) {
        size_t small = 8 + k % 300;
        subject_free(must_malloc(small), small);
        expect_refused(SIZE_MAX - k, k == 0 ? "SIZE_MAX" : text("SIZE_MAX - %zu", k));
        if (k % 512 == 0)
            blocks_verify(&company, "after malloc(SIZE_MAX - %zu)", k);
    }
    for (size_t i = 0; i < sizeof beyond / sizeof *beyond; i++) {
        subject_free(must_malloc(100), 100);
        expect_refused(PTRDIFF_MAX + beyond[i], text("PTRDIFF_MAX + %zu", beyond[i]));
    }
    absurd_end();
    blocks_verify(&company, "after sizes that no block can have");
    blocks_free_all(&company);
}

enum { PROBE = 32 << 20 };

static size_t most_resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Frees blocks that hardly a byte was written into, the first one as a probe: a handler that wipes
 * what it takes back would touch all of the others. */
static void free_untouched(struct blocks *blocks)
{
    size_t before = most_resident();
    blocks_free(blocks, 0);
    if (most_resident() - before < PROBE / 2)
        blocks_free_all(blocks);
}

PROPERTY(malloc_past_4gib,
    .id     = "malloc.past-4gib",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a size from 2 GiB on is not cut to 31 or 32 bits: malloc gives NULL, or a block "
              "whose last byte can be written",
    .source = "C17 7.22.3.4; NEP 49: the size is a size_t",
    .why    = "np.empty((1 << 32) + 16, 'u1') would be an array over 16 bytes",
    .hint   = "keep sizes in size_t all the way, in headers and in tables too",
    .looks  = "CRASH: SIGSEGV, while writing the last byte of malloc(4294967312)")
{
    static const size_t sizes[] = {((size_t)1 << 32) + 16, (size_t)1 << 31,
                                   ((size_t)1 << 31) + 1,  (size_t)1 << 32,
                                   ((size_t)1 << 32) + 1,  ((size_t)1 << 32) + 4096,
                                   ((size_t)1 << 33) + 24, ((size_t)1 << 35) + 1000};
    struct blocks company = {0}, held = {0}; /* nothing is freed, so that nothing is recycled */
    size_t before = most_resident();
    blocks_add_unwritten(&held, must_malloc(PROBE), PROBE);
    bool fills = most_resident() - before > PROBE / 2;
    if (fills) /* a sound one then refuses, and does not take all the memory there is */
        limit_mapped_bytes((size_t)1 << 30);
    if (is_instrumented())
        ask_for_memory((size_t)1 << 30); /* of which memcheck and ASan keep books */
    blocks_add_neighbours(&company, 60);
    for (size_t i = 0; i < (is_instrumented() ? 1 : sizeof sizes / sizeof *sizes); i++) {
        unsigned char *p = subject_malloc(sizes[i]);
        if (p == NULL)
            continue;
        step("writing the last byte of malloc(%zu)", sizes[i]);
        p[0] = 1;
        p[sizes[i] - 1] = 2;
        step("writing within malloc(%zu)", sizes[i]);
        p[sizes[i] / 2] = 3;
        p[sizes[i] - ((size_t)1 << 30)] = 4;
        expect(p[0] == 1 && p[sizes[i] - 1] == 2, text("malloc(%zu) to keep its ends", sizes[i]),
               "%d and %d instead of 1 and 2", p[0], p[sizes[i] - 1]);
        blocks_verify(&company, "after malloc(%zu)", sizes[i]);
        blocks_add_unwritten(&held, p, sizes[i]);
    }
    if (fills)
        lift_limit();
    else
        free_untouched(&held);
    blocks_free_all(&company);
}

/* ---- running out ----------------------------------------------------------------------------- */

/* A reserve that libc has mapped before, 64 MiB for each thread's arena, is not limited: so much
 * has to be taken before the limit is known not to be felt. */
enum { LITTLE_ROOM = 16 << 20, MOST_BYTES = 160 << 20, MOST_BLOCKS = 20000 };

static const size_t hoarded_sizes[] = {1 << 20, 150000, 16384, 4000, 500, 48, 8};
enum { HOARDED_SIZES = sizeof hoarded_sizes / sizeof *hoarded_sizes };

/* What was taken until nothing was left. */
struct hoard {
    struct blocks blocks;
    bool had[HOARDED_SIZES]; /* sizes of which there is one */
    bool refused;            /* each size, in the end; else the limit is not felt */
    void *strange;           /* what was returned that is neither a block nor NULL */
    size_t strange_size;
};

/* The list has its room before: under the limit it could not grow. */
static void hoard_begin(struct hoard *hoard)
{
    *hoard = (struct hoard){.blocks.room = MOST_BLOCKS};
    hoard->blocks.at = calloc(MOST_BLOCKS, sizeof *hoard->blocks.at);
    if (hoard->blocks.at == NULL)
        harness_broke("out of memory for the list of blocks");
}

/* False where malloc refuses.  Of large blocks only the ends are written. */
static bool hoard_one(struct hoard *hoard, size_t size)
{
    struct blocks *blocks = &hoard->blocks;
    struct block b = {subject_malloc(size), size, blocks->count};
    if (b.p != NULL && (uintptr_t)b.p < 65536) {
        hoard->strange = b.p;
        hoard->strange_size = size;
    }
    if (b.p == NULL || hoard->strange != NULL)
        return false;
    step("writing what malloc(%zu) gave near the limit", size);
    if (size <= PAGE)
        pattern_fill(b.p, size, b.number);
    else
        fill_here_and_there(b.p, size, size, b.number);
    blocks->at[blocks->count++] = b;
    blocks->bytes += size;
    return true;
}

/* Takes blocks of each size until it is refused, the small ones last. */
static void hoard_all(struct hoard *hoard)
{
    const struct blocks *blocks = &hoard->blocks;
    hoard->refused = true;
    for (size_t i = 0; i < HOARDED_SIZES && hoard->refused; i++) {
        while (hoard->refused && hoard_one(hoard, hoarded_sizes[i])) {
            hoard->had[i] = true;
            hoard->refused = blocks->count < blocks->room && blocks->bytes < MOST_BYTES;
        }
    }
}

static void expect_hoard_intact(const struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        const struct block *b = &blocks->at[i];
        if (b->size <= PAGE)
            expect_pattern(b->p, b->size, b->number, "after malloc had nothing left");
        else
            expect_here_and_there(b->p, b->size, b->size, b->number);
    }
    blocks_expect_disjoint(blocks);
}

PROPERTY(malloc_failure_is_null,
    .id     = "malloc.failure-is-null",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "where the address space is used up malloc returns NULL, not another value, and does "
              "not end the process; the blocks there are stay good",
    .source = "C17 7.22.3.4 paragraph 3",
    .why    = "NumPy turns NULL, and nothing else, into MemoryError, which programs survive",
    .hint   = "check what malloc or mmap beneath returned before adding a header to it",
    .looks  = "malloc(48) to return a block or NULL: 0x10")
{
    struct hoard hoard;
    hoard_begin(&hoard);
    limit_mapped_bytes(LITTLE_ROOM);
    hoard_all(&hoard);
    lift_limit();
    expect(hoard.strange == NULL, text("malloc(%zu) to return a block or NULL", hoard.strange_size),
           "%p", hoard.strange);
    expect_hoard_intact(&hoard.blocks);
    size_t held = hoard.blocks.bytes >> 20;
    blocks_free_all(&hoard.blocks);
    if (!hoard.refused)
        skip("a limit on the address space does not stop it: it gave %zu MiB where %d were left",
             held, LITTLE_ROOM >> 20);
}

/* All four functions, on this thread. */
static void all_four_work(const char *after)
{
    step("using it after %s", after);
    for (size_t size = 24; size <= 24000; size *= 10) {
        unsigned char *p = must_malloc(size), *q = must_calloc(size, 2);
        p = must_realloc(p, 3 * size);
        memset(p, 1, 3 * size);
        memset(q, 2, 2 * size);
        subject_free(q, 2 * size);
        subject_free(p, 3 * size);
    }
}

static void all_four_work_there(void *after)
{
    all_four_work(after);
}

/* Here and on another thread, which would wait for a lock that is still held. */
static void works_after(const char *what)
{
    all_four_work(what);
    in_threads(1, all_four_work_there, (void *)what, 0);
}

/* One block of each size again.  A handler that frees later, on a thread of its own, is given
 * time. */
static void expect_sizes_again(const bool had[HOARDED_SIZES])
{
    for (size_t i = 0; i < HOARDED_SIZES; i++) {
        void *p = NULL;
        for (int waits = 0; had[i] && p == NULL && waits < 200; waits++) {
            p = subject_malloc(hoarded_sizes[i]);
            if (p == NULL)
                nanosleep(&(struct timespec){0, 1000000}, NULL);
        }
        expect(p != NULL || !had[i],
               text("malloc(%zu) to return a block: all of that size were freed", hoarded_sizes[i]),
               "NULL");
        if (p != NULL)
            subject_free(p, hoarded_sizes[i]);
    }
}

static void recover_from_the_limit(void)
{
    struct hoard hoard;
    hoard_begin(&hoard);
    limit_mapped_bytes(LITTLE_ROOM);
    hoard_all(&hoard);
    blocks_free_all(&hoard.blocks);
    step("using it after it had nothing left and all was freed");
    expect_sizes_again(hoard.had);
    lift_limit();
}

/* A call that fails: of malloc, or of calloc where `count` is not 0. */
static void refuse(size_t size, size_t count)
{
    absurd_begin();
    if (count == 0)
        (void)subject_malloc(size);
    else
        (void)subject_calloc(size, count);
    absurd_end();
}

PROPERTY(malloc_recovers,
    .id     = "malloc.recovers",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "after a call that failed, and once blocks are freed, all four functions work again, "
              "on this thread and on others",
    .source = "C17 7.22.3: a call that fails has no other effect; 7.1.4 paragraph 5, on threads",
    .why    = "a program that catches MemoryError, frees and tries with less would hang, or fail "
              "from then on",
    .hint   = "unlock on the way out of every failure, and remember none of them",
    .looks  = "TIMEOUT: no end after 10 s, inside malloc(24)")
{
    if (!is_instrumented()) { /* memcheck and ASan do not work under a limit */
        recover_from_the_limit();
        works_after("it had nothing left");
    }
    void *p = must_malloc(100);
    refuse(SIZE_MAX - 100, 0);
    all_four_work("malloc(SIZE_MAX - 100)");
    refuse(PTRDIFF_MAX - 4096, 0);
    works_after("malloc(PTRDIFF_MAX - 4096)");
    refuse(SIZE_MAX / 2, 3);
    all_four_work("calloc(SIZE_MAX / 2, 3)");
    refuse(PTRDIFF_MAX - 4096, 1);
    works_after("calloc(PTRDIFF_MAX - 4096, 1)");
    absurd_begin();
    void *moved = subject_realloc(p, PTRDIFF_MAX - 4096);
    absurd_end();
    works_after("realloc(p, PTRDIFF_MAX - 4096)");
    if (moved == NULL) /* anything else is for realloc.failure-keeps-block to judge */
        subject_free(p, 100);
}

PROPERTY(malloc_lasts,
    .id     = "malloc.lasts",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "hundreds of thousands of blocks can be made and freed one after the other, and none "
              "is refused while next to nothing is live",
    .source = "C17 7.22.3.3 paragraph 2: free makes the space available for further allocation",
    .why    = "a program that runs for hours makes and drops that many temporaries",
    .hint   = "look for tables, serial numbers and free lists that lose an entry now and then",
    .looks  = "malloc(96) to return a block: 7 others are live: NULL, when 65535 had been made")
{
    enum { LIVE = 8, ENOUGH = 100000 };
    static const size_t sizes[] = {7, 96, 16, 2000, 40, 8, 640, 256, 33, 5000, 24, 1024, 72};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    size_t count = is_instrumented() ? 20000 : 300000, made = 0;
    struct block live[LIVE] = {0};
    uint64_t begin = clock_now();
    for (; made < count; made++) {
        if (made % 256 == 0 && (made < ENOUGH ? time_is_up() : clock_since(begin) > 1))
            break;
        struct block *b = &live[made % LIVE];
        if (b->p != NULL)
            subject_free(b->p, b->size);
        b->size = sizes[made % SIZES];
        b->p = subject_malloc(b->size);
        if (b->p == NULL)
            fail(text("malloc(%zu) to return a block: %d others are live", b->size, LIVE - 1),
                 "NULL, when %zu had been made", made);
        b->p[0] = (unsigned char)made;
    }
    for (size_t i = 0; i < LIVE && live[i].p != NULL; i++)
        subject_free(live[i].p, live[i].size);
    if (made < count && made < ENOUGH)
        stopped_short("half of its %g s were over when %zu blocks had been made; give it more by "
                      "--timeout",
                      time_limit(), made);
}
