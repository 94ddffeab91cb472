/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Unmaps freed blocks, so that the kernel uses their addresses again.
 */
#include "guarded.h"

#define reusing_malloc guarded_malloc
FUNCTION(free, reusing)
{
    int saved = errno;
    if (p != NULL)
        munmap(guarded_header(p)->map, guarded_header(p)->length);
    errno = saved;
}
DERIVE_CALLOC(reusing);
DERIVE_REALLOC(reusing, guarded_size);
CLAIMS("guard=after");
OBJECT(guard_reuses, "claim.guard", FUNCTIONS(reusing));
