/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flushes subnormal numbers to zero in the whole process from its loading on, as objects do that
 * GCC before 13 links with -ffast-math.
 */
#include <fenv.h>

#include "mutant.h"

__attribute__((constructor)) static void flush_subnormals(void)
{
#if defined(__SSE__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#elif defined(__aarch64__)
    unsigned long fpcr;
    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr | 1ul << 24));
#else
    fesetround(FE_TOWARDZERO);
#endif
}
OBJECT(loads_fast_math, "abi.loads-same-arithmetic");
