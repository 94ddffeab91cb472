/* SPDX-License-Identifier: BSD-3-Clause
 *
 * For mutants that meddle with NumPy and Python: what they need of both, looked up at run time,
 * because this object links with neither.  All of it does nothing where no interpreter runs or the
 * calling thread does not hold the GIL.  Included before any other header.
 */
#ifndef CONFORM_FAULTY_MEDDLE_H
#define CONFORM_FAULTY_MEDDLE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT, gettid */
#endif

#include <dlfcn.h>

#include "base.h"

typedef void object; /* a PyObject */

/* The function of CPython's of that name, as a pointer of type `type`. */
#define PYTHON(type, name) ((type)dlsym(RTLD_DEFAULT, name))

UNUSED static bool has_gil(void)
{
    int (*is_up)(void) = PYTHON(int (*)(void), "Py_IsInitialized");
    int (*holds)(void) = PYTHON(int (*)(void), "PyGILState_Check");
    return is_up != NULL && holds != NULL && is_up() && holds();
}

/* The exception that is pending: what is called in between knows nothing of it. */
struct pending {
    object *type, *value, *traceback;
};

UNUSED static struct pending put_aside(void)
{
    struct pending pending;
    PYTHON(void (*)(object **, object **, object **), "PyErr_Fetch")
    (&pending.type, &pending.value, &pending.traceback);
    return pending;
}

UNUSED static void put_back(const struct pending *pending)
{
    PYTHON(void (*)(object *, object *, object *), "PyErr_Restore")
    (pending->type, pending->value, pending->traceback);
}

UNUSED static void run_python(const char *code)
{
    if (has_gil())
        PYTHON(int (*)(const char *, void *), "PyRun_SimpleStringFlags")(code, NULL);
}

/* An entry of the table that PyDataMem_SetHandler (304) and its kin are reached by. */
static void *numpy_function(size_t number)
{
    static const char *const homes[] = {"numpy._core._multiarray_umath",
                                        "numpy.core._multiarray_umath"};
    static void **table;
    struct pending pending = put_aside();
    for (int i = 0; i < 2 && table == NULL; i++) {
        object *module = PYTHON(object * (*)(const char *), "PyImport_ImportModule")(homes[i]);
        object *capsule = module == NULL ? NULL
                                         : PYTHON(object * (*)(object *, const char *),
                                                  "PyObject_GetAttrString")(module, "_ARRAY_API");
        if (capsule != NULL)
            table =
                PYTHON(void *(*)(object *, const char *), "PyCapsule_GetPointer")(capsule, NULL);
        else
            PYTHON(void (*)(void), "PyErr_Clear")();
    }
    put_back(&pending);
    return table[number];
}

/* The handler in force, or NULL where that cannot be known. */
UNUSED static PyDataMem_Handler *handler_in_force(void)
{
    if (!has_gil())
        return NULL;
    object *capsule = ((object * (*)(void)) numpy_function(305))();
    return PYTHON(void *(*)(object *, const char *), "PyCapsule_GetPointer")(capsule,
                                                                             "mem_handler");
}

/* Puts it in force; NULL brings back NumPy's own. */
UNUSED static void put_in_force(PyDataMem_Handler *handler)
{
    if (!has_gil())
        return;
    object *capsule = handler == NULL ? NULL
                                      : PYTHON(object * (*)(void *, const char *, void *),
                                               "PyCapsule_New")(handler, "mem_handler", NULL);
    ((object * (*)(object *)) numpy_function(304))(capsule);
}

#endif
