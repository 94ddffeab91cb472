/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant whose constructor prints: what it does before anybody has asked for a handler.
 */
#include <stdio.h>

#include "base.h"

NEP49_EXPORT const char kills_loads_aloud[] = "abi.loads-quietly";

__attribute__((constructor)) static void greet(void)
{
    printf("loads_aloud 1.0, at your service\n");
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "loads_aloud", .version = 1, .allocator = {BASE_FUNCTIONS}};
