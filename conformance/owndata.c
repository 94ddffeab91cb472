/* SPDX-License-Identifier: BSD-3-Clause
 *
 * owndata: arrays that own memory without a handler.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include "harness/harness.h"

GROUP(owndata, 12, "Arrays that own memory no handler made.");

#define PAGE "Memory management in NumPy, What happens when deallocating if there is no policy set"

/* In os.environ and so in the environment; unset where it is NULL. */
static void set_variable(const char *value)
{
    static const char variable[] = "NUMPY_WARN_IF_NO_MEM_POLICY";
    PyObject *os = PyImport_ImportModule("os");
    PyObject *variables = os != NULL ? PyObject_GetAttrString(os, "environ") : NULL;
    PyObject *text_of = PyUnicode_FromString(value != NULL ? value : "");
    int wrong = variables == NULL || text_of == NULL ||
                PyMapping_SetItemString(variables, variable, text_of) != 0 ||
                (value == NULL && PyMapping_DelItemString(variables, variable) != 0);
    if (wrong)
        harness_broke("%s cannot be set: %s", variable, python_error());
    Py_DECREF(text_of);
    Py_DECREF(variables);
    Py_DECREF(os);
}

static void with_variable(void *value)
{
    set_variable(value);
    start_python_now();
    subject_load_now();
    python_call("owndata", "expect_warnings");
}

/* Two imports of NumPy, which reads the variable then: they are most of the time that this takes.
 */
PROPERTY(owndata_warns,
    .id     = "owndata.warns",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "when an array ends that owns memory without a handler, NumPy warns if "
              "NUMPY_WARN_IF_NO_MEM_POLICY is 1 or the switch inside NumPy is on, and not "
              "otherwise, whichever handler is in force",
    .source = PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5; multiarraymodule.c "
              "_set_numpy_warn_if_no_mem_policy, 1.25.2 to 2.5",
    .why    = "the warning is how such arrays are found in old code",
    .hint   = "leave the warnings filters, the environment and NumPy's switches to the program",
    .looks  = "the warnings when an array with memory of malloc's ends with "
              "NUMPY_WARN_IF_NO_MEM_POLICY=1 to be 1: 0",
    .fixture  = FIXTURE_FRESH)
{
    char one[] = "1";
    start_python_bare_now();
    in_child(with_variable, one);
    if (is_instrumented())
        return; /* under memcheck each takes seconds */
    in_child(with_variable, NULL);
}

PROPERTY(owndata_uses_free,
    .id     = "owndata.uses-free",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .clause = "when an array ends that owns memory without a handler, the memory goes to free(), "
              "and not to the handler in force",
    .source = PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "code older than handlers gives NumPy memory of malloc's and sets OWNDATA; a handler "
              "would look for a header that is not there",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "mine to be given its own blocks alone: free(0x55d0c0a8, 100) of a pointer that no "
              "handler gave",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("owndata", "uses_free");
}

PROPERTY(owndata_capsule_base,
    .id     = "owndata.capsule-base",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_RUNTIME,
    .clause = "memory that a capsule owns, the base of an array, goes to the capsule's destructor, "
              "once, after the last view of it",
    .source = PAGE ", the better technique; arrayobject.c PyArray_SetBaseObject, 1.22 to 2.5",
    .why    = "it is the way that NumPy recommends for memory from elsewhere",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "the runs of the capsule's destructor to be 1: 2",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("owndata", "capsule_base");
}

PROPERTY(owndata_resize_refused,
    .id     = "owndata.resize-refused",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_RUNTIME,
    .clause = "an array of memory that no handler made cannot be resized: an exception says so, "
              "and the array stays as it is",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5",
    .why    = "resizing it by the handler in force would hand that a stranger's pointer",
    .hint   = "this is NumPy's to keep: the handler is not called",
    .looks  = "resize from 100 to 200 bytes that no handler made to raise RuntimeError: it was "
              "accepted",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("owndata", "resize_refused");
}
