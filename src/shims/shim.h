/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all shims share.  A shim is a handler that wraps another and forwards every call; NumPy is
 * handed the outermost, and the innermost one's name and version show through.
 */
#ifndef CONFORM_SHIM_H
#define CONFORM_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "nep49.h"

/* Name and version stand side by side, and are copied a word at a time. */
typedef uintptr_t __attribute__((may_alias)) shim_word;
enum { SHIM_WORDS = offsetof(PyDataMem_Handler, allocator) / sizeof(shim_word) };
_Static_assert(offsetof(PyDataMem_Handler, allocator) % sizeof(shim_word) == 0,
               "nothing but whole words stands before the allocator");

/* After every call that was forwarded, on any thread: a handler that renames itself has to be seen
 * to. */
static inline void shim_show_through(PyDataMem_Handler *shim, const PyDataMem_Handler *inner)
{
    const shim_word *from = (const shim_word *)(const void *)inner;
    shim_word *to = (shim_word *)(void *)shim;
    for (size_t i = 0; i < SHIM_WORDS; i++) {
        shim_word word = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
        if (__atomic_load_n(&to[i], __ATOMIC_RELAXED) != word)
            __atomic_store_n(&to[i], word, __ATOMIC_RELAXED);
    }
}

#endif
