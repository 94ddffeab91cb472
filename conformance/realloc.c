/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what it keeps.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include <pthread.h>
#include <stdatomic.h>

#include "edges.h"
#include "harness/gil_watch.h"
#include "harness/growth.h"
#include "harness/harness.h"
#include "harness/perturb.h"
#include "large.h"

GROUP(realloc, 4, "What realloc keeps, moves and refuses.");

/* A pattern for each block under test: no two properties of a process need the same number. */
enum { ONE = 1, ANOTHER = 2 };

static unsigned char *filled(size_t size, uint64_t number)
{
    unsigned char *p = must_malloc(size);
    pattern_fill(p, size, number);
    return p;
}

/* The block at p, which holds `old` bytes of pattern `number`, with `new` bytes. */
static unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    unsigned char *q = must_realloc(p, new);
    expect_pattern(q, MIN(old, new), number, "after realloc from %zu to %zu", old, new);
    return q;
}

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

PROPERTY(realloc_null_allocates,
    .id     = "realloc.null-allocates",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "realloc of NULL is malloc: it returns a new block, aligned and whole",
    .source = "C17 7.22.3.5 paragraph 3",
    .why    = "code that grows a buffer from nothing relies on it, and so does a shim that passes "
              "calls on",
    .hint   = "look at the pointer before its header is read: where it is NULL, call malloc",
    .looks  = "CRASH: SIGSEGV, inside realloc((nil), 1)")
{
    struct blocks company = {0};
    for_each_size (size, 1 << 16) {
        if (size % stride(16) > 1)
            continue;
        void *p = must_realloc(NULL, size);
        expect_aligned(p, size, "realloc(NULL, %zu)", size);
        keep_for_a_while(&company, p, size);
    }
    end_company(&company);
}

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
    .id     = "realloc.keeps-contents",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "realloc keeps the first min(old, new) bytes of the block",
    .source = "C17 7.22.3.5 paragraph 2; NumPy 1.22 to 2.5: shape.c PyArray_Resize, ctors.c "
              "array_from_text, PyArray_FromFile and PyArray_FromIter, textreading/rows.c",
    .why    = "every ndarray.resize, fromiter, fromfile, fromstring and loadtxt rests on it",
    .hint   = "copy min(old, new) bytes; keep the old size where realloc can find it",
    .looks  = "FAIL: byte 4095 of 4096 to be 0x8d as it was written, after realloc from 4096 to "
              "8193; seen 0x00")
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

PROPERTY(realloc_keeps_contents_again,
    .id     = "realloc.keeps-contents-again",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a block that is resized again and again keeps at each step what was written into "
              "it before",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: ctors.c PyArray_FromIter (half as much again at a "
              "time) and array_from_text (32768 bytes more at a time), textreading/rows.c and "
              "growth.c (a quarter more), each cut to what was read at the end",
    .why    = "fromiter over a long iterator resizes one block dozens of times",
    .hint   = "write the new size into the header or table after each success, in place or moved",
    .looks  = "FAIL: byte 32 of 64 to be 0x1c as it was written, after realloc from 64 to 112; "
              "seen 0x00")
{
    grow_as_numpy_does(is_instrumented() ? 100000 : 400000);
    wander(is_instrumented() ? 100 : 1000);
    check_large_chain();
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
    .id     = "realloc.grown-part-usable",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "every byte of a block that has grown can be written and read back, and is no other "
              "block's",
    .source = "C17 7.22.3 paragraph 1, 7.22.3.5",
    .why    = "NumPy fills the new part at once: with zeros after ndarray.resize, with what it "
              "reads after fromiter and loadtxt",
    .hint   = "a block stays in place only where its own room is known to be large enough; else "
              "take a new one",
    .looks  = "FAIL: byte 0 of 90 to be 0x6e as it was written, after all of 32 blocks were "
              "resized and filled")
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
}

PROPERTY(realloc_same_size,
    .id     = "realloc.same-size",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "realloc to the size that the block already has returns the block, or one like it",
    .source = "C17 7.22.3.5; NumPy 1.22 to 2.5: ctors.c array_from_text, where the number of "
              "items fills the last buffer or a growth has failed",
    .why    = "NumPy cuts blocks to what was read without asking whether that changes anything",
    .hint   = "where there is nothing to do, return the pointer",
    .looks  = "FAIL: realloc(0x55d0c8a0b2a0, 24) to return a block; NULL")
{
    for_each_size (size, 1 << 17) {
        if (size % stride(16) > 1)
            continue;
        unsigned char *p = resized(filled(size, size), size, size, size);
        unsigned char *other = filled(size, size + 1);
        p = must_realloc(p, size);
        expect_pattern(p, size, size, "after realloc to the same size, twice, and malloc(%zu)",
                       size);
        expect_pattern(other, size, size + 1, "beside a block that kept its size");
        subject_free(other, size);
        subject_free(p, size);
    }
}

PROPERTY(realloc_to_one,
    .id     = "realloc.to-one",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a block of any size can be shrunk to 1 byte, which is kept, and grown again",
    .source = "C17 7.22.3.5; NumPy 2.4 and later: shape.c PyArray_Resize asks for 1 where the "
              "array becomes empty; before, for an element; textreading/rows.c for 1 throughout",
    .why    = "a.resize(0) and an empty loadtxt do it",
    .hint   = "1 is a size like any other: do not take it for 0 after rounding or halving",
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
    .id     = "realloc.alignment",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "what realloc returns is aligned as malloc's blocks are, moved or not, grown or "
              "shrunk",
    .source = "C17 7.22.3 paragraph 1",
    .why    = "NumPy's loops load vectors from the start of the block, and an array that was "
              "aligned when it was made is still marked so after resize",
    .hint   = "align the place in the new memory anew, and move the bytes where it differs from "
              "the old one",
    .looks  = "FAIL: realloc to 5000 of a block by malloc to be aligned to 16 bytes; "
              "0x55d0c8a0b2a8, which is aligned to 8")
{
    static const char *const origins[] = {"malloc", "calloc", "realloc"};
    void *blockers[64] = {0}; /* so that what grows has to move */
    for (size_t n = 1; n <= 4096; n += stride(41)) {
        const char *origin = origins[n % 3];
        void *p = n % 3 == 0   ? must_malloc(n)
                  : n % 3 == 1 ? must_calloc(n, 1)
                               : must_realloc(must_malloc(1), n);
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
    size_t factors[][2] = {{10, 8}, {3, 5}, {30011, 3}};
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
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
    .id     = "realloc.of-calloc",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a block of calloc's is resized as one of malloc's of nelem * elsize bytes is",
    .source = "C17 7.22.3.5: a pointer that calloc returned; NumPy 1.22 to 2.5: shape.c "
              "PyArray_Resize on an array of zeros",
    .why    = "np.zeros(n).resize(m) is the usual way to a buffer that grows",
    .hint   = "calloc has to leave the product in the header, not one of its arguments",
    .looks  = "FAIL: byte 10 of 80 to be 0x3f as it was written, after calloc(10, 8) and realloc "
              "to 121; seen 0x00")
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
}

/* ---- refusals ---------------------------------------------------------------------------- */

/* Asks for what nobody has, and looks at the block, of which `size` bytes are pattern ONE. */
static void expect_refused(unsigned char *p, size_t size, size_t absurd)
{
    void *q = subject_realloc(p, absurd);
    expect(q == NULL, text("realloc of %zu bytes to %zu to return NULL", size, absurd), "%p, %s", q,
           q == p ? "the old block" : "where there can be no such block");
    unsigned char ends[2] = {pattern_byte(ONE, 0), pattern_byte(ONE, size - 1)};
    expect(
        p[0] == ends[0] && p[size - 1] == ends[1],
        text("a block of %zu bytes to be as it was after realloc to %zu was refused", size, absurd),
        "its first byte is 0x%02x for 0x%02x, its last 0x%02x for 0x%02x", p[0], ends[0],
        p[size - 1], ends[1]);
}

/* Every size that a header of up to 8 KiB could make small, those round PTRDIFF_MAX, and more than
 * there are addresses. */
static void expect_absurd_refused(unsigned char *p, size_t size)
{
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += k > 64 ? stride(61) : 1)
        expect_refused(p, size, SIZE_MAX - k);
    for (size_t k = 0; k <= 128; k++)
        expect_refused(p, size, (size_t)PTRDIFF_MAX + 64 - k);
    for (unsigned shift = 50; shift < 64; shift++)
        expect_refused(p, size, (size_t)1 << shift);
    absurd_end();
    expect_pattern(p, size, ONE, "after realloc of %zu bytes was refused", size);
}

/* After a refusal the block is like any other: it can be resized both ways and freed, and nobody
 * else is given it. */
static void use_on(unsigned char *p, size_t size)
{
    enum { OTHERS = 4 };
    unsigned char *others[OTHERS];
    for (size_t i = 0; i < OTHERS; i++)
        others[i] = filled(size, ANOTHER + i);
    expect_pattern(p, size, ONE, "after a refused realloc and %d times malloc(%zu)", OTHERS, size);
    p = resized(p, size, 2 * size + 100, ONE);
    p = resized(p, size, (size + 1) / 2, ONE);
    for (size_t i = 0; i < OTHERS; i++) {
        expect_pattern(others[i], size, ANOTHER + i, "beside a block that realloc refused to grow");
        subject_free(others[i], size);
    }
    subject_free(p, (size + 1) / 2);
}

/* A block whose size is wrong in a header or table since the refusal is copied past its end. */
static void grow_after_refusal(size_t size)
{
    enum { MUCH = 16 << 20 };
    unsigned char *p = filled(size, ONE);
    expect_refused(p, size, (size_t)1 << 60);
    unsigned char *q = subject_realloc(p, MUCH);
    expect_pattern(q != NULL ? q : p, size, ONE, "after realloc from %zu to %d", size, MUCH);
    subject_free(q != NULL ? q : p, q != NULL ? MUCH : size);
}

/* Asks for ever more until the kernel says no.  The size that was refused, or 0 where `most` was
 * not; *p and *size are the block then. */
static size_t grow_until_refused(unsigned char **p, size_t *size, size_t by, size_t most)
{
    while (*size < most) {
        unsigned char *q = subject_realloc(*p, *size + by);
        if (q == NULL)
            return *size + by;
        *p = q;
        *size += by;
    }
    return 0;
}

/* A real shortage: little address space is left, and one request is for more. */
static void refuse_for_want_of_memory(size_t size)
{
    static const size_t wanted[] = {(size_t)64 << 20, (size_t)1 << 30, (size_t)1 << 36,
                                    (size_t)1 << 40};
    unsigned char *p = filled(size, ONE);
    limit_mapped_bytes(4 << 20);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        unsigned char *q = subject_realloc(p, wanted[i]);
        if (q != NULL) { /* it has a pool; what it returns is a block all the same */
            expect_pattern(q, size, ONE, "after realloc from %zu to %zu", size, wanted[i]);
            p = resized(q, size, size, ONE);
            continue;
        }
        expect_pattern(p, size, ONE, "after realloc from %zu to %zu was refused", size, wanted[i]);
    }
    lift_limit();
    use_on(p, size);
}

PROPERTY(realloc_failure_keeps_block,
    .id     = "realloc.failure-keeps-block",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "a realloc that cannot be done returns NULL, and the old block is as it was: its "
              "bytes, its size, and the right to resize and free it",
    .source = "C17 7.22.3.5 paragraphs 3 and 4; NumPy 1.22 to 2.5: alloc.c PyDataMem_UserRENEW",
    .why    = "after NULL NumPy raises MemoryError and goes on with the old block: a.resize that "
              "failed leaves the array usable, and its deallocation frees the block",
    .hint   = "change nothing before the new memory is there; add a header's size only after "
              "looking for overflow, and only to a pointer that is not NULL",
    .looks  = "FAIL: realloc of 100 bytes to 18446744073709551615 to return NULL; 0x40, where "
              "there can be no such block")
{
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 70000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = filled(sizes[i], ONE);
        expect_absurd_refused(p, sizes[i]);
        use_on(p, sizes[i]);
        p = filled(sizes[i], ONE); /* after MemoryError, the usual next thing */
        absurd_begin();
        expect_refused(p, sizes[i], PTRDIFF_MAX);
        absurd_end();
        subject_free(p, sizes[i]);
        grow_after_refusal(sizes[i]);
    }
    for (size_t i = 0; !is_instrumented() && i < sizeof sizes / sizeof *sizes; i++)
        refuse_for_want_of_memory(sizes[i]);
}

/* What array_from_text does with a text whose third buffer is refused: the block is resized to the
 * size that it has, which succeeds where nothing is short, and is freed with that size; where it
 * fails again, with the size of the first buffer. */
static void retry_as_numpy(unsigned char *p, size_t size, bool is_short)
{
    unsigned char *q = subject_realloc(p, size);
    if (q == NULL && !is_short)
        fail(text("realloc of %zu bytes to %zu, after more was refused, to return a block", size,
                  size),
             "NULL");
    p = q != NULL ? q : p;
    expect_pattern(p, size, ONE, "after realloc to more was refused and realloc to %zu %s", size,
                   q != NULL ? "was not" : "as well");
    subject_free(p, q != NULL ? size : 32768);
}

PROPERTY(realloc_retry_after_failure,
    .id     = "realloc.retry-after-failure",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "after a refused realloc the same block can be given to realloc again at once",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text, for fromstring and text fromfile: the "
              "growth fails, and the block is still cut to what was read",
    .why    = "a text that is too large for memory would otherwise crash instead of raising "
              "MemoryError",
    .hint   = "keep no note of the failure that the next call could trip over, and no lock",
    .looks  = "FAIL: realloc of 65536 bytes to 65536, after more was refused, to return a block; "
              "NULL")
{
    for (size_t buffers = 1; buffers <= 4; buffers++) {
        size_t size = buffers * 32768;
        unsigned char *p = filled(size, ONE);
        absurd_begin();
        expect_refused(p, size, PTRDIFF_MAX - 32767);
        expect_refused(p, size, SIZE_MAX - 32767);
        absurd_end();
        retry_as_numpy(p, size, false);
    }
    if (is_instrumented())
        return; /* no limit can be set */
    unsigned char *p = filled(32768, ONE);
    size_t size = 32768;
    limit_mapped_bytes(2 << 20);
    size_t refused = grow_until_refused(&p, &size, 32768, 32 << 20);
    pattern_fill(p, size, ONE);
    if (refused == 0) /* it has a pool of its own */
        expect_refused(p, size, PTRDIFF_MAX);
    retry_as_numpy(p, size, true);
    lift_limit();
    subject_free(must_malloc(32768), 32768);
}

/* ---- large ------------------------------------------------------------------------------- */

/* What is beyond 2 and 4 GiB is never touched but for three bytes, and the block is left to the
 * end of this child: a handler that wipes what it frees would need all of it. */
static void grow_past(void *data)
{
    size_t size = *(size_t *)data, half = size / 2, small = 1000;
    unsigned char *p = filled(small, ONE), *q = subject_realloc(p, size);
    if (q == NULL) { /* which is its right; and the block is as it was */
        expect_pattern(p, small, ONE, "after realloc from %zu to %zu was refused", small, size);
        return;
    }
    step("writing to byte %zu of the %zu that realloc returned", size - 1, size);
    q[size - 1] = 0x5a;
    q[half] = 0xa5;
    expect(
        q[size - 1] == 0x5a && q[half] == 0xa5,
        text("the last byte of %zu to be 0x5a, as it was written, and byte %zu 0xa5", size, half),
        "0x%02x and 0x%02x", q[size - 1], q[half]);
    expect_pattern(q, small, ONE, "after realloc from %zu to %zu", small, size);
}

static void shrink_from(size_t size)
{
    unsigned char *p = subject_malloc(size);
    if (p == NULL)
        return;
    pattern_fill(p, 5000, ONE);
    p = must_realloc(p, 5000);
    expect_pattern(p, 5000, ONE, "after realloc from %zu to 5000", size);
    subject_free(p, 5000);
}

PROPERTY(realloc_past_2gib,
    .id     = "realloc.past-2gib",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "realloc to more than 2 or 4 GiB returns NULL, or a block with a last byte and the "
              "old first ones",
    .source = "C17 7.22.3.5; NEP 49: new_size is a size_t",
    .why    = "an array of a few gigabytes is nothing unusual, and resize reaches every size",
    .hint   = "keep sizes in size_t from end to end: parameters, headers, tables",
    .looks  = "CRASH: SIGSEGV at address 0x7f0c0ab12fff, while writing to byte 4294967300 of the "
              "4294967301 that realloc returned")
{
    size_t sizes[] = {((size_t)2 << 30) + 5, ((size_t)4 << 30) + 5};
    bool has_room = lacking_memory(sizes[1]) == NULL && !subject_fills_blocks();
    if (!has_room) /* what cuts the size has room enough, and what fills the block is refused */
        absurd_begin();
    for (size_t i = 0; i < 2; i++)
        in_child(grow_past, &sizes[i]);
    if (has_room)
        shrink_from(sizes[1]);
    else
        absurd_end();
}

/* ---- others ------------------------------------------------------------------------------ */

/* Resizes one in three of the blocks, to anything; of those that are resized as much as was kept
 * is checked later, and no byte of them is written. */
static void resize_some(struct blocks *blocks, size_t round)
{
    for (size_t i = round % 3; i < blocks->count; i += 3) {
        struct block *b = &blocks->at[i];
        size_t size = 1 + random_below(rng(), i % 32 == 0 ? 70000 : 2 * b->size + 64);
        b->p = must_realloc(b->p, size);
        b->size = MIN(b->size, size);
    }
}

PROPERTY(realloc_neighbours,
    .id     = "realloc.neighbours",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "resizing one block leaves the bytes of every other block alone, at once and later",
    .source = "C17 7.22.3 paragraph 1: each allocation is disjoint from any other object",
    .why    = "a.resize on one array must not change another",
    .hint   = "clear or poison only bytes between the new and the old size, and never past the "
              "smaller of what is the block's",
    .looks  = "FAIL: byte 0 of 72 to be 0x3b as it was written, after realloc of 300 other "
              "blocks; seen 0x00")
{
    struct blocks blocks = {0};
    blocks_add_neighbours(&blocks, is_instrumented() ? 90 : 600);
    for (size_t round = 0; round < (is_instrumented() ? 6 : 24); round++) {
        resize_some(&blocks, round);
        blocks_verify(&blocks, "after realloc of %zu other blocks", blocks.count / 3);
        for (size_t i = 0; i < blocks.count / 4; i++) { /* blocks of one byte do not tell much */
            size_t size = blocks.at[i].size;
            if (size > 32)
                continue;
            blocks_free(&blocks, i);
            size = 1 + random_below(rng(), 500);
            blocks_add(&blocks, must_malloc(size), size);
        }
    }
    blocks_expect_disjoint(&blocks);
    end_company(&blocks);
}

/* Grown past a neighbour, so that they move, cut, and grown again; not always as often. */
static void move_about(void *data)
{
    size_t turn = ++*(size_t *)data;
    unsigned char *p = must_malloc(200), *small = must_calloc(1, 300);
    p = must_realloc(p, 262144);
    p[262143] = 1;
    small = must_realloc(small, 5000);
    void *blocker = must_malloc(100);
    p = must_realloc(p, 1000);
    for (size_t i = 0; i < turn % 3; i++)
        small = must_realloc(small, 6000 + 900 * i);
    p = must_realloc(p, 400000);
    small = must_realloc(small, 9000);
    p[0] = p[399999] = small[0] = small[8999] = 1;
    subject_free(blocker, 100);
    subject_free(small, 9000);
    subject_free(p, 400000);
}

/* The same sizes without a realloc. */
static void stay_there(void *data)
{
    static const size_t sizes[] = {200, 300, 262144, 5000, 100, 1000, 400000, 6900, 9000};
    (void)data;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *p = i % 2 == 0 ? must_malloc(sizes[i]) : must_calloc(1, sizes[i]);
        p[0] = p[sizes[i] - 1] = 1;
        subject_free(p, sizes[i]);
    }
}

PROPERTY(realloc_releases_old,
    .id     = "realloc.releases-old",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "realloc gives the old place back where it moves a block",
    .source = "C17 7.22.3.5 paragraph 2: realloc deallocates the old object; how soon that shows "
              "is good practice",
    .why    = "fromiter over a million items moves its block thirty times, and leaks the array's "
              "size three times over",
    .hint   = "free the old block once the new one is filled, on every path that moves",
    .looks  = "WARN: memory to stop growing while blocks of up to 400000 bytes are resized and "
              "freed; 310000 KiB more mapped and 1200 KiB more resident")
{
    size_t turn = 0;
    control_run(move_about, &turn, "where it is done once");
    expect_no_growth(300, move_about, stay_there, &turn,
                     "blocks of up to 400000 bytes are resized and freed");
}

/* ---- without the GIL, and on other threads ----------------------------------------------- */

/* Two threads parse texts, one is busy with arrays of its own, each with the subject installed. */
enum { PARSERS = 2, WORKERS = PARSERS + 1, PARSES = 5, NUMBERS = 12500 };
struct worker {
    void (*work)(struct worker *self);
    size_t number;
    char text[NUMBERS * 2 + 1]; /* of a parser: digits, each with a space behind it */
};
static pthread_barrier_t all_ready;
static atomic_int parsing; /* threads that still do */

/* The choice of a handler is each thread's own. */
static void install_subject(void)
{
    PyObject *capsule = PyCapsule_New(subject_traced(), "mem_handler", NULL);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    if (before == NULL)
        harness_broke("PyDataMem_SetHandler: %s", python_error());
    Py_DECREF(before);
    Py_DECREF(capsule);
}

/* np.fromstring of the first `count` numbers of the text. */
static void parse(char *text_of_numbers, size_t count)
{
    char separator[] = " ";
    PyArrayObject *array = (PyArrayObject *)PyArray_FromString(
        text_of_numbers, (npy_intp)(2 * count), PyArray_DescrFromType(NPY_INT64), -1, separator);
    if (array == NULL)
        fail(text("np.fromstring of %zu numbers to give an array", count), "%s", python_error());
    const int64_t *numbers = PyArray_DATA(array);
    for (size_t i = 0; i < count; i++) {
        if (numbers[i] != text_of_numbers[2 * i] - '0')
            fail(text("number %zu of %zu from np.fromstring to be %c", i, count,
                      text_of_numbers[2 * i]),
                 "%lld", (long long)numbers[i]);
    }
    Py_DECREF(array);
}

static void parse_texts(struct worker *self)
{
    for (size_t i = 0; i < (is_instrumented() ? 2 : PARSES); i++) {
        parse(self->text, NUMBERS - i);
        parse(self->text, 3 + i);
    }
    atomic_fetch_sub(&parsing, 1);
}

/* Resizes an array to `count` numbers, and checks those that it had. */
static void resize_array(PyArrayObject *array, npy_intp count)
{
    npy_intp had = PyArray_DIM(array, 0);
    PyArray_Dims shape = {&count, 1};
    PyObject *none = PyArray_Resize(array, &shape, 0, NPY_CORDER);
    if (none == NULL)
        fail(text("ndarray.resize from %zd to %zd numbers to work", had, count), "%s",
             python_error());
    Py_DECREF(none);
    const int64_t *numbers = PyArray_DATA(array);
    for (npy_intp i = 0; i < had && i < count; i++) {
        if (numbers[i] != i)
            fail(text("number %zd to be %zd still, after ndarray.resize from %zd to %zd", i, i, had,
                      count),
                 "%lld", (long long)numbers[i]);
    }
}

static void resize_arrays(struct worker *self)
{
    npy_intp small = 500, large = 4000;
    (void)self;
    while (atomic_load(&parsing) > 0) {
        PyArrayObject *array = (PyArrayObject *)PyArray_Arange(0, (double)small, 1, NPY_INT64);
        if (array == NULL)
            fail("np.arange(500) to give an array", "%s", python_error());
        resize_array(array, large);
        resize_array(array, small);
        Py_DECREF(array);
        Py_BEGIN_ALLOW_THREADS /* whoever has parsed its text wants to go on */
            Py_END_ALLOW_THREADS
    }
}

static void work_with_numpy(void *data)
{
    struct worker *worker = data;
    PyGILState_STATE state = PyGILState_Ensure();
    install_subject();
    Py_BEGIN_ALLOW_THREADS pthread_barrier_wait(&all_ready);
    Py_END_ALLOW_THREADS perturb_begin(worker->number);
    worker->work(worker);
    perturb_end();
    PyGILState_Release(state);
}

PROPERTY(realloc_without_gil,
    .id     = "realloc.without-gil",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "realloc works without the GIL, while other threads are inside the handler",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text calls PyDataMem_UserRENEW between "
              "NPY_BEGIN_ALLOW_THREADS and NPY_END_ALLOW_THREADS",
    .why    = "np.fromstring and np.fromfile of text grow their block so, in a program in which "
              "other threads use arrays",
    .hint   = "touch nothing of Python's in realloc (PyMem_Raw* is allowed), and lock what it "
              "shares with the other functions",
    .looks  = "FAIL: realloc not to call PyMem_Malloc without the GIL",
    .fixture  = FIXTURE_PYTHON)
{
    static struct worker workers[WORKERS];
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i].number = i;
        workers[i].work = i < PARSERS ? parse_texts : resize_arrays;
        for (size_t j = 0; i < PARSERS && j < NUMBERS; j++) {
            workers[i].text[2 * j] = (char)('0' + (j * 7 + i) % 10);
            workers[i].text[2 * j + 1] = ' ';
        }
    }
    parsing = PARSERS;
    pthread_barrier_init(&all_ready, NULL, WORKERS);
    gil_watch();
    python_release();
    in_threads(WORKERS, work_with_numpy, workers, sizeof workers[0]);
    python_acquire();
}

/* What a thread is to do with the blocks: resize each to a size that depends on the turn. */
struct relay {
    struct blocks blocks;
    size_t turn;
};

static size_t relay_size(size_t i, size_t turn)
{
    static const size_t large[] = {8192, 40000, 131072, 200000};
    if (i % 64 == 63)
        return large[(i / 64 + turn) % 4];
    return turn % 2 == 0 ? i + 1 : turn % 4 == 1 ? 2 * i + 33 : (i + 2) / 2;
}

static void resize_here(void *data)
{
    struct relay *relay = data;
    for (size_t i = 0; i < relay->blocks.count; i++) {
        struct block *b = &relay->blocks.at[i];
        size_t size = relay_size(i, relay->turn);
        b->p = must_realloc(b->p, size);
        expect_pattern(b->p, MIN(b->size, size), b->number,
                       "after realloc from %zu to %zu in another thread", b->size, size);
        b->size = size;
        pattern_fill(b->p, size, b->number);
    }
}

static void make_for_relay(struct relay *relay)
{
    for (size_t i = 0; i < (is_instrumented() ? 256 : 1000); i++) {
        size_t size = relay_size(i, 0);
        void *p = i % 3 == 0 ? must_calloc(size, 1) : must_malloc(size);
        blocks_add(&relay->blocks, p, size);
    }
}

/* As the property, by one thread alone. */
static void relay_to_nobody(void *unused)
{
    struct relay relay = {0};
    (void)unused;
    make_for_relay(&relay);
    for (relay.turn = 1; relay.turn <= 4; relay.turn++)
        resize_here(&relay);
    blocks_verify(&relay.blocks, "after realloc");
    blocks_free_all(&relay.blocks);
}

PROPERTY(realloc_in_another_thread,
    .id     = "realloc.in-another-thread",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "a block can be resized in another thread than the one that made it",
    .source = "NumPy 1.22 to 2.5: shape.c PyArray_Resize, in whichever thread calls it; the array "
              "takes its handler with it (NEP 49, High level design)",
    .why    = "arrays are handed from thread to thread, and keep their handler",
    .hint   = "keep what realloc has to know with the block, not with the thread",
    .looks  = "FAIL: byte 0 of 17 to be 0xc3 as it was written, after realloc from 17 to 65 in "
              "another thread; seen 0x00")
{
    struct relay relay = {0};
    control_run(relay_to_nobody, NULL, "in one thread alone");
    make_for_relay(&relay);
    for (relay.turn = 1; relay.turn <= 4; relay.turn++)
        in_threads(1, resize_here, &relay, sizeof relay);
    blocks_verify(&relay.blocks, "after realloc in four other threads");
    blocks_free_all(&relay.blocks);
}
