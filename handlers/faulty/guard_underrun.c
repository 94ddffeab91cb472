/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of a guard: it claims the page before each block, and has it behind.
 */
#include "guarded.h"

NEP49_EXPORT const char kills_guard_underrun[] = "claim.guard";

GUARDED_REST(guarded_malloc, guarded_free, "guard=before");
