/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: what takes handlers of its own to see, or none: NumPy's default one, PyDataMem_NEW, and
 * whether NumPy calls with the GIL.
 */
#include <malloc.h>
#include <stdatomic.h>

#include "harness/harness.h"
#include "harness/property_child.h"
#include "python/api.h"
#include "python/python.h"

#define NOT_YOURS "NumPy has to fix this; the handler cannot."

/* ---- a handler before libc ------------------------------------------------------------------- */

static atomic_size_t without_gil[4]; /* calls of malloc, calloc, realloc and free */

static void note_gil(unsigned function)
{
    if (!PyGILState_Check())
        without_gil[function]++;
}

static void *noting_malloc(void *ctx, size_t size)
{
    (void)ctx;
    note_gil(0);
    return malloc(size);
}

static void *noting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    note_gil(1);
    return calloc(nelem, elsize);
}

/* What it adds is not zero, as what a heap has used before. */
static void *noting_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    note_gil(2);
    size_t had = p != NULL ? malloc_usable_size(p) : 0;
    char *moved = realloc(p, size);
    if (moved != NULL && size > had)
        memset(moved + had, 0x41, size - had);
    return moved;
}

static void noting_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    note_gil(3);
    free(p);
}

static PyDataMem_Handler noting = {
    .name = "noting",
    .version = 1,
    .allocator = {NULL, noting_malloc, noting_calloc, noting_realloc, noting_free}};

PROPERTY(runtime_read_only_resize,
    .id     = "runtime.read-only-resize",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "resize of read-only arrays",
    .clause = "A resize of a read-only array without refcheck fills the new part with zeros or is "
              "refused.",
    .source = "shape.c PyArray_Resize, which fills only what is writeable, 1.22 to 2.5",
    .why    = "The new numbers are old heap contents, and new objects crash the program.",
    .hint   = NOT_YOURS " Workaround: zero the part that realloc adds.",
    .looks  = "expected a read-only array of i8 that is resized to be filled up with 0; seen "
              "[4702111234474983745]",
    .fixture  = FIXTURE_UNLOADED)
{
    install_handler(&noting);
    python_call("runtime_refused", "read_only_resize");
}

PROPERTY(runtime_calls_with_gil,
    .id     = "runtime.calls-with-gil",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "calls hold the GIL",
    .clause = "NumPy calls a handler with the GIL held or, in a free-threaded Python, with a "
              "thread state attached.",
    .source = "ctors.c array_from_text, which calls realloc without, 1.22 to 2.5; nothing says so",
    .why    = "A handler that calls the Python C-API in realloc, or relies on the GIL to protect "
              "its state, fails.",
    .hint   = NOT_YOURS " Workaround: do not rely on the GIL in realloc.",
    .looks  = "expected no call of the handler's realloc without the GIL; seen 9",
    .fixture  = FIXTURE_UNLOADED)
{
    static const char *const functions[] = {"malloc", "calloc", "realloc", "free"};
    install_handler(&noting);
    python_call("runtime_refused", "every_case");
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
        expect(without_gil[i] == 0,
               fmt("no call of the handler's %s without the GIL", functions[i]), "%zu",
               without_gil[i]);
}

/* ---- NumPy's own ----------------------------------------------------------------------------- */

PROPERTY(runtime_default_calloc_overflow,
    .id     = "runtime.default-calloc-overflow",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_RUNTIME,
    .title  = "default calloc checks overflow",
    .clause = "calloc of NumPy's default handler returns NULL if the product overflows size_t.",
    .source = "C17 7.22.3.2; alloc.c default_calloc, which multiplies first, 1.22 to 2.5",
    .why    = "A handler that forwards its calls to the default handler returns a block that is "
              "too small.",
    .hint   = NOT_YOURS " Workaround: check the product before you forward the call.",
    .looks  = "expected calloc(2305843009213693953, 8) of the default handler to be NULL; seen "
              "0x55d0c0a8",
    .fixture  = FIXTURE_UNLOADED)
{
    static const size_t nelem = (SIZE_MAX >> 3) + 2, elsize = 8;
    PyDataMem_Handler *theirs = PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler");
    if (theirs == NULL)
        harness_broke("no default handler: %s", python_error());
    PyDataMemAllocator *own = &theirs->allocator;
    void *p = own->calloc(own->ctx, nelem, elsize);
    expect(p == NULL, fmt("calloc(%zu, %zu) of the default handler to be NULL", nelem, elsize),
           "%p", p);
}

static struct {
    PyMemAllocatorEx below;
    void *block;
    size_t size;
    bool is_freed;
} raw;

static void *raw_malloc(void *ctx, size_t size)
{
    (void)ctx;
    void *p = raw.below.malloc(raw.below.ctx, size);
    if (size == raw.size)
        raw.block = p;
    return p;
}

static void *raw_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return raw.below.calloc(raw.below.ctx, nelem, elsize);
}

static void *raw_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return raw.below.realloc(raw.below.ctx, p, size);
}

static void raw_free(void *ctx, void *p)
{
    (void)ctx;
    raw.is_freed |= raw.block != NULL && p == raw.block;
    raw.below.free(raw.below.ctx, p);
}

PROPERTY(runtime_new_goes_with_owndata,
    .id     = "runtime.new-goes-with-owndata",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "PyDataMem_NEW fits OWNDATA",
    .clause = "NumPy returns memory of PyDataMem_NEW that an array owns by OWNDATA alone to the "
              "allocator it came from.",
    .source = "NumPy's C-API: PyDataMem_NEW; alloc.c, which asks PyMem_RawMalloc since 2.5, and "
              "array_dealloc, which calls free()",
    .why    = "If Python's allocators are replaced, as with -X dev, free() aborts the program.",
    .hint   = NOT_YOURS " Workaround: give such an array a capsule as its base.",
    .looks  = "expected a block of PyMem_RawMalloc to go to PyMem_RawFree; seen it went to free()",
    .fixture  = FIXTURE_UNLOADED)
{
    PyMemAllocatorEx own = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
    npy_intp size = 7777;
    raw.size = (size_t)size;
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &raw.below);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &own);
    void *p = PyDataMem_NEW(raw.size);
    PyArrayObject *array =
        (PyArrayObject *)PyArray_New(PyArray_Type, 1, &size, NPY_UINT8, NULL, p, 0, 0, NULL);
    if (array == NULL)
        harness_broke("no array to work with: %s", python_error());
    array_fields(array)->flags |= NPY_ARRAY_OWNDATA;
    Py_DECREF(array);
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &raw.below);
    expect(raw.block != p || raw.is_freed, "a block of PyMem_RawMalloc to go to PyMem_RawFree",
           "it went to free()");
}
