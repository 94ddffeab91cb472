/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong where a slab, a run of pages or the cache of a class is full.
 */
#include "mapped.h"

/* What a mutant cuts its blocks from. */
static char *reserve(size_t size)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return map != MAP_FAILED ? map : NULL;
}

/* The second word of the header says where the block is. */
static void *placed(char *raw, size_t size, size_t place)
{
    memcpy(raw + 8, &place, sizeof place);
    return base_finish(raw, size);
}

static size_t place_of(const void *p)
{
    size_t place;
    memcpy(&place, (const char *)p - 8, sizeof place);
    return place;
}

/* ---- slabs ----------------------------------------------------------------------------------- */

/* Of that class 48 fit into a slab, and the search goes on to the end of the word. */
enum { SLAB = 1 << 16, SLABS = 512, SLAB_SLOT = 1344 + BASE_HEADER };
static struct {
    pthread_mutex_t lock;
    char *begin;
    uint64_t used[SLABS];
} slabs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *slab_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    if (size <= 1280 || size > 1344)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&slabs.lock);
    if (slabs.begin == NULL)
        slabs.begin = reserve((SLABS + 1) * (size_t)SLAB);
    for (size_t i = 0; slabs.begin != NULL && p == NULL && i < SLABS; i++) {
        if (slabs.used[i] == UINT64_MAX)
            continue;
        size_t slot = (size_t)__builtin_ctzll(~slabs.used[i]);
        slabs.used[i] |= (uint64_t)1 << slot;
        p = placed(slabs.begin + i * SLAB + slot * SLAB_SLOT, size, i * 64 + slot);
    }
    pthread_mutex_unlock(&slabs.lock);
    return p != NULL ? p : base_malloc(ctx, size);
}
static void slab_free(void *ctx, void *p, size_t size)
{
    size_t offset = (size_t)((char *)p - slabs.begin);
    if (slabs.begin == NULL || offset >= (SLABS + 1) * (size_t)SLAB) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&slabs.lock);
    slabs.used[place_of(p) / 64 % SLABS] &= ~((uint64_t)1 << place_of(p) % 64);
    pthread_mutex_unlock(&slabs.lock);
}
static void *slab_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(slab_malloc, slab_free, p, size);
}
MUTANT(slab_search_passes_its_end, "malloc.disjoint", .malloc = slab_malloc,
       .realloc = slab_realloc, .free = slab_free);

/* ---- runs of pages --------------------------------------------------------------------------- */

/* The bits of a run of 64 pages are (1 << 64) - 1, which an x86 takes for (1 << 0) - 1. */
enum { RUN_WORDS = 256, RUN_FROM = 1 << 15 };
static struct {
    pthread_mutex_t lock;
    char *begin;
    uint64_t used[RUN_WORDS];
} runs = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t run_bits(size_t pages)
{
    return ((uint64_t)1 << pages % 64) - 1;
}
static void *run_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    size_t pages = size <= 1 << 20 ? pages_for(size) / MAPPED_PAGE : 0;
    if (size < RUN_FROM || pages == 0 || pages > 64)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&runs.lock);
    if (runs.begin == NULL)
        runs.begin = reserve((size_t)RUN_WORDS * 64 * MAPPED_PAGE);
    for (size_t at = 0; runs.begin != NULL && p == NULL && at < (size_t)RUN_WORDS * 64; at++) {
        if (at % 64 + pages > 64 || (runs.used[at / 64] & run_bits(pages) << at % 64) != 0)
            continue;
        runs.used[at / 64] |= run_bits(pages) << at % 64;
        p = placed(runs.begin + at * MAPPED_PAGE, size, at);
    }
    pthread_mutex_unlock(&runs.lock);
    return p != NULL ? p : base_malloc(ctx, size);
}
static void run_free(void *ctx, void *p, size_t size)
{
    size_t offset = (size_t)((char *)p - runs.begin);
    if (runs.begin == NULL || offset >= (size_t)RUN_WORDS * 64 * MAPPED_PAGE) {
        base_free(ctx, p, size);
        return;
    }
    size_t at = place_of(p) % (RUN_WORDS * 64), pages = pages_for(base_size(p)) / MAPPED_PAGE;
    pthread_mutex_lock(&runs.lock);
    runs.used[at / 64] &= ~(run_bits(pages) << at % 64);
    pthread_mutex_unlock(&runs.lock);
}
static void *run_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(run_malloc, run_free, p, size);
}
MUTANT(run_of_64_pages_takes_none, "malloc.disjoint", .malloc = run_malloc, .realloc = run_realloc,
       .free = run_free);

/* ---- caches of a class ----------------------------------------------------------------------- */

/* Eight blocks of each class between 38 and 64 KiB are kept behind their number, and a ninth as
 * well: it stands where the next class has its number. */
enum { ROW = 64, FIRST_ROW = 600, ROWS = 1024, PLACES = 8 };
static struct {
    pthread_mutex_t lock;
    uintptr_t words[(ROWS + 1) * (PLACES + 1)];
} rows = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uintptr_t *row_for(size_t size)
{
    size_t row = size < (size_t)ROWS * ROW ? (size + ROW - 1) / ROW : 0;
    return row >= FIRST_ROW && row < ROWS ? &rows.words[row * (PLACES + 1)] : NULL;
}
static void *row_malloc(void *ctx, size_t size)
{
    uintptr_t *row = row_for(size), kept = 0;
    if (row == NULL)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&rows.lock);
    if (row[0] > 0)
        kept = row[row[0]--];
    pthread_mutex_unlock(&rows.lock);
    char *p = kept != 0 ? (char *)kept : base_malloc(ctx, (size + ROW - 1) / ROW * ROW);
    return p != NULL ? base_finish(p - BASE_HEADER, size) : NULL;
}
static void *row_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : row_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void row_free(void *ctx, void *p, size_t size)
{
    uintptr_t *row = p != NULL ? row_for(base_size(p)) : NULL;
    pthread_mutex_lock(&rows.lock);
    bool keep = row != NULL && row[0] <= PLACES;
    if (keep)
        row[++row[0]] = (uintptr_t)p;
    pthread_mutex_unlock(&rows.lock);
    if (!keep)
        base_free(ctx, p, size);
}
static void *row_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_by(row_malloc, row_free, p, size);
}
MUTANT(cache_row_takes_one_too_many, "free.any-order", .malloc = row_malloc, .calloc = row_calloc,
       .realloc = row_realloc, .free = row_free);
