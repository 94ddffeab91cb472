/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Both directions, each by the two ways that there are: NumPy's C-API, and DLPack.
 */
#include "embed_demo.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* ---- DLPack: how libraries hand each other arrays without a copy, and without headers in common.
 * These structs are those of DLPack 0.x (dmlc.github.io/dlpack), which every version since has kept
 * for capsules named "dltensor". ---- */

enum { DL_CPU = 1, DL_FLOAT = 2 }; /* a device_type; a code */

typedef struct {
    void *data;
    struct {
        int32_t device_type, device_id;
    } device;
    int32_t ndim;
    struct {
        uint8_t code, bits;
        uint16_t lanes; /* 1, but for vectors */
    } dtype;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: row by row without gaps */
    uint64_t byte_offset; /* of the first element from data */
} DLTensor;

/* What a capsule holds.  Whoever takes it renames the capsule to "used_dltensor" and calls the
 * deleter once, when done; a capsule that nobody took does that itself. */
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self); /* or NULL */
} DLManagedTensor;

/* ---- from C to Python ----------------------------------------------------------------------- */

enum { NUMBERS = 1000 };

/* Numbers of C's, which stay until C and each object of Python's over them has let go. */
struct loan {
    atomic_int holders;
    DLManagedTensor tensor; /* the numbers, as DLPack describes them */
    int64_t shape[1];
    double numbers[NUMBERS];
};

static void let_go(struct loan *loan)
{
    if (atomic_fetch_sub(&loan->holders, 1) == 1)
        free(loan);
}

static const char loan_name[] = "embed_demo.loan";

static void loan_capsule_gone(PyObject *capsule)
{
    let_go(PyCapsule_GetPointer(capsule, loan_name));
}

/* An array over memory that is not NumPy's must not have OWNDATA set: it would be freed by free()
 * when the array goes, whatever gave it.  Instead the array's base is an object that lets go; and
 * as every view has the array as its base, that is when nobody can see the memory any more. */
static PyObject *as_array(struct loan *loan)
{
    const npy_intp shape[] = {NUMBERS};
    PyObject *array = PyArray_SimpleNewFromData(1, shape, NPY_DOUBLE, loan->numbers);
    PyObject *capsule = array != NULL ? PyCapsule_New(loan, loan_name, loan_capsule_gone) : NULL;
    if (capsule != NULL) {
        atomic_fetch_add(&loan->holders, 1);
        /* Takes the reference to the capsule, also where it fails. */
        if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) == 0)
            return array;
    }
    Py_XDECREF(array);
    return NULL;
}

/* Called by whoever took the tensor, from any thread, and perhaps after Python has ended: so it
 * touches nothing of Python's. */
static void tensor_gone(DLManagedTensor *tensor)
{
    let_go(tensor->manager_ctx);
}

static void tensor_capsule_gone(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) /* nobody took it */
        tensor_gone(PyCapsule_GetPointer(capsule, "dltensor"));
}

static PyObject *as_tensor(struct loan *loan)
{
    PyObject *capsule = PyCapsule_New(&loan->tensor, "dltensor", tensor_capsule_gone);
    if (capsule != NULL)
        atomic_fetch_add(&loan->holders, 1);
    return capsule;
}

static struct loan *loan_new(void)
{
    struct loan *loan = calloc(1, sizeof *loan);
    if (loan == NULL)
        return NULL;
    loan->holders = 1;
    loan->shape[0] = NUMBERS;
    loan->tensor = (DLManagedTensor){
        .dl_tensor = {.data = loan->numbers,
                      .device = {DL_CPU, 0},
                      .ndim = 1,
                      .dtype = {DL_FLOAT, 64, 1},
                      .shape = loan->shape},
        .manager_ctx = loan,
        .deleter = tensor_gone,
    };
    for (int i = 0; i < NUMBERS; i++)
        loan->numbers[i] = i;
    return loan;
}

/* What came back is over our own memory, and is now the only one, beside us, to hold it.  Takes the
 * reference to it. */
static void claim_lent(const char *name, struct loan *loan, PyObject *result, bool by_dlpack)
{
    bool same = PyArray_DATA((PyArrayObject *)result) == loan->numbers;
    bool doubled = true;
    for (int i = 0; i < NUMBERS && !by_dlpack; i++) /* NumPy makes a tensor a read-only array */
        doubled = doubled && loan->numbers[i] == 2 * i;
    bool kept = loan->holders > 1;
    Py_DECREF(result);
    PyGC_Collect();
    bool back = loan->holders == 1;
    report_claim(same && doubled && kept && back, name, "C to Python: %d numbers, %s, %s%s, %s",
                 NUMBERS, same ? "not copied" : "COPIED",
                 by_dlpack ? "" : (doubled ? "doubled in place, " : "NOT doubled in place, "),
                 kept ? "kept alive" : "NOT kept alive",
                 back ? "given back once" : "NOT given back once");
}

int exchange_lend(const char *name, PyObject *function, bool by_dlpack)
{
    struct loan *loan = loan_new();
    if (loan == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    PyObject *object = by_dlpack ? as_tensor(loan) : as_array(loan);
    PyObject *result = object != NULL ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    Py_XDECREF(object);
    if (result != NULL && PyArray_Check(result)) {
        claim_lent(name, loan, result, by_dlpack);
    } else if (result != NULL) {
        PyErr_SetString(PyExc_TypeError, "not an array");
        Py_DECREF(result);
    }
    let_go(loan);
    return PyErr_Occurred() ? -1 : 0;
}

/* ---- from Python to C ----------------------------------------------------------------------- */

/* What C sees of data that is Python's, and what keeps it alive. */
struct view {
    const double *numbers;
    size_t count;
    PyObject *array;         /* a reference, or NULL and ... */
    DLManagedTensor *tensor; /* ... this */
};

static int view_array(struct view *view, PyObject *object)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_DOUBLE ||
        !PyArray_ISCARRAY_RO(array)) {
        PyErr_SetString(PyExc_TypeError, "not an array of floats without gaps");
        return -1;
    }
    Py_INCREF(object);
    *view = (struct view){PyArray_DATA(array), (size_t)PyArray_SIZE(array), object, NULL};
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
    DLManagedTensor *tensor = NULL;
    if (capsule != NULL)
        tensor = PyCapsule_GetPointer(capsule, "dltensor");
    if (tensor != NULL && !is_plain(&tensor->dl_tensor))
        PyErr_SetString(PyExc_TypeError, "not one row of floats without gaps, on the CPU");
    else if (tensor != NULL && PyCapsule_SetName(capsule, "used_dltensor") == 0)
        *view = (struct view){
            .numbers = (void *)((char *)tensor->dl_tensor.data + tensor->dl_tensor.byte_offset),
            .count = (size_t)tensor->dl_tensor.shape[0],
            .tensor = tensor,
        };
    Py_XDECREF(capsule);
    return PyErr_Occurred() ? -1 : 0;
}

/* Under the GIL: the deleter may be one that gives up a reference to an array. */
static void view_end(struct view *view)
{
    if (view->tensor != NULL && view->tensor->deleter != NULL)
        view->tensor->deleter(view->tensor);
    Py_CLEAR(view->array);
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

static void claim_borrowed(const char *name, struct view *view)
{
    size_t size = 0;
    const double *numbers = view->numbers;
    double before = sum_without_gil(view);
    PyGC_Collect();
    bool same = sum_without_gil(view) == before;
    bool known = tracker_of(numbers, &size) != NULL && size >= view->count * sizeof *numbers;
    view_end(view);
    PyGC_Collect();
    bool freed = tracker_of(numbers, &size) == NULL;
    report_claim(known && freed && same, name, "Python to C: %zu numbers, %s, %s, %s", view->count,
                 known ? "the handler's own block" : "NOT the handler's block",
                 same ? "alive while used" : "NOT alive while used",
                 freed ? "freed afterwards" : "NOT freed");
}

int exchange_borrow(const char *name, PyObject *function, bool by_dlpack)
{
    struct view view = {0};
    PyObject *object = PyObject_CallFunctionObjArgs(function, NULL);
    if (object == NULL)
        return -1;
    int failed = by_dlpack ? view_tensor(&view, object) : view_array(&view, object);
    Py_DECREF(object); /* from here on C alone keeps the data alive */
    if (failed == 0)
        claim_borrowed(name, &view);
    return failed;
}
