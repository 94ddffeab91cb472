/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that take the contents of a block for something of theirs.
 */
#include <pthread.h>

#include "base.h"

/* Small blocks stand side by side without a header; what has one is told by a word in it. */
enum { CELL = 64, CELLS = 1 << 14 };
static const uint64_t mark = 0x4b4c424547524148;
static struct {
    pthread_mutex_t lock;
    _Alignas(CELL) char memory[CELLS][CELL];
    size_t made;
    void *free; /* the first; in each stands the next */
} cells = {.lock = PTHREAD_MUTEX_INITIALIZER, .made = 1};

static bool has_mark(const void *p)
{
    uint64_t word;
    memcpy(&word, (const char *)p - 8, sizeof word);
    return word == mark;
}
static void *marked(char *p)
{
    if (p != NULL)
        memcpy(p - 8, &mark, sizeof mark);
    return p;
}
static void *cell_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    if (size > CELL)
        return marked(base_malloc(ctx, size));
    pthread_mutex_lock(&cells.lock);
    if (cells.free != NULL) {
        p = cells.free;
        memcpy(&cells.free, p, sizeof cells.free);
    } else if (cells.made < CELLS) {
        p = cells.memory[cells.made++];
    }
    pthread_mutex_unlock(&cells.lock);
    return p != NULL ? p : marked(base_malloc(ctx, size));
}
static void *cell_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : cell_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void cell_free(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return;
    if (has_mark(p)) {
        memset((char *)p - 8, 0, 8);
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&cells.lock);
    memcpy(p, &cells.free, sizeof cells.free);
    cells.free = p;
    pthread_mutex_unlock(&cells.lock);
}
static void *cell_realloc(void *ctx, void *p, size_t size)
{
    void *moved = cell_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = has_mark(p) ? base_size(p) : CELL;
    memcpy(moved, p, old < size ? old : size);
    cell_free(ctx, p, 0);
    return moved;
}
MUTANT(contents_before_look_like_a_header, "free.any-contents", .malloc = cell_malloc,
       .calloc = cell_calloc, .realloc = cell_realloc, .free = cell_free);

/* A freed block is full of these bytes; one that already is has been freed before, and stays. */
enum { FREED = 0xdd };
static void wary_free(void *ctx, void *p, size_t size)
{
    static const unsigned char freed[8] = {FREED, FREED, FREED, FREED, FREED, FREED, FREED, FREED};
    if (p != NULL && base_size(p) >= sizeof freed && memcmp(p, freed, sizeof freed) == 0)
        abort();
    if (p != NULL)
        memset(p, FREED, base_size(p) < 4096 ? base_size(p) : 4096);
    base_free(ctx, p, size);
}
static void *wary_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        memset(p, 0, size < 16 ? size : 16); /* of what it was before */
    return p;
}
MUTANT(contents_look_freed, "free.any-contents", .malloc = wary_malloc, .free = wary_free);
