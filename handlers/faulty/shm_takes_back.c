/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant of shared memory: it gives a freed block's memory back although others have it mapped.
 */
#define _GNU_SOURCE
#include "named.h"

NEP49_EXPORT const char kills_shm_takes_back[] = "claim.shm";

static int named_open(void)
{
    return memfd_create("nep49-faulty", MFD_CLOEXEC);
}

static void named_release(struct nep49_shm_block *block)
{
    size_t length = block->length;
    madvise(block, length, MADV_REMOVE);
    munmap(block, length);
}
