/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all shims share.  A shim is a handler that wraps another and forwards every call; NumPy is
 * handed the outermost, and the innermost one's name and version show through.
 */
#ifndef CONFORM_SHIM_H
#define CONFORM_SHIM_H

#include <string.h>

#include "nep49.h"

/* After every call that was forwarded: a handler that renames itself has to be seen to. */
static inline void shim_show_through(PyDataMem_Handler *shim, const PyDataMem_Handler *inner)
{
    if (memcmp(shim->name, inner->name, sizeof shim->name) != 0)
        memcpy(shim->name, inner->name, sizeof shim->name);
    if (shim->version != inner->version)
        shim->version = inner->version;
}

#endif
