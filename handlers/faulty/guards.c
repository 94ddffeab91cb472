/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim a page without access after each block.
 */
#include "guarded.h"

CLAIMS("guard=after");

/* Leaves a gap of 16 bytes between a block of whole pages and the page without access. */
FUNCTION_RETURNS(malloc, gap, guarded_new(size, size > 0 && size % PAGE == 0 ? 16 : 0));
#define gap_free guarded_free
GUARDED(guard_gap, gap);

/* Returns small blocks without a guard if the process has too many mappings. */
FUNCTION(malloc, optional)
{
    void *p = guarded_malloc(ctx, size);
    if (p != NULL || size > 1 << 16)
        return p;
    size_t length = (size + sizeof(struct guarded) + PAGE - 1) / PAGE * PAGE;
    struct guarded *map = (void *)map_pages(length);
    if (map == MAP_FAILED)
        return NULL;
    *map = (struct guarded){.map = (char *)map, .length = length, .size = size};
    return map + 1;
}
#define optional_free guarded_free
GUARDED(guard_optional, optional);

/* Unmaps freed blocks, so that the kernel uses their addresses again. */
#define reusing_malloc guarded_malloc
FUNCTION(free, reusing)
{
    int saved = errno;
    if (p != NULL)
        munmap(guarded_header(p)->map, guarded_header(p)->length);
    errno = saved;
}
GUARDED(guard_reuses, reusing);
