/* SPDX-License-Identifier: BSD-3-Clause
 *
 * From C to Python without a copy, by the two ways there are.
 *
 * An array over memory that is not NumPy's must not have OWNDATA set: it would be freed by free()
 * when the array goes, whatever gave it.  Instead the array's base is an object that lets go.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "memory.h"

#include <stdlib.h>

#include "dlpack.h"
#include "loan.h"

struct loan *loan_new(size_t count)
{
    struct loan *loan = calloc(1, sizeof *loan);
    double *numbers = calloc(count, sizeof *numbers);
    if (loan == NULL || numbers == NULL) {
        free(loan);
        free(numbers);
        return NULL;
    }
    *loan = (struct loan){.numbers = numbers, .count = count, .holders = 1};
    return loan;
}

static struct loan *hold(struct loan *loan)
{
    __atomic_add_fetch(&loan->holders, 1, __ATOMIC_RELAXED);
    return loan;
}

void loan_let_go(struct loan *loan)
{
    if (__atomic_sub_fetch(&loan->holders, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    free(loan->numbers);
    free(loan);
}

int loan_holders(const struct loan *loan)
{
    return __atomic_load_n(&loan->holders, __ATOMIC_ACQUIRE);
}

/* The way of NumPy's documentation: a capsule as the base. */

static const char loan_name[] = "embed_demo.loan";

static void capsule_gone(PyObject *capsule)
{
    loan_let_go(PyCapsule_GetPointer(capsule, loan_name));
}

PyObject *loan_as_array(struct loan *loan, int ndim, const Py_ssize_t *shape)
{
    npy_intp lengths[NPY_MAXDIMS];
    for (int i = 0; i < ndim; i++)
        lengths[i] = shape[i];
    PyObject *array = PyArray_SimpleNewFromData(ndim, lengths, NPY_DOUBLE, loan->numbers);
    PyObject *capsule = array != NULL ? PyCapsule_New(loan, loan_name, capsule_gone) : NULL;
    if (capsule != NULL) {
        hold(loan);
        /* Takes the reference to the capsule, also where it fails. */
        if (PyArray_SetBaseObject((PyArrayObject *)array, capsule) == 0)
            return array;
    }
    Py_XDECREF(array);
    return NULL;
}

/* The way of DLPack: a managed tensor in a capsule. */

struct lent_tensor {
    DLManagedTensor managed; /* the first */
    int64_t length;
};

/* Called by whoever took the tensor, from any thread, and perhaps after the interpreter ended. */
static void lent_tensor_gone(DLManagedTensor *managed)
{
    loan_let_go(managed->manager_ctx);
    free(managed);
}

static void unused_tensor_gone(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor"))
        lent_tensor_gone(PyCapsule_GetPointer(capsule, "dltensor"));
}

static PyObject *tensor_capsule(struct loan *loan)
{
    struct lent_tensor *tensor = calloc(1, sizeof *tensor);
    if (tensor == NULL)
        return PyErr_NoMemory();
    tensor->length = (int64_t)loan->count;
    tensor->managed = (DLManagedTensor){
        .dl_tensor = {.data = loan->numbers,
                      .device = {DL_CPU, 0},
                      .ndim = 1,
                      .dtype = {DL_FLOAT, 64, 1},
                      .shape = &tensor->length},
        .manager_ctx = hold(loan),
        .deleter = lent_tensor_gone,
    };
    PyObject *capsule = PyCapsule_New(tensor, "dltensor", unused_tensor_gone);
    if (capsule == NULL)
        lent_tensor_gone(&tensor->managed);
    return capsule;
}

/* The object that has the two methods. */

struct exporter {
    PyObject_HEAD
    struct loan *loan;
};

/* Newer callers say which version of DLPack they know, where they want the data to be, and whether
 * as a copy.  The answer to the first can always be this one; to the others there is only no. */
static PyObject *exporter_dlpack(PyObject *self, PyObject *positional, PyObject *keywords)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy", NULL};
    PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(positional, keywords, "|$OOOO:__dlpack__", (char **)names,
                                     &stream, &version, &device, &copy))
        return NULL;
    int type = DL_CPU, id = 0;
    if (device != Py_None && !PyArg_ParseTuple(device, "ii:dl_device", &type, &id))
        return NULL;
    if (type != DL_CPU || id != 0 || stream != Py_None || copy == Py_True) {
        PyErr_SetString(PyExc_BufferError, "this memory is the CPU's, and is not copied");
        return NULL;
    }
    return tensor_capsule(((struct exporter *)self)->loan);
}

static PyObject *exporter_device(PyObject *self, PyObject *nothing)
{
    (void)self;
    (void)nothing;
    return Py_BuildValue("(ii)", DL_CPU, 0);
}

static void exporter_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    loan_let_go(((struct exporter *)self)->loan);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMethodDef exporter_methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))exporter_dlpack, METH_VARARGS | METH_KEYWORDS,
     "The memory, in a capsule."},
    {"__dlpack_device__", exporter_device, METH_NOARGS, "Where the memory is."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot exporter_slots[] = {
    {Py_tp_dealloc, exporter_dealloc},
    {Py_tp_methods, exporter_methods},
    {0, NULL},
};

static PyType_Spec exporter_spec = {
    .name = "host.Loan",
    .basicsize = sizeof(struct exporter),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = exporter_slots,
};

PyObject *loan_as_dlpack(struct loan *loan)
{
    PyObject *type = PyType_FromSpec(&exporter_spec);
    if (type == NULL)
        return NULL;
    struct exporter *exporter = PyObject_New(struct exporter, (PyTypeObject *)type);
    Py_DECREF(type);
    if (exporter != NULL)
        exporter->loan = hold(loan);
    return (PyObject *)exporter;
}
