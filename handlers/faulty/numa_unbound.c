/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that claims to bind large blocks to a memory node, and leaves it to the kernel.
 */
#include "base.h"

NEP49_EXPORT const char kills_numa_unbound[] = "claim.numa";
NEP49_EXPORT const char nep49_claims[] = "numa=bind:0@65536";

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "numa_unbound",
    .version = 1,
    .allocator = {BASE_FUNCTIONS},
};
