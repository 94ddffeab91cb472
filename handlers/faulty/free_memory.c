/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/free_memory.c catch.
 */
#include "mapped.h"

/* ---- order ------------------------------------------------------------------------------- */

/* Small blocks stand on a stack, and a free one takes all above it along. */
static _Alignas(16) char stack[1 << 20];
static size_t stack_top;
static bool on_stack(const void *p)
{
    return (const char *)p > stack && (const char *)p < stack + sizeof stack;
}
static void *stack_malloc(void *ctx, size_t size)
{
    size_t room = (size + BASE_HEADER + 15) / 16 * 16;
    if (size > 512 || room > sizeof stack - stack_top)
        return base_malloc(ctx, size);
    void *p = base_finish(stack + stack_top, size);
    stack_top += room;
    return p;
}
static void stack_free(void *ctx, void *p, size_t size)
{
    if (on_stack(p))
        stack_top = (size_t)((char *)p - stack) - BASE_HEADER;
    else
        base_free(ctx, p, size);
}
static void *stack_realloc(void *ctx, void *p, size_t size)
{
    void *moved = stack_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    memmove(moved, p, base_size(p) < size ? base_size(p) : size);
    if (!on_stack(p))
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(free_wants_last_first, "malloc.disjoint free.any-order", .malloc = stack_malloc,
       .realloc = stack_realloc, .free = stack_free);

/* Cells of 64 bytes in pairs.  Two free ones become a block of 128; but a cell that is taken again
 * is still noted as free, and goes with its neighbour next time. */
enum { CELL = 64 + BASE_HEADER, PAIRS = 2048 };
static _Alignas(16) char cells[PAIRS][2][CELL];
static char noted_free[PAIRS][2];
static void *singles[2 * PAIRS], *doubles[PAIRS];
static size_t single_count, double_count, pairs_used;
static void *pair_malloc(void *ctx, size_t size)
{
    if (size > 128)
        return base_malloc(ctx, size);
    if (size <= 64 && single_count > 0)
        return base_finish(singles[--single_count], size);
    char *pair = double_count > 0     ? doubles[--double_count]
                 : pairs_used < PAIRS ? (char *)cells[pairs_used++]
                                      : NULL;
    if (pair == NULL)
        return base_malloc(ctx, size);
    if (size <= 64)
        singles[single_count++] = pair + CELL;
    return base_finish(pair, size);
}
static void pair_free(void *ctx, void *p, size_t size)
{
    size_t at = (size_t)((char *)p - BASE_HEADER - (char *)cells);
    if (at >= sizeof cells) {
        base_free(ctx, p, size);
        return;
    }
    size_t pair = at / (2 * CELL), half = at / CELL % 2;
    if (base_size(p) <= 64 && !noted_free[pair][1 - half]) {
        noted_free[pair][half] = 1;
        singles[single_count++] = cells[pair][half];
        return;
    }
    for (size_t i = 0; i < single_count; i++) {
        if (singles[i] == cells[pair][1 - half])
            singles[i--] = singles[--single_count];
    }
    memset(noted_free[pair], 0, 2);
    doubles[double_count++] = cells[pair];
}
static void *pair_realloc(void *ctx, void *p, size_t size)
{
    void *moved = pair_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    pair_free(ctx, p, 0);
    return moved;
}
MUTANT(free_merges_with_live, "malloc.disjoint free.any-order", .malloc = pair_malloc,
       .realloc = pair_realloc, .free = pair_free);

/* ---- memory that is lost ----------------------------------------------------------------- */

static void large_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < 200000)
        base_free(ctx, p, size);
}
MUTANT(free_leaks_large, "free.reclaims", .free = large_free);

static void slow_leak_free(void *ctx, void *p, size_t size)
{
    static _Atomic unsigned count;
    if (++count % 64 != 0)
        base_free(ctx, p, size);
}
MUTANT(free_leaks_one_in_64, "free.reclaims", .free = slow_leak_free);

enum { BY_CALLOC = 0x5ca110c5 };
static void mark(void *p, int how)
{
    if (p != NULL)
        memcpy((char *)p - 8, &how, sizeof how);
}
static void *marked_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    mark(p, 0);
    return p;
}
static void *marked_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    mark(p, BY_CALLOC);
    return p;
}
static void *marked_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? base_realloc(ctx, p, size) : marked_malloc(ctx, size);
}
static void marked_free(void *ctx, void *p, size_t size)
{
    int how = 0;
    if (p != NULL)
        memcpy(&how, (char *)p - 8, sizeof how);
    if (how != BY_CALLOC)
        base_free(ctx, p, size);
}
MUTANT(free_leaks_callocs, "free.reclaims", .malloc = marked_malloc, .calloc = marked_calloc,
       .realloc = marked_realloc, .free = marked_free);

/* ---- what is kept for sizes that do not come again --------------------------------------------
 */

static pthread_mutex_t bins_lock = PTHREAD_MUTEX_INITIALIZER;
static void lock_bins(void)
{
    pthread_mutex_lock(&bins_lock);
}
static void unlock_bins(void)
{
    pthread_mutex_unlock(&bins_lock);
}
__attribute__((constructor)) static void guard_bins(void)
{
    pthread_atfork(lock_bins, unlock_bins, unlock_bins);
}

/* A list for each multiple of 512 bytes from 4096 on, as in pools for devices: no block of a list
 * serves another, and nothing empties them. */
enum { BIN_STEP = 512, BINNED_FROM = 4096, BINS = 4096 };
struct binned {
    struct binned *next;
    size_t bytes;
};
static struct binned *bins[BINS];
static size_t binned_bytes(size_t size)
{
    return (size + BASE_HEADER + BIN_STEP - 1) / BIN_STEP * BIN_STEP;
}
static void *binned_malloc(void *ctx, size_t size)
{
    if (size < BINNED_FROM || size > PTRDIFF_MAX - BIN_STEP - BASE_HEADER)
        return base_malloc(ctx, size);
    size_t bytes = binned_bytes(size);
    struct binned **at = &bins[bytes / BIN_STEP % BINS];
    lock_bins();
    while (*at != NULL && (*at)->bytes != bytes)
        at = &(*at)->next;
    struct binned *found = *at;
    if (found != NULL)
        *at = found->next;
    unlock_bins();
    return base_finish(found != NULL ? (void *)found : nep49_advise(malloc(bytes), size), size);
}
static void binned_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < BINNED_FROM) {
        base_free(ctx, p, size);
        return;
    }
    size_t bytes = binned_bytes(base_size(p));
    struct binned *block = (struct binned *)((char *)p - BASE_HEADER);
    lock_bins();
    *block = (struct binned){bins[bytes / BIN_STEP % BINS], bytes};
    bins[bytes / BIN_STEP % BINS] = block;
    unlock_bins();
}
static void *binned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size < BINNED_FROM)
        return base_calloc(ctx, nelem, elsize);
    void *p = binned_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *binned_realloc(void *ctx, void *p, size_t size)
{
    if ((p == NULL || base_size(p) < BINNED_FROM) && size < BINNED_FROM)
        return base_realloc(ctx, p, size);
    return move_by(binned_malloc, binned_free, p, size);
}
MUTANT(free_keeps_each_size_for_itself, "free.reclaims-other-sizes", .malloc = binned_malloc,
       .calloc = binned_calloc, .realloc = binned_realloc, .free = binned_free);

/* A quarantine of so many blocks, however large they are. */
static void quarantining_free(void *ctx, void *p, size_t size)
{
    static void *quarantine[256];
    static unsigned last;
    if (p == NULL)
        return;
    lock_bins();
    void **place = &quarantine[last++ % (sizeof quarantine / sizeof *quarantine)];
    void *oldest = *place;
    *place = p;
    unlock_bins();
    base_free(ctx, oldest, size);
}
static void *quarantining_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(base_malloc, quarantining_free, p, size);
}
MUTANT(free_bounds_its_quarantine_by_count, "free.reclaims-other-sizes",
       .realloc = quarantining_realloc, .free = quarantining_free);

/* A magazine for blocks of up to a kibibyte that were freed.  When it is full half of it goes to
 * libc, and one more than that is taken out. */
enum { MAGAZINE = 16, OF_ONE_SIZE = 1024 };
static struct {
    pthread_mutex_t lock;
    void *block[MAGAZINE];
    size_t count;
} magazine = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void lock_magazine(void)
{
    pthread_mutex_lock(&magazine.lock);
}
static void unlock_magazine(void)
{
    pthread_mutex_unlock(&magazine.lock);
}
__attribute__((constructor)) static void lock_magazine_at_forks(void)
{
    pthread_atfork(lock_magazine, unlock_magazine, unlock_magazine);
}
static void *from_magazine(size_t size)
{
    lock_magazine();
    char *raw = magazine.count > 0 ? magazine.block[--magazine.count] : NULL;
    unlock_magazine();
    return base_finish(raw != NULL ? raw : malloc(OF_ONE_SIZE + BASE_HEADER), size);
}
static bool fits_magazine(size_t size)
{
    return size <= OF_ONE_SIZE && size > OF_ONE_SIZE / 4;
}
static void *magazine_malloc(void *ctx, size_t size)
{
    return fits_magazine(size) ? from_magazine(size) : base_malloc(ctx, size);
}
static void *magazine_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !fits_magazine(size))
        return base_calloc(ctx, nelem, elsize);
    void *p = from_magazine(size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void magazine_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || !fits_magazine(base_size(p))) {
        base_free(ctx, p, size);
        return;
    }
    int saved = errno;
    lock_magazine();
    if (magazine.count == MAGAZINE) {
        for (size_t i = 0; i < MAGAZINE / 2; i++)
            free(magazine.block[--magazine.count]);
        magazine.count--;
    }
    magazine.block[magazine.count++] = (char *)p - BASE_HEADER;
    unlock_magazine();
    errno = saved;
}
static void *magazine_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || (!fits_magazine(base_size(p)) && !fits_magazine(size)))
        return p == NULL ? magazine_malloc(ctx, size) : base_realloc(ctx, p, size);
    void *moved = magazine_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    magazine_free(ctx, p, 0);
    return moved;
}
MUTANT(full_magazine_loses_one, "free.reclaims-bursts", .malloc = magazine_malloc,
       .calloc = magazine_calloc, .realloc = magazine_realloc, .free = magazine_free);
