"""Compiles the handler into the module _mine, which cffi makes."""

import subprocess

import cffi

HANDLER = r"""
#include <stdint.h>
#include <stdlib.h>

#include "nep49.h"

static void *mine_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size != 0 ? size : 1); /* NULL would be "no memory" */
}

static void *mine_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return nelem != 0 && elsize != 0 ? calloc(nelem, elsize) : calloc(1, 1);
}

static void *mine_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return realloc(p, size != 0 ? size : 1);
}

static void mine_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    free(p);
}

static PyDataMem_Handler handler = {
    "mine", 1, {NULL, mine_malloc, mine_calloc, mine_realloc, mine_free}};

static uintptr_t address_of_handler(void)
{
    return (uintptr_t)&handler;
}
"""

flags = subprocess.check_output(["pkg-config", "--cflags", "nep49"], text=True).split()
ffi = cffi.FFI()
ffi.cdef("uintptr_t address_of_handler(void);")
ffi.set_source("_mine", HANDLER, extra_compile_args=flags)
ffi.compile()
