/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What NumPy promises about its own side, and keeps in every version from 1.22 to 2.5.
 */
#include "harness/harness.h"
#include "python/python.h"

#define KEPT "NumPy meets this requirement itself: it does not call the handler."
#define PAGE "Memory management in NumPy, What happens when deallocating if there is no policy set"

PROPERTY(owndata_uses_free,
    .id     = "owndata.uses-free",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "memory without a handler goes to free()",
    .clause = "When an array ends that owns memory without a handler, NumPy calls free(), not the "
              "active handler.",
    .source = PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "Code older than handlers sets OWNDATA on memory of malloc's; a handler would look "
              "for a header that does not exist.",
    .hint   = KEPT,
    .looks  = "expected mine to receive only its own blocks; seen free(0x55d0c0a8, 100) of a "
              "pointer that no handler gave",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "uses_free");
}

PROPERTY(owndata_capsule_base,
    .id     = "owndata.capsule-base",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "a capsule base releases its memory",
    .clause = "If a capsule is the base of an array, its destructor runs once, after the last view "
              "ended.",
    .source = PAGE ", the better technique; arrayobject.c PyArray_SetBaseObject, 1.22 to 2.5",
    .why    = "NumPy recommends this way for memory from elsewhere.",
    .hint   = KEPT,
    .looks  = "expected the runs of the capsule's destructor to be 1; seen 2",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "capsule_base");
}

PROPERTY(owndata_resize_refused,
    .id     = "owndata.resize-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "memory without a handler is not resized",
    .clause = "Resizing an array whose memory no handler made raises an exception and leaves the "
              "array unchanged.",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "A resize by the active handler would pass it a pointer that it did not make.",
    .hint   = KEPT,
    .looks  = "expected resize from 100 to 200 bytes that no handler made to raise RuntimeError; "
              "seen it was accepted",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "resize_refused");
}

PROPERTY(numpy_views,
    .id     = "numpy.views",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "views call no function",
    .clause = "Making and dropping a view calls no function of the handler.",
    .tests  = "The block has to be freed after its last view ended.",
    .source = "NEP 49, High level design: only arrays that own their data; ctors.c "
              "PyArray_NewFromDescrAndBase, 1.22 to 2.5",
    .why    = "NumPy programs create millions of views.",
    .hint   = KEPT,
    .looks  = "expected the calls of the handler while reshape(3, 4) came and went to be 0; seen 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "views");
}

PROPERTY(numpy_counts_handlers,
    .id     = "numpy.counts-handlers",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "references to handlers are counted",
    .clause = "PyDataMem_SetHandler and GetHandler, called by several threads at once, keep the "
              "reference count of each handler.",
    .tests  = "Each thread has to get the handler that it chose.",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler, PyDataMem_GetHandler; alloc.c, "
              "1.22 to 2.5",
    .why    = "An unused handler would stay, or a handler that an array needs would be released.",
    .hint   = KEPT,
    .looks  = "expected the references to each handler that four threads installed to be [9, 4, "
              "4]; seen [9, 5, 4]",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("runtime_kept", "counts_handlers");
}
