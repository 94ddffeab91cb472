/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that interpret the contents of a block.
 */
#include <pthread.h>

#include "mutant.h"

/* Small blocks are cells without a header.  A word before other blocks marks that they have one,
 * and the last word of the cell before may look the same. */
enum { CELL = 64, CELLS = 1 << 14 };
#define MARK ((size_t)0x4b4c424547524148)
static struct {
    pthread_mutex_t lock;
    _Alignas(CELL) char memory[CELLS][CELL];
    size_t made;
    void *free; /* the first; each contains the address of the next */
} cells = {.lock = PTHREAD_MUTEX_INITIALIZER, .made = 1};

FUNCTION(malloc, cell)
{
    void *p = NULL;
    if (size > CELL)
        return base_set_note(base_malloc(ctx, size), MARK);
    pthread_mutex_lock(&cells.lock);
    if (cells.free != NULL) {
        p = cells.free;
        memcpy(&cells.free, p, sizeof cells.free);
    } else if (cells.made < CELLS) {
        p = cells.memory[cells.made++];
    }
    pthread_mutex_unlock(&cells.lock);
    return p != NULL ? p : base_set_note(base_malloc(ctx, size), MARK);
}
FUNCTION(free, cell)
{
    if (p == NULL)
        return;
    if (base_note(p) == MARK) {
        base_free(ctx, base_set_note(p, 0), size);
        return;
    }
    LOCK(cells.lock);
    memcpy(p, &cells.free, sizeof cells.free);
    cells.free = p;
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
