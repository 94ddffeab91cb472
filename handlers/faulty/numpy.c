/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/numpy.c catch.
 */
#include "meddle.h"

/* Tells by its name what it is doing. */
extern PyDataMem_Handler renames_itself;

static void *renames_itself_calloc(void *ctx, size_t nelem, size_t elsize)
{
    strcpy(renames_itself.name, "renames_itself (zeroing)");
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(renames_itself, "numpy.name", .calloc = renames_itself_calloc);

/* The same, once it has freed a hundred blocks. */
extern PyDataMem_Handler renames_itself_late;

static void renames_itself_late_free(void *ctx, void *p, size_t size)
{
    static int calls;
    if (++calls == 100)
        strcpy(renames_itself_late.name, "renames_itself_late (100)");
    base_free(ctx, p, size);
}
MUTANT(renames_itself_late, "numpy.name", .free = renames_itself_late_free);

extern PyDataMem_Handler counts_in_its_version;

static void *counts_in_its_version_realloc(void *ctx, void *p, size_t size)
{
    counts_in_its_version.version++;
    return base_realloc(ctx, p, size);
}
MUTANT(counts_in_its_version, "numpy.version", .realloc = counts_in_its_version_realloc);

static bool is_replaced(const PyDataMem_Handler *self)
{
    const PyDataMem_Handler *now = handler_in_force();
    return now != NULL && strcmp(now->name, self->name) != 0;
}

/* Gives a block to whatever handler is in force. */
static void frees_by_current_free(void *ctx, void *p, size_t size)
{
    PyDataMem_Handler *now = handler_in_force();
    if (p != NULL && is_replaced(ctx))
        now->allocator.free(now->allocator.ctx, p, size);
    else
        base_free(ctx, p, size);
}
MUTANT(frees_by_current, "numpy.array-keeps-its-handler", .ctx = &frees_by_current,
       .free = frees_by_current_free);

/* A block that is resized moves to whatever handler is in force. */
static void *reallocs_by_current_realloc(void *ctx, void *p, size_t size)
{
    PyDataMem_Handler *now = handler_in_force();
    if (p == NULL || !is_replaced(ctx))
        return base_realloc(ctx, p, size);
    void *moved = now->allocator.malloc(now->allocator.ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, size < base_size(p) ? size : base_size(p));
    base_free(ctx, p, size);
    return moved;
}
MUTANT(reallocs_by_current, "numpy.array-keeps-its-handler", .ctx = &reallocs_by_current,
       .realloc = reallocs_by_current_realloc);

/* Takes its arena for empty once it is replaced, and wipes it: its last eight blocks, that is. */
static void *arena[8];

static void arena_replace(const void *old, void *new)
{
    for (int i = 0; i < 8; i++) {
        if (arena[i] == old) {
            arena[i] = new;
            return;
        }
    }
}

static void *wipes_when_replaced_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    arena_replace(NULL, p);
    return p;
}

static void *wipes_when_replaced_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        arena_replace(p, moved);
    return moved;
}

static void wipes_when_replaced_free(void *ctx, void *p, size_t size)
{
    arena_replace(p, NULL);
    for (int i = 0; i < 8 && p != NULL && is_replaced(ctx); i++) {
        if (arena[i] != NULL)
            memset(arena[i], 0, base_size(arena[i]));
    }
    base_free(ctx, p, size);
}
MUTANT(wipes_when_replaced, "numpy.array-keeps-its-handler", .ctx = &wipes_when_replaced,
       .malloc = wipes_when_replaced_malloc, .realloc = wipes_when_replaced_realloc,
       .free = wipes_when_replaced_free);

/* Wants to be in force for as long as it has blocks. */
static void returns_on_free_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_replaced(ctx))
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(returns_on_free, "numpy.installs", .ctx = &returns_on_free, .free = returns_on_free_free);

/* The same, when one of its blocks is resized. */
static void *returns_on_realloc_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_replaced(ctx))
        put_in_force(ctx);
    return base_realloc(ctx, p, size);
}
MUTANT(returns_on_realloc, "numpy.installs", .ctx = &returns_on_realloc,
       .realloc = returns_on_realloc_realloc);

/* Has itself removed when the last of its blocks is gone. */
static int live;

static void *leaves_when_empty_malloc(void *ctx, size_t size)
{
    live++;
    return base_malloc(ctx, size);
}

static void *leaves_when_empty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    live++;
    return base_calloc(ctx, nelem, elsize);
}

static void leaves_when_empty_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && --live == 0)
        put_in_force(NULL);
    base_free(ctx, p, size);
}
MUTANT(leaves_when_empty, "numpy.installs", .malloc = leaves_when_empty_malloc,
       .calloc = leaves_when_empty_calloc, .free = leaves_when_empty_free);
