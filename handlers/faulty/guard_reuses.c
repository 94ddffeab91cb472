/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of a guard: freed blocks are unmapped, and the kernel gives their addresses to the
 * next one that asks, so that a use after free goes unnoticed.
 */
#include "guarded.h"

NEP49_EXPORT const char kills_guard_reuses[] = "claim.guard";

static void reusing_free(void *ctx, void *block, size_t size)
{
    (void)ctx, (void)size;
    int saved = errno;
    if (block != NULL) {
        struct guarded header = *guarded_header(block);
        munmap(header.map, header.length);
    }
    errno = saved;
}

GUARDED_REST(guarded_malloc, reusing_free, "guard=after");
