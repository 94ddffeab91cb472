/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler, but for the act of acts.h that it does at the first calloc.
 */
#include "acts.h"

#include "../base.h"

static void *hostile_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static bool done;
    if (!done) {
        done = true;
        do_act();
    }
    return base_calloc(ctx, nelem, elsize);
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "late", .version = 1, .allocator = {BASE_FUNCTIONS, .calloc = hostile_calloc}};
