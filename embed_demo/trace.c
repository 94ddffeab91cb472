/* SPDX-License-Identifier: BSD-3-Clause
 *
 * NumPy tells tracemalloc of each block of array data, in a domain of its own.  Its handlers do not
 * hear of that.  So the two count the same blocks without knowing of each other.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h"

#include <stdlib.h>
#include <string.h>

#include "tally.h"
#include "trace.h"

static int by_size(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    return (left > right) - (left < right);
}

static size_t sum(const size_t *sizes, size_t count)
{
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += sizes[i];
    return sum;
}

/* The numbers of a sequence in memory of the caller's to free, or NULL with an exception set. */
static size_t *numbers(PyObject *items)
{
    size_t count = (size_t)PySequence_Fast_GET_SIZE(items);
    size_t *sizes = calloc(count + 1, sizeof *sizes);
    if (sizes == NULL)
        PyErr_NoMemory();
    for (size_t i = 0; i < count && sizes != NULL; i++) {
        sizes[i] = PyLong_AsSize_t(PySequence_Fast_GET_ITEM(items, (Py_ssize_t)i));
        if (PyErr_Occurred()) {
            free(sizes);
            sizes = NULL;
        }
    }
    return sizes;
}

static int compare(const char *name, PyObject *items, struct books *books)
{
    size_t count = (size_t)PySequence_Fast_GET_SIZE(items);
    size_t *theirs = numbers(items), *ours = calloc(count + 1, sizeof *ours);
    if (theirs != NULL && ours != NULL) {
        size_t known = books_sizes(books, ours, count);
        struct figures f;
        books_read(books, &f);
        qsort(theirs, count, sizeof *theirs, by_size);
        qsort(ours, count, sizeof *ours, by_size);
        tally(known == count && memcmp(theirs, ours, count * sizeof *ours) == 0, name,
              "tracemalloc sees %zu blocks of %zu bytes, the books %zu of %zu", count,
              sum(theirs, count), known, f.live_bytes);
    }
    int failed = theirs == NULL || ours == NULL;
    if (ours == NULL && theirs != NULL)
        PyErr_NoMemory();
    free(theirs);
    free(ours);
    return failed ? -1 : 0;
}

int trace_compare(const char *name, PyObject *sizes, struct books *books)
{
    PyObject *items = PySequence_Fast(sizes, "sizes: not a list of numbers");
    int result = items != NULL ? compare(name, items, books) : -1;
    Py_XDECREF(items);
    return result;
}
