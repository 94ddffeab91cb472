/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants whose large blocks are mappings of which a few freed ones are kept.
 */
#include "mapped.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { KEPT = 4, LONGEST_KEPT = 8 * MIB };
MUTEX(lock);
static char *few[KEPT];

/* One whose mapping is as long as needed to twice as long, or NULL. */
static char *take_one(size_t size)
{
    size_t length = pages_for(size);
    LOCK(lock);
    for (size_t i = 0; is_for_mapping(size) && i < KEPT; i++) {
        char *found = few[i];
        if (found != NULL && mapped_length(found) >= length && mapped_length(found) / 2 <= length) {
            few[i] = NULL;
            return found;
        }
    }
    return NULL;
}

/* Keeps a mapping, and returns the one that has to go for it, or NULL. */
static char *put_one(char *block)
{
    if (mapped_length(block) > LONGEST_KEPT)
        return block;
    LOCK(lock);
    char *goes = few[KEPT - 1];
    memmove(few + 1, few, (KEPT - 1) * sizeof *few);
    few[0] = block;
    return goes;
}

FUNCTION_RETURNS(free, keeping, mapped_free(ctx, is_mapped(p) ? put_one(p) : p, size));

/* The unused end of a longer mapping is forgotten. */
FUNCTION(malloc, forgetful)
{
    char *p = take_one(size);
    return p != NULL ? mapped_finish(mapping_of(p), pages_for(size), size)
                     : mapped_malloc(ctx, size);
}
FUNCTION_RETURNS(realloc, forgetful, move_by(forgetful_malloc, keeping_free, p, size));
MUTANT(large_hit_forgets_the_end, "free.reclaims-bursts", FUNCTIONS(mapped),
       FUNCTIONS(forgetful, malloc, realloc), FUNCTIONS(keeping, free));

/* A system call for the mapping that has to go fails, and sets errno. */
FUNCTION(malloc, policed)
{
    char *p = take_one(size);
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, policed)
{
    char *goes = is_mapped(p) ? put_one(p) : p;
    if (is_mapped(goes))
        syscall(SYS_mbind, mapping_of(goes), mapped_length(goes), 99, NULL, 0, 0);
    mapped_free(ctx, goes, size);
}
DERIVE_REALLOC(policed, base_size);
MUTANT(large_eviction_spoils_errno, "free.keeps-errno", FUNCTIONS(mapped),
       FUNCTIONS(policed, malloc, realloc, free));

BEFORE_IN(mapped, free, large_free_from_32_mib_spoils_errno, "free.keeps-errno",
          is_mapped(p) && base_size(p) > 32 * MIB, errno = EINVAL);

/* If mremap fails, as many bytes are copied as the new block has. */
DEFECT_IN(mapped, realloc, large_slow_way_copies_what_is_wanted, "exhaustion.nth-request")
{
    void *moved = mapped_realloc(ctx, p, size);
    if (moved != NULL || !is_mapped(p) || !is_for_mapping(size) ||
        (moved = mapped_malloc(ctx, size)) == NULL)
        return moved;
    memcpy(moved, p, size);
    mapped_free(ctx, p, 0);
    return moved;
}
