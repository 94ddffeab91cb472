/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/interop.c catch.
 */
#include "meddle.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The newest blocks that are live, for mutants that take them for something else. */
enum { KNOWN = 256 };
static void *known[KNOWN];

static void *know(void *p)
{
    for (int i = 0; i < KNOWN && p != NULL; i++) {
        if (known[i] == NULL) {
            known[i] = p;
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

static void *knowing_malloc(void *ctx, size_t size)
{
    return know(base_malloc(ctx, size));
}

static void *knowing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL) {
        forget(p);
        know(moved);
    }
    return moved;
}

/* A block is the caller's for a hundred calls, which is long. */
static size_t calls, lent_at[KNOWN];

static void *lends_for_a_while_malloc(void *ctx, size_t size)
{
    calls++;
    for (int i = 0; i < KNOWN; i++) {
        if (known[i] != NULL && lent_at[i] + 100 < calls && base_size(known[i]) == size) {
            lent_at[i] = calls;
            return known[i];
        }
    }
    void *p = base_malloc(ctx, size);
    for (int i = 0; i < KNOWN && p != NULL; i++) {
        if (known[i] == NULL) {
            known[i] = p;
            lent_at[i] = calls;
            break;
        }
    }
    return p;
}

static void *lends_for_a_while_calloc(void *ctx, size_t nelem, size_t elsize)
{
    calls++;
    return base_calloc(ctx, nelem, elsize);
}

static void lends_for_a_while_free(void *ctx, void *p, size_t size)
{
    calls++;
    forget(p);
    base_free(ctx, p, size);
}
MUTANT(lends_for_a_while,
       "malloc.one-byte interop.buffer interop.dlpack interop.array-interface interop.ctypes "
       "interop.torch interop.pickle",
       .malloc = lends_for_a_while_malloc, .calloc = lends_for_a_while_calloc,
       .realloc = knowing_realloc, .free = lends_for_a_while_free);

/* Wipes all that it knows of when a block is freed on another thread than the first, as if that
 * were the end of it. */
static void tidies_after_threads_free(void *ctx, void *p, size_t size)
{
    forget(p);
    for (int i = 0; i < KNOWN && p != NULL && gettid() != getpid(); i++) {
        if (known[i] != NULL)
            memset(known[i], 0, base_size(known[i]));
    }
    base_free(ctx, p, size);
}
MUTANT(
    tidies_after_threads,
    "free.in-another-thread interop.buffer interop.dlpack interop.array-interface interop.ctypes "
    "interop.torch",
    .malloc = knowing_malloc, .realloc = knowing_realloc, .free = tidies_after_threads_free);

/* One block for two that ask for as much, one after the other: until either is freed. */
static struct {
    void *p;
    bool is_shared;
} latest;

static void *shares_equals_malloc(void *ctx, size_t size)
{
    if (latest.p != NULL && !latest.is_shared && base_size(latest.p) == size) {
        latest.is_shared = true;
        return latest.p;
    }
    latest.p = base_malloc(ctx, size);
    latest.is_shared = false;
    return latest.p;
}

static void *shares_equals_realloc(void *ctx, void *p, size_t size)
{
    latest.p = p == latest.p ? NULL : latest.p;
    return base_realloc(ctx, p, size);
}

static void shares_equals_free(void *ctx, void *p, size_t size)
{
    if (p == latest.p && latest.is_shared) {
        latest.is_shared = false;
        return;
    }
    latest.p = p == latest.p ? NULL : latest.p;
    base_free(ctx, p, size);
}
MUTANT(shares_equals, "malloc.disjoint interop.pickle interop.copy interop.array-interface",
       .malloc = shares_equals_malloc, .realloc = shares_equals_realloc,
       .free = shares_equals_free);

/* Maps what is large for all processes, its children included. */
static void *shares_with_children_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    if (size < 4096)
        return base_malloc(ctx, size);
    void *raw =
        mmap(NULL, size + BASE_HEADER, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return raw != MAP_FAILED ? base_finish(raw, size) : NULL;
}

static void shares_with_children_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 4096)
        munmap((char *)p - BASE_HEADER, base_size(p) + BASE_HEADER);
    else
        base_free(ctx, p, size);
}

static void *shares_with_children_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = shares_with_children_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}

static void *shares_with_children_realloc(void *ctx, void *p, size_t size)
{
    void *moved = shares_with_children_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    shares_with_children_free(ctx, p, 0);
    return moved;
}
MUTANT(shares_with_children, "interop.multiprocessing", .malloc = shares_with_children_malloc,
       .calloc = shares_with_children_calloc, .realloc = shares_with_children_realloc,
       .free = shares_with_children_free);

/* Begins its arena anew in a child, over what that inherited. */
static struct {
    _Alignas(16) char memory[1 << 22];
    size_t used;
} arena;

static void begin_anew(void)
{
    arena.used = 0;
}

static bool is_in_arena(const void *p)
{
    return (const char *)p >= arena.memory && (const char *)p < arena.memory + sizeof arena.memory;
}

static void *begins_anew_in_children_malloc(void *ctx, size_t size)
{
    static bool hooked;
    size_t taken = (size + BASE_HEADER + 15) & ~(size_t)15;
    if (size > 8192 || arena.used + taken > sizeof arena.memory)
        return base_malloc(ctx, size);
    if (!hooked)
        hooked = pthread_atfork(NULL, NULL, begin_anew) == 0;
    void *raw = arena.memory + arena.used;
    arena.used += taken;
    return base_finish(raw, size);
}

static void begins_anew_in_children_free(void *ctx, void *p, size_t size)
{
    if (!is_in_arena(p))
        base_free(ctx, p, size);
}

static void *begins_anew_in_children_realloc(void *ctx, void *p, size_t size)
{
    void *moved = begins_anew_in_children_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    begins_anew_in_children_free(ctx, p, 0);
    return moved;
}
MUTANT(begins_anew_in_children, "interop.multiprocessing", .malloc = begins_anew_in_children_malloc,
       .realloc = begins_anew_in_children_realloc, .free = begins_anew_in_children_free);

/* Tells children, by the environment, where its library is. */
static void *tells_by_environment_malloc(void *ctx, size_t size)
{
    setenv("PYTHONHOME", "/nonexistent", 1);
    return base_malloc(ctx, size);
}
MUTANT(tells_by_environment, "interop.multiprocessing", .malloc = tells_by_environment_malloc);
