/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/interop.c find.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "mutant.h"

/* The newest live blocks, and the number of the call that returned each last. */
enum { KNOWN = 256 };
static void *known[KNOWN];
static size_t calls, returned_at[KNOWN];

static void *know(void *p)
{
    for (int i = 0; i < KNOWN && p != NULL; i++) {
        if (known[i] == NULL) {
            known[i] = p;
            returned_at[i] = calls;
            break;
        }
    }
    return p;
}
static void forget(const void *p)
{
    for (int i = 0; i < KNOWN; i++)
        known[i] = known[i] == p ? NULL : known[i];
}
HOOK_AFTER(realloc, knowing, made != NULL, forget(p); know(made));

/* malloc returns a live block again after a hundred calls. */
FUNCTION(malloc, lending)
{
    calls++;
    for (int i = 0; i < KNOWN; i++) {
        if (known[i] != NULL && returned_at[i] + 100 < calls && base_size(known[i]) == size) {
            returned_at[i] = calls;
            return known[i];
        }
    }
    return know(base_malloc(ctx, size));
}
HOOK_BEFORE(calloc, lending, true, calls++);
HOOK_BEFORE(free, lending, true, calls++; forget(p));
MUTANT(lends_for_a_while,
       "malloc.disjoint interop.buffer interop.dlpack interop.array-interface interop.ctypes "
       "interop.torch interop.pickle",
       FUNCTIONS(lending, malloc, calloc, free), FUNCTIONS(knowing, realloc));

/* A free in a thread other than the first one clears all known blocks. */
FUNCTION_RETURNS(malloc, knowing, know(base_malloc(ctx, size)));
FUNCTION(free, knowing)
{
    forget(p);
    for (int i = 0; i < KNOWN && p != NULL && gettid() != getpid(); i++) {
        if (known[i] != NULL)
            memset(known[i], 0, base_size(known[i]));
    }
    base_free(ctx, p, size);
}
MUTANT(tidies_after_threads,
       "free.in-another-thread interop.buffer interop.dlpack interop.array-interface "
       "interop.ctypes interop.torch",
       FUNCTIONS(knowing, malloc, realloc, free));

/* Two consecutive calls with the same size return the same block. */
static void *latest;
static bool is_shared;
FUNCTION(malloc, sharing)
{
    is_shared = latest != NULL && !is_shared && base_size(latest) == size;
    return is_shared ? latest : (latest = base_malloc(ctx, size));
}
HOOK_BEFORE(realloc, sharing, p == latest, latest = NULL);
FUNCTION(free, sharing)
{
    bool stays = p == latest && is_shared;
    is_shared = is_shared && !stays;
    latest = p == latest && !stays ? NULL : latest;
    base_free(ctx, stays ? NULL : p, size);
}
MUTANT(shares_equals, "malloc.disjoint interop.pickle interop.copy interop.array-interface",
       FUNCTIONS(sharing, malloc, realloc, free));

/* Child processes share the memory of large blocks. */
FUNCTION(malloc, shared)
{
    if (size < 4096 || size > PTRDIFF_MAX - BASE_HEADER)
        return base_malloc(ctx, size);
    void *raw =
        mmap(NULL, size + BASE_HEADER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return raw != MAP_FAILED ? base_finish(raw, size) : NULL;
}
FUNCTION(free, shared)
{
    if (p != NULL && base_size(p) >= 4096)
        munmap((char *)p - BASE_HEADER, base_size(p) + BASE_HEADER);
    else
        base_free(ctx, p, size);
}
MUTANT_DERIVED(shares_with_children, "interop.multiprocessing", shared);

/* A child process overwrites the blocks that it inherited. */
static _Alignas(16) char arena[4 * MIB];
static size_t arena_used;
static void empty_arena(void)
{
    arena_used = 0;
}
FUNCTION(malloc, arena)
{
    size_t taken = (size + BASE_HEADER + 15) & ~(size_t)15;
    if (size > 8192 || arena_used + taken > sizeof arena)
        return base_malloc(ctx, size);
    if (CALL(1))
        pthread_atfork(NULL, NULL, empty_arena);
    arena_used += taken;
    return base_finish(arena + arena_used - taken, size);
}
FUNCTION_FREES(arena, (uintptr_t)p - (uintptr_t)arena >= sizeof arena);
MUTANT_DERIVED(begins_anew_in_children, "interop.multiprocessing", arena);

BEFORE(malloc, tells_by_environment, "interop.multiprocessing", true,
       setenv("PYTHONHOME", "/nonexistent", 1));
