/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims a page without access before each block, but has it after the block.
 */
#include "guarded.h"

CLAIMS("guard=before");
GUARDED(guard_underrun, guarded);
