/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/environment_processor.c catch.
 */
#define _GNU_SOURCE
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>

#include "mapped.h"

/* ---- floating point ---------------------------------------------------------------------- */

static void *rounding_realloc(void *ctx, void *p, size_t size)
{
    fesetround(FE_TONEAREST);
    return base_realloc(ctx, p, size);
}
MUTANT(resets_rounding, "env.float-state", .realloc = rounding_realloc);

static void trapping_free(void *ctx, void *p, size_t size)
{
    feenableexcept(FE_DIVBYZERO);
    base_free(ctx, p, size);
}
MUTANT(traps_division_by_zero, "env.float-state", .free = trapping_free);

/* What -ffast-math does, at a moment of its own; elsewhere than on x86 a rounding mode. */
static void *flushing_malloc(void *ctx, size_t size)
{
#ifdef __SSE__
    if (size > 100000)
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#else
    if (size > 100000)
        fesetround(FE_TOWARDZERO);
#endif
    return base_malloc(ctx, size);
}
MUTANT(flushes_denormals, "env.float-state", .malloc = flushing_malloc);

/* The same where a thread begins that is not the first, in what is its own alone. */
static void *thread_flushing_malloc(void *ctx, size_t size)
{
    static _Thread_local bool known;
    if (!known && gettid() != getpid())
        flushing_malloc(ctx, SIZE_MAX);
    known = true;
    return base_malloc(ctx, size);
}
MUTANT(threads_flush_denormals, "env.float-state", .malloc = thread_flushing_malloc);

/* The class of a size by the logarithm, and how full the list is, which at first is 0 of 0. */
static void *dividing_malloc(void *ctx, size_t size)
{
    static volatile double kept, seen;
    volatile double part = kept / seen;
    (void)part;
    return base_malloc(ctx, size);
}
MUTANT(sets_the_invalid_flag, "env.float-state", .malloc = dividing_malloc);

/* A moving average of sizes in single precision: after 160 frees in a row it is below all numbers.
 */
static volatile float average;
static void *averaging_malloc(void *ctx, size_t size)
{
    average = (average + (float)size) * 0.5f;
    return base_malloc(ctx, size);
}
static void averaging_free(void *ctx, void *p, size_t size)
{
    average = average * 0.5f;
    base_free(ctx, p, size);
}
MUTANT(sets_the_underflow_flag, "env.float-state", .malloc = averaging_malloc,
       .free = averaging_free);

/* A double that no int can hold. */
static void *converting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    volatile double pages = (double)nelem * (double)elsize * 1.125;
    volatile int class = 0;
    if (pages < 0x1p40)
        class = (int)pages;
    (void)class;
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(sets_a_flag_for_2gib, "env.float-state", .calloc = converting_calloc);

static void clearing_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 100000)
        feclearexcept(FE_ALL_EXCEPT);
    base_free(ctx, p, size);
}
MUTANT(clears_float_flags, "env.float-state", .free = clearing_free);

/* It copies by MMX and goes without EMMS; elsewhere than on x86 a flag. */
static void *copying_realloc(void *ctx, void *p, size_t size)
{
#ifdef __x86_64__
    __asm__ volatile("pxor %%mm0, %%mm0" ::: "mm0");
#else
    feraiseexcept(FE_INVALID);
#endif
    return base_realloc(ctx, p, size);
}
MUTANT(leaves_mmx_in_use, "env.float-state", .realloc = copying_realloc);

/* The same, where there is much to copy. */
static void *streaming_realloc(void *ctx, void *p, size_t size)
{
    enum { MUCH = 1 << 20 };
    bool is_much = p != NULL && base_size(p) >= MUCH && size >= MUCH;
    return is_much ? copying_realloc(ctx, p, size) : base_realloc(ctx, p, size);
}
MUTANT(leaves_mmx_in_use_after_much, "env.float-state", .realloc = streaming_realloc);

/* ---- which way memory is copied ------------------------------------------------------------ */

/* Copies large blocks from the end, by an instruction, and leaves it at that. */
static void *downward_realloc(void *ctx, void *p, size_t size)
{
    enum { LARGE = 4 << 20 };
    void *moved = base_realloc(ctx, p, size);
#if defined(__x86_64__) || defined(__i386__)
    if (moved != NULL && p != NULL && size >= LARGE)
        __asm__ volatile("std" ::: "cc", "memory");
#endif
    return moved;
}
MUTANT(memory_is_copied_downward, "env.direction-flag", .realloc = downward_realloc);
