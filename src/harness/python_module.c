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

/* ---- how a property ends ------------------------------------------------------------------- */

static PyObject *module_fail(PyObject *self, PyObject *arguments)
{
    const char *expected, *seen;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "ss", &expected, &seen))
        return NULL;
    fail(expected, "%s", seen);
}

static PyObject *module_skip(PyObject *self, PyObject *arguments)
{
    const char *reason;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &reason))
        return NULL;
    skip("%s", reason);
}

static void call_in_child(void *function)
{
    if (PyObject_CallObject(function, NULL) == NULL)
        fail("the function to return", "%s", python_error());
}

static PyObject *module_survives(PyObject *self, PyObject *function)
{
    (void)self;
    return PyBool_FromLong(child_survives(call_in_child, function));
}

static PyObject *module_control(PyObject *self, PyObject *when)
{
    (void)self;
    const char *words = when != Py_None ? PyUnicode_AsUTF8(when) : NULL;
    if (when != Py_None && words == NULL)
        return NULL;
    if (words == NULL)
        control_end();
    else
        control_begin(words);
    Py_RETURN_NONE;
}

static PyObject *module_step(PyObject *self, PyObject *arguments)
{
    const char *words;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &words))
        return NULL;
    step("%s", words);
    Py_RETURN_NONE;
}

static PyObject *module_stopped_short(PyObject *self, PyObject *arguments)
{
    const char *reason;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "s", &reason))
        return NULL;
    stopped_short("%s", reason);
    Py_RETURN_NONE;
}

static PyObject *module_time_is_up(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyBool_FromLong(time_is_up());
}

static PyObject *module_is_instrumented(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyBool_FromLong(is_instrumented());
}

static PyObject *module_below(PyObject *self, PyObject *bound)
{
    (void)self;
    size_t most = PyLong_AsSize_t(bound);
    if (most == 0 || PyErr_Occurred() != NULL)
        return PyErr_Occurred() != NULL ? NULL : PyErr_Format(PyExc_ValueError, "below(0)");
    return PyLong_FromSize_t((size_t)random_below(rng(), most));
}

static PyObject *module_pattern(PyObject *self, PyObject *arguments)
{
    Py_ssize_t size;
    unsigned long long number;
    (void)self;
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

/* Where blocks are live still, recorder and injector stay for them. */
static void end_recorder(PyObject *capsule)
{
    struct fault_injector *injector = PyCapsule_GetContext(capsule);
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        PyErr_Clear();
    else if (recorder_destroy(recorder))
        free(injector);
}

static PyObject *module_new_handler(PyObject *self, PyObject *arguments)
{
    const char *name = NULL;
    int without_subject = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "|zp", &name, &without_subject))
        return NULL;
    struct fault_injector *injector = malloc(sizeof *injector);
    if (injector == NULL)
        return PyErr_NoMemory();
    fault_injector_init(injector, without_subject ? plain_handler() : subject_traced());
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

/* The injector behind that recorder, or NULL with an exception set. */
static struct fault_injector *fault_injector_in(PyObject *capsule)
{
    return recorder_in(capsule) != NULL ? PyCapsule_GetContext(capsule) : NULL;
}

static PyObject *module_refuse(PyObject *self, PyObject *arguments)
{
    PyObject *capsule;
    Py_ssize_t nth;
    int keep_failing = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "On|p", &capsule, &nth, &keep_failing))
        return NULL;
    struct fault_injector *injector = fault_injector_in(capsule);
    if (injector == NULL)
        return NULL;
    size_t refused = injector->refused;
    fault_injector_inject(injector, (size_t)nth, keep_failing, INJECT_ANY);
    return PyLong_FromSize_t(refused);
}

static PyObject *module_refuse_beneath(PyObject *self, PyObject *arguments)
{
    Py_ssize_t nth;
    int keep_failing = 0;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "n|p", &nth, &keep_failing))
        return NULL;
    if (!interpose_works())
        Py_RETURN_NONE;
    size_t refused = interpose_counts().refused;
    interpose_watch();
    interpose_refuse((size_t)nth, keep_failing);
    return PyLong_FromSize_t(refused);
}

static PyObject *module_without_libc(PyObject *self, PyObject *arguments)
{
    PyObject *function;
    Py_ssize_t nth;
    (void)self;
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
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    return PyBool_FromLong(is_refused);
}

/* Python's own allocators, of which one request is refused. */
enum { DOMAINS = PYMEM_DOMAIN_OBJ + 1 };
static struct {
    PyMemAllocatorEx below[DOMAINS];
    size_t nth, requests;
} pythons;

static bool is_refused_python(void)
{
    return ++pythons.requests == pythons.nth;
}

static void *pythons_malloc(void *ctx, size_t size)
{
    PyMemAllocatorEx *below = ctx;
    return is_refused_python() ? NULL : below->malloc(below->ctx, size);
}

static void *pythons_calloc(void *ctx, size_t nelem, size_t elsize)
{
    PyMemAllocatorEx *below = ctx;
    return is_refused_python() ? NULL : below->calloc(below->ctx, nelem, elsize);
}

static void *pythons_realloc(void *ctx, void *p, size_t size)
{
    PyMemAllocatorEx *below = ctx;
    return is_refused_python() ? NULL : below->realloc(below->ctx, p, size);
}

static void pythons_free(void *ctx, void *p)
{
    PyMemAllocatorEx *below = ctx;
    below->free(below->ctx, p);
}

static PyObject *module_without_python(PyObject *self, PyObject *arguments)
{
    PyObject *function;
    Py_ssize_t nth;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "nO", &nth, &function))
        return NULL;
    pythons.nth = (size_t)nth;
    pythons.requests = 0;
    for (int i = 0; i < DOMAINS; i++) {
        PyMemAllocatorEx *below = &pythons.below[i];
        PyMemAllocatorEx above = {below, pythons_malloc, pythons_calloc, pythons_realloc,
                                  pythons_free};
        PyMem_GetAllocator((PyMemAllocatorDomain)i, below);
        PyMem_SetAllocator((PyMemAllocatorDomain)i, &above);
    }
    PyObject *result = PyObject_CallObject(function, NULL);
    for (int i = 0; i < DOMAINS; i++)
        PyMem_SetAllocator((PyMemAllocatorDomain)i, &pythons.below[i]);
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    return PyBool_FromLong(pythons.requests >= pythons.nth);
}

/* Its defect is its name: "no malloc", "no calloc", "no realloc", "no free", "version 0",
 * "version 2"; or any other words, which then go on to the end of the name. */
static PyObject *module_spoiled_handler(PyObject *self, PyObject *defect)
{
    static PyDataMem_Handler spoiled;
    (void)self;
    const char *words = PyUnicode_AsUTF8(defect);
    if (words == NULL)
        return NULL;
    spoiled = *plain_handler();
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

static PyObject *module_set_handler(PyObject *self, PyObject *capsule)
{
    (void)self;
    return PyDataMem_SetHandler(capsule != Py_None ? capsule : NULL);
}

/* The name is not copied, and has to outlive the capsule. */
static PyObject *module_rename(PyObject *self, PyObject *arguments)
{
    PyObject *capsule;
    const char *name;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "Os", &capsule, &name))
        return NULL;
    if (PyCapsule_SetName(capsule, strcmp(name, CAPSULE_NAME) == 0 ? CAPSULE_NAME : "lost") != 0)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *module_get_handler(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyDataMem_GetHandler();
}

static PyObject *module_handlers_alive(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromSize_t(recorder_count());
}

static PyObject *module_subject_name(PyObject *self, PyObject *none)
{
    const char *name = subject_handler()->name;
    (void)self, (void)none;
    return PyUnicode_DecodeUTF8(name, (Py_ssize_t)strnlen(name, sizeof subject_handler()->name),
                                NULL);
}

/* ---- live blocks --------------------------------------------------------------------------- */

static PyObject *module_owner(PyObject *self, PyObject *array)
{
    (void)self;
    if (!PyArray_Check(array))
        return PyErr_Format(PyExc_TypeError, "owner() takes an array");
    const struct recorder *recorder = recorder_of_block(PyArray_DATA(array));
    if (recorder == NULL)
        Py_RETURN_NONE;
    return PyUnicode_FromString(recorder_name(recorder));
}

static PyObject *module_counts(PyObject *self, PyObject *capsule)
{
    (void)self;
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

/* The list with what takes its place there; NULL, and no list any more, where there is nothing. */
static PyObject *add_entry(PyObject *list, Py_ssize_t place, PyObject *entry)
{
    if (entry != NULL && PyList_SetItem(list, place, entry) == 0)
        return list;
    Py_DECREF(list);
    return NULL;
}

static PyObject *module_notes(PyObject *self, PyObject *capsule)
{
    struct note notes[MOST_NOTES];
    (void)self;
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

static PyObject *module_live(PyObject *self, PyObject *capsule)
{
    size_t count;
    (void)self;
    struct recorder *recorder = recorder_in(capsule);
    if (recorder == NULL)
        return NULL;
    struct live_block *blocks = recorder_live(recorder, &count);
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

static PyObject *module_bytes_of(PyObject *self, PyObject *array)
{
    (void)self;
    if (!PyArray_Check(array))
        return PyErr_Format(PyExc_TypeError, "bytes_of() takes an array");
    PyObject *size = PyObject_GetAttrString(array, "nbytes");
    PyObject *bytes = size != NULL
                          ? PyBytes_FromStringAndSize(PyArray_DATA(array), PyLong_AsSsize_t(size))
                          : NULL;
    Py_XDECREF(size);
    return bytes;
}

static PyObject *module_new_array(PyObject *self, PyObject *arguments)
{
    npy_intp count;
    PyArray_Descr *dtype;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "nO&", &count, PyArray_DescrConverter, &dtype))
        return NULL;
    return PyArray_NewFromDescr(PyArray_Type, dtype, 1, &count, NULL, NULL, 0, NULL);
}

static PyObject *module_resize(PyObject *self, PyObject *arguments)
{
    PyObject *array;
    npy_intp count;
    (void)self;
    if (!PyArg_ParseTuple(arguments, "O!n", PyArray_Type, &array, &count))
        return NULL;
    PyArray_Dims shape = {&count, 1};
    return PyArray_Resize(array, &shape, 0, NPY_CORDER);
}

static PyObject *module_make_immortal(PyObject *self, PyObject *object)
{
    (void)self;
    Py_INCREF(object);
    Py_RETURN_NONE;
}

/* ---- arrays of other memory ---------------------------------------------------------------- */

/* An array of `count` bytes 0, 1, 2 ... in a buffer of libc's malloc, which libc's free is watched
 * for from now on where that is possible.  Where NULL is returned the buffer is gone. */
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

static PyObject *module_owndata_array(PyObject *self, PyObject *count)
{
    void *buffer;
    (void)self;
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

static PyObject *module_capsule_array(PyObject *self, PyObject *count)
{
    void *buffer;
    (void)self;
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

static PyObject *module_capsules_released(PyObject *self, PyObject *none)
{
    (void)self, (void)none;
    return PyLong_FromSize_t(capsules_released);
}

static PyObject *module_drop(PyObject *self, PyObject *list)
{
    (void)self;
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

static PyObject *module_is_freed(PyObject *self, PyObject *address)
{
    (void)self;
    void *p = PyLong_AsVoidPtr(address);
    if (p == NULL && PyErr_Occurred() != NULL)
        return NULL;
    if (!interpose_works())
        Py_RETURN_NONE;
    return PyBool_FromLong(!interpose_holds(p));
}

/* ---- the module ---------------------------------------------------------------------------- */

static PyMethodDef methods[] = {
    {"below", module_below, METH_O, "below(n): a number from 0 to n - 1, from the run's seed."},
    {"fail", module_fail, METH_VARARGS, "fail(expected, seen): the clause does not hold."},
    {"bytes_of", module_bytes_of, METH_O,
     "bytes_of(array): its memory as it is, the pointers of objects included."},
    {"capsule_array", module_capsule_array, METH_O,
     "capsule_array(n): n bytes of malloc's, owned by a capsule that is the array's base."},
    {"capsules_released", module_capsules_released, METH_NOARGS,
     "How often the destructor of such a capsule has run."},
    {"counts", module_counts, METH_O, "counts(handler): what it has counted, as a dict."},
    {"drop", module_drop, METH_O,
     "drop(list): empties the list, and watches meanwhile what goes to libc's free."},
    {"get_handler", module_get_handler, METH_NOARGS, "The capsule in force."},
    {"handlers_alive", module_handlers_alive, METH_NOARGS,
     "How many handlers of new_handler there are whose capsule lives or that have live blocks."},
    {"is_freed", module_is_freed, METH_O,
     "is_freed(address): drop() saw a buffer of owndata_array or capsule_array go to libc's free; "
     "None where that cannot be seen."},
    {"is_instrumented", module_is_instrumented, METH_NOARGS, "True under memcheck or a sanitizer."},
    {"live", module_live, METH_O, "live(handler): (address, size) of each live block of its."},
    {"make_immortal", module_make_immortal, METH_O,
     "make_immortal(object): one reference more, which nobody gives back."},
    {"new_array", module_new_array, METH_VARARGS,
     "new_array(n, dtype): as C code makes one, objects being NULL pointers."},
    {"new_handler", module_new_handler, METH_VARARGS,
     "new_handler(name=None, plain=False): a capsule around a new recorder before a fault "
     "injector before the subject, or before nothing but libc."},
    {"notes", module_notes, METH_O,
     "notes(handler): (kind, line, size said, size asked for) of each thing that should not have "
     "come to it."},
    {"owndata_array", module_owndata_array, METH_O,
     "owndata_array(n): n bytes of malloc's, OWNDATA set by hand, and no handler."},
    {"owner", module_owner, METH_O,
     "owner(array): the name of the handler whose live block its data is, or None."},
    {"pattern", module_pattern, METH_VARARGS,
     "pattern(size, number): what block `number` is filled with, as bytes."},
    {"refuse", module_refuse, METH_VARARGS,
     "refuse(handler, n, keep_failing=False): its n-th request from now on gets NULL, without the "
     "subject being asked; 0: none.  Returns how many that has hit since the last time."},
    {"refuse_beneath", module_refuse_beneath, METH_VARARGS,
     "refuse_beneath(n, keep_failing=False): the same of what the subject asks of libc or the "
     "kernel; "
     "None where that cannot be seen."},
    {"rename", module_rename, METH_VARARGS, "rename(capsule, name): \"mem_handler\", or \"lost\"."},
    {"resize", module_resize, METH_VARARGS,
     "resize(array, n): PyArray_Resize without a look at who else refers to it."},
    {"set_handler", module_set_handler, METH_O,
     "set_handler(capsule or None): PyDataMem_SetHandler; returns the previous capsule."},
    {"control", module_control, METH_O,
     "control(when): from now on what fails is a SKIP, or with None no longer."},
    {"skip", module_skip, METH_VARARGS, "skip(reason): it cannot be tested here."},
    {"spoiled_handler", module_spoiled_handler, METH_O,
     "spoiled_handler(defect): a capsule around a struct with that defect, to be put in force and "
     "out again with no array made between."},
    {"stopped_short", module_stopped_short, METH_VARARGS,
     "stopped_short(reason): INCOMPLETE, where nothing fails."},
    {"time_is_up", module_time_is_up, METH_NOARGS, "Whether half of the property's time is over."},
    {"step", module_step, METH_VARARGS, "step(words): what comes next, for a crash report."},
    {"survives", module_survives, METH_O,
     "survives(function): whether it returns, and nothing fails, in a child process."},
    {"without_libc", module_without_libc, METH_VARARGS,
     "without_libc(n, function): calls it, and the n-th request that this thread makes of libc "
     "meanwhile is refused.  Whether one was, or None where that cannot be seen."},
    {"without_python", module_without_python, METH_VARARGS,
     "without_python(n, function): the same of Python's allocators."},
    {"subject_name", module_subject_name, METH_NOARGS, "The name in the subject's struct."},
    {NULL, NULL, 0, NULL},
};

const char *python_module_add(void)
{
    return python_add_module("_conform", methods);
}

void install_handler(PyDataMem_Handler *handler)
{
    PyObject *capsule = handler != NULL ? PyCapsule_New(handler, "mem_handler", NULL) : NULL;
    PyObject *before = capsule != NULL ? PyDataMem_SetHandler(capsule) : NULL;
    if (before == NULL)
        harness_broke("the handler cannot be installed: %s", python_error());
    Py_DECREF(before);
    Py_DECREF(capsule);
}
