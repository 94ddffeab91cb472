/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How this thread computes with floating point: what a handler must leave as it is.
 */
#ifndef CONFORM_FLOAT_STATE_H
#define CONFORM_FLOAT_STATE_H

#include <fenv.h>
#ifdef __SSE__
#include <xmmintrin.h>
#endif

/* Rounding mode, traps, and how denormal numbers are taken; not the flags of past exceptions.
 * On x86 it is one instruction, where fegetround alone takes 10 ns. */
static inline unsigned float_state(void)
{
#ifdef __SSE__
    return _mm_getcsr() & ~0x3fu;
#else
    return (unsigned)fegetround();
#endif
}

#endif
