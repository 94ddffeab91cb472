/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Returns small blocks without a guard if the process has too many mappings.
 */
#include "guarded.h"

FUNCTION(malloc, optional)
{
    void *p = guarded_malloc(ctx, size);
    if (p != NULL || size > 1 << 16)
        return p;
    size_t length = (size + sizeof(struct guarded) + PAGE - 1) / PAGE * PAGE;
    struct guarded *map =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    *map = (struct guarded){.map = (char *)map, .length = length, .size = size};
    return map + 1;
}
#define optional_free guarded_free
DERIVE_CALLOC(optional);
DERIVE_REALLOC(optional, guarded_size);
CLAIMS("guard=after");
OBJECT(guard_optional, "claim.guard", FUNCTIONS(optional));
