/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that ask the kernel for each block.
 */
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"

/* Behind the header of a mapping stand the block and, as far as they fit, no other bytes: where
 * `guard` is set the block ends (but for its alignment) at a page that cannot be touched. */
struct header {
    char *map;
    size_t length, size;
};

static struct header *header_of(void *p)
{
    return (struct header *)((uintptr_t)p & ~(uintptr_t)15) - 1;
}

static void *map_block(size_t size, bool guard)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (size > PTRDIFF_MAX - 4 * page)
        return NULL;
    size_t body = (size + 64 + page - 1) / page * page, length = body + (guard ? page : 0);
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    if (guard && mprotect(map + body, page, PROT_NONE) != 0) {
        munmap(map, length);
        return NULL;
    }
    char *p = guard ? map + body - (size + 15) / 16 * 16 : map + 64;
    *header_of(p) = (struct header){map, length, size};
    return p;
}

static void unmap_block(void *p)
{
    if (p == NULL)
        return;
    int saved = errno;
    struct header header = *header_of(p);
    munmap(header.map, header.length);
    errno = saved;
}

static void *remap_block(void *p, size_t size, bool guard)
{
    void *moved = map_block(size, guard);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = header_of(p)->size;
    memcpy(moved, p, old < size ? old : size);
    unmap_block(p);
    return moved;
}

FUNCTION(malloc, guard)
{
    return map_block(size, true);
}

FUNCTION(calloc, guard)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : map_block(size, true);
}

FUNCTION(realloc, guard)
{
    return remap_block(p, size, true);
}

FUNCTION(free, mapped)
{
    unmap_block(p);
}
SOUND(guard_pages, FUNCTIONS(guard, malloc, calloc, realloc), FUNCTIONS(mapped, free));

/* One mapping per block: the kernel's limit on mappings is met long before 65536 of them. */
FUNCTION(malloc, mapped)
{
    return map_block(size, false);
}

FUNCTION(calloc, mapped)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : map_block(size, false);
}

FUNCTION(realloc, mapped)
{
    return remap_block(p, size, false);
}
SOUND(one_mapping_each, FUNCTIONS(mapped));

/* ---- addresses that were reserved ---------------------------------------------------------- */

/* A range of addresses is reserved at the first large block, and slots of powers of two are cut
 * from it: a limit on addresses that comes later does not concern it.  What calloc makes is
 * written. */
enum { SLOT_BITS = 20, RANGE_BITS = sizeof(size_t) > 4 ? 38 : 28, KINDS = RANGE_BITS - SLOT_BITS };
enum { SLOTS = 1 << KINDS };
MUTEX(range_lock);
static struct {
    char *begin;           /* or NULL */
    size_t used;           /* slots of the smallest kind */
    uint32_t first[KINDS]; /* of each kind that is free, from 1 on, or 0 */
    uint32_t next[SLOTS];
} range;

/* Where the range begins, or NULL. */
static char *begin_of_range(void)
{
    LOCK(range_lock);
    return range.begin;
}

/* Whether it is reserved, now or before. */
static bool reserve_range(void)
{
    if (range.begin == NULL) {
        void *map = mmap(NULL, (size_t)1 << RANGE_BITS, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        range.begin = map != MAP_FAILED ? map : NULL;
    }
    return range.begin != NULL;
}

/* The kind of slot that holds so many bytes and the header, or KINDS. */
static unsigned kind_of(size_t size)
{
    unsigned kind = 0;
    while (kind < KINDS && ((size_t)1 << (SLOT_BITS + kind)) < size + BASE_HEADER)
        kind++;
    return kind;
}

static bool is_in_range(const char *begin, const char *p)
{
    return begin != NULL && p >= begin && (size_t)(p - begin) < (size_t)1 << RANGE_BITS;
}

FUNCTION(malloc, ranged)
{
    char *slot = NULL;
    if (size < (size_t)1 << SLOT_BITS || size > (size_t)1 << (RANGE_BITS - 1))
        return base_malloc(ctx, size);
    unsigned kind = kind_of(size);
    if (kind == KINDS)
        return base_malloc(ctx, size);
    acquire_range_lock();
    if (range.first[kind] != 0) {
        size_t index = range.first[kind] - 1;
        range.first[kind] = range.next[index];
        slot = range.begin + (index << SLOT_BITS);
    } else if (reserve_range() && range.used + ((size_t)1 << kind) <= SLOTS) {
        slot = range.begin + (range.used << SLOT_BITS);
        range.used += (size_t)1 << kind;
    }
    release_range_lock();
    return slot != NULL ? base_finish(nep49_advise(slot, size), size) : base_malloc(ctx, size);
}

DERIVE_CALLOC(ranged);

FUNCTION(free, ranged)
{
    char *begin = begin_of_range();
    if (!is_in_range(begin, p))
        return base_free(ctx, p, size);
    int saved = errno;
    char *slot = (char *)p - BASE_HEADER;
    size_t index = (size_t)(slot - begin) >> SLOT_BITS;
    unsigned kind = kind_of(base_size(p));
    madvise(slot, (size_t)1 << (SLOT_BITS + kind), MADV_DONTNEED);
    acquire_range_lock();
    range.next[index] = range.first[kind];
    range.first[kind] = (uint32_t)index + 1;
    release_range_lock();
    errno = saved;
}

#define moving_malloc ranged_malloc
#define moving_free ranged_free
DERIVE_REALLOC(moving, base_size);
FUNCTION(realloc, ranged)
{
    if (p != NULL && !is_in_range(begin_of_range(), p) && size < (size_t)1 << SLOT_BITS)
        return base_realloc(ctx, p, size);
    return moving_realloc(ctx, p, size);
}
SOUND(reserves_its_addresses, FUNCTIONS(ranged));
