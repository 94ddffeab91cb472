/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/profile.c catch: each is wrong only in what some
 * versions of NumPy do, so that its author, with another one, sees nothing.
 */
#include "meddle.h"

/* ---- sizes given to free ----------------------------------------------------------------- */

/* It knows of sizes that are 1 and of those that are half, and takes any other that is too small
 * for corruption.  fromiter of 1.22 that ends in an error says the size of what there was so far.
 */
static void knowing_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size > 1 && size < base_size(p) && size != base_size(p) / 2)
        abort();
    base_free(ctx, p, size);
}
MUTANT(free_knows_two_wrong_sizes, "free.any-size free.best-guess-size profile.numpy-1.22",
       .free = knowing_free);

/* An array that became empty keeps one element, it thinks, and the largest is a complex long
 * double.  1.22 keeps what the other dimensions hold, 1.23 to 2.3 what an iterator had hinted at.
 */
static void measuring_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size == 1 && base_size(p) > 32)
        abort();
    base_free(ctx, p, size);
}
MUTANT(free_knows_what_empty_arrays_keep,
       "free.best-guess-size profile.numpy-1.22 profile.numpy-1.24 profile.numpy-1.26 "
       "profile.numpy-2.0 profile.numpy-2.2",
       .free = measuring_free);

/* ---- free(NULL, n) ----------------------------------------------------------------------- */

/* Bytes that were freed are credited, those of NULL too: up to 1.24 each contiguous sort adds some
 * that were never there, and when more is free than ever was, something must be wrong. */
static size_t credit;
static void *crediting_malloc(void *ctx, size_t size)
{
    return credit > 4000 ? NULL : base_malloc(ctx, size);
}
static void crediting_free(void *ctx, void *p, size_t size)
{
    credit += p == NULL && size <= 2000 ? size : 0;
    base_free(ctx, p, size);
}
MUTANT(free_of_null_is_credited, "free.null-with-size profile.numpy-1.22 profile.numpy-1.24",
       .malloc = crediting_malloc, .free = crediting_free);

/* ---- requests ---------------------------------------------------------------------------- */

/* All blocks of no bytes are one.  Up to 1.26 two of them are live while records are compared. */
static char nothing[BASE_HEADER + 16] __attribute__((aligned(16)));
static void *sharing_malloc(void *ctx, size_t size)
{
    return size == 0 ? nothing + BASE_HEADER : base_malloc(ctx, size);
}
static void *sharing_realloc(void *ctx, void *p, size_t size)
{
    return base_realloc(ctx, p == nothing + BASE_HEADER ? NULL : p, size);
}
static void sharing_free(void *ctx, void *p, size_t size)
{
    if (p != nothing + BASE_HEADER)
        base_free(ctx, p, size);
}
MUTANT(malloc_of_nothing_is_shared, "profile.numpy-1.22 profile.numpy-1.24 profile.numpy-1.26",
       .malloc = sharing_malloc, .realloc = sharing_realloc, .free = sharing_free);

/* Nobody cuts a block of some size to a byte, it thinks, but 2.4 and later do, where an array
 * becomes empty. */
static void *forgetful_realloc(void *ctx, void *p, size_t size)
{
    bool cut = p != NULL && size == 1 && base_size(p) > 16;
    void *moved = base_realloc(ctx, p, size);
    if (cut && moved != NULL)
        memset(moved, 0, size);
    return moved;
}
MUTANT(realloc_forgets_the_last_byte, "realloc.keeps-contents realloc.to-one profile.numpy-2.5",
       .realloc = forgetful_realloc);

/* ---- the GIL ----------------------------------------------------------------------------- */

/* Has the GIL wherever NumPy was seen to call it, it thinks, but for realloc, and stops rather than
 * damage Python's heap: no profile may show it another caller than NumPy is. */
static void insist_on_gil(void)
{
    int (*is_up)(void) = PYTHON(int (*)(void), "Py_IsInitialized");
    if (is_up != NULL && is_up() && !has_gil())
        abort();
}
static void *insisting_malloc(void *ctx, size_t size)
{
    insist_on_gil();
    return base_malloc(ctx, size);
}
static void *insisting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    insist_on_gil();
    return base_calloc(ctx, nelem, elsize);
}
static void insisting_free(void *ctx, void *p, size_t size)
{
    insist_on_gil();
    base_free(ctx, p, size);
}
MUTANT(insists_on_gil, "threads.no-gil-needed", .malloc = insisting_malloc,
       .calloc = insisting_calloc, .free = insisting_free);
