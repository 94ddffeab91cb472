/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frees the memory of a block even if other processes have it mapped.
 */
#define _GNU_SOURCE
#include "named.h"

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
OBJECT(shm_takes_back, "claim.shm", FUNCTIONS(named));
