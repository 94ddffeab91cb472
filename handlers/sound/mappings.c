/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that ask the kernel for each block.
 */
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

static void *guard_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return map_block(size, true);
}

static void *guard_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : map_block(size, true);
}

static void *guard_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return remap_block(p, size, true);
}

static void mapped_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    unmap_block(p);
}
SOUND(guard_pages, .malloc = guard_malloc, .calloc = guard_calloc, .realloc = guard_realloc,
      .free = mapped_free);

/* One mapping per block: the kernel's limit on mappings is met long before 65536 of them. */
static void *mapped_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return map_block(size, false);
}

static void *mapped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : map_block(size, false);
}

static void *mapped_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return remap_block(p, size, false);
}
SOUND(one_mapping_each, .malloc = mapped_malloc, .calloc = mapped_calloc,
      .realloc = mapped_realloc, .free = mapped_free);
