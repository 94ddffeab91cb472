/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim an alignment of 64 bytes but do not always provide it.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "mutant.h"
#include "shifted.h"

CLAIMS("alignment=64");

enum { CLAIMED = 64 };

/* A block at `offset` bytes from a multiple of 64. */
static void *place(size_t size, size_t offset)
{
    char *raw = size <= PTRDIFF_MAX - 4 * CLAIMED ? malloc(size + 3 * CLAIMED) : NULL;
    if (raw == NULL)
        return NULL;
    char *p = (char *)(((uintptr_t)raw + CLAIMED) / CLAIMED * CLAIMED) + offset;
    struct shifted header = {size, (size_t)(p - raw)};
    memcpy(p - sizeof header, &header, sizeof header);
    return p;
}
FUNCTION_RETURNS(malloc, claimed, place(size, 0));
#define claimed_free aligned_free
DERIVE_CALLOC(claimed);
DERIVE_REALLOC(claimed, shifted_size);

/* Moves p to a block at `offset` bytes from a multiple of 64. */
static void *move_off(void *p, size_t size, size_t offset)
{
    size_t old = p != NULL ? shifted_size(p) : 0;
    return move_to(place(size, offset), p, min(old, size), aligned_free);
}

static bool is_child(void)
{
    static _Atomic pid_t first;
    pid_t none = 0, pid = getpid();
    return !atomic_compare_exchange_strong(&first, &none, pid) && none != pid;
}
#define UNALIGNED(function, defect, ...)                                                           \
    RETURNS_IN(claimed, function, defect, "malloc.claimed-alignment", __VA_ARGS__)
UNALIGNED(malloc, claimed_alignment_not_when_small, place(size, size < CLAIMED ? 16 : 0));
UNALIGNED(malloc, claimed_alignment_not_of_one_in_777,
          place(size, size > 100000 && EVERY(777) ? 32 : 0));
UNALIGNED(malloc, claimed_alignment_not_in_a_child, place(size, is_child() ? 32 : 0));
UNALIGNED(calloc, claimed_alignment_not_of_large_calloc,
          clear(place(product(nelem, elsize), nelem >= 128 * KIB ? 32 : 0), nelem *elsize));
UNALIGNED(realloc, claimed_alignment_not_when_growing,
          move_off(p, size, p != NULL && size > 2 * shifted_size(p) ? 48 : 0));
UNALIGNED(realloc, claimed_alignment_not_when_shrinking,
          move_off(p, size, p != NULL && size <= shifted_size(p) / 2 + 1 ? 16 : 0));
UNALIGNED(realloc, claimed_alignment_not_from_null, move_off(p, size, p == NULL ? 16 : 0));
UNALIGNED(realloc, claimed_alignment_not_of_huge_realloc,
          move_off(p, size, size >= 96 * MIB ? 16 : 0));
AFTER_IN(claimed, malloc, claimed_alignment_not_when_refused, "exhaustion.nth-request",
         made == NULL, made = place(size, 16));
