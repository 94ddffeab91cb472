/* SPDX-License-Identifier: BSD-3-Clause
 *
 * owndata: arrays that own memory without a handler.
 */
#include "harness/harness.h"
#include "python/api.h"
#include "python/python.h"

GROUP(owndata, 12, "Arrays that own memory no handler made.");

#define PAGE "Memory management in NumPy, What happens when deallocating if there is no policy set"

/* What both properties of the warning share. */
#define WARNS                                                                                      \
    PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5; multiarraymodule.c "                         \
         "_set_numpy_warn_if_no_mem_policy, 1.25.2 to 2.5"
#define LEAVE_ALONE                                                                                \
    "leave the warnings filters, the environment and NumPy's switches to the program"

/* In os.environ and so in the environment. */
static void set_variable(const char *value)
{
    static const char variable[] = "NUMPY_WARN_IF_NO_MEM_POLICY";
    PyObject *os = PyImport_ImportModule("os");
    PyObject *variables = os != NULL ? PyObject_GetAttrString(os, "environ") : NULL;
    PyObject *text_of = PyUnicode_FromString(value);
    if (variables == NULL || text_of == NULL ||
        PyMapping_SetItemString(variables, variable, text_of) != 0)
        harness_broke("%s cannot be set: %s", variable, python_error());
    Py_DECREF(text_of);
    Py_DECREF(variables);
    Py_DECREF(os);
}

/* NumPy reads the variable when it is imported, which is most of the time that this takes. */
PROPERTY(owndata_warns,
    .id     = "owndata.warns",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "when an array ends that owns memory without a handler, NumPy warns if "
              "NUMPY_WARN_IF_NO_MEM_POLICY was 1 when it was imported or the switch inside NumPy "
              "is on, whichever handler is in force",
    .source = WARNS,
    .why    = "the warning is how such arrays are found in old code",
    .hint   = LEAVE_ALONE,
    .looks  = "the warnings when an array with memory of malloc's ends with "
              "NUMPY_WARN_IF_NO_MEM_POLICY=1 to be 1: 0",
    .fixture  = FIXTURE_FRESH)
{
    start_python_bare_now();
    set_variable("1");
    start_python_now();
    subject_load_now();
    python_call("owndata", "expect_warnings");
}

/* The worker has imported NumPy with the variable as whoever started us has it, which is not set
 * but for those that look for such arrays. */
PROPERTY(owndata_silent_unless_asked,
    .id     = "owndata.silent-unless-asked",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "where NUMPY_WARN_IF_NO_MEM_POLICY was not set when NumPy was imported, it does not "
              "warn when an array ends that owns memory without a handler, but while the switch "
              "inside NumPy is on, whichever handler is in force",
    .source = WARNS,
    .why    = "a program that did not ask for the warning cannot do anything about it",
    .hint   = LEAVE_ALONE,
    .looks  = "the warnings when an array with memory of malloc's ends with "
              "NUMPY_WARN_IF_NO_MEM_POLICY unset to be 0: 1",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("owndata", "expect_warnings");
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
