/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49.h - how a shared object hands a NumPy data-memory handler over.
 *
 * This is the only header that a handler needs.  There is nothing to link, and
 * neither Python's nor NumPy's headers have to be there:
 *
 *     cc -shared -fPIC -I <where this file is> -o libmine.so mine.c
 *     conform --handler ./libmine.so
 *
 * The object exports exactly one of
 *
 *     NEP49_EXPORT PyDataMem_Handler nep49_handler = { ... };
 *     NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why) { ... }
 *
 * and, if it promises anything beyond the contract, the promises, as words with
 * spaces between them, each of which is then tested:
 *
 *     NEP49_EXPORT const char nep49_claims[] = "alignment=64";
 *
 * An array that the getter fills in is fine as well (leave out the const): it is
 * read after nep49_get_handler has returned.
 *
 *     claim          meaning
 *     alignment=N    every block, whatever its size and whichever function made it,
 *                    is aligned to N bytes; N is a power of two
 *     guard=after    a write past the end of a block of a multiple of 16 bytes, and any use of
 *                    a block that was just freed, ends in SIGSEGV; guard=before: before its start
 *     hugepage=N     a block of N bytes or more lies in huge pages, as far as whole ones fit
 *                    into it, where the kernel grants any
 *     numa=P@N       the pages of a block of N bytes or more are placed by policy P, which is
 *                    local, interleave:NODES or bind:NODES, as in bind:0,2-3@65536
 *     pinned=N       a block of N bytes or more is page-locked memory that CUDA knows
 *     shm=N          a block of N bytes or more can be mapped by another process, by the name
 *                    that nep49_shm_name gives it (nep49_shm.h)
 */
#ifndef NEP49_H
#define NEP49_H

#include <stddef.h>
#include <stdint.h>

/* The two structs are NumPy's (numpy/ndarraytypes.h, since 1.22, unchanged in 2.x).
 * Whoever includes NumPy's headers as well includes them before this one: where the compiler would
 * find them, and they have not come, they may still, and then everything would be there twice. */
#if !defined(NUMPY_CORE_INCLUDE_NUMPY_NDARRAYTYPES_H_) && !defined(NEP49_WITHOUT_NUMPY)
#ifdef __has_include
#if __has_include(<numpy/ndarraytypes.h>)
#define NEP49_TOO_EARLY
#error                                                                                             \
    "include NumPy's headers before nep49.h; or, in a file without them, define NEP49_WITHOUT_NUMPY"
#endif
#endif
#endif

#if !defined(NUMPY_CORE_INCLUDE_NUMPY_NDARRAYTYPES_H_) && !defined(NEP49_TOO_EARLY)

typedef struct {
    void *ctx; /* handed to each of the four, unchanged */

    /* size bytes, or NULL.  NumPy asks for at least 1; 0 is possible (NumPy 1.24). */
    void *(*malloc)(void *ctx, size_t size);

    /* nelem * elsize bytes, all zero, or NULL, also where the product does not fit. */
    void *(*calloc)(void *ctx, size_t nelem, size_t elsize);

    /* Moves a block to new_size bytes, keeping the first min(old, new_size).
     * NULL means that it could not, and that ptr is still good as it was.
     * Called without the GIL while text is parsed.  ptr may be NULL. */
    void *(*realloc)(void *ctx, void *ptr, size_t new_size);

    /* ptr may be NULL whatever size says.  size is what NumPy believes the block to
     * hold, and NumPy is now and then wrong: do not rely on it. */
    void (*free)(void *ctx, void *ptr, size_t size);
} PyDataMemAllocator;

typedef struct {
    char name[127];  /* UTF-8, with a NUL among the 127 */
    uint8_t version; /* 1 */
    PyDataMemAllocator allocator;
} PyDataMem_Handler;

#endif

#ifdef __cplusplus
#define NEP49_EXPORT extern "C" __attribute__((visibility("default")))
#else
#define NEP49_EXPORT __attribute__((visibility("default")))
#endif

/* Figures that a handler keeps of itself, where it does; one that it does not keep is SIZE_MAX. */
typedef struct {
    size_t live_blocks, live_bytes; /* made and not freed yet; bytes as they were asked for */
    size_t peak_bytes;              /* the most that live_bytes ever was */
    size_t made;                    /* blocks, so far; one that realloc gave counts once more */
} nep49_statistics;

#ifndef NEP49_TOO_EARLY

/* The handler, the same at every call; it stays where it is for as long as the
 * process lives.  NULL means that it cannot work on this machine or with these
 * settings, and *why then points to one line that says why (a constant, or
 * memory that stays).  Called with the GIL held. */
NEP49_EXPORT PyDataMem_Handler *nep49_get_handler(const char **why);

/* Optional: what they are at the moment, or were a moment ago where other threads are at it. Called
 * at any time once the handler is there, with the GIL held. */
NEP49_EXPORT void nep49_get_statistics(nep49_statistics *figures);

#endif

#endif
