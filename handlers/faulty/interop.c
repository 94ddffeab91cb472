/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/interop.c find.
 */
#define _GNU_SOURCE
#include <pthread.h>
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
FUNCTION(realloc, knowing)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL) {
        forget(p);
        know(moved);
    }
    return moved;
}

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
FUNCTION(free, lending)
{
    calls++;
    forget(p);
    base_free(ctx, p, size);
}
MUTANT(lends_for_a_while,
       "malloc.one-byte interop.buffer interop.dlpack interop.array-interface interop.ctypes "
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
static struct {
    void *p;
    bool is_shared;
} latest;
FUNCTION(malloc, sharing)
{
    if (latest.p != NULL && !latest.is_shared && base_size(latest.p) == size) {
        latest.is_shared = true;
        return latest.p;
    }
    latest.p = base_malloc(ctx, size);
    latest.is_shared = false;
    return latest.p;
}
HOOK_BEFORE(realloc, sharing, true, latest.p = p == latest.p ? NULL : latest.p);
FUNCTION(free, sharing)
{
    if (p == latest.p && latest.is_shared) {
        latest.is_shared = false;
        return;
    }
    latest.p = p == latest.p ? NULL : latest.p;
    base_free(ctx, p, size);
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
static struct {
    _Alignas(16) char memory[1 << 22];
    size_t used;
} arena;
static void empty_arena(void)
{
    arena.used = 0;
}
FUNCTION(malloc, arena)
{
    static bool hooked;
    size_t taken = (size + BASE_HEADER + 15) & ~(size_t)15;
    if (size > 8192 || arena.used + taken > sizeof arena.memory)
        return base_malloc(ctx, size);
    if (!hooked)
        hooked = pthread_atfork(NULL, NULL, empty_arena) == 0;
    void *raw = arena.memory + arena.used;
    arena.used += taken;
    return base_finish(raw, size);
}
FUNCTION_FREES(arena, (char *)p < arena.memory || (char *)p >= arena.memory + sizeof arena.memory);
DERIVE_REALLOC(arena, base_size);
MUTANT(begins_anew_in_children, "interop.multiprocessing", FUNCTIONS(arena, malloc, realloc, free));

BEFORE(malloc, tells_by_environment, "interop.multiprocessing", true,
       setenv("PYTHONHOME", "/nonexistent", 1));
