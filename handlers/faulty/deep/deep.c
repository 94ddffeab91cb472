/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The four functions in terms of an allocator's own.
 */
#include "deep.h"

#include <sys/mman.h>

enum { RESERVE_ALIGNED = 1 << 20 };

pthread_mutex_t deep_mutex = PTHREAD_MUTEX_INITIALIZER;

void deep_lock(void)
{
    pthread_mutex_lock(&deep_mutex);
}
void deep_unlock(void)
{
    pthread_mutex_unlock(&deep_mutex);
}
__attribute__((constructor)) static void hold_over_fork(void)
{
    pthread_atfork(deep_lock, deep_unlock, deep_unlock);
}

void deep_release(char *begin, char *end)
{
    if (begin < end && madvise(begin, (size_t)(end - begin), MADV_DONTNEED) != 0)
        memset(begin, 0, (size_t)(end - begin));
}

/* Maps its memory unless it is there.  A refused request is tried again by the next call. */
static bool has_memory(struct deep *d)
{
    if (deep_begin(d) != NULL)
        return true;
    LOCK(deep_mutex);
    if (deep_begin(d) != NULL)
        return true;
    char *map = mmap(NULL, d->base->reserve + RESERVE_ALIGNED, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map != MAP_FAILED)
        atomic_store_explicit(&d->begin, (char *)round_up((uintptr_t)map, RESERVE_ALIGNED),
                              memory_order_release);
    return map != MAP_FAILED;
}

static bool is_own(struct deep *d, const void *p)
{
    char *begin = deep_begin(d);
    return begin != NULL && (uintptr_t)p - (uintptr_t)begin < d->base->reserve;
}
static bool is_for_base(const struct deep *d, size_t size)
{
    return size >= d->base->least && size <= d->base->most;
}

/* ENTER(d): holds the lock until the end of the block, unless the allocator locks itself. */
#define ENTER(d)                                                                                   \
    pthread_mutex_t own_ = PTHREAD_MUTEX_INITIALIZER;                                              \
    LOCK(*((d)->base->locks_itself ? &own_ : &deep_mutex))

static void *take(struct deep *d, size_t size, bool *zero)
{
    *zero = false;
    if (!is_for_base(d, size) || !has_memory(d))
        return NULL;
    ENTER(d);
    return d->base->take(d, size, zero);
}
static bool resize(struct deep *d, void *p, size_t size)
{
    if (!is_for_base(d, size))
        return false;
    ENTER(d);
    size_t room = d->base->room(d, p);
    return d->base->resize != NULL ? d->base->resize(d, p, size) : size <= room && size >= room / 4;
}
static size_t room(struct deep *d, void *p)
{
    if (!is_own(d, p))
        return base_size(p);
    ENTER(d);
    return d->base->room(d, p);
}

void *deep_malloc(void *ctx, size_t size)
{
    bool zero;
    void *p = take(ctx, size, &zero);
    return p != NULL ? p : base_malloc(NULL, size);
}

void *deep_calloc(void *ctx, size_t nelem, size_t elsize)
{
    bool zero;
    void *p = take(ctx, product(nelem, elsize), &zero);
    if (p == NULL)
        return base_calloc(NULL, nelem, elsize);
    return zero ? p : memset(p, 0, nelem * elsize);
}

void *deep_realloc(void *ctx, void *p, size_t size)
{
    struct deep *d = ctx;
    if (p == NULL)
        return deep_malloc(ctx, size);
    if (!is_own(d, p) && !is_for_base(d, size))
        return base_realloc(NULL, p, size);
    if (is_own(d, p) && resize(d, p, size))
        return p;
    void *moved = deep_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    size_t old = room(d, p);
    memcpy(moved, p, min(old, size));
    deep_free(ctx, p, old);
    return moved;
}

void deep_free(void *ctx, void *p, size_t size)
{
    struct deep *d = ctx;
    int saved = errno;
    if (is_own(d, p)) {
        ENTER(d);
        d->base->give(d, p);
    } else {
        base_free(NULL, p, size);
    }
    errno = saved;
}
