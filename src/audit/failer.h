/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim that refuses: the N-th request for memory that comes through it gets NULL, once or from
 * then on, without the handler behind it being asked.
 */
#ifndef CONFORM_FAILER_H
#define CONFORM_FAILER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "nep49.h"

enum {
    REFUSE_MALLOC = 1,
    REFUSE_CALLOC = 2,
    REFUSE_REALLOC = 4,
    REFUSE_ANY = REFUSE_MALLOC | REFUSE_CALLOC | REFUSE_REALLOC,
};

struct failer {
    PyDataMem_Handler handler; /* what NumPy, or the shim before it, is to be given */
    PyDataMem_Handler *inner;
    size_t nth;   /* counted from 1; 0: refuse none */
    bool onwards; /* and all after it */
    unsigned functions;
    _Atomic size_t requests; /* so far, of those functions */
    _Atomic size_t refused;
};

/* Puts a failer, in memory of the caller's, before `inner`.  It refuses nothing yet; name and
 * version are those of the handler behind, at any time. */
void failer_init(struct failer *failer, PyDataMem_Handler *inner);

/* From now on refuses the nth request of those functions (REFUSE_...). */
void failer_refuse(struct failer *failer, size_t nth, bool onwards, unsigned functions);

#endif
