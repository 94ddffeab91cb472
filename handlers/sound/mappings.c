/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that ask the kernel for each block.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base.h"

/* A header is in the 48 bytes before a mapped block.  With `guard` the block ends, except for its
 * alignment, at a page without access. */
struct header {
    char *map;
    size_t length, size;
};
static struct header *header_of(const void *p)
{
    return (struct header *)((uintptr_t)p & ~(uintptr_t)15) - 1;
}
static size_t mapped_size(const void *p)
{
    return header_of(p)->size;
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
    int saved = errno;
    if (p != NULL)
        munmap(header_of(p)->map, header_of(p)->length);
    errno = saved;
}

#define MAPPED(name, guard)                                                                        \
    FUNCTION_RETURNS(malloc, name, map_block(size, guard));                                        \
    FUNCTION_RETURNS(calloc, name, map_block(product(nelem, elsize), guard));                      \
    FUNCTION_RETURNS(free, name, unmap_block(p));                                                  \
    DERIVE_REALLOC(name, mapped_size);                                                             \
    SOUND(name, FUNCTIONS(name))
MAPPED(guard_pages, true);
/* The kernel's limit on mappings is lower than 65536 blocks. */
MAPPED(one_mapping_each, false);

/* ---- addresses that were reserved ---------------------------------------------------------- */

/* The first large block reserves a range of addresses, from which slots of powers of two are cut:
 * a later limit on addresses does not apply to it. */
enum { SLOT_BITS = 20, RANGE_BITS = sizeof(size_t) > 4 ? 38 : 28, KINDS = RANGE_BITS - SLOT_BITS };
enum { SLOTS = 1 << KINDS };
MUTEX(range_lock);
static struct {
    char *begin;           /* NULL before the first large block */
    size_t used;           /* slots of the smallest kind */
    uint32_t first[KINDS]; /* the first free one of each kind, + 1; 0: none */
    uint32_t next[SLOTS];
} range;

static char *begin_of_range(void)
{
    LOCK(range_lock);
    return range.begin;
}
/* True if the range is reserved. */
static bool reserve_range(void)
{
    if (range.begin == NULL) {
        void *map = mmap(NULL, (size_t)1 << RANGE_BITS, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        range.begin = map != MAP_FAILED ? map : NULL;
    }
    return range.begin != NULL;
}

/* The smallest kind of slot with room for the block and its header; KINDS: none. */
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
    bool fits = size >= (size_t)1 << SLOT_BITS && size <= (size_t)1 << (RANGE_BITS - 1);
    unsigned kind = fits ? kind_of(size) : KINDS;
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

DERIVE(ranged);
SOUND(reserves_its_addresses, FUNCTIONS(ranged));
