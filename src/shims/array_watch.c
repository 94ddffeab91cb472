/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The functions behind ndarray's dtype and __setstate__, and behind np.fromiter, are exchanged in
 * NumPy's own tables, to which the type's descriptors and the function point.  The function that
 * ends an array is exchanged in the type.
 */
#include "shims/auditor.h"

#include "python/api.h"

typedef int (*setter)(PyObject *object, PyObject *value, void *closure);

/* PyGetSetDef, and what PyMethodDescrObject and PyGetSetDescrObject have behind the object's head.
 */
struct attribute {
    const char *name;
    PyObject *(*get)(PyObject *object, void *closure);
    setter set;
    const char *doc;
    void *closure;
};
struct descriptor {
    PyObject *type, *name, *qualified_name;
    union {
        PyMethodDef *method;
        struct attribute *attribute;
    } of;
};

/* The beginning of PyTypeObject, behind the object's head. */
struct type {
    Py_ssize_t size;
    const char *name;
    Py_ssize_t basic_size, item_size;
    void (*dealloc)(PyObject *object);
};

static struct {
    struct auditor *auditor;
    void (*dealloc)(PyObject *object);
    setter set_dtype;
    PyCFunction setstate;
    PyCFunctionWithKeywords fromiter;
} numpys;

static bool owns(const struct array_fields *fields)
{
    return (fields->flags & NPY_ARRAY_OWNDATA) != 0 && fields->data != NULL;
}

static void note_if_empty(PyObject *array, enum array_change change)
{
    const struct array_fields *fields = array_fields(array);
    bool is_empty = false;
    for (int i = 0; i < fields->nd; i++)
        is_empty |= fields->dimensions[i] == 0;
    if (is_empty && owns(fields))
        auditor_note(numpys.auditor, fields->data, change);
}

static int set_dtype(PyObject *array, PyObject *dtype, void *closure)
{
    int result = numpys.set_dtype(array, dtype, closure);
    note_if_empty(array, EMPTIED_BY_DTYPE);
    return result;
}

static PyObject *fromiter(PyObject *module, PyObject *arguments, PyObject *keywords)
{
    PyObject *made = numpys.fromiter(module, arguments, keywords);
    if (made != NULL && PyArray_Check(made))
        note_if_empty(made, EMPTY_OF_FROMITER);
    return made;
}

static PyObject *setstate(PyObject *array, PyObject *arguments)
{
    const struct array_fields *fields = array_fields(array);
    const void *block = fields->data;
    const PyArray_Descr *dtype = fields->descr;
    PyObject *result = numpys.setstate(array, arguments);
    if (result == NULL && fields->descr != dtype && fields->data == block && owns(fields))
        auditor_note(numpys.auditor, block, LEFT_BY_SETSTATE);
    return result;
}

/* NumPy frees the data of such an array by libc's free. */
static void dealloc(PyObject *array)
{
    const struct array_fields *fields = array_fields(array);
    if (owns(fields) && fields->mem_handler == NULL)
        auditor_note_unowned(numpys.auditor, fields->data);
    numpys.dealloc(array);
}

/* What lies behind the head of ndarray's attribute of that name, or NULL with an exception; the
 * type keeps it. */
static struct descriptor *descriptor_of(const char *name)
{
    PyObject *object = PyObject_GetAttrString(PyArray_Type, name);
    if (object == NULL)
        return NULL;
    Py_DECREF(object);
    return (struct descriptor *)array_fields(object);
}

/* Where it is a function in C and no Python around one.  False with an exception. */
static bool watch_fromiter(void)
{
    PyObject *module = python_api_c_part();
    PyObject *function = module != NULL ? PyObject_GetAttrString(module, "fromiter") : NULL;
    PyObject *type = function != NULL ? PyObject_Type(function) : NULL;
    PyObject *name = type != NULL ? PyObject_GetAttrString(type, "__name__") : NULL;
    bool has_name = name != NULL;
    if (has_name && PyUnicode_CompareWithASCIIString(name, "builtin_function_or_method") == 0) {
        PyMethodDef *method = *(PyMethodDef **)array_fields(function);
        if (method->ml_flags == (METH_VARARGS | METH_KEYWORDS)) {
            numpys.fromiter = (PyCFunctionWithKeywords)(void (*)(void))method->ml_meth;
            method->ml_meth = (PyCFunction)(void (*)(void))fromiter;
        }
    }
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return has_name;
}

bool array_watch_begin(struct auditor *auditor)
{
    struct descriptor *dtype = descriptor_of("dtype");
    struct descriptor *state = dtype != NULL ? descriptor_of("__setstate__") : NULL;
    if (state == NULL)
        return false;
    numpys.auditor = auditor;
    struct type *ndarray = (struct type *)array_fields(PyArray_Type);
    numpys.dealloc = ndarray->dealloc;
    ndarray->dealloc = dealloc;
    if (dtype->of.attribute->set != NULL) {
        numpys.set_dtype = dtype->of.attribute->set;
        dtype->of.attribute->set = set_dtype;
    }
    if (state->of.method->ml_flags == METH_VARARGS) {
        numpys.setstate = state->of.method->ml_meth;
        state->of.method->ml_meth = setstate;
    }
    return watch_fromiter();
}
