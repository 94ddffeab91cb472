/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handlers/nep49.h: its structs are NumPy's, member by member, so that an object built with one
 * header works with the other.
 */
#define PyDataMemAllocator nep49_Allocator
#define PyDataMem_Handler nep49_Handler
#include "nep49.h"
#undef PyDataMemAllocator
#undef PyDataMem_Handler

#include <Python.h>
#define NO_IMPORT_ARRAY
#include <numpy/ndarraytypes.h>

#define SAME_MEMBER(ours, its, member)                                                             \
    _Static_assert(offsetof(ours, member) == offsetof(its, member) &&                              \
                       __builtin_types_compatible_p(__typeof__(((ours *)NULL)->member),            \
                                                    __typeof__(((its *)NULL)->member)),            \
                   #its "." #member)

SAME_MEMBER(nep49_Allocator, PyDataMemAllocator, ctx);
SAME_MEMBER(nep49_Allocator, PyDataMemAllocator, malloc);
SAME_MEMBER(nep49_Allocator, PyDataMemAllocator, calloc);
SAME_MEMBER(nep49_Allocator, PyDataMemAllocator, realloc);
SAME_MEMBER(nep49_Allocator, PyDataMemAllocator, free);
SAME_MEMBER(nep49_Handler, PyDataMem_Handler, name);
SAME_MEMBER(nep49_Handler, PyDataMem_Handler, version);
SAME_MEMBER(nep49_Handler, PyDataMem_Handler, allocator.ctx);
SAME_MEMBER(nep49_Handler, PyDataMem_Handler, allocator.free);
_Static_assert(sizeof(nep49_Allocator) == sizeof(PyDataMemAllocator), "as large");
_Static_assert(sizeof(nep49_Handler) == sizeof(PyDataMem_Handler), "as large");
_Static_assert(_Alignof(nep49_Handler) == _Alignof(PyDataMem_Handler), "as aligned");
