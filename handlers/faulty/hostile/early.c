/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler, but for the act of acts.h that its constructor does.
 */
#include "acts.h"

#include "../base.h"

__attribute__((constructor)) static void load(void)
{
    do_act();
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "early", .version = 1, .allocator = {BASE_FUNCTIONS}};
