/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of blocks that several properties of malloc, calloc and realloc share.
 */
#ifndef CONFORM_BLOCK_CHECKS_H
#define CONFORM_BLOCK_CHECKS_H

#include "harness/harness.h"

/* malloc, calloc, or realloc of NULL: the function that a check tests. */
struct maker {
    void *(*ask)(size_t size);        /* a block, or NULL if it is refused */
    void *(*must)(size_t size);       /* as must_malloc */
    const char *(*call)(size_t size); /* the call in words, "malloc(17)" */
};

/* A new block by malloc, calloc or realloc: way % 3 says which. */
static inline void *must_make(size_t way, size_t size)
{
    return way % 3 == 0   ? must_malloc(size)
           : way % 3 == 1 ? must_calloc(size, 1)
                          : must_realloc(must_malloc(1), size);
}

/* A new block of malloc's, full of that pattern. */
static inline unsigned char *filled(size_t size, uint64_t number)
{
    unsigned char *p = must_malloc(size);
    pattern_fill(p, size, number);
    return p;
}

/* Writes the block's pattern to its first and last bytes, at most ENDS of each. */
enum { ENDS = 128 };
static inline void fill_ends(const struct block *b)
{
    step("writing the ends of a block of %zu bytes", b->size);
    pattern_fill_range(b->p, 0, MIN(b->size, ENDS), b->number);
    pattern_fill_range(b->p, b->size - MIN(b->size, ENDS), b->size, b->number);
}

/* Fails if what fill_ends() has written changed; `when` follows in the message. */
static inline void expect_ends(const struct block *b, const char *when)
{
    size_t part = MIN(b->size, ENDS), at = pattern_mismatch_range(b->p, 0, part, b->number);
    if (at == part)
        at = pattern_mismatch_range(b->p, b->size - part, b->size, b->number);
    if (at != b->size)
        pattern_fail_at(__LINE__, b->p, at, b->size, b->number, when);
}

/* Resizes the block at p, which has `old` bytes of pattern `number`.  Fails if realloc does not
 * keep the smaller of both sizes. */
static inline unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    unsigned char *q = must_realloc(p, new);
    expect_pattern(q, MIN(old, new), number, "after realloc from %zu to %zu", old, new);
    return q;
}

/* ---- sizes up to 1 MiB (slabs.c) ------------------------------------------------------------- */

/* Fails if blocks of a class share memory with others of it, or of the class before. */
void check_slabs_disjoint(void);

/* Fails if blocks of a class share memory once mebibytes of it are live, some of which were
 * freed and made again. */
void check_full_classes_disjoint(void);

/* Fails if two blocks of about 32, 64, 128 or 256 pages share memory. */
void check_page_runs_disjoint(void);

/* ---- size classes between powers of two: 5, 6 and 7 times one (edges.c) ---------------------- */

/* Fails if two blocks cannot both be filled.  Tries sizes above `from`. */
void check_edges_extent(size_t from);

/* Fails if live blocks share memory. */
void check_edges_disjoint(const struct maker *maker);

/* Fails if memory from calloc is not zero; the second frees blocks full of other bytes first. */
void check_edges_zero(const struct maker *by_calloc, size_t from);
void check_edges_zero_when_reused(const struct maker *by_calloc);

/* Fails if realloc across an edge loses contents, or if the grown part cannot be written. */
void check_edges_realloc(void);
void check_edges_growth(void);

/* ---- blocks that end near the edge of a page (page_edges.c) ---------------------------------- */

/* Fails if the last bytes of a large block cannot be written, or belong to another block. */
void check_page_edges_extent(void);

/* The same for a block that has grown by less than a page. */
void check_page_edges_growth(void);

/* Fails if read(2) cannot write to a block that has not been written yet. */
void check_kernel_writes(void);

/* ---- up to 64 MiB, as far as memory allows, of which samples are touched (large.c) ----------- */

/* Fails if a large block cannot be written; check_reuse_for_more: a recycled one that has to be
 * larger than before. */
void check_large_extent(void);
void check_reuse_for_more(void *unused);

/* Fails if large live blocks share memory while `turns` blocks are made. */
void check_large_disjoint(const struct maker *maker, size_t turns);

/* Fails if memory from calloc is not zero; the second frees blocks full of other bytes first. */
void check_large_zero(const struct maker *by_calloc);
void check_large_zero_when_reused(const struct maker *by_calloc);

/* Fails if a large block from realloc(NULL) cannot be written, or overlaps another. */
void check_large_from_null(void);

/* Fails if realloc loses contents of large blocks, in one step or in many. */
void check_large_realloc(void);
void check_large_of(bool is_calloc);
void check_large_chain(void);
void check_large_ratios(void);
void check_large_shrink(void);

/* Fails if a large block that shrinks and grows back overlaps another. */
void check_large_growth_back(void);

/* Fails if a large block that shrank loses contents when memory is scarce. */
void check_large_pressure(void);

/* Fails if a large block that shrinks or grows is aligned to less than those of malloc. */
void check_large_realloc_alignment(void);

/* ---- hundreds of MiB and more, of which hardly a page is touched (huge.c) -------------------- */

/* Fails if such a block overlaps another, or has no memory at its end. */
void check_huge_extent(const struct maker *maker);

/* Fails if such a block of calloc's has bytes that were written before a free. */
void check_huge_zero_when_reused(const struct maker *by_calloc);

/* Fails if such a block is aligned to less than a small one. */
void check_huge_alignment(const struct maker *maker);

/* Fails if a block that grew, and is freed with the size of NumPy's first buffer, is lost in part
 * or stays counted against a limit. */
void check_huge_best_guess(void);

/* Fails if realloc loses contents of a block of slightly more than 4 GiB. */
void check_huge_realloc(void);

#endif
