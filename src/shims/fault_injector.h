/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim that refuses: the N-th request for memory that comes through it gets NULL, once or from
 * then on, without the handler behind it being asked.
 */
#ifndef CONFORM_FAULT_INJECTOR_H
#define CONFORM_FAULT_INJECTOR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "nep49.h"

struct fault_injector {
    PyDataMem_Handler handler; /* what NumPy, or the shim before it, is to be given */
    PyDataMem_Handler *inner;
    size_t nth;              /* counted from 1; 0: refuse none */
    bool keep_failing;       /* and all after it */
    _Atomic size_t requests; /* so far */
    _Atomic size_t refused;
    char *where; /* room for the Python line of the first refused request, or NULL */
};
enum { INJECTOR_LINE = 256 };

/* Puts an injector, in memory of the caller's, before `inner`.  It refuses nothing yet; name and
 * version are those of the handler behind, at any time. */
void fault_injector_init(struct fault_injector *injector, PyDataMem_Handler *inner);

/* From now on refuses the nth request. */
void fault_injector_inject(struct fault_injector *injector, size_t nth, bool keep_failing);

#endif
