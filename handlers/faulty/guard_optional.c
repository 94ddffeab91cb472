/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of a guard: where there are no more mappings to be had, a small block comes without.
 */
#include "guarded.h"

NEP49_EXPORT const char kills_guard_optional[] = "claim.guard";

static void *optional_malloc(void *ctx, size_t size)
{
    enum { SMALL = 1 << 16 };
    void *block = guarded_malloc(ctx, size);
    if (block != NULL || size > SMALL)
        return block;
    size_t length = (size + sizeof(struct guarded) + PAGE - 1) / PAGE * PAGE;
    struct guarded *map =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    *map = (struct guarded){.map = (char *)map, .length = length, .size = size};
    return map + 1;
}

GUARDED_REST(optional_malloc, guarded_free, "guard=after");
