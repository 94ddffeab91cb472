/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that claims what the suite does not know: a sound handler otherwise, aligned as it says.
 */
#include "base.h"

NEP49_EXPORT const char kills_claims_unknown[] = "abi.claims-known";

NEP49_EXPORT const char nep49_claims[] = "alignment=16 wait-free";

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "claims_unknown", .version = 1, .allocator = {BASE_FUNCTIONS}};
