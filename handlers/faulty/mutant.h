/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants: handlers with one deliberate defect each.  If a property finds none of the mutants that
 * name it, the property is not known to work.
 *
 * A pool is a sound allocator that mutants are made from: four functions pool_malloc, pool_calloc,
 * pool_realloc and pool_free.  The default pool is `base` (sound/base.h); mapped.h, shifted.h and
 * slots.h have others.  A mutant is a pool with some of its functions replaced.  Its name states
 * the defect; `kills` lists the ids of the properties that must find it.
 *
 *     DEFECT(realloc, name, kills) { body }            body replaces the pool's realloc
 *     FREES(name, kills, condition);                   free does nothing unless condition
 *     RETURNS(malloc, name, kills, expression);        the body is `return expression;`
 *     BEFORE(malloc, name, kills, condition, action);  runs action before malloc if condition
 *     AFTER(malloc, name, kills, condition, action);   the same after malloc, whose result is
 *                                                      `made` and may be changed
 *     KEEPS(name, kills, count);                       realloc moves each block and copies `count`
 *                                                      bytes of `old` to the `size` new ones
 *     MUTANT(name, kills, FUNCTIONS(prefix, malloc, free));
 *                                                      replaces several functions
 *     MUTANT_DERIVED(name, kills, pool);               pool_malloc, pool_free, and DERIVE(pool)
 *
 * FUNCTION(malloc, prefix) { body }, FUNCTION_RETURNS, FUNCTION_FREES, HOOK_BEFORE and HOOK_AFTER
 * define such a function in the same ways.  DEFECT_IN(pool, ...), BEFORE_IN and so on take another
 * pool.  In all of them the parameters of the function are called ctx, p, size, nelem and elsize.
 * EVERY(n) is true for each nth evaluation, CALL(n) for the nth only.
 *
 * WHEN(name, property, conditions) lists, separated by "; ", how conditions begin that the property
 * has to report as `when` (tests/characterize.py).
 *
 * ON_64_BITS("ids") lists the properties that find the mutant only if size_t has 64 bits.
 *
 * All mutants of the files under faulty_la_SOURCES are symbols of one object; tests/mutants.py runs
 * each:
 *
 *     ./conform --handler handlers/faulty/faulty.so:calloc_ignores_elsize
 */
#ifndef CONFORM_FAULTY_MUTANT_H
#define CONFORM_FAULTY_MUTANT_H

#include "sound/base.h"

#define MUTANT(defect, kills, ...)                                                                 \
    KILLS(defect, kills);                                                                          \
    NEP49_EXPORT PyDataMem_Handler defect = HANDLER(defect, base, __VA_ARGS__)
#define MUTANT_DERIVED(defect, kills, pool)                                                        \
    DERIVE(pool);                                                                                  \
    MUTANT(defect, kills, FUNCTIONS(pool))
#define WHEN(defect, property, conditions)                                                         \
    NEP49_EXPORT const char when_##defect[] = property ": " conditions
#define KILLS(defect, kills) NEP49_EXPORT const char kills_##defect[] = kills

/* A mutant that is the only handler of its object, because it makes claims or acts while loaded. */
#define OBJECT(defect, kills, ...)                                                                 \
    KILLS(defect, kills);                                                                          \
    NEP49_EXPORT PyDataMem_Handler nep49_handler = HANDLER(defect, base, __VA_ARGS__)
#define CLAIMS(claims) NEP49_EXPORT const char nep49_claims[] = claims

/* A mutant that a function returns, which is defined by the body that follows:
 * MUTANT_GETTER(name, kills) { body }; the parameter is called why. */
#define MUTANT_GETTER(defect, kills)                                                               \
    KILLS(defect, kills);                                                                          \
    NEP49_EXPORT PyDataMem_Handler *defect(const char **why);                                      \
    PyDataMem_Handler *defect(UNUSED const char **why)

#if SIZE_MAX > UINT32_MAX
#define ON_64_BITS(ids) ids
#else
#define ON_64_BITS(ids) " ! " ids /* tests/mutants.py skips what follows the mark */
#endif

#define DEFECT(...) DEFECT_IN(base, __VA_ARGS__)
#define DEFECT_IN(pool, function, defect, kills)                                                   \
    FUNCTION(function, defect);                                                                    \
    MUTANT(defect, kills, FUNCTIONS(pool), FUNCTIONS(defect, function));                           \
    FUNCTION(function, defect)

#define RETURNS(...) RETURNS_IN(base, __VA_ARGS__)
#define RETURNS_IN(pool, function, defect, kills, ...)                                             \
    FUNCTION_RETURNS(function, defect, __VA_ARGS__);                                               \
    MUTANT(defect, kills, FUNCTIONS(pool), FUNCTIONS(defect, function))

#define FREES(defect, kills, ...)                                                                  \
    FUNCTION_FREES(defect, __VA_ARGS__);                                                           \
    MUTANT(defect, kills, FUNCTIONS(defect, free))

#define BEFORE(...) BEFORE_IN(base, __VA_ARGS__)
#define BEFORE_IN(pool, function, defect, kills, condition, ...)                                   \
    HOOK_BEFORE_IN(pool, function, defect, condition, __VA_ARGS__);                                \
    MUTANT(defect, kills, FUNCTIONS(pool), FUNCTIONS(defect, function))
#define HOOK_BEFORE(...) HOOK_BEFORE_IN(base, __VA_ARGS__)
#define HOOK_BEFORE_IN(pool, function, prefix, condition, ...)                                     \
    FUNCTION(function, prefix)                                                                     \
    {                                                                                              \
        if (condition) {                                                                           \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        return pool##_##function(ARGUMENTS_##function);                                            \
    }                                                                                              \
    FUNCTION(function, prefix)

#define AFTER(...) AFTER_IN(base, __VA_ARGS__)
#define AFTER_IN(pool, function, defect, kills, condition, ...)                                    \
    HOOK_AFTER_IN(pool, function, defect, condition, __VA_ARGS__);                                 \
    MUTANT(defect, kills, FUNCTIONS(pool), FUNCTIONS(defect, function))
#define HOOK_AFTER(...) HOOK_AFTER_IN(base, __VA_ARGS__)
#define HOOK_AFTER_IN(pool, function, prefix, condition, ...)                                      \
    FUNCTION(function, prefix)                                                                     \
    {                                                                                              \
        MADE_BY_##function pool##_##function(ARGUMENTS_##function);                                \
        if (condition) {                                                                           \
            __VA_ARGS__;                                                                           \
        }                                                                                          \
        RETURN_##function;                                                                         \
    }                                                                                              \
    FUNCTION(function, prefix)

#define ARGUMENTS_malloc ctx, size
#define ARGUMENTS_calloc ctx, nelem, elsize
#define ARGUMENTS_realloc ctx, p, size
#define ARGUMENTS_free ctx, p, size
#define MADE_BY_malloc void *made =
#define MADE_BY_calloc void *made =
#define MADE_BY_realloc void *made =
#define MADE_BY_free
#define RETURN_malloc return made
#define RETURN_calloc return made
#define RETURN_realloc return made
#define RETURN_free return

#define KEEPS(...) KEEPS_IN(base, __VA_ARGS__)
#define KEEPS_IN(pool, defect, kills, count)                                                       \
    FUNCTION(realloc, defect)                                                                      \
    {                                                                                              \
        void *moved = pool##_malloc(ctx, size);                                                    \
        if (p == NULL || moved == NULL)                                                            \
            return moved;                                                                          \
        UNUSED size_t old = base_size(p);                                                          \
        memcpy(moved, p, count);                                                                   \
        pool##_free(ctx, p, 0);                                                                    \
        return moved;                                                                              \
    }                                                                                              \
    MUTANT(defect, kills, FUNCTIONS(pool), FUNCTIONS(defect, realloc))

/* LOCKED(function, prefix, pool, mutex): the pool's function under a mutex. */
#define LOCKED(function, prefix, pool, mutex)                                                      \
    FUNCTION(function, prefix)                                                                     \
    {                                                                                              \
        LOCK(mutex);                                                                               \
        return pool##_##function(ARGUMENTS_##function);                                            \
    }                                                                                              \
    FUNCTION(function, prefix)

/* The number of this evaluation, from 1 on. */
#define NTH                                                                                        \
    ({                                                                                             \
        static _Atomic size_t calls_;                                                              \
        ++calls_;                                                                                  \
    })
#define EVERY(n) (NTH % (n) == 0)
#define CALL(n) (NTH == (n))

/* The number of the calling thread among those that evaluated this, from 1 on. */
#define THREAD_NUMBER                                                                              \
    ({                                                                                             \
        static _Atomic size_t threads_;                                                            \
        static _Thread_local size_t number_;                                                       \
        if (number_ == 0)                                                                          \
            number_ = ++threads_;                                                                  \
        number_;                                                                                   \
    })

/* Copies the first `count` bytes of p to `moved` and frees p by `give`, unless one of them is NULL;
 * returns `moved`. */
UNUSED static void *move_to(void *moved, void *p, size_t count,
                            void (*give)(void *ctx, void *p, size_t size))
{
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, count);
        give(NULL, p, 0);
    }
    return moved;
}
#define move(ctx, p, size, count) move_to(base_malloc(ctx, size), p, count, base_free)

/* Clears the first `count` bytes of p unless that is NULL; returns p. */
UNUSED static void *clear(void *p, size_t count)
{
    return p != NULL ? memset(p, 0, count) : NULL;
}

/* The second word of a base block's header, which mutants use. */
UNUSED static inline size_t base_note(const void *p)
{
    size_t note;
    memcpy(&note, (const char *)p - sizeof note, sizeof note);
    return note;
}

/* Sets that word of p, unless p is NULL, and returns p. */
UNUSED static inline void *base_set_note(void *p, size_t note)
{
    if (p != NULL)
        memcpy((char *)p - sizeof note, &note, sizeof note);
    return p;
}

/* NOTES(prefix, note) defines prefix_malloc and prefix_calloc, which set that word of new blocks.
 */
#define NOTES(prefix, note)                                                                        \
    FUNCTION_RETURNS(malloc, prefix, base_set_note(base_malloc(ctx, size), note));                 \
    FUNCTION_RETURNS(calloc, prefix, base_set_note(base_calloc(ctx, nelem, elsize), note))

/* Stores p in a cache of one block, and returns the block that was there. */
UNUSED static inline void *swap(void **place, void *p)
{
    return __atomic_exchange_n(place, p, __ATOMIC_ACQ_REL);
}

#endif
