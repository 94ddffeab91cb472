/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what it leaves as it was, errno and a pending exception.
 */
#include "harness/harness.h"
#include "python/api.h"
#include "python/python.h"

static void free_with_errno(void *p, size_t size, const char *what)
{
    static const int values[] = {0, ENOENT, 12345};
    static size_t turn;
    int before = values[turn++ % 3];
    errno = before;
    subject_free(p, size);
    int after = errno;
    expect(after == before, fmt("errno to be %d still, after free of %s", before, what), "%d",
           after);
}

/* Nobody writes to them.  A cache of a few of these fills as well. */
static void free_large_with_errno(void)
{
    static const size_t sizes[] = {2 << 20, 48 << 20, 5 << 20};
    enum { MANY = 12 };
    for (size_t i = 0; i < LENGTH(sizes) && !subject_fills_blocks(); i++) {
        void *p[MANY];
        size_t made = 0;
        while (made < MANY && (p[made] = subject_malloc(sizes[i])) != NULL)
            made++;
        while (made-- > 0)
            free_with_errno(p[made], sizes[i], fmt("one of 12 blocks of %zu bytes", sizes[i]));
    }
}

PROPERTY(free_keeps_errno,
    .id     = "free.keeps-errno", .level = SHOULD, .basis = BASIS_QOI, .rule = HEAP_KEEPS_ERRNO,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 4}, .quick = true,
    .clause = "free leaves errno as it was",
    .source = "POSIX.1-2024, free(): errno is preserved; glibc does so since 2.33",
    .why    = "cleanup code runs between a call that failed and the look at errno",
    .hint   = "save errno first and put it back last, around munmap and madvise in particular",
    .looks  = "WARN: errno to be 2 still, after free of a block of 1048576 bytes by malloc; 22")
{
    static const size_t sizes[] = {1, 8, 100, 4096, 70000, 300000, 1 << 20, 4 << 20};
    for (size_t round = 0; round < 9; round++) {
        free_with_errno(NULL, 0, "NULL");
        free_with_errno(NULL, 40, "NULL with size 40");
        for (size_t i = 0; i < LENGTH(sizes); i++) {
            void *p = round % 3 == 0   ? subject_malloc(sizes[i])
                      : round % 3 == 1 ? subject_calloc(sizes[i], 1)
                                       : subject_realloc(NULL, sizes[i]);
            if (p != NULL)
                free_with_errno(p, round < 6 ? sizes[i] : 1,
                                fmt("a block of %zu bytes by %s", sizes[i],
                                    step_function(STEP_MALLOC + round % 3)));
        }
    }
    free_large_with_errno();
    struct blocks blocks = {0};
    blocks_add_neighbours(&blocks, 300); /* lists fill up, and have to be emptied */
    for (size_t i = 0; i < blocks.count; i++)
        free_with_errno(blocks.at[i].p, blocks.at[i].size, "one of 300 blocks");
    free(blocks.at);
}

/* An exception as code in Python raises it, with a traceback. */
struct raised {
    PyObject *type, *value, *traceback;
};

static struct raised raise_exception(void)
{
    struct raised raised = {NULL, NULL, NULL};
    PyObject *names = PyDict_New();
    if (names == NULL || PyDict_SetItemString(names, "__builtins__", PyEval_GetBuiltins()) != 0 ||
        PyRun_String("raise ValueError('pending')", Py_file_input, names, names) != NULL)
        harness_broke("ValueError: %s", python_error());
    Py_DECREF(names);
    PyErr_Fetch(&raised.type, &raised.value, &raised.traceback);
    PyErr_NormalizeException(&raised.type, &raised.value, &raised.traceback);
    if (raised.type != PyExc_ValueError || raised.traceback == NULL)
        harness_broke("an exception that Python raised has no traceback");
    return raised;
}

/* Frees with it pending, and takes it back: the same objects, and nothing else. */
static void free_with_exception(const struct raised *raised, void *p, size_t size, const char *what)
{
    PyObject *type, *value, *traceback;
    Py_INCREF(raised->type);
    Py_INCREF(raised->value);
    Py_INCREF(raised->traceback);
    PyErr_Restore(raised->type, raised->value, raised->traceback);
    subject_free(p, size);
    PyErr_Fetch(&type, &value, &traceback);
    expect(type != NULL,
           fmt("the ValueError that was pending to be pending still, after free of %s", what),
           "no exception is");
    expect(type == raised->type && value == raised->value,
           fmt("the ValueError that was pending to be pending still, after free of %s", what),
           "another %s is", python_type_name(type));
    expect(traceback == raised->traceback,
           fmt("the traceback of the ValueError that was pending to be as it was, after free of "
               "%s",
               what),
           "%s", traceback == NULL ? "it has none" : "it has another");
    Py_DECREF(type);
    Py_DECREF(value);
    Py_DECREF(traceback);
}

/* Nothing of it is touched, and it may be refused. */
static void free_large_with_exception(const struct raised *raised, size_t size)
{
    void *p = lacking_memory(size) == NULL ? subject_malloc(size) : NULL;
    if (p != NULL)
        free_with_exception(raised, p, size, fmt("a block of %zu bytes by malloc", size));
    p = p != NULL ? subject_realloc(NULL, size) : NULL;
    if (p != NULL)
        free_with_exception(raised, p, 1, fmt("a block of %zu bytes by realloc as 1", size));
}

PROPERTY(free_keeps_pending_exception,
    .id     = "free.keeps-pending-exception", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 4},
    .clause = "an exception that is pending when free is called stays, with its traceback",
    .source = "NumPy 1.22 to 2.5: PyArray_FromIter, textreading/rows.c, ufunc loops drop arrays so",
    .why    = "the error would be lost, or replaced by an unrelated one",
    .hint   = "do not call Python from free, or call PyErr_Fetch before and PyErr_Restore after",
    .looks  = "FAIL: the ValueError that was pending to be pending still; no exception is")
{
    static const size_t sizes[] = {1, 24, 80, 4096, 70000, 300000, 1 << 20};
    static const size_t large[] = {(4 << 20) + 8, 33 << 20, 64 << 20};
    struct raised raised = raise_exception();
    free_with_exception(&raised, NULL, 0, "NULL");
    free_with_exception(&raised, NULL, 40, "NULL with size 40");
    for (size_t i = 0; i < LENGTH(large); i++)
        free_large_with_exception(&raised, large[i]);
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i];
        free_with_exception(&raised, must_malloc(size), size,
                            fmt("a block of %zu bytes by malloc", size));
        free_with_exception(&raised, must_calloc(size, 1), size,
                            fmt("a block of %zu bytes by calloc", size));
        free_with_exception(&raised, must_realloc(must_malloc(1), size), size,
                            fmt("a block of %zu bytes by realloc", size));
        free_with_exception(&raised, must_malloc(size), 1, fmt("a block of %zu bytes as 1", size));
    }
    for (int i = 0; i < 2100; i++) /* of what is done now and then, twice */
        free_with_exception(&raised, must_malloc(24), 24, "one of many blocks of 24 bytes");
    Py_DECREF(raised.type);
    Py_DECREF(raised.value);
    Py_DECREF(raised.traceback);
}
