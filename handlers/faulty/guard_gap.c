/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Leaves a gap of 16 bytes between a block of whole pages and the page without access.
 */
#include "guarded.h"

FUNCTION_RETURNS(malloc, gap, guarded_new(size, size > 0 && size % PAGE == 0 ? 16 : 0));
#define gap_free guarded_free
DERIVE_CALLOC(gap);
DERIVE_REALLOC(gap, guarded_size);
CLAIMS("guard=after");
OBJECT(guard_gap, "claim.guard", FUNCTIONS(gap));
