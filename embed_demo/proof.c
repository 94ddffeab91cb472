/* SPDX-License-Identifier: BSD-3-Clause
 *
 * That no thread had to do with another's memory, from the books and from the arrays themselves.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "crew.h"
#include "tally.h"

/* All that this thread was ever given lay between the ends of its arena. */
static bool stayed_inside(const struct worker *w, const struct figures *f)
{
    return f->lowest == NULL || (w->arena.base <= f->lowest && f->highest <= w->arena.end);
}

static bool is_apart(const struct worker *a, const struct worker *b)
{
    return a->arena.end <= b->arena.base || b->arena.end <= a->arena.base;
}

/* No array was made in another's arena, and none was freed through another's handler. */
static void prove_apart(const struct crew *crew)
{
    bool held = true;
    size_t bytes = 0, peak = 0;
    for (int i = 0; i < crew->count; i++) {
        struct figures f;
        books_read(&crew->workers[i]->books, &f);
        bytes += f.by[BOOKS_MALLOC].bytes + f.by[BOOKS_CALLOC].bytes + f.by[BOOKS_REALLOC].bytes;
        peak += f.peak_bytes;
        held = held && f.strangers == 0 && stayed_inside(crew->workers[i], &f);
        for (int j = 0; j < i; j++)
            held = held && is_apart(crew->workers[i], crew->workers[j]);
    }
    tally(held, crew->name, "%d thread%s given %.1f MB, at most %.1f MB at once, %s", crew->count,
          crew->count > 1 ? "s" : "", (double)bytes / 1e6, (double)peak / 1e6,
          held ? "each byte in the own arena" : "NOT each byte in the own arena");
}

struct count {
    size_t arrays, bytes, misplaced;
};

/* Does the array own a block that the worker's books know? */
static void look_at(struct worker *w, PyArrayObject *array, struct count *count)
{
    PyArrayObject *owner = memory_owner(array);
    size_t bytes = (size_t)PyArray_NBYTES(owner), size;
    count->arrays++;
    count->bytes += bytes;
    if (!books_know(&w->books, PyArray_DATA(owner), &size) || size < bytes)
        count->misplaced++;
}

static int look_at_result(struct worker *w, PyObject *result, struct count *count)
{
    if (result == Py_None)
        return 0;
    if (PyArray_Check(result)) {
        look_at(w, (PyArrayObject *)result, count);
        return 0;
    }
    PyObject *items = PySequence_Fast(result, "a thread returns None, an array, or some in a list");
    if (items == NULL)
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items) && !failed; i++) {
        PyObject *item = PySequence_Fast_GET_ITEM(items, i);
        if (PyArray_Check(item))
            look_at(w, (PyArrayObject *)item, count);
        else
            failed = 1;
    }
    if (failed)
        PyErr_SetString(PyExc_TypeError, "a thread returns None, an array, or some in a list");
    Py_DECREF(items);
    return failed ? -1 : 0;
}

int workers_prove(const char *name, PyObject *results)
{
    struct crew *crew = crew_find(name);
    struct count count = {0};
    if (crew == NULL || PyList_GET_SIZE(results) != crew->count)
        return 0;
    prove_apart(crew);
    for (int i = 0; i < crew->count; i++)
        if (look_at_result(crew->workers[i], PyList_GET_ITEM(results, i), &count) != 0)
            return -1;
    if (count.arrays > 0)
        tally(count.misplaced == 0, crew->name,
              "%zu arrays of %.1f MB outlive their threads, %zu where they belong", count.arrays,
              (double)count.bytes / 1e6, count.arrays - count.misplaced);
    return 0;
}
