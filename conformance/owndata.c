/* SPDX-License-Identifier: BSD-3-Clause
 *
 * owndata: arrays that own memory without a handler.
 */
#include "harness/harness.h"
#include "python/api.h"
#include "python/python.h"

GROUP(owndata, 12, "Arrays that own memory without a handler.",
      .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 41});

#define PAGE "Memory management in NumPy, What happens when deallocating if there is no policy set"

/* What both properties of the warning share. */
#define WARNS                                                                                      \
    PAGE "; arrayobject.c array_dealloc, 1.22 to 2.5; multiarraymodule.c "                         \
         "_set_numpy_warn_if_no_mem_policy, 1.25.2 to 2.5"
#define LEAVE_ALONE                                                                                \
    "Leave the warnings filters, the environment and NumPy's switches to the program."

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
    .id     = "owndata.warns", .level = MUST, .basis = BASIS_NEP, .slow_ms = 165,
    .fixture = FIXTURE_FRESH,
    .title  = "NumPy warns if it is asked to",
    .clause = "NumPy warns when an array that owns memory without a handler ends, if "
              "NUMPY_WARN_IF_NO_MEM_POLICY=1 or NumPy's switch is set.",
    .source = WARNS,
    .why    = "Users find such arrays in old code by this warning.",
    .hint   = LEAVE_ALONE,
    .looks  = "expected the warnings with NUMPY_WARN_IF_NO_MEM_POLICY=1 to be 1; seen 0")
{
    start_python_bare_now();
    set_variable("1");
    start_python_now();
    load_subject();
    python_call("owndata", "expect_warnings");
}

/* The worker has imported NumPy with the variable as whoever started us has it, which is not set
 * but for those that look for such arrays. */
PYTHON_PROPERTY(owndata, expect_warnings,
    .id     = "owndata.silent-unless-asked", .level = MUST, .basis = BASIS_NEP,
    .title  = "NumPy does not warn by default",
    .clause = "Without NUMPY_WARN_IF_NO_MEM_POLICY or its switch, NumPy does not warn when an "
              "array without a handler ends.",
    .source = WARNS,
    .why    = "A program that did not request the warning cannot act on it.",
    .hint   = LEAVE_ALONE,
    .looks  = "expected the warnings with NUMPY_WARN_IF_NO_MEM_POLICY unset to be 0; seen 1");
