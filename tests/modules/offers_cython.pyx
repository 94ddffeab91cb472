# SPDX-License-Identifier: BSD-3-Clause
# distutils: define_macros=NPY_NO_DEPRECATED_API=NPY_1_7_API_VERSION
"""A handler written in Cython: libc's functions, without the GIL."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport strcpy


cdef extern from "numpy/arrayobject.h":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t nelem, size_t elsize) noexcept nogil
        void *(*realloc)(void *ctx, void *ptr, size_t new_size) noexcept nogil
        void (*free)(void *ctx, void *ptr, size_t size) noexcept nogil

    ctypedef struct PyDataMem_Handler:
        char name[127]
        uint8_t version
        PyDataMemAllocator allocator

    object PyDataMem_SetHandler(object handler)
    int _import_array() except -1


cdef void *my_malloc(void *ctx, size_t size) noexcept nogil:
    return malloc(size)


cdef void *my_calloc(void *ctx, size_t nelem, size_t elsize) noexcept nogil:
    return calloc(nelem, elsize)


cdef void *my_realloc(void *ctx, void *ptr, size_t new_size) noexcept nogil:
    return realloc(ptr, new_size if new_size != 0 else 1)


cdef void my_free(void *ctx, void *ptr, size_t size) noexcept nogil:
    free(ptr)


cdef PyDataMem_Handler handler
strcpy(handler.name, b"offers_cython")
handler.version = 1
handler.allocator.ctx = NULL
handler.allocator.malloc = my_malloc
handler.allocator.calloc = my_calloc
handler.allocator.realloc = my_realloc
handler.allocator.free = my_free

_import_array()
capsule = PyCapsule_New(&handler, "mem_handler", NULL)


def install():
    return PyDataMem_SetHandler(capsule)
