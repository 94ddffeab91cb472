/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Functions of Python and NumPy for mutants that change the interpreter.  They are weak, because
 * this object does not link with Python, and NULL if the process has no interpreter.
 */
#ifndef CONFORM_FAULTY_PYTHON_H
#define CONFORM_FAULTY_PYTHON_H

#include "mutant.h"

#define WEAK __attribute__((weak))
typedef struct _object PyObject;
struct method {
    const char *name;
    PyObject *(*function)(PyObject *self, PyObject *arguments);
    int flags;
    const char *doc;
};

WEAK int Py_AtExit(void (*function)(void));
WEAK PyObject *Py_BuildValue(const char *format, ...);
WEAK int Py_IsFinalizing(void);  /* since 3.13 */
WEAK int _Py_IsFinalizing(void); /* before */
WEAK int Py_IsInitialized(void);
WEAK void *PyCapsule_GetPointer(PyObject *capsule, const char *name);
WEAK PyObject *PyCapsule_New(void *p, const char *name, void (*destructor)(PyObject *));
WEAK PyObject *PyCMethod_New(struct method *method, PyObject *self, PyObject *module,
                             PyObject *type);
WEAK int PyErr_CheckSignals(void);
WEAK void PyErr_Clear(void);
WEAK void PyErr_Fetch(PyObject **type, PyObject **value, PyObject **traceback);
WEAK PyObject *PyErr_NoMemory(void);
WEAK void PyErr_NormalizeException(PyObject **type, PyObject **value, PyObject **traceback);
WEAK void PyErr_Restore(PyObject *type, PyObject *value, PyObject *traceback);
WEAK void PyErr_SetString(PyObject *type, const char *message);
WEAK int PyErr_WarnEx(PyObject *category, const char *message, ptrdiff_t level);
WEAK int PyException_SetTraceback(PyObject *value, PyObject *traceback);
WEAK int PyGILState_Check(void);
WEAK int PyGILState_Ensure(void);
WEAK void PyGILState_Release(int state);
WEAK PyObject *PyImport_ImportModule(const char *name);
WEAK int PyList_Append(PyObject *list, PyObject *item);
WEAK void PyMem_Free(void *p);
WEAK void *PyMem_Malloc(size_t size);
WEAK PyObject *PyObject_CallMethod(PyObject *object, const char *name, const char *format, ...);
WEAK PyObject *PyObject_GetAttrString(PyObject *object, const char *name);
WEAK int PyRun_SimpleString(const char *code);
WEAK int PyTraceMalloc_Track(unsigned domain, uintptr_t p, size_t size);
WEAK int PyTraceMalloc_Untrack(unsigned domain, uintptr_t p);
WEAK extern PyObject *PyExc_MemoryError, *PyExc_ResourceWarning, *PyExc_RuntimeWarning;
WEAK extern char _Py_NoneStruct;

UNUSED static bool is_python_up(void)
{
    return Py_IsInitialized != NULL && Py_IsInitialized();
}
UNUSED static bool has_gil(void)
{
    return is_python_up() && PyGILState_Check();
}
UNUSED static void run_python(const char *code)
{
    if (has_gil())
        PyRun_SimpleString(code);
}

/* The pending exception, which is set aside around other calls. */
struct pending {
    PyObject *type, *value, *traceback;
};
UNUSED static struct pending fetch_pending(void)
{
    struct pending pending;
    PyErr_Fetch(&pending.type, &pending.value, &pending.traceback);
    return pending;
}
UNUSED static void restore_pending(struct pending pending)
{
    PyErr_Restore(pending.type, pending.value, pending.traceback);
}

/* An entry of NumPy's table of C functions: 304 is PyDataMem_SetHandler, 305 _GetHandler. */
UNUSED static void *numpy_function(size_t number)
{
    static const char *const modules[] = {"numpy._core._multiarray_umath",
                                          "numpy.core._multiarray_umath"};
    static void **table;
    struct pending pending = fetch_pending();
    for (int i = 0; i < 2 && table == NULL; i++) {
        PyObject *module = PyImport_ImportModule(modules[i]);
        PyObject *capsule = module != NULL ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
        if (capsule != NULL)
            table = PyCapsule_GetPointer(capsule, NULL);
        else
            PyErr_Clear();
    }
    restore_pending(pending);
    return table[number];
}

/* The active handler, or NULL without the GIL. */
UNUSED static PyDataMem_Handler *active_handler(void)
{
    if (!has_gil())
        return NULL;
    PyObject *capsule = ((PyObject * (*)(void)) numpy_function(305))();
    return PyCapsule_GetPointer(capsule, "mem_handler");
}

/* Installs a handler, or NumPy's default for NULL. */
UNUSED static void install(PyDataMem_Handler *handler)
{
    if (!has_gil())
        return;
    PyObject *capsule = handler != NULL ? PyCapsule_New(handler, "mem_handler", NULL) : NULL;
    ((PyObject * (*)(PyObject *)) numpy_function(304))(capsule);
}

#endif
