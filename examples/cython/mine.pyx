# cython: language_level=3
"""A handler in Cython: libc's functions, without the GIL.  mine.handler is what NumPy takes."""

from cpython.pycapsule cimport PyCapsule_New
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport strcpy


cdef extern from "nep49.h":
    ctypedef struct PyDataMemAllocator:
        void *ctx
        void *(*malloc)(void *ctx, size_t size) noexcept nogil
        void *(*calloc)(void *ctx, size_t nelem, size_t elsize) noexcept nogil
        void *(*realloc)(void *ctx, void *ptr, size_t new_size) noexcept nogil
        void (*free)(void *ctx, void *ptr, size_t size) noexcept nogil

    ctypedef struct PyDataMem_Handler:
        char name[127]
        unsigned char version
        PyDataMemAllocator allocator


cdef void *my_malloc(void *ctx, size_t size) noexcept nogil:
    return malloc(size if size else 1)


cdef void *my_calloc(void *ctx, size_t nelem, size_t elsize) noexcept nogil:
    return calloc(nelem, elsize) if nelem and elsize else calloc(1, 1)


cdef void *my_realloc(void *ctx, void *ptr, size_t new_size) noexcept nogil:
    return realloc(ptr, new_size if new_size else 1)


cdef void my_free(void *ctx, void *ptr, size_t size) noexcept nogil:
    free(ptr)


cdef PyDataMem_Handler the_handler
strcpy(the_handler.name, b"mine, in Cython")
the_handler.version = 1
the_handler.allocator = PyDataMemAllocator(NULL, my_malloc, my_calloc, my_realloc, my_free)

handler = PyCapsule_New(&the_handler, "mem_handler", NULL)
