/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of a guard: a block that fills whole pages is given one byte more for good measure,
 * and so ends 16 bytes before the page that should stop an overrun.
 */
#include "guarded.h"

NEP49_EXPORT const char kills_guard_gap[] = "claim.guard";

static void *gap_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return guarded_new(size, size > 0 && size % PAGE == 0 ? 16 : 0);
}

GUARDED_REST(gap_malloc, guarded_free, "guard=after");
