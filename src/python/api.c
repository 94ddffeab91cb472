/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finding the functions of Python and NumPy in what is loaded.
 */
#include "python/api.h"

#include <dlfcn.h>
#include <string.h>

#include "base/text.h"

#define DEFINE_PYTHON(type, name, parameters) type(*name) parameters;
#define DEFINE_NUMPY(place, type, name, parameters) type(*name) parameters;
#define DEFINE_EXCEPTION(name) PyObject *name;
PYTHON_FUNCTIONS(DEFINE_PYTHON)
NUMPY_FUNCTIONS(DEFINE_NUMPY)
PYTHON_EXCEPTIONS(DEFINE_EXCEPTION)
PyObject *Py_None;
int (*Py_IsFinalizing)(void);
PyThreadState *(*PyThreadState_GetUnchecked)(void);
PyObject *PyArray_Type;
PyObject **PyDataMem_DefaultHandlerVariable;

/* How many bytes every object begins with. */
static size_t header;

/* ---- Python ------------------------------------------------------------------------------ */

#define PYTHON_ENTRY(type, name, parameters) {#name, (void **)&name, false},
#define EXCEPTION_ENTRY(name) {#name, (void **)&name, true},
static const struct {
    const char *name;
    void **variable;
    bool is_pointer; /* what has the name is a pointer to what is wanted */
} entries[] = {PYTHON_FUNCTIONS(PYTHON_ENTRY) PYTHON_EXCEPTIONS(EXCEPTION_ENTRY)};

const char *python_api_open(const char *path)
{
    void *library = dlopen(*path != '\0' ? path : NULL, RTLD_NOW | RTLD_GLOBAL);
    if (library == NULL)
        return fmt("its libpython cannot be loaded: %s", escape(dlerror()));
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
        void *found = dlsym(library, entries[i].name);
        if (found == NULL)
            return fmt("%s has no %s", escape(path), entries[i].name);
        *entries[i].variable = entries[i].is_pointer ? *(void **)found : found;
    }
    Py_None = dlsym(library, "_Py_NoneStruct");
    Py_IsFinalizing = (int (*)(void))dlsym(library, "Py_IsFinalizing");
    if (Py_IsFinalizing == NULL) /* before 3.13 */
        Py_IsFinalizing = (int (*)(void))dlsym(library, "_Py_IsFinalizing");
    *(void **)&PyThreadState_GetUnchecked = dlsym(library, "PyThreadState_GetUnchecked");
    if (PyThreadState_GetUnchecked == NULL) /* likewise */
        *(void **)&PyThreadState_GetUnchecked = dlsym(library, "_PyThreadState_UncheckedGet");
    return Py_None != NULL && Py_IsFinalizing != NULL && PyThreadState_GetUnchecked != NULL
               ? NULL
               : fmt("%s is not the libpython of a CPython that is known", escape(path));
}

/* ---- NumPy ------------------------------------------------------------------------------- */

enum { FEATURES_OF_1_22 = 0x0f, ARRAY_TYPE = 2, SET_HANDLER = 304, DEFAULT_HANDLER = 306 };

PyObject *python_api_c_part(void)
{
    PyObject *module = PyImport_ImportModule("numpy._core._multiarray_umath");
    if (module == NULL) {
        PyErr_Clear(); /* before 2.0 */
        module = PyImport_ImportModule("numpy.core._multiarray_umath");
    }
    return module;
}

/* NumPy's table, or NULL with an exception. */
static void **find_table(void)
{
    PyObject *module = python_api_c_part();
    PyObject *capsule = module != NULL ? PyObject_GetAttrString(module, "_ARRAY_API") : NULL;
    void **table = capsule != NULL ? PyCapsule_GetPointer(capsule, NULL) : NULL;
    Py_XDECREF(capsule);
    Py_XDECREF(module);
    return table;
}

/* Asks for object.__basicsize__.  False with an exception. */
static bool measure_header(void)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    PyObject *type = builtins != NULL ? PyObject_GetAttrString(builtins, "object") : NULL;
    PyObject *size = type != NULL ? PyObject_GetAttrString(type, "__basicsize__") : NULL;
    header = size != NULL ? PyLong_AsSize_t(size) : 0;
    Py_XDECREF(size);
    Py_XDECREF(type);
    Py_XDECREF(builtins);
    return PyErr_Occurred() == NULL;
}

static void **table; /* NumPy's */

#define NUMPY_ENTRY(place, type, name, parameters) {place, (void **)&name},
bool python_api_import_array(void)
{
    static const struct {
        size_t place;
        void **variable;
    } places[] = {NUMPY_FUNCTIONS(NUMPY_ENTRY)};
    table = find_table();
    if (table == NULL || !measure_header())
        return false;
    memcpy(&PyArray_GetNDArrayCFeatureVersion, &table[211], sizeof *table);
    if (PyArray_GetNDArrayCFeatureVersion() < FEATURES_OF_1_22) {
        PyErr_SetString(PyExc_ImportError, "data-memory handlers came with NumPy 1.22");
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        *places[i].variable = table[places[i].place];
    PyArray_Type = table[ARRAY_TYPE];
    PyDataMem_DefaultHandlerVariable = table[DEFAULT_HANDLER];
    return true;
}

void python_api_exchange_set_handler(PyObject *(*function)(PyObject *capsule))
{
    memcpy(&table[SET_HANDLER], &function, sizeof *table);
}

struct array_fields *array_fields(PyArrayObject *array)
{
    return (struct array_fields *)((char *)array + header);
}
