/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/profile.c find: each is wrong only for calls that
 * some versions of NumPy make.
 */
#include "mutant.h"
#include "python.h"

/* ---- sizes given to free --------------------------------------------------------------------- */

/* Aborts on sizes that are too small, except 1 and half of the size.  fromiter of 1.22 frees with
 * the size so far if its iterator raises. */
BEFORE(free, free_knows_two_wrong_sizes, "free.any-size free.best-guess-size profile.numpy-1.22",
       p != NULL && size > 1 && size < base_size(p) && size != base_size(p) / 2, abort());

/* Aborts if an array that became empty has more than one element of the largest type.  NumPy 1.22
 * keeps the other dimensions, 1.23 to 2.3 the length that an iterator hinted at. */
BEFORE(free, free_knows_what_empty_arrays_keep,
       "free.best-guess-size profile.numpy-1.22 profile.numpy-1.24 profile.numpy-1.26 "
       "profile.numpy-2.0 profile.numpy-2.2",
       p != NULL && size == 1 && base_size(p) > 32, abort());

/* ---- free(NULL, n) --------------------------------------------------------------------------- */

/* Adds up the sizes of free(NULL, n), which each contiguous sort up to 1.24 calls. */
static size_t credit;
FUNCTION_RETURNS(malloc, crediting, credit > 4000 ? NULL : base_malloc(ctx, size));
HOOK_BEFORE(free, crediting, true, credit += p == NULL && size <= 2000 ? size : 0);
MUTANT(free_of_null_is_credited, "free.null-with-size profile.numpy-1.22 profile.numpy-1.24",
       FUNCTIONS(crediting, malloc, free));

/* ---- requests -------------------------------------------------------------------------------- */

/* All zero-size blocks are the same one.  Up to 1.26 two are live while records are compared. */
static char nothing[BASE_HEADER + 16] __attribute__((aligned(16)));
FUNCTION_RETURNS(malloc, sharing, size == 0 ? nothing + BASE_HEADER : base_malloc(ctx, size));
FUNCTION_RETURNS(realloc, sharing, base_realloc(ctx, p == nothing + BASE_HEADER ? NULL : p, size));
FUNCTION_FREES(sharing, p != nothing + BASE_HEADER);
MUTANT(malloc_of_nothing_is_shared, "profile.numpy-1.22 profile.numpy-1.24 profile.numpy-1.26",
       FUNCTIONS(sharing, malloc, realloc, free));

/* Loses the byte that stays when realloc shrinks a block to one, as 2.4 does for empty arrays. */
DEFECT(realloc, realloc_forgets_the_last_byte, "realloc.keeps-contents profile.numpy-2.5")
{
    bool is_cut = p != NULL && size == 1 && base_size(p) > 16;
    void *moved = base_realloc(ctx, p, size);
    return is_cut && moved != NULL ? memset(moved, 0, size) : moved;
}

/* ---- the GIL --------------------------------------------------------------------------------- */

/* Aborts without the GIL, which NumPy holds in all calls except those of realloc. */
static void insist_on_gil(void)
{
    if (is_python_up() && !has_gil())
        abort();
}
HOOK_BEFORE(malloc, insisting, true, insist_on_gil());
HOOK_BEFORE(calloc, insisting, true, insist_on_gil());
HOOK_BEFORE(free, insisting, true, insist_on_gil());
MUTANT(insists_on_gil, "threads.no-gil-needed", FUNCTIONS(insisting, malloc, calloc, free));
