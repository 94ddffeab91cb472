/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that interpret the contents of a block.
 */
#include "mutant.h"

/* Small blocks are cells without a header.  A word before other blocks marks that they have one,
 * and the last word of the cell before may look the same. */
enum { CELL = 64, CELLS = 1 << 14 };
#define MARK ((size_t)0x4b4c424547524148)
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(CELL) char cells[CELLS][CELL];
static size_t cells_made = 1;
static void *free_cell; /* the first; each contains the address of the next */

FUNCTION(malloc, cell)
{
    LOCK(lock);
    void *p = free_cell;
    if (size > CELL || (p == NULL && cells_made == CELLS))
        return base_set_note(base_malloc(ctx, size), MARK);
    if (p == NULL)
        return cells[cells_made++];
    memcpy(&free_cell, p, sizeof p);
    return p;
}
FUNCTION(free, cell)
{
    if (p == NULL)
        return;
    if (base_note(p) == MARK)
        return base_free(ctx, base_set_note(p, 0), size);
    LOCK(lock);
    memcpy(p, &free_cell, sizeof p);
    free_cell = p;
}
#define cell_size(p) (base_note(p) == MARK ? base_size(p) : CELL)
DERIVE_CALLOC(cell);
DERIVE_REALLOC(cell, cell_size);
MUTANT(contents_before_look_like_a_header, "free.any-contents", FUNCTIONS(cell));

/* Fills freed blocks with 0xdd, and aborts if a block that is freed begins like that. */
FUNCTION(malloc, wary)
{
    void *p = base_malloc(ctx, size);
    return p != NULL ? memset(p, 0, min(size, 16)) : NULL;
}
FUNCTION(free, wary)
{
    if (p != NULL && base_size(p) >= 8 && memcmp(p, "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", 8) == 0)
        abort();
    if (p != NULL)
        memset(p, 0xdd, min(base_size(p), 4096));
    base_free(ctx, p, size);
}
MUTANT(contents_look_freed, "free.any-contents", FUNCTIONS(wary, malloc, free));
