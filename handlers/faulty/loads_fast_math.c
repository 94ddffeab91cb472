/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that takes subnormal numbers for zero from the moment it is loaded, in the whole
 * process: what an object does that was linked with -ffast-math by a GCC before 13.
 */
#include <fenv.h>

#include "base.h"

NEP49_EXPORT const char kills_loads_fast_math[] = "abi.loads-same-arithmetic";

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

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "loads_fast_math", .version = 1, .allocator = {BASE_FUNCTIONS}};
