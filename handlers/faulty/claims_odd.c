/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that claims an alignment that is none.
 */
#include "base.h"

NEP49_EXPORT const char kills_claims_odd[] = "abi.claims-known";

NEP49_EXPORT const char nep49_claims[] = "alignment=48";

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "claims_odd", .version = 1, .allocator = {BASE_FUNCTIONS}};
