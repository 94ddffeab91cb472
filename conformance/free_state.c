/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what it leaves as it was, errno and a pending exception.
 */
#include "harness/harness.h"
#include "python/api.h"
#include "python/python.h"
#include "scenarios.h"

/* More large blocks than a cache keeps; nothing of them is touched. */
static void free_large(const PyDataMemAllocator *by, size_t size)
{
    enum { MANY = 12 };
    void *p[MANY];
    size_t made = 0;
    while (made < MANY && (p[made] = subject_malloc(size)) != NULL)
        made++;
    while (made-- > 0) {
        errno = ENOENT;
        by->free(by->ctx, p[made], size);
    }
}

/* Frees blocks by the handler, which checks each free. */
static void free_blocks(void (*checked)(void *ctx, void *p, size_t size))
{
    enum { ROWS = 10000 };
    static const size_t large[] = {2 << 20, 5 << 20, 48 << 20};
    const struct scenario_limits limits = {
        .most_size = 512 << 10,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_PRESSURE] = FROM_TO(NO_PRESSURE, REFUSED_BEFORE),
                  [FACTOR_FREE_SIZE] = FROM_TO(TRUE_SIZE, NULL_OF_ANY_SIZE)}};
    PyDataMem_Handler handler = *scenarios_handler();
    handler.allocator.free = checked;
    check_scenarios_through(&handler, ROWS, &limits);
    for (size_t i = 0; i < LENGTH(large) && !subject_fills_blocks(); i++)
        free_large(&handler.allocator, large[i]);
}

static void free_with_errno(void *ctx, void *p, size_t size)
{
    (void)ctx;
    int before = errno;
    subject_free(p, size);
    int after = errno;
    expect(after == before,
           fmt("errno to stay %d, after free of %s", before,
               p != NULL ? fmt("%zu bytes", size) : "NULL"),
           "%d", after);
}

PROPERTY(free_keeps_errno,
    .id     = "free.keeps-errno", .level = SHOULD, .basis = BASIS_QOI, .rule = HEAP_KEEPS_ERRNO,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 4}, .quick = true,
    .title  = "free preserves errno",
    .clause = "free leaves errno unchanged.",
    .source = "POSIX.1-2024, free(): errno is preserved; glibc does so since 2.33",
    .why    = "Cleanup code runs between a failed call and the check of errno.",
    .wrong  = "munmap(block, length); /* may set errno */",
    .right  = "int saved = errno;\n"
              "munmap(block, length);\n"
              "errno = saved;",
    .hint   = "Save errno at the start and restore it at the end, above all around munmap and "
              "madvise.",
    .looks  = "expected errno to stay 2, after free of 1048576 bytes; seen 22")
{
    free_blocks(free_with_errno);
}

/* ---- a pending exception --------------------------------------------------------------------- */

/* As code in Python raises it. */
static struct {
    PyObject *type, *value, *traceback;
} raised;

static void raise_exception(void)
{
    PyObject *names = PyDict_New();
    if (names == NULL || PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) != 0 ||
        PyRun_String("raise ValueError('pending')", Py_file_input, names, names) != NULL)
        harness_broke("ValueError: %s", python_error());
    Py_DECREF(names);
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
    if (raised.type != PyExc_ValueError || raised.traceback == NULL)
        harness_broke("an exception that Python raised has no traceback");
}

/* Frees with the exception pending, and takes it back: the same objects, and nothing else. */
static void free_with_exception(void *ctx, void *p, size_t size)
{
    PyObject *type, *value, *traceback;
    (void)ctx;
    Py_INCREF(raised.type);
    Py_INCREF(raised.value);
    Py_INCREF(raised.traceback);
    PyErr_Restore(raised.type, raised.value, raised.traceback);
    subject_free(p, size);
    PyErr_Fetch(&type, &value, &traceback);
    const char *expected = fmt("the pending ValueError to stay, with its traceback, after free of "
                               "%s with size %zu",
                               p != NULL ? "a block" : "NULL", size);
    expect(type != NULL, expected, "no exception");
    expect(type == raised.type && value == raised.value, expected, "another %s",
           python_type_name(type));
    expect(traceback == raised.traceback, expected, "the exception with %s",
           traceback == NULL ? "no traceback" : "another traceback");
    Py_DECREF(type);
    Py_DECREF(value);
    Py_DECREF(traceback);
}

PROPERTY(free_keeps_pending_exception,
    .id     = "free.keeps-pending-exception", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 4},
    .title  = "free keeps a pending exception",
    .clause = "A Python exception that is pending when free is called stays pending, with its "
              "traceback.",
    .source = "NumPy 1.22 to 2.5: PyArray_FromIter, textreading/rows.c, ufunc loops drop arrays so",
    .why    = "The error would be lost or replaced by an unrelated one.",
    .wrong  = "PyObject_CallNoArgs(on_free);",
    .right  = "PyObject *type, *value, *traceback;\n"
              "PyErr_Fetch(&type, &value, &traceback);\n"
              "Py_XDECREF(PyObject_CallNoArgs(on_free));\n"
              "PyErr_Clear();\n"
              "PyErr_Restore(type, value, traceback);",
    .hint   = "Do not call Python from free, or call PyErr_Fetch before and PyErr_Restore after.",
    .looks  = "expected the pending ValueError to stay, with its traceback; seen no exception")
{
    raise_exception();
    free_blocks(free_with_exception);
}
