/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Importing our own .py files out of this program, and calling what is in them.
 */

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "python/api.h"
#include "python/python.h"
#include "python/python_sources.h"

static PyObject *import_source(const struct python_source *source);

/* Imports the others of our own files that this one needs, for it to find them.  False with an
 * exception. */
static bool import_needs(const struct python_source *source)
{
    for (const char *const *need = source->needs; *need != NULL; need++) {
        PyObject *module = import_source(python_source_find(*need));
        if (module == NULL)
            return false;
        Py_DECREF(module);
    }
    return true;
}

/* NAME.py as the module conform_NAME: a new reference, or NULL with an exception. */
static PyObject *import_source(const struct python_source *source)
{
    char name[64];
    snprintf(name, sizeof name, "conform_%s", source->name);
    PyObject *module = PyMapping_GetItemString(PyImport_GetModuleDict(), name);
    if (module != NULL)
        return module;
    PyErr_Clear();
    if (!import_needs(source))
        return NULL;
    PyObject *code = Py_CompileString(source->text, source->path, Py_file_input);
    module = code != NULL ? PyImport_ExecCodeModule(name, code) : NULL;
    Py_XDECREF(code);
    return module;
}

void python_half_prepare(const char *group, size_t length)
{
    for (const struct python_source *source = python_sources; source->name != NULL; source++) {
        if (strncmp(source->name, group, length) != 0 ||
            (source->name[length] != '\0' && source->name[length] != '_'))
            continue;
        PyObject *module = import_source(source);
        Py_XDECREF(module);
        PyErr_Clear(); /* python_half_run meets it again, and says it */
    }
}

/* A new reference, or NULL and one line in *wrong. */
static PyObject *find_function(const char *module, const char *function, const char **wrong)
{
    const struct python_source *source = python_source_find(module);
    if (source->name == NULL) {
        *wrong = fmt("%s.py is not in this program", module);
        return NULL;
    }
    PyObject *own = import_source(source);
    PyObject *callable = own != NULL ? PyObject_GetAttrString(own, function) : NULL;
    if (callable == NULL)
        *wrong = fmt("%s: %s", source->path, python_error());
    Py_XDECREF(own);
    return callable;
}

const char *python_half_has(const char *module, const char *function)
{
    const char *wrong = NULL;
    PyObject *callable = find_function(module, function, &wrong);
    Py_XDECREF(callable);
    return wrong;
}

const char *python_half_run(const char *module, const char *function)
{
    const char *wrong = NULL;
    PyObject *callable = find_function(module, function, &wrong);
    PyObject *result = callable != NULL ? PyObject_CallObject(callable, NULL) : NULL;
    if (callable != NULL && result == NULL)
        wrong = python_error();
    Py_XDECREF(result);
    Py_XDECREF(callable);
    return wrong;
}
