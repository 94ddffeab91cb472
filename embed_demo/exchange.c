/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lending to a function of the script, borrowing from one, and looking at who holds what meanwhile.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h"

#include "dlpack.h"
#include "exchange.h"
#include "loan.h"
#include "tally.h"

enum { NUMBERS = 1000 };

/* What C sees of data that is somebody else's, and how to let go of it. */
struct view {
    const double *numbers;
    size_t count;
    PyObject *array;          /* the reference that keeps it alive, or NULL and ... */
    DLManagedTensor *managed; /* ... the tensor that does */
};

static int view_array(struct view *view, PyObject *object)
{
    if (!PyArray_Check(object) || PyArray_TYPE((PyArrayObject *)object) != NPY_DOUBLE ||
        !PyArray_IS_C_CONTIGUOUS((PyArrayObject *)object)) {
        PyErr_SetString(PyExc_TypeError, "not an array of floats without gaps");
        return -1;
    }
    Py_INCREF(object);
    *view = (struct view){.numbers = PyArray_DATA((PyArrayObject *)object),
                          .count = (size_t)PyArray_SIZE((PyArrayObject *)object),
                          .array = object};
    return 0;
}

/* Is it one row of doubles that C can read? */
static bool is_plain(const DLTensor *t)
{
    return t->device.device_type == DL_CPU && t->ndim == 1 && t->dtype.code == DL_FLOAT &&
           t->dtype.bits == 64 && t->dtype.lanes == 1 &&
           (t->strides == NULL || t->strides[0] == 1 || t->shape[0] < 2);
}

/* Takes the tensor out of its capsule: from the new name on, the deleter is ours to call. */
static int view_tensor(struct view *view, PyObject *object)
{
    PyObject *capsule = PyObject_CallMethod(object, "__dlpack__", NULL);
    DLManagedTensor *managed = NULL;
    if (capsule != NULL)
        managed = PyCapsule_GetPointer(capsule, "dltensor");
    if (managed != NULL && !is_plain(&managed->dl_tensor))
        PyErr_SetString(PyExc_TypeError, "not one row of floats without gaps, on the CPU");
    else if (managed != NULL && PyCapsule_SetName(capsule, "used_dltensor") == 0)
        *view = (struct view){
            .numbers = (double *)(void *)((char *)managed->dl_tensor.data +
                                          managed->dl_tensor.byte_offset),
            .count = (size_t)managed->dl_tensor.shape[0],
            .managed = managed,
        };
    Py_XDECREF(capsule);
    return PyErr_Occurred() ? -1 : 0;
}

/* Under the GIL: the deleter may be one that gives up a reference to an array. */
static void let_go(struct view *view)
{
    if (view->managed != NULL && view->managed->deleter != NULL)
        view->managed->deleter(view->managed);
    Py_CLEAR(view->array);
}

/* The address of the data that an array or a tensor shows; NULL with an exception set. */
static const void *data_of(PyObject *object)
{
    if (PyArray_Check(object))
        return PyArray_DATA((PyArrayObject *)object);
    PyObject *number = PyObject_CallMethod(object, "data_ptr", NULL); /* as torch has it */
    void *data = number != NULL ? PyLong_AsVoidPtr(number) : NULL;
    Py_XDECREF(number);
    return data;
}

/* The number at `i` when it is lent; a function that can write to it doubles it. */
static double lent_number(size_t i)
{
    return (double)i;
}

static bool all_doubled(const struct loan *loan)
{
    for (size_t i = 0; i < loan->count; i++)
        if (loan->numbers[i] != 2 * lent_number(i))
            return false;
    return true;
}

/* What came back is over our own memory, and is now the only one, beside us, to hold it. */
static int prove_lent(const char *name, struct loan *loan, PyObject *result, bool by_dlpack)
{
    const void *data = data_of(result);
    if (data == NULL && PyErr_Occurred()) {
        Py_DECREF(result);
        return -1;
    }
    bool same = data == loan->numbers;
    bool doubled = by_dlpack || all_doubled(loan);
    bool kept = loan_holders(loan) > 1;
    Py_DECREF(result);
    PyGC_Collect();
    bool back = loan_holders(loan) == 1;
    tally(same && doubled && kept && back, name, "C to Python: %zu numbers, %s, %s%s, %s",
          loan->count, same ? "not copied" : "COPIED",
          by_dlpack ? "" : (doubled ? "doubled in place, " : "NOT doubled in place, "),
          kept ? "kept alive" : "NOT kept alive", back ? "given back once" : "NOT given back once");
    return 0;
}

int exchange_lend(const char *name, PyObject *function, bool by_dlpack)
{
    struct loan *loan = loan_new(NUMBERS);
    if (loan == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < loan->count; i++)
        loan->numbers[i] = lent_number(i);
    const Py_ssize_t shape[] = {NUMBERS};
    PyObject *object = by_dlpack ? loan_as_dlpack(loan) : loan_as_array(loan, 1, shape);
    PyObject *result = object != NULL ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    Py_XDECREF(object);
    int failed = result == NULL || prove_lent(name, loan, result, by_dlpack) != 0;
    loan_let_go(loan);
    return failed ? -1 : 0;
}

/* C at work on Python's memory, while Python goes on without it. */
static double sum_without_gil(const struct view *view)
{
    double sum = 0;
    PyThreadState *state = PyEval_SaveThread();
    for (size_t i = 0; i < view->count; i++)
        sum += view->numbers[i];
    PyEval_RestoreThread(state);
    return sum;
}

static void prove_borrowed(const char *name, struct view *view, struct books *books)
{
    size_t size = 0, gone = 0;
    const double *numbers = view->numbers;
    double before = sum_without_gil(view);
    PyGC_Collect();
    double after = sum_without_gil(view);
    bool known = books_know(books, numbers, &size) && size >= view->count * sizeof *numbers;
    let_go(view);
    PyGC_Collect();
    bool freed = !books_know(books, numbers, &gone);
    tally(known && freed && before == after, name, "Python to C: %zu numbers, %s, %s, %s",
          view->count, known ? "the handler's own block" : "NOT the handler's block",
          before == after ? "alive while used" : "NOT alive while used",
          freed ? "freed afterwards" : "NOT freed");
}

int exchange_borrow(const char *name, PyObject *function, bool by_dlpack, struct books *books)
{
    struct view view = {0};
    PyObject *object = PyObject_CallFunctionObjArgs(function, NULL);
    if (object == NULL)
        return -1;
    int failed = by_dlpack ? view_tensor(&view, object) : view_array(&view, object);
    Py_DECREF(object); /* from here on C alone keeps the data alive */
    if (!failed)
        prove_borrowed(name, &view, books);
    return failed;
}
