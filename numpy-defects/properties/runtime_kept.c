/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What NumPy promises about its own side, and keeps in every version from 1.22 to 2.5.
 */
#include "harness/harness.h"
#include "python/python.h"

#define PAGE "Memory management in NumPy, What happens when deallocating if there is no policy set"

PROPERTY(owndata_uses_free,
    .id     = "owndata.uses-free",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "memory without a handler goes to free()",
    .clause = "when an array ends that owns memory without a handler, the memory goes to free(), "
              "and not to the handler in force",
    .source = PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "code older than handlers gives NumPy memory of malloc's and sets OWNDATA; a handler "
              "would look for a header that is not there",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "mine to be given its own blocks alone: free(0x55d0c0a8, 100) of a pointer that no "
              "handler gave",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "uses_free");
}

PROPERTY(owndata_capsule_base,
    .id     = "owndata.capsule-base",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "a capsule base releases its memory",
    .clause = "memory that a capsule owns, the base of an array, goes to the capsule's destructor, "
              "once, after the last view of it",
    .source = PAGE ", the better technique; arrayobject.c PyArray_SetBaseObject, 1.22 to 2.5",
    .why    = "it is the way that NumPy recommends for memory from elsewhere",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "the runs of the capsule's destructor to be 1: 2",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "capsule_base");
}

PROPERTY(owndata_resize_refused,
    .id     = "owndata.resize-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "memory without a handler is not resized",
    .clause = "an array of memory that no handler made cannot be resized: an exception says so, "
              "and the array stays as it is",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "resizing it by the handler in force would hand that a stranger's pointer",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "resize from 100 to 200 bytes that no handler made to raise RuntimeError: it was "
              "accepted",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "resize_refused");
}

PROPERTY(numpy_views,
    .id     = "numpy.views",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "views call no function",
    .clause = "making and dropping a view calls no function of the handler, and the block is "
              "freed after the last view of it",
    .source = "NEP 49, High level design: only arrays that own their data; ctors.c "
              "PyArray_NewFromDescrAndBase, 1.22 to 2.5",
    .why    = "views are how NumPy programs are written, by the million",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "the calls of the handler while reshape(3, 4) came and went to be 0: 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "views");
}

PROPERTY(numpy_counts_handlers,
    .id     = "numpy.counts-handlers",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "references to handlers are counted",
    .clause = "SetHandler and GetHandler, called by several threads at once, put in force and give "
              "what the thread chose, and leave as many references to a handler as there were",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler, PyDataMem_GetHandler; alloc.c, "
              "1.22 to 2.5",
    .why    = "a handler that nobody has would stay, or one that an array has would go",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "the references to each handler that four threads put in force to be [9, 4, 4]: "
              "[9, 5, 4]",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "counts_handlers");
}
