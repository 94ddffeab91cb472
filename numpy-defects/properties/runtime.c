/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: NumPy's own side of the contract.  Each says whether the NumPy at hand has a defect that
 * the other groups step around; what breaks here says nothing about the handler, which is not even
 * loaded.
 */
#include <stdarg.h>
#include <stdio.h>

#include "harness/harness.h"
#include "harness/interpose.h"
#include "python/api.h"
#include "python/python.h"

GROUP(runtime, 16, "NumPy's own side of the contract, independent of the handler.");

#define NOT_YOURS "NumPy has to fix this; the handler cannot."

/* ---- what is found --------------------------------------------------------------------------- */

/* One thing does not keep a property from the next: the first that was expected, and what was seen
 * with all that follows. */
static struct {
    char expected[256], seen[768];
} finding;

static void found(const char *expected, const char *seen, ...)
    __attribute__((format(printf, 2, 3)));
static void found(const char *expected, const char *seen, ...)
{
    char words[256];
    va_list arguments;
    va_start(arguments, seen);
    vsnprintf(words, sizeof words, seen, arguments);
    va_end(arguments);
    size_t used = strlen(finding.seen);
    const char *more = used == 0 ? words : fmt("; expected %s, seen %s", expected, words);
    if (used == 0)
        snprintf(finding.expected, sizeof finding.expected, "%s", expected);
    snprintf(finding.seen + used, sizeof finding.seen - used, "%s", more);
}

static void tell_findings(void)
{
    expect(finding.seen[0] == '\0', finding.expected, "%s", finding.seen);
}

/* ---- sorts without memory -------------------------------------------------------------------- */

static void call_runtime(void *function)
{
    python_call("runtime", function);
}

/* The crash is NumPy's: in a child, for whoever comes next. */
static void expect_no_crash(const char *what, const char *type)
{
    static const char *const each[][2] = {
        {"sort", "array[::2].sort()"},
        {"argsort", "array.argsort(axis=0)"},
        {"partition", "array[::2].partition(1)"},
        {"argpartition", "array[::2].argpartition(1)"},
    };
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        char function[64];
        snprintf(function, sizeof function, "%s_%s", each[i][0], what);
        if (!child_survives(call_runtime, function))
            found(fmt("%s of %s to raise MemoryError", each[i][1], type), "NumPy crashed");
    }
    tell_findings();
}

PROPERTY(runtime_sort_out_of_memory,
    .id     = "runtime.sort-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in sorts of numbers",
    .clause = "If memory for the buffer of a strided sort or partition of numbers is refused, "
              "NumPy raises MemoryError.",
    .source = "item_selection.c _new_sortlike and _new_argsortlike, which look into a descriptor "
              "that is not there yet, 1.25 to 2.3",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS " Workaround: sort a contiguous copy.",
    .looks  = "expected array[::2].sort() of int64 to raise MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    expect_no_crash("numbers", "int64");
}

PROPERTY(runtime_object_sort_out_of_memory,
    .id     = "runtime.object-sort-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in sorts of objects",
    .clause = "If memory for the buffer of a strided sort or partition of objects is refused, "
              "NumPy raises MemoryError.",
    .tests  = "Arrays of objects, and of records with objects, are sorted and partitioned.",
    .source = "item_selection.c _new_sortlike, which clears the buffer that it does not have, "
              "1.25 to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS " Workaround: sort a contiguous copy.",
    .looks  = "expected array[::2].sort() of objects to raise MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    expect_no_crash("objects", "objects");
    expect_no_crash("records", "records with objects");
}

PROPERTY(runtime_string_sort_out_of_memory,
    .id     = "runtime.string-sort-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in sorts of strings",
    .clause = "If memory for the buffer of a strided sort or partition of StringDType is refused, "
              "NumPy raises MemoryError.",
    .source = "item_selection.c _new_sortlike, which clears the buffer that it does not have, 2.0 "
              "to 2.5",
    .why    = "A program that is short of memory crashes instead of getting an exception.",
    .hint   = NOT_YOURS " Workaround: sort a contiguous copy.",
    .looks  = "expected array[::2].sort() of StringDType to raise MemoryError; seen NumPy crashed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "expect_strings");
    expect_no_crash("strings", "StringDType");
}

PROPERTY(runtime_structured_sort_out_of_memory,
    .id     = "runtime.structured-sort-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "MemoryError in sorts of records",
    .clause = "If memory to compare records is refused, sorting them raises MemoryError.",
    .source = "arraytypes.c.src VOID_compare, whose failure counts as equal, 1.22 to 2.5",
    .why    = "The sort succeeds with the wrong order.",
    .hint   = NOT_YOURS " Workaround: make the fields aligned and in native byte "
              "order.",
    .looks  = "expected record 10 of 12, sorted with request 1 refused to be [(3, 5831, b'31')]; "
              "seen [(3, 7919, b'19')]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "structured_sort");
}

PROPERTY(runtime_fromiter_of_nothing,
    .id     = "runtime.fromiter-of-nothing",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "fromiter of an empty iterator",
    .clause = "np.fromiter of an empty iterator makes an array without items, even if it expected "
              "more.",
    .source = "ctors.c PyArray_FromIter, which leaves the shape as it was expected, 1.22",
    .why    = "The items are whatever was in the block before.",
    .hint   = NOT_YOURS,
    .looks  = "expected the shape of an array of no items, of which 7 were expected to be (0,); "
              "seen (7,)",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "fromiter_of_nothing");
}

PROPERTY(runtime_string_resize,
    .id     = "runtime.string-resize",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "resize adds empty strings",
    .clause = "A resize of an array of StringDType fills the new part with empty strings.",
    .source = "shape.c PyArray_Resize, which leaves what realloc added as it is, 2.0",
    .why    = "The part that realloc adds is not zero, and NumPy reads it as its own strings.",
    .hint   = NOT_YOURS " realloc need not zero the part that it adds. Workaround: "
              "none is known.",
    .looks  = "expected a resized array of StringDType to be filled up with ''; seen Failed to "
              "load string in StringDType getitem",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "expect_strings");
    python_call("runtime", "resize_strings");
}

/* ---- SetHandler ------------------------------------------------------------------------------ */

PROPERTY(runtime_set_handler_refuses,
    .id     = "runtime.set-handler-refuses",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "SetHandler checks the capsule",
    .clause = "PyDataMem_SetHandler refuses every object except a capsule named mem_handler.",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler; alloc.c, which looks since 2.1",
    .why    = "The error shows up with the next array, far from the mistake.",
    .hint   = NOT_YOURS,
    .looks  = "expected SetHandler to refuse a str; seen it was installed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "set_handler_refuses");
}

PROPERTY(runtime_set_handler_keeps_count,
    .id     = "runtime.set-handler-keeps-count",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "SetHandler leaks no reference",
    .clause = "A call of PyDataMem_SetHandler that is refused takes no reference to the active "
              "handler.",
    .source = "alloc.c PyDataMem_SetHandler, which forgets the one that it has, 2.1 to 2.5",
    .why    = "The active handler is never released.",
    .hint   = NOT_YOURS,
    .looks  = "expected the references to the active handler that ten refused calls of SetHandler "
              "took to be 0; seen 10",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "set_handler_keeps_count");
}

PROPERTY(runtime_set_handler_looks,
    .id     = "runtime.set-handler-looks",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "SetHandler checks the struct",
    .clause = "PyDataMem_SetHandler refuses a handler with another version, a missing function or "
              "an unterminated name.",
    .source = "alloc.c PyDataMem_SetHandler, which does not look, 1.22 to 2.5",
    .why    = "NumPy calls a function pointer that is NULL.",
    .hint   = NOT_YOURS " Workaround: run the properties of the group abi, which check "
              "the struct.",
    .looks  = "expected SetHandler to refuse a handler with no malloc; seen it was installed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "set_handler_looks");
}

PROPERTY(runtime_capsule_without_name,
    .id     = "runtime.capsule-without-name",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "a renamed capsule is an error",
    .clause = "If the capsule of a handler lost its name, NumPy raises an exception or warns and "
              "does not call the handler.",
    .tests  = "New arrays and resizes have to raise an exception, and the end of an array has to "
              "warn.",
    .source = "alloc.c PyDataMem_UserNEW, PyDataMem_UserRENEW and PyDataMem_UserFREE, 1.22 to 2.5",
    .why    = "Code that renames a capsule to pass it on, as DLPack consumers do, takes the "
              "handler from live arrays.",
    .hint   = NOT_YOURS " Workaround: make another capsule for other libraries, and do "
              "not rename one that NumPy has.",
    .looks  = "expected a warning of an array whose block cannot be freed; seen none",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "capsule_without_name");
}

/* ---- tracemalloc ----------------------------------------------------------------------------- */

PROPERTY(runtime_tracemalloc_of_refusals,
    .id     = "runtime.tracemalloc-of-refusals",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "tracemalloc ignores refusals",
    .clause = "A request that the handler refuses does not change what tracemalloc shows.",
    .source = "alloc.c PyDataMem_UserNEW and PyDataMem_UserRENEW, which trace NULL up to 2.1.2",
    .why    = "tracemalloc shows memory that is not allocated, and omits memory that an array "
              "still has.",
    .hint   = NOT_YOURS,
    .looks  = "expected the sizes traced after np.empty(1000) was refused to be [700]; seen [700, "
              "1000]",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "refusals_traced");
}

/* A handler before libc that has all later requests of this thread refused as soon as it has given
 * a block, so that tracemalloc's own is. */
static struct {
    bool armed, open;
    void *given; /* since it was armed */
    size_t size;
    void *freed; /* likewise */
    size_t said;
} last;

static void *now_refuse(void *p, size_t size)
{
    if (last.armed && !last.open) {
        last.given = p;
        last.size = size;
        last.open = true;
        interpose_enter();
        interpose_refuse(1, true);
    }
    return p;
}

static void refuse_no_more(void)
{
    if (last.open) {
        interpose_refuse(0, false);
        interpose_leave();
        last.open = false;
    }
    last.armed = false;
}

static void *refusing_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return now_refuse(malloc(size), size);
}

static void *refusing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return now_refuse(calloc(nelem, elsize), nelem * elsize);
}

static void *refusing_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return now_refuse(realloc(p, size), size);
}

static void refusing_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (last.given != NULL && p == last.given) {
        refuse_no_more();
        last.freed = p;
        last.said = size;
    }
    free(p);
}

static void arm(void)
{
    memset(&last, 0, sizeof last);
    last.armed = true;
}

/* Nothing, or an error, may have come of it; a block that was given back was so with its size. */
static void expect_given_back(const char *call)
{
    refuse_no_more();
    PyErr_Clear();
    if (last.freed != NULL && last.said != last.size)
        found(
            fmt("%s, when tracemalloc has no memory, to give back its %zu bytes", call, last.size),
            "free(%p, %zu)", last.freed, last.said);
}

static void expect_still_there(PyArrayObject *array)
{
    bool is_dead = last.freed != NULL && PyArray_DATA(array) != last.freed;
    expect_given_back("a resize to 2000 bytes");
    if (last.freed == NULL && PyArray_DATA(array) == last.given)
        return; /* resized, and perhaps not traced */
    if (is_dead || PyArray_DATA(array) == last.freed) {
        array_fields(array)->flags &= ~NPY_ARRAY_OWNDATA; /* lest it is freed again */
        found("an array that was to be resized, when tracemalloc has no memory, to have a block",
              "its block is gone, and it still points there");
    }
}

PROPERTY(runtime_tracemalloc_out_of_memory,
    .id     = "runtime.tracemalloc-out-of-memory",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .title  = "tracemalloc without memory",
    .clause = "If tracemalloc has no memory to record a block, NumPy frees the block with its size "
              "or keeps it unrecorded.",
    .tests  = "An array that was to be resized has to keep its block.",
    .source = "alloc.c PyDataMem_UserNEW_ZEROED, which frees with size 1, and PyDataMem_UserRENEW, "
              "which frees the block that the array has, 2.1.3 to 2.5",
    .why    = "A handler that relies on the size gets a wrong one, and an array is freed twice.",
    .hint   = NOT_YOURS,
    .looks  = "expected np.zeros(1000), when tracemalloc has no memory, to give back its 1000 "
              "bytes; seen free(0x55d0c0a8, 1)",
    .fixture  = FIXTURE_UNLOADED)
{
    static PyDataMem_Handler refusing = {
        .name = "refusing",
        .version = 1,
        .allocator = {NULL, refusing_malloc, refusing_calloc, refusing_realloc, refusing_free}};
    if (!interpose_works())
        skip("requests of libc do not come through the runner under memcheck or the sanitizers");
    interpose_watch();
    PyObject *capsule = PyCapsule_New(&refusing, "mem_handler", NULL);
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    npy_intp size = 1000, wanted = 2000;
    PyArrayObject *array =
        before != NULL ? (PyArrayObject *)PyArray_SimpleNew(1, &size, NPY_UINT8) : NULL;
    if (array == NULL)
        harness_broke("no array to work with: %s", python_error());
    python_call("runtime", "start_tracing");
    arm();
    PyObject *made = PyArray_SimpleNew(1, &size, NPY_UINT8);
    expect_given_back("np.empty(1000)");
    Py_XDECREF(made);
    arm();
    PyArray_Dims shape = {&wanted, 1};
    PyObject *none = PyArray_Resize(array, &shape, 0, NPY_CORDER);
    expect_still_there(array);
    Py_XDECREF(none);
    arm();
    made = PyArray_ZEROS(1, &size, NPY_UINT8, 0);
    expect_given_back("np.zeros(1000)");
    Py_XDECREF(made);
    python_call("runtime", "stop_tracing");
    tell_findings();
    Py_DECREF(array);
    Py_XDECREF(PyDataMem_SetHandler(before));
    Py_DECREF(before);
    Py_DECREF(capsule);
}

/* ---- arrays without a handler ---------------------------------------------------------------- */

PROPERTY(runtime_setstate_without_handler,
    .id     = "runtime.setstate-without-handler",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "__setstate__ uses free()",
    .clause = "__setstate__ on an array that owns memory without a handler releases that memory "
              "with free().",
    .tests  = "The end of such an array does the same.",
    .source = "methods.c array_setstate, which refuses up to 2.4",
    .why    = "Unpickling into such an array fails, although deleting it works.",
    .hint   = NOT_YOURS,
    .looks  = "expected __setstate__ to give the memory to free() and go on; seen no memory "
              "handler found but OWNDATA flag set",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "setstate_without_handler");
}

/* ---- the size that free is told -------------------------------------------------------------- */

PROPERTY(runtime_free_size,
    .id     = "runtime.free-size",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "free gets the requested size",
    .clause = "On every route NumPy passes free the size that it requested, except for arrays "
              "without elements.",
    .source = "NEP 49, PyDataMemAllocator: free's size; arrayobject.c array_dealloc, shape.c, "
              "ctors.c, item_selection.c, 1.22 to 2.5",
    .why    = "A handler that relies on the size puts the block into the wrong list.",
    .hint   = NOT_YOURS " Workaround: look up the size in free.",
    .looks  = "expected free to be told the size asked for in shrunk; seen free(0x55d0c0a8, 40000) "
              "of a block of 56 bytes",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "free_size");
}

PROPERTY(runtime_free_size_of_empty,
    .id     = "runtime.free-size-of-empty",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "free gets size of empty arrays",
    .clause = "NumPy passes free the requested size for arrays without elements too.",
    .source = "NEP 49, PyDataMemAllocator: free's size; ctors.c array_from_text, 1.22 to 2.5; "
              "shape.c PyArray_Resize, ctors.c PyArray_FromIter and PyArray_FromFile, up to 2.3",
    .why    = "A handler that relies on the size puts the block into the wrong list.",
    .hint   = NOT_YOURS " Workaround: look up the size in free.",
    .looks  = "expected free to be told the size asked for in no_words; seen free(0x55d0c0a8, 1) "
              "of a block of 8 bytes",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "free_size_of_empty");
}

PROPERTY(runtime_free_size_after_refusal,
    .id     = "runtime.free-size-after-refusal",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .title  = "free gets size after a refusal",
    .clause = "NumPy passes free the requested size if memory for a growing text was refused.",
    .source = "NEP 49, PyDataMemAllocator: free's size; ctors.c array_from_text, 1.22 to 2.5",
    .why    = "A handler that relies on the size takes the block for half as large as it is.",
    .hint   = NOT_YOURS " Workaround: look up the size in free.",
    .looks  = "expected free to be told the size asked for, request 3 refused; seen "
              "free(0x55d0c0a8, 32768) of a block of 65536 bytes",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "free_size_after_refusal");
}
