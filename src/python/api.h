/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The C-APIs of Python and NumPy, as far as this program uses them, for any CPython and any NumPy:
 * no header of either is compiled against, and neither is linked.  Each function is a pointer of
 * the function's own name, NULL until it is found: Python's by python_open, NumPy's by
 * python_import_array.
 *
 * Objects are opaque here, for their layout is another in builds without the GIL or with debugging.
 */
#ifndef CONFORM_PYTHON_API_H
#define CONFORM_PYTHON_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "nep49.h"

/* ---- Python: what these are has not changed since 3.9 ---------------------------------------- */

typedef struct python_object PyObject;
typedef struct python_thread PyThreadState;
typedef ssize_t Py_ssize_t;
typedef int PyGILState_STATE;
typedef PyObject *(*PyCFunction)(PyObject *, PyObject *);
typedef void (*PyCapsule_Destructor)(PyObject *);

typedef struct {
    const char *ml_name;
    PyCFunction ml_meth;
    int ml_flags;
    const char *ml_doc;
} PyMethodDef;
typedef PyObject *(*PyCFunctionWithKeywords)(PyObject *, PyObject *, PyObject *);
enum { METH_VARARGS = 0x0001, METH_KEYWORDS = 0x0002, METH_NOARGS = 0x0004, METH_O = 0x0008 };

typedef enum { PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM, PYMEM_DOMAIN_OBJ } PyMemAllocatorDomain;
typedef struct {
    void *ctx;
    void *(*malloc)(void *ctx, size_t size);
    void *(*calloc)(void *ctx, size_t nelem, size_t elsize);
    void *(*realloc)(void *ctx, void *p, size_t size);
    void (*free)(void *ctx, void *p);
} PyMemAllocatorEx;

typedef struct {
    int type;
    const char *func, *err_msg;
    int exitcode;
} PyStatus;

/* About half a kilobyte; which fields there are is another matter in each version. */
typedef union {
    char room[4096];
    max_align_t alignment;
} PyConfig;

enum { Py_file_input = 257 };

/* In alphabetical order. */
#define PYTHON_FUNCTIONS(F)                                                                        \
    F(int, PyArg_ParseTuple, (PyObject *, const char *, ...))                                      \
    F(PyObject *, PyBool_FromLong, (long))                                                         \
    F(char *, PyBytes_AsString, (PyObject *))                                                      \
    F(PyObject *, PyBytes_FromStringAndSize, (const char *, Py_ssize_t))                           \
    F(int, PyCallable_Check, (PyObject *))                                                         \
    F(void *, PyCapsule_GetContext, (PyObject *))                                                  \
    F(void *, PyCapsule_GetPointer, (PyObject *, const char *))                                    \
    F(int, PyCapsule_IsValid, (PyObject *, const char *))                                          \
    F(PyObject *, PyCapsule_New, (void *, const char *, PyCapsule_Destructor))                     \
    F(int, PyCapsule_SetContext, (PyObject *, void *))                                             \
    F(int, PyCapsule_SetName, (PyObject *, const char *))                                          \
    F(int, PyCapsule_SetPointer, (PyObject *, void *))                                             \
    F(void, PyConfig_Clear, (PyConfig *))                                                          \
    F(void, PyConfig_InitPythonConfig, (PyConfig *))                                               \
    F(PyStatus, PyConfig_SetBytesArgv, (PyConfig *, Py_ssize_t, char *const *))                    \
    F(PyObject *, PyDict_GetItemString, (PyObject *, const char *))                                \
    F(PyObject *, PyDict_New, (void))                                                              \
    F(int, PyDict_SetItemString, (PyObject *, const char *, PyObject *))                           \
    F(int, PyErr_CheckSignals, (void))                                                             \
    F(void, PyErr_Clear, (void))                                                                   \
    F(void, PyErr_Fetch, (PyObject **, PyObject **, PyObject **))                                  \
    F(PyObject *, PyErr_Format, (PyObject *, const char *, ...))                                   \
    F(PyObject *, PyErr_NoMemory, (void))                                                          \
    F(void, PyErr_NormalizeException, (PyObject **, PyObject **, PyObject **))                     \
    F(PyObject *, PyErr_Occurred, (void))                                                          \
    F(void, PyErr_Restore, (PyObject *, PyObject *, PyObject *))                                   \
    F(void, PyErr_SetString, (PyObject *, const char *))                                           \
    F(PyObject *, PyEval_GetBuiltins, (void))                                                      \
    F(PyObject *, PyEval_GetFrame, (void))                                                         \
    F(void, PyEval_RestoreThread, (PyThreadState *))                                               \
    F(PyThreadState *, PyEval_SaveThread, (void))                                                  \
    F(int, PyFrame_GetLineNumber, (PyObject *))                                                    \
    F(int, PyGILState_Check, (void))                                                               \
    F(Py_ssize_t, PyGC_Collect, (void))                                                            \
    F(PyGILState_STATE, PyGILState_Ensure, (void))                                                 \
    F(PyThreadState *, PyGILState_GetThisThreadState, (void))                                      \
    F(void, PyGILState_Release, (PyGILState_STATE))                                                \
    F(PyObject *, PyImport_AddModule, (const char *))                                              \
    F(PyObject *, PyImport_ExecCodeModule, (const char *, PyObject *))                             \
    F(PyObject *, PyImport_GetModuleDict, (void))                                                  \
    F(PyObject *, PyImport_ImportModule, (const char *))                                           \
    F(int, PyList_Append, (PyObject *, PyObject *))                                                \
    F(PyObject *, PyList_GetItem, (PyObject *, Py_ssize_t))                                        \
    F(int, PyList_Insert, (PyObject *, Py_ssize_t, PyObject *))                                    \
    F(PyObject *, PyList_New, (Py_ssize_t))                                                        \
    F(int, PyList_SetItem, (PyObject *, Py_ssize_t, PyObject *))                                   \
    F(int, PyList_SetSlice, (PyObject *, Py_ssize_t, Py_ssize_t, PyObject *))                      \
    F(Py_ssize_t, PyList_Size, (PyObject *))                                                       \
    F(long, PyLong_AsLong, (PyObject *))                                                           \
    F(size_t, PyLong_AsSize_t, (PyObject *))                                                       \
    F(Py_ssize_t, PyLong_AsSsize_t, (PyObject *))                                                  \
    F(void *, PyLong_AsVoidPtr, (PyObject *))                                                      \
    F(PyObject *, PyLong_FromSize_t, (size_t))                                                     \
    F(PyObject *, PyMapping_GetItemString, (PyObject *, const char *))                             \
    F(int, PyMapping_SetItemString, (PyObject *, const char *, PyObject *))                        \
    F(void, PyMem_GetAllocator, (PyMemAllocatorDomain, PyMemAllocatorEx *))                        \
    F(void, PyMem_SetAllocator, (PyMemAllocatorDomain, PyMemAllocatorEx *))                        \
    F(int, PyModule_AddFunctions, (PyObject *, PyMethodDef *))                                     \
    F(void, PyOS_AfterFork_Child, (void))                                                          \
    F(void, PyOS_AfterFork_Parent, (void))                                                         \
    F(void, PyOS_BeforeFork, (void))                                                               \
    F(PyObject *, PyObject_CallMethod, (PyObject *, const char *, const char *, ...))              \
    F(PyObject *, PyObject_CallObject, (PyObject *, PyObject *))                                   \
    F(PyObject *, PyObject_Dir, (PyObject *))                                                      \
    F(PyObject *, PyObject_GetAttrString, (PyObject *, const char *))                              \
    F(int, PyObject_HasAttrString, (PyObject *, const char *))                                     \
    F(int, PyObject_IsInstance, (PyObject *, PyObject *))                                          \
    F(int, PyObject_IsTrue, (PyObject *))                                                          \
    F(PyObject *, PyObject_Str, (PyObject *))                                                      \
    F(PyObject *, PyObject_Type, (PyObject *))                                                     \
    F(PyObject *, PyRun_String, (const char *, int, PyObject *, PyObject *))                       \
    F(int, PySequence_Contains, (PyObject *, PyObject *))                                          \
    F(int, PyStatus_Exception, (PyStatus))                                                         \
    F(int, PyStatus_IsExit, (PyStatus))                                                            \
    F(PyObject *, PySys_GetObject, (const char *))                                                 \
    F(const char *, PyUnicode_AsUTF8AndSize, (PyObject *, Py_ssize_t *))                           \
    F(int, PyUnicode_CompareWithASCIIString, (PyObject *, const char *))                           \
    F(PyObject *, PyUnicode_DecodeUTF8, (const char *, Py_ssize_t, const char *))                  \
    F(PyObject *, PyUnicode_FromString, (const char *))                                            \
    F(PyObject *, Py_BuildValue, (const char *, ...))                                              \
    F(PyObject *, Py_CompileString, (const char *, const char *, int))                             \
    F(void, Py_DecRef, (PyObject *))                                                               \
    F(int, Py_FinalizeEx, (void))                                                                  \
    F(const char *, Py_GetVersion, (void))                                                         \
    F(void, Py_IncRef, (PyObject *))                                                               \
    F(PyStatus, Py_InitializeFromConfig, (const PyConfig *))                                       \
    F(int, Py_IsInitialized, (void))                                                               \
    F(int, Py_RunMain, (void))

/* Each is a variable that points to the type. */
#define PYTHON_EXCEPTIONS(E)                                                                       \
    E(PyExc_ImportError)                                                                           \
    E(PyExc_RuntimeError)                                                                          \
    E(PyExc_TypeError)                                                                             \
    E(PyExc_ValueError)

/* ---- NumPy: places in its table, which 2.0 has not moved ------------------------------------- */

typedef ssize_t npy_intp;
typedef PyObject PyArrayObject;
typedef struct numpy_descr PyArray_Descr;
typedef struct {
    npy_intp *ptr;
    int len;
} PyArray_Dims;
enum { NPY_UINT8 = 2, NPY_CORDER = 0 };
enum { NPY_ARRAY_OWNDATA = 0x0004 };

/* In the order of the table. */
#define NUMPY_FUNCTIONS(F)                                                                         \
    F(45, PyArray_Descr *, PyArray_DescrFromType, (int))                                           \
    F(80, PyObject *, PyArray_Resize, (PyArrayObject *, PyArray_Dims *, int, int))                 \
    F(93, PyObject *, PyArray_New,                                                                 \
      (PyObject *, int, const npy_intp *, int, const npy_intp *, void *, int, int, PyObject *))    \
    F(94, PyObject *, PyArray_NewFromDescr,                                                        \
      (PyObject *, PyArray_Descr *, int, const npy_intp *, const npy_intp *, void *, int,          \
       PyObject *))                                                                                \
    F(174, int, PyArray_DescrConverter, (PyObject *, PyArray_Descr **))                            \
    F(183, PyObject *, PyArray_Zeros, (int, const npy_intp *, PyArray_Descr *, int))               \
    F(211, unsigned, PyArray_GetNDArrayCFeatureVersion, (void))                                    \
    F(282, int, PyArray_SetBaseObject, (PyArrayObject *, PyObject *))                              \
    F(288, void *, PyDataMem_NEW, (size_t))                                                        \
    F(304, PyObject *, PyDataMem_SetHandler, (PyObject *))                                         \
    F(305, PyObject *, PyDataMem_GetHandler, (void))

/* ---- what is declared ------------------------------------------------------------------------ */

/* Hidden, lest libpython and NumPy find these where they look for their own. */
#pragma GCC visibility push(hidden)
#define DECLARE_PYTHON(type, name, parameters) extern type(*name) parameters;
#define DECLARE_NUMPY(place, type, name, parameters) extern type(*name) parameters;
#define DECLARE_EXCEPTION(name) extern PyObject *name;
PYTHON_FUNCTIONS(DECLARE_PYTHON)
NUMPY_FUNCTIONS(DECLARE_NUMPY)
PYTHON_EXCEPTIONS(DECLARE_EXCEPTION)
#undef DECLARE_PYTHON
#undef DECLARE_NUMPY
#undef DECLARE_EXCEPTION
extern PyObject *Py_None;
extern int (*Py_IsFinalizing)(void);
extern PyThreadState *(*PyThreadState_GetUnchecked)(void);
extern PyObject *PyArray_Type;
extern PyObject **PyDataMem_DefaultHandlerVariable;
#pragma GCC visibility pop

/* Finds Python's functions in the libpython at `path`, which is opened so that whatever is loaded
 * later finds them as well; with "", in the executable of this process.  Once in a process.  NULL,
 * or one line on what is wrong. */
const char *python_api_open(const char *path);

/* Finds NumPy's, with Python running and the GIL held.  False with an exception. */
bool python_api_import_array(void);

/* After python_api_import_array(), exchanges a function in NumPy's table, which programs read at
 * each call; PyDataMem_SetHandler here stays NumPy's. */
void python_api_exchange_set_handler(PyObject *(*function)(PyObject *capsule));

/* A reference to NumPy's module in C, or NULL with an exception. */
PyObject *python_api_c_part(void);

/* ---- what Python's headers have as macros ---------------------------------------------------- */

#define Py_INCREF(object) Py_IncRef((PyObject *)(object))
#define Py_XINCREF(object) Py_IncRef((PyObject *)(object)) /* which passes over NULL */
#define Py_DECREF(object) Py_DecRef((PyObject *)(object))
#define Py_XDECREF(object) Py_DecRef((PyObject *)(object))
#define Py_RETURN_NONE return Py_INCREF(Py_None), Py_None

static inline const char *PyUnicode_AsUTF8(PyObject *string)
{
    return PyUnicode_AsUTF8AndSize(string, NULL);
}

/* An array's own fields, behind what every object begins with: unchanged since 1.22. */
struct array_fields {
    void *data;
    int nd;
    npy_intp *dimensions, *strides;
    PyObject *base;
    PyArray_Descr *descr;
    int flags;
    PyObject *weak_references;
    void *buffer_info;
    PyObject *mem_handler; /* the capsule that the data is from, or NULL */
};
struct array_fields *array_fields(PyArrayObject *array);

static inline bool PyArray_Check(PyObject *object)
{
    return PyObject_IsInstance(object, PyArray_Type) == 1;
}

static inline void *PyArray_DATA(PyArrayObject *array)
{
    return array_fields(array)->data;
}

static inline npy_intp PyArray_DIM(PyArrayObject *array, int which)
{
    return array_fields(array)->dimensions[which];
}

static inline PyObject *PyArray_SimpleNewFromData(int nd, const npy_intp *shape, int type,
                                                  void *data)
{
    enum { CARRAY = 0x0001 | 0x0100 | 0x0400 }; /* contiguous, aligned, writeable */
    return PyArray_New(PyArray_Type, nd, shape, type, NULL, data, 0, data != NULL ? CARRAY : 0,
                       NULL);
}

static inline PyObject *PyArray_SimpleNew(int nd, const npy_intp *shape, int type)
{
    return PyArray_SimpleNewFromData(nd, shape, type, NULL);
}

static inline PyObject *PyArray_ZEROS(int nd, const npy_intp *shape, int type, int fortran)
{
    return PyArray_Zeros(nd, shape, PyArray_DescrFromType(type), fortran);
}

#define PyDataMem_DefaultHandler (*PyDataMem_DefaultHandlerVariable)

#endif
