/* SPDX-License-Identifier: BSD-3-Clause
 *
 * _conform, the built-in module through which the .py files of the battery end their property and
 * reach what Python cannot: NumPy's handler API, the recorders' tables, and arrays whose memory was
 * made outside NumPy.
 */
#include "harness/property_child.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fill.h"
#include "harness/interpose.h"
#include "python/api.h"
#include "python/python.h"
#include "shims/fault_injector.h"
#include "shims/recorder.h"
#include "subject/subject.h"

#define CAPSULE_NAME "mem_handler" /* NumPy's */
#define BUFFER_NAME "conform.buffer"

/* The head of a function of the module; the comment before each describes it as Python sees it. */
#define METHOD(name, argument)                                                                     \
    static PyObject *module_##name(PyObject *self __attribute__((unused)),                         \
                                   PyObject *argument __attribute__((unused)))

/* ---- how a property ends ------------------------------------------------------------------- */

/* fail(expected, seen): the clause does not hold. */
METHOD(fail, arguments)
{
    const char *expected, *seen;
    if (!PyArg_ParseTuple(arguments, "ss", &expected, &seen))
        return NULL;
    fail(expected, "%s", seen);
}

/* skip(reason): it cannot be tested here. */
METHOD(skip, string)
{
    const char *reason = PyUnicode_AsUTF8(string);
    if (reason == NULL)
        return NULL;
    skip("%s", reason);
}

static void call_in_child(void *function)
{
    if (PyObject_CallObject(function, NULL) == NULL)
        fail("the function to return", "%s", python_error());
}

/* survives(function): true if it returns, and nothing fails, in a child process. */
METHOD(survives, function)
{
    return PyBool_FromLong(child_survives(call_in_child, function));
}

/* control(when): from now on what fails is a SKIP, or with None no longer. */
METHOD(control, when)
{
    const char *words = when != Py_None ? PyUnicode_AsUTF8(when) : NULL;
    if (when != Py_None && words == NULL)
        return NULL;
    if (words == NULL)
        control_end();
    else
        control_begin(words);
    Py_RETURN_NONE;
}

/* step(words): what comes next, for a crash report. */
METHOD(step, string)
{
    const char *words = PyUnicode_AsUTF8(string);
    if (words == NULL)
        return NULL;
    step("%s", words);
    Py_RETURN_NONE;
}

/* mark_incomplete(reason): INCOMPLETE, where nothing fails. */
METHOD(mark_incomplete, string)
{
    const char *reason = PyUnicode_AsUTF8(string);
    if (reason == NULL)
        return NULL;
    mark_incomplete("%s", reason);
    Py_RETURN_NONE;
}

/* Whether half of the property's time is over. */
METHOD(time_is_up, none)
{
    return PyBool_FromLong(time_is_up());
}

/* True under memcheck or a sanitizer. */
METHOD(is_instrumented, none)
{
    return PyBool_FromLong(is_instrumented());
}

/* below(n): a number from 0 to n - 1, from the run's seed. */
METHOD(below, bound)
{
    size_t most = PyLong_AsSize_t(bound);
    if (most == 0 || PyErr_Occurred() != NULL)
        return PyErr_Occurred() != NULL ? NULL : PyErr_Format(PyExc_ValueError, "below(0)");
    return PyLong_FromSize_t((size_t)random_below(rng(), most));
}

/* pattern(size, number): what block `number` is filled with, as bytes. */
METHOD(pattern, arguments)
{
    Py_ssize_t size;
    unsigned long long number;
    if (!PyArg_ParseTuple(arguments, "nK", &size, &number))
        return NULL;
    PyObject *bytes = PyBytes_FromStringAndSize(NULL, size);
    if (bytes != NULL)
        pattern_fill_range(PyBytes_AsString(bytes), 0, (size_t)size, number);
    return bytes;
}

/* ---- handlers ------------------------------------------------------------------------------ */

/* The recorder whose capsule this is, or NULL with an exception set. */
static struct recorder *recorder_in(PyObject *capsule)
{
    PyDataMem_Handler *handler = PyCapsule_GetPointer(capsule, CAPSULE_NAME);
    struct recorder *recorder = handler != NULL ? recorder_of_handler(handler) : NULL;
    if (recorder == NULL && PyErr_Occurred() == NULL)
        PyErr_SetString(PyExc_ValueError, "the capsule is not one of new_handler's");
    return recorder;
}

/* Recorder and injector stay as long as blocks are live. */
static void end_recorder(PyObject *capsule)
{
    struct fault_injector *injector = PyCapsule_GetContext(capsule);
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        PyErr_Clear();
    else if (recorder_destroy(recorder))
        free(injector);
}

/* new_handler(name=None, plain=False): a capsule around a new recorder before a fault injector
 * before the subject, or before nothing but libc. */
METHOD(new_handler, arguments)
{
    const char *name = NULL;
    int without_subject = 0;
    if (!PyArg_ParseTuple(arguments, "|zp", &name, &without_subject))
        return NULL;
    struct fault_injector *injector = malloc(sizeof *injector);
    if (injector == NULL)
        return PyErr_NoMemory();
    fault_injector_init(injector, without_subject ? plain_handler(NULL) : subject_traced());
    struct recorder *recorder = recorder_create(&injector->handler, name);
    if (recorder == NULL) {
        free(injector);
        return PyErr_NoMemory();
    }
    PyObject *capsule = PyCapsule_New(recorder_handler(recorder), CAPSULE_NAME, end_recorder);
    if (capsule != NULL)
        PyCapsule_SetContext(capsule, injector);
    else if (recorder_destroy(recorder))
        free(injector);
    return capsule;
}

/* refuse(handler, n, keep_failing=False): its n-th request from now on gets NULL, without the
 * subject being asked; 0: none.  Returns how many that has hit since the last time. */
METHOD(refuse, arguments)
{
    PyObject *capsule;
    Py_ssize_t nth;
    int keep_failing = 0;
    if (!PyArg_ParseTuple(arguments, "On|p", &capsule, &nth, &keep_failing))
        return NULL;
    if (recorder_in(capsule) == NULL)
        return NULL;
    struct fault_injector *injector = PyCapsule_GetContext(capsule);
    size_t refused = injector->refused;
    fault_injector_inject(injector, (size_t)nth, keep_failing);
    return PyLong_FromSize_t(refused);
}

/* refuse_beneath(n, keep_failing=False): the same of what the subject asks of libc or the kernel;
 * None where that cannot be seen. */
METHOD(refuse_beneath, arguments)
{
    Py_ssize_t nth;
    int keep_failing = 0;
    if (!PyArg_ParseTuple(arguments, "n|p", &nth, &keep_failing))
        return NULL;
    if (!interpose_works())
        Py_RETURN_NONE;
    size_t refused = interpose_counts().refused;
    interpose_watch();
    interpose_refuse((size_t)nth, keep_failing);
    return PyLong_FromSize_t(refused);
}

/* without_libc(n, function): calls it, and the n-th request that this thread makes of libc
 * meanwhile is refused.  Whether one was, or None where that cannot be seen. */
METHOD(without_libc, arguments)
{
    PyObject *function;
    Py_ssize_t nth;
    if (!PyArg_ParseTuple(arguments, "nO", &nth, &function))
        return NULL;
    if (!interpose_works())
        Py_RETURN_NONE;
    interpose_watch();
    interpose_refuse((size_t)nth, false);
    interpose_enter();
    PyObject *result = PyObject_CallObject(function, NULL);
    interpose_leave();
    bool is_refused = interpose_counts().refused > 0;
    interpose_refuse(0, false);
    Py_XDECREF(result);
    return result != NULL ? PyBool_FromLong(is_refused) : NULL;
}

/* without_python(n, function): the same of Python's allocators. */
METHOD(without_python, arguments)
{
    PyObject *function;
    Py_ssize_t nth;
    if (!PyArg_ParseTuple(arguments, "nO", &nth, &function))
        return NULL;
    python_allocators_refuse((size_t)nth);
    PyObject *result = PyObject_CallObject(function, NULL);
    bool is_refused = python_allocators_restore();
    Py_XDECREF(result);
    return result != NULL ? PyBool_FromLong(is_refused) : NULL;
}

/* spoiled_handler(defect): a capsule around a struct with that defect, to be put in force and out
 * again with no array made between. */
METHOD(spoiled_handler, defect)
{
    static PyDataMem_Handler spoiled;
    const char *words = PyUnicode_AsUTF8(defect);
    if (words == NULL)
        return NULL;
    spoiled = *plain_handler(NULL);
    PyDataMemAllocator *a = &spoiled.allocator;
    memset(spoiled.name, 'x', sizeof spoiled.name);
    if (strncmp(words, "no ", 3) == 0 || strncmp(words, "version ", 8) == 0)
        snprintf(spoiled.name, sizeof spoiled.name, "%s", words);
    spoiled.version = strcmp(words, "version 0") == 0 ? 0 : strcmp(words, "version 2") == 0 ? 2 : 1;
    a->malloc = strcmp(words, "no malloc") == 0 ? NULL : a->malloc;
    a->calloc = strcmp(words, "no calloc") == 0 ? NULL : a->calloc;
    a->realloc = strcmp(words, "no realloc") == 0 ? NULL : a->realloc;
    a->free = strcmp(words, "no free") == 0 ? NULL : a->free;
    return PyCapsule_New(&spoiled, CAPSULE_NAME, NULL);
}

/* set_handler(capsule or None): PyDataMem_SetHandler; returns the previous capsule. */
METHOD(set_handler, capsule)
{
    return PyDataMem_SetHandler(capsule != Py_None ? capsule : NULL);
}

/* rename(capsule, name): "mem_handler", or "lost". */
METHOD(rename, arguments)
{
    PyObject *capsule;
    const char *name;
    if (!PyArg_ParseTuple(arguments, "Os", &capsule, &name))
        return NULL;
    if (PyCapsule_SetName(capsule, strcmp(name, CAPSULE_NAME) == 0 ? CAPSULE_NAME : "lost") != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* The capsule in force. */
METHOD(get_handler, none)
{
    return PyDataMem_GetHandler();
}

/* How many handlers of new_handler there are whose capsule lives or that have live blocks. */
METHOD(handlers_alive, none)
{
    return PyLong_FromSize_t(recorder_count());
}

/* The name in the subject's struct. */
METHOD(subject_name, none)
{
    const char *name = subject_handler()->name;
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strnlen(name, sizeof subject_handler()->name),
                                NULL);
}

/* ---- live blocks --------------------------------------------------------------------------- */

/* owner(array): the name of the handler whose live block its data is, or None. */
METHOD(owner, array)
{
    if (!PyArray_Check(array))
        return PyErr_Format(PyExc_TypeError, "owner() takes an array");
    const struct recorder *recorder = recorder_of_block(PyArray_DATA(array));
    if (recorder == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(recorder_name(recorder));
}

/* counts(handler): what it has counted, as a dict. */
METHOD(counts, capsule)
{
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        return NULL;
    struct recorder_counts c = recorder_counts(recorder);
    if (c.incomplete)
        harness_broke("there was no memory for the live blocks of %s", recorder_name(recorder));
    return Py_BuildValue("{sn,sn,sn,sn,sn,sn,sn,sn}", "malloc", c.malloc_calls, "calloc",
                         c.calloc_calls, "realloc", c.realloc_calls, "free", c.free_calls,
                         "refused", c.refused, "live_blocks", c.live_blocks, "live_bytes",
                         c.live_bytes, "peak_bytes", c.peak_bytes);
}

/* Puts the entry into the list; if it is NULL, frees the list and returns NULL. */
static PyObject *add_entry(PyObject *list, Py_ssize_t place, PyObject *entry)
{
    if (entry != NULL && PyList_SetItem(list, place, entry) == 0)
        return list;
    Py_DECREF(list);
    return NULL;
}

/* notes(handler): (kind, line, size said, size asked for) of each thing that should not have come
 * to it. */
METHOD(notes, capsule)
{
    struct note notes[MOST_NOTES];
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        return NULL;
    size_t count = recorder_notes(recorder, notes, MOST_NOTES);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *entry =
            Py_BuildValue("(ssnn)", note_kind_name(notes[i].kind), note_text(&notes[i]),
                          (Py_ssize_t)notes[i].size, (Py_ssize_t)notes[i].asked);
        list = add_entry(list, (Py_ssize_t)i, entry);
    }
    return list;
}

/* live(handler): (address, size) of each live block of its. */
METHOD(live, capsule)
{
    size_t count;
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        return NULL;
    struct interval *blocks = recorder_live(recorder, &count);
    if (blocks == NULL)
        return PyErr_NoMemory();
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *pair =
            Py_BuildValue("(Nn)", PyLong_FromSize_t(blocks[i].address), (Py_ssize_t)blocks[i].size);
        list = add_entry(list, (Py_ssize_t)i, pair);
    }
    free(blocks);
    return list;
}

/* bytes_of(array): its memory as it is, the pointers of objects included. */
METHOD(bytes_of, array)
{
    if (!PyArray_Check(array))
        return PyErr_Format(PyExc_TypeError, "bytes_of() takes an array");
    PyObject *size = PyObject_GetAttrString(array, "nbytes");
    PyObject *bytes = size != NULL
                          ? PyBytes_FromStringAndSize(PyArray_DATA(array), PyLong_AsSsize_t(size))
                          : NULL;
    Py_XDECREF(size);
    return bytes;
}

/* new_array(n, dtype): as C code makes one, objects being NULL pointers. */
METHOD(new_array, arguments)
{
    npy_intp count;
    PyArray_Descr *dtype;
    if (!PyArg_ParseTuple(arguments, "nO&", &count, PyArray_DescrConverter, &dtype))
        return NULL;
    return PyArray_NewFromDescr(PyArray_Type, dtype, 1, &count, NULL, NULL, 0, NULL);
}

/* resize(array, n): PyArray_Resize without a look at who else refers to it. */
METHOD(resize, arguments)
{
    PyObject *array;
    npy_intp count;
    if (!PyArg_ParseTuple(arguments, "O!n", PyArray_Type, &array, &count))
        return NULL;
    PyArray_Dims shape = {&count, 1};
    return PyArray_Resize(array, &shape, 0, NPY_CORDER);
}

/* make_immortal(object): one reference more, which nobody gives back. */
METHOD(make_immortal, object)
{
    Py_INCREF(object);
    Py_RETURN_NONE;
}

/* ---- arrays of other memory ---------------------------------------------------------------- */

/* Returns an array of `count` bytes 0, 1, 2 ... in a buffer from libc's malloc, whose free is
 * watched if possible; or NULL, without a buffer. */
static PyObject *array_of_buffer(PyObject *number, void **buffer)
{
    npy_intp count = PyLong_AsSsize_t(number);
    if (count <= 0)
        return PyErr_Occurred() != NULL ? NULL : PyErr_Format(PyExc_ValueError, "no bytes");
    interpose_watch();
    interpose_enter();
    unsigned char *bytes = malloc((size_t)count);
    interpose_leave();
    if (bytes == NULL)
        return PyErr_NoMemory();
    for (npy_intp i = 0; i < count; i++)
        bytes[i] = (unsigned char)i;
    PyObject *array = PyArray_SimpleNewFromData(1, &count, NPY_UINT8, bytes);
    if (array == NULL)
        free(bytes);
    *buffer = bytes;
    return array;
}

/* owndata_array(n): n bytes of malloc's, OWNDATA set by hand, and no handler. */
METHOD(owndata_array, count)
{
    void *buffer;
    PyObject *array = array_of_buffer(count, &buffer);
    if (array != NULL)
        array_fields(array)->flags |= NPY_ARRAY_OWNDATA;
    return array;
}

static size_t capsules_released;

static void free_buffer(PyObject *capsule)
{
    capsules_released++;
    free(PyCapsule_GetPointer(capsule, BUFFER_NAME));
}

/* capsule_array(n): n bytes of malloc's, owned by a capsule that is the array's base. */
METHOD(capsule_array, count)
{
    void *buffer;
    PyObject *array = array_of_buffer(count, &buffer);
    if (array == NULL)
        return NULL;
    PyObject *capsule = PyCapsule_New(buffer, BUFFER_NAME, free_buffer);
    if (capsule == NULL)
        free(buffer);
    else if (PyArray_SetBaseObject(array, capsule) == 0)
        return array;
    Py_DECREF(array); /* SetBaseObject has taken the capsule, also where it fails */
    return NULL;
}

/* How often the destructor of such a capsule has run. */
METHOD(capsules_released, none)
{
    return PyLong_FromSize_t(capsules_released);
}

/* drop(list): empties the list, and watches meanwhile what goes to libc's free. */
METHOD(drop, list)
{
    Py_ssize_t length = PyList_Size(list);
    if (length < 0)
        return NULL;
    interpose_enter();
    int result = PyList_SetSlice(list, 0, length, NULL);
    interpose_leave();
    if (result != 0)
        return NULL;
    Py_RETURN_NONE;
}

/* is_freed(address): drop() saw a buffer of owndata_array or capsule_array go to libc's free; None
 * where that cannot be seen. */
METHOD(is_freed, address)
{
    void *p = PyLong_AsVoidPtr(address);
    if (p == NULL && PyErr_Occurred() != NULL)
        return NULL;
    if (!interpose_works())
        Py_RETURN_NONE;
    return PyBool_FromLong(!interpose_holds(p));
}

/* ---- the module ---------------------------------------------------------------------------- */

#define ROW(name, flags) ((PyMethodDef){#name, module_##name, flags, NULL})
#define NONE(name) ROW(name, METH_NOARGS)
#define ONE(name) ROW(name, METH_O)
#define MORE(name) ROW(name, METH_VARARGS)

static PyMethodDef methods[] = {
    NONE(capsules_released),
    NONE(get_handler),
    NONE(handlers_alive),
    NONE(is_instrumented),
    NONE(subject_name),
    NONE(time_is_up),
    ONE(below),
    ONE(bytes_of),
    ONE(capsule_array),
    ONE(control),
    ONE(counts),
    ONE(drop),
    ONE(is_freed),
    ONE(live),
    ONE(make_immortal),
    ONE(notes),
    ONE(owndata_array),
    ONE(owner),
    ONE(set_handler),
    ONE(skip),
    ONE(spoiled_handler),
    ONE(step),
    ONE(mark_incomplete),
    ONE(survives),
    MORE(fail),
    MORE(new_array),
    MORE(new_handler),
    MORE(pattern),
    MORE(refuse),
    MORE(refuse_beneath),
    MORE(rename),
    MORE(resize),
    MORE(without_libc),
    MORE(without_python),
    {NULL, NULL, 0, NULL},
};

const char *python_module_add(void)
{
    return python_add_module("_conform", methods);
}

void install_handler(PyDataMem_Handler *handler)
{
    PyObject *capsule = handler != NULL ? PyCapsule_New(handler, CAPSULE_NAME, NULL) : NULL;
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    if (before == NULL)
        harness_broke("the handler cannot be installed: %s", python_error());
    Py_DECREF(before);
    Py_DECREF(capsule);
}
