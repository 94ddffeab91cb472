/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that claims page-locked memory and gives libc's.
 */
#include "base.h"

NEP49_EXPORT const char kills_pinned_pageable[] = "claim.pinned";
NEP49_EXPORT const char nep49_claims[] = "pinned=1";

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "pinned_pageable",
    .version = 1,
    .allocator = {BASE_FUNCTIONS},
};
