/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of blocks that several properties of malloc, calloc and realloc share.
 */
#ifndef CONFORM_BLOCK_CHECKS_H
#define CONFORM_BLOCK_CHECKS_H

#include "harness/harness.h"

/* malloc, calloc, or realloc of NULL: what a check asks blocks of. */
struct maker {
    void *(*ask)(size_t size);        /* a block, or NULL where it is refused */
    void *(*must)(size_t size);       /* as must_malloc */
    const char *(*call)(size_t size); /* the call in words, "malloc(17)" */
    const char *neighbours;           /* the id of the property about what it does to others */
    size_t least;                     /* of 16 sizes in one class, of which it makes many */
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

/* The first and the last bytes of a block, at most ENDS of each, are of pattern `number`. */
enum { ENDS = 64 };
static inline void fill_ends(unsigned char *p, size_t size, uint64_t number)
{
    pattern_fill_range(p, 0, MIN(size, ENDS), number);
    pattern_fill_range(p, size - MIN(size, ENDS), size, number);
}

static inline void expect_ends(const unsigned char *p, size_t size, uint64_t number,
                               const char *when)
{
    size_t part = MIN(size, ENDS), at = pattern_mismatch_range(p, 0, part, number);
    if (at == part)
        at = pattern_mismatch_range(p, size - part, size, number);
    if (at != size)
        pattern_fail_at(__LINE__, p, at, size, number, when);
}

/* Resizes the block at p, which has `old` bytes of pattern `number`.  Fails if realloc does not
 * keep what it has to. */
static inline unsigned char *resized(unsigned char *p, size_t old, size_t new, uint64_t number)
{
    unsigned char *q = must_realloc(p, new);
    expect_pattern(q, MIN(old, new), number, "after realloc from %zu to %zu", old, new);
    return q;
}

/* ---- sizes up to 1 MiB (allocating.c, slabs.c) ----------------------------------------------- */

/* Fails where a block of any size, new or recycled, on the main thread or another, is not aligned
 * for an object that fits into it. */
void check_alignment(const struct maker *maker);

/* Fails where two of more than 65536 live blocks overlap, two after much coming and going on two
 * threads, or two of `large` blocks of mebibytes. */
void check_disjoint(const struct maker *maker, size_t large);

/* Fails where a block that `make` made, and that alone lives, is given out again or changes as
 * others come beside it and go, until it is the only one again and others come.  What only changes
 * is the matter of the property `neighbours`. */
void check_alone(void *(*make)(size_t size), const char *neighbours);

/* Fails where making, filling or freeing a block changes another, at once or a little later. */
void check_neighbours(const struct maker *maker);

/* Fails where blocks of a class share memory with others of it, or of the class before. */
void check_slabs_disjoint(void);

/* Fails where blocks of a class share memory once mebibytes of it are live, some of which were
 * freed and made again. */
void check_full_classes_disjoint(void);

/* Fails where two blocks of about 32, 64, 128 or 256 pages share memory. */
void check_page_runs_disjoint(void);

/* Frees many blocks of one size in a row, and fails where what is made then, of that size and of
 * those beside it, shares memory. */
void check_rows(void);

/* ---- size classes between powers of two: 5, 6 and 7 times one (edges.c) ---------------------- */

/* Fails where two blocks cannot both be filled; sizes up to `from` are tried elsewhere. */
void check_edges_extent(size_t from);

/* Fails where live blocks share memory. */
void check_edges_disjoint(const struct maker *maker);

/* Fails where what calloc makes is not zero, or was full of other bytes when it was freed. */
void check_edges_zero(const struct maker *by_calloc, size_t from);
void check_edges_zero_when_reused(const struct maker *by_calloc);

/* Fails where realloc across an edge does not keep the contents, or gives no room. */
void check_edges_realloc(void);
void check_edges_growth(void);

/* ---- blocks that end near the edge of a page (page_edges.c) ---------------------------------- */

/* Fails where the last bytes of a large block cannot be written, or are another block's. */
void check_page_edges_extent(void);

/* The same of a block that has grown by less than a page. */
void check_page_edges_growth(void);

/* Fails where read(2) cannot write to a block that nobody has touched. */
void check_kernel_writes(void);

/* ---- up to 64 MiB, as far as memory allows, of which samples are touched (large.c) ----------- */

/* Fails where a large block cannot be written, a recycled one included that has to be larger than
 * it was. */
void check_large_extent(void);
void check_reuse_for_more(void *unused);

/* Fails where large live blocks share memory, `turns` blocks long. */
void check_large_disjoint(const struct maker *maker, size_t turns);

/* Fails where what calloc makes is not zero, or was full of other bytes when it was freed. */
void check_large_zero(const struct maker *by_calloc);
void check_large_zero_when_reused(const struct maker *by_calloc);

/* Fails where a large block that realloc makes of NULL cannot be written, or is another's. */
void check_large_from_null(void);

/* Fails where realloc does not keep the contents of large blocks, in one step or in many. */
void check_large_realloc(void);
void check_large_of(bool is_calloc);
void check_large_chain(void);
void check_large_ratios(void);
void check_large_shrink(void);

/* Fails where a large block that grows to what it was before it shrank takes what others have. */
void check_large_growth_back(void);

/* Fails where what was kept of a large block that shrank is lost when memory is scarce. */
void check_large_pressure(void);

/* Fails where a large block that shrinks or grows is aligned to less than malloc's are. */
void check_large_realloc_alignment(void);

/* ---- hundreds of MiB and more, of which hardly a page is touched (huge.c) -------------------- */

/* Fails where such a block of the maker's overlaps another, or has no memory at its end. */
void check_huge_extent(const struct maker *maker);

/* Fails where such a block of calloc's has what was written into one that was freed. */
void check_huge_zero_when_reused(const struct maker *by_calloc);

/* Fails where such a block of the maker's is aligned to less than a small one is. */
void check_huge_alignment(const struct maker *maker);

/* Fails where blocks of a text that grew, which are freed as what its first buffer was, are lost in
 * part, or counted in part against a limit. */
void check_huge_best_guess(void);

/* Fails where realloc loses what was in a block of 4 GiB and a little more. */
void check_huge_realloc(void);

#endif
