/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Working out how a Python object offers a handler.  The conventions in use differ, and what
 * counts is what they come to: a capsule named "mem_handler", in hand or in force.
 */
#include "subject/subject.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "python/api.h"
#include "python/python.h"

/* What an object gave: the capsule, a reference of ours, and by what convention. */
struct offer {
    PyObject *capsule;
    const char *how;
};

static const struct offer nothing = {NULL, NULL};

static bool is_handler(PyObject *object)
{
    return object != NULL && PyCapsule_IsValid(object, "mem_handler");
}

/* The handler in force, a new reference. */
static PyObject *current(void)
{
    PyObject *capsule = PyDataMem_GetHandler();
    PyErr_Clear();
    return capsule;
}

static void restore(PyObject *capsule)
{
    Py_XDECREF(PyDataMem_SetHandler(capsule));
    PyErr_Clear();
}

/* with object: what is in force inside? */
static struct offer try_context_manager(PyObject *object)
{
    PyObject *type = PyObject_Type(object);
    bool has_both =
        PyObject_HasAttrString(type, "__enter__") && PyObject_HasAttrString(type, "__exit__");
    Py_DECREF(type);
    if (!has_both)
        return nothing;
    PyObject *before = current();
    PyObject *entered = PyObject_CallMethod(object, "__enter__", NULL);
    if (entered == NULL) {
        Py_XDECREF(before);
        return nothing; /* with its exception */
    }
    PyObject *inside = current();
    PyObject *left = PyObject_CallMethod(object, "__exit__", "OOO", Py_None, Py_None, Py_None);
    PyErr_Clear();
    Py_XDECREF(left);
    Py_DECREF(entered);
    restore(before);
    bool changed = inside != before;
    Py_XDECREF(before);
    if (changed && is_handler(inside))
        return (struct offer){inside, "a context manager"};
    Py_XDECREF(inside);
    return nothing;
}

static struct offer try_attributes(PyObject *object)
{
    PyObject *names = PyObject_Dir(object);
    struct offer offer = nothing;
    for (Py_ssize_t i = 0; names != NULL && i < PyList_Size(names) && offer.capsule == NULL; i++) {
        const char *name = PyUnicode_AsUTF8(PyList_GetItem(names, i));
        if (name == NULL || strncmp(name, "__", 2) == 0)
            continue;
        PyObject *value = PyObject_GetAttrString(object, name);
        if (is_handler(value))
            offer = (struct offer){value, fmt("an object with a capsule, its attribute %s", name)};
        else
            Py_XDECREF(value);
        PyErr_Clear();
    }
    Py_XDECREF(names);
    return offer;
}

/* A function either changes what is in force, or returns something to look at. */
static struct offer try_call(PyObject *object)
{
    PyObject *before = current();
    PyObject *result = PyObject_CallObject(object, NULL);
    if (result == NULL) {
        Py_XDECREF(before);
        return nothing; /* with its exception */
    }
    PyObject *after = current();
    struct offer offer = nothing;
    if (after != before && is_handler(after)) {
        Py_INCREF(after);
        offer = (struct offer){after, "a function that installs its handler"};
    } else if (is_handler(result)) {
        Py_INCREF(result);
        offer = (struct offer){result, "a function that returns a capsule"};
    } else {
        offer = try_context_manager(result);
        if (offer.capsule != NULL)
            offer.how = "a function that returns a context manager";
    }
    restore(before);
    Py_XDECREF(after);
    Py_XDECREF(before);
    Py_DECREF(result);
    return offer;
}

static struct offer work_out(PyObject *object)
{
    if (is_handler(object)) {
        Py_INCREF(object);
        return (struct offer){object, "a capsule"};
    }
    struct offer offer = try_context_manager(object);
    if (offer.capsule == NULL && !PyErr_Occurred())
        offer = try_attributes(object);
    if (offer.capsule == NULL && !PyErr_Occurred() && PyCallable_Check(object))
        offer = try_call(object);
    return offer;
}

/* What was put in force since `before` was, which is put back; or nothing.  A pending exception
 * stays. */
static struct offer installed_since(PyObject *before)
{
    struct offer offer = nothing;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *now = current();
    if (now != before)
        restore(before);
    if (now != before && is_handler(now))
        offer = (struct offer){now, "a module that installs its handler when it is imported"};
    else
        Py_XDECREF(now);
    PyErr_Restore(type, value, traceback);
    return offer;
}

/* As python3 -c does, so that a package in the working directory is found. */
static void look_here_first(void)
{
    PyObject *path = PySys_GetObject("path"), *here = PyUnicode_FromString("");
    if (path != NULL && here != NULL && PySequence_Contains(path, here) == 0)
        PyList_Insert(path, 0, here);
    Py_XDECREF(here);
    PyErr_Clear();
}

void python_subject_prepare(const struct subject_place *place)
{
    static const char *const disturbing[] = {"signal", "readline"};
    for (size_t i = 0; place->module != NULL && i < sizeof disturbing / sizeof *disturbing; i++) {
        PyObject *module = PyImport_ImportModule(disturbing[i]);
        Py_XDECREF(module);
        PyErr_Clear(); /* not every Python has it */
    }
}

/* MODULE's attribute a.b.c, or MODULE itself, a new reference, or NULL with an exception. */
static PyObject *find_object(const char *module, const char *dotted)
{
    PyObject *object = PyImport_ImportModule(module);
    char name[256];
    while (object != NULL && *dotted != '\0') {
        size_t length = strcspn(dotted, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, dotted);
        PyObject *attribute = PyObject_GetAttrString(object, name);
        Py_DECREF(object);
        object = attribute;
        dotted += length + (dotted[length] == '.');
    }
    return object;
}

/* "numpy.float64", or "int" of what is built in. */
static const char *full_type_name(PyObject *object)
{
    PyObject *type = PyObject_Type(object);
    PyObject *module = PyObject_GetAttrString(type, "__module__");
    const char *of = module != NULL ? PyUnicode_AsUTF8(module) : NULL;
    const char *name = python_type_name(type);
    if (of != NULL && strcmp(of, "builtins") != 0)
        name = fmt("%s.%s", escape(of), name);
    Py_XDECREF(module);
    Py_DECREF(type);
    PyErr_Clear();
    return name;
}

/* Of a module alone it is what its import installed that counts, of an attribute what that gives;
 * `object` is NULL where there is none, with an exception. */
static struct offer choose(PyObject *object, bool is_module, struct offer imported)
{
    bool has_imported = imported.capsule != NULL;
    struct offer offer = nothing;
    if (object != NULL && !(is_module && has_imported))
        offer = work_out(object);
    if (object != NULL && offer.capsule == NULL && has_imported) {
        PyErr_Clear();
        return imported;
    }
    Py_XDECREF(imported.capsule);
    return offer;
}

enum load_state python_subject_load(const struct subject_place *place, struct subject *subject,
                                    char *why, size_t room)
{
    memset(subject, 0, sizeof *subject);
    subject->claims = "";
    look_here_first();
    PyObject *before = current();
    PyObject *object = find_object(place->module, place->symbol);
    struct offer offer = choose(object, *place->symbol == '\0', installed_since(before));
    if (place->is_default && offer.capsule == NULL)
        offer = (struct offer){current(), "the handler that NumPy comes with"};
    Py_XDECREF(before);
    if (offer.capsule == NULL) {
        if (PyErr_Occurred()) {
            const char *error = python_error();
            /* the sanitizers whose runtime is not one that find_in_module() knows */
            bool lacks_sanitizer = strstr(error, "symbol: __asan_") != NULL ||
                                   strstr(error, "symbol: __tsan_") != NULL ||
                                   strstr(error, "libtsan.so") != NULL;
            snprintf(why, room, "%s%s", error,
                     lacks_sanitizer
                         ? "; begin the command with LD_PRELOAD= and the runtime of its sanitizer"
                         : "");
        } else {
            snprintf(why, room,
                     "no handler came of it: it is of type %s, and neither a capsule "
                     "named mem_handler, nor has it one, nor does it install one",
                     full_type_name(object));
        }
        Py_XDECREF(object);
        return LOAD_FAILED;
    }
    Py_DECREF(object);
    /* the capsule is never given back: what it points to has to outlive the process's blocks */
    subject->handler = PyCapsule_GetPointer(offer.capsule, "mem_handler");
    snprintf(subject->how, sizeof subject->how, "%s", offer.how);
    return LOAD_DONE;
}
