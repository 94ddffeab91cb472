/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: arrays that end in the midst of a call, because Python collects garbage there.
 */
#include <signal.h>

#include "harness/harness.h"
#include "harness/property_child.h"
#include "python/api.h"
#include "python/python.h"

static const char *volatile under_way = "";

static void too_late(int number)
{
    (void)number;
    fail(fmt("%s to return, though Python collects garbage in it that holds arrays", under_way),
         "no end after %.3g s", hang_limit());
}

static void call_gc(const char *function)
{
    static PyObject *gc;
    if (gc == NULL)
        gc = PyImport_ImportModule("gc");
    PyObject *done = gc != NULL ? PyObject_CallMethod(gc, function, NULL) : NULL;
    if (done == NULL)
        harness_broke("gc.%s: %s", function, python_error());
    Py_DECREF(done);
}

static void collect_at_once(void)
{
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *done = gc != NULL ? PyObject_CallMethod(gc, "set_threshold", "ii", 1, 0) : NULL;
    if (done == NULL)
        harness_broke("gc.set_threshold: %s", python_error());
    Py_DECREF(done);
    Py_DECREF(gc);
}

/* A list that holds itself and an array, and that nobody holds. */
static void drop_cycle(npy_intp bytes)
{
    PyObject *list = PyList_New(0), *array = PyArray_ZEROS(1, &bytes, NPY_UINT8, 0);
    if (list == NULL || array == NULL || PyList_Append(list, list) != 0 ||
        PyList_Append(list, array) != 0)
        harness_broke("a list with an array: %s", python_error());
    Py_DECREF(array);
    Py_DECREF(list);
}

/* A Python that can do without a GIL counts by 512, on each thread, what is made and ends, and
 * collects as bytecode runs next.  So what is made here stays. */
static void have_collected(void)
{
    static PyObject *kept;
    if (kept == NULL)
        kept = PyList_New(0);
    for (int i = 0; i < 3 * 512; i++) {
        PyObject *list = PyList_New(0);
        if (kept == NULL || list == NULL || PyList_Append(kept, list) != 0)
            harness_broke("a list of lists: %s", python_error());
        Py_DECREF(list);
    }
}

static void make_garbage(bool wanted)
{
    static const npy_intp sizes[] = {16, 40, 120, 1000, 5000, 300000};
    call_gc("disable");
    for (size_t i = 0; wanted && i < LENGTH(sizes); i++)
        drop_cycle(sizes[i]);
    call_gc("enable"); /* whatever is made next has it collected */
    if (python_is_free_threaded())
        have_collected();
}

/* One block through all four functions, garbage before each; with others live beside it. */
static void use_amid_garbage(size_t size, bool wanted)
{
    struct block beside = {must_malloc(size), size, size};
    pattern_fill(beside.p, size, beside.number);
    make_garbage(wanted);
    under_way = "malloc";
    unsigned char *p = must_malloc(size);
    pattern_fill(p, size, 1);
    make_garbage(wanted);
    under_way = "calloc";
    unsigned char *q = must_calloc(size, 1);
    expect_zero(q, size, "after calloc(%zu, 1) in which Python may have freed arrays", size);
    pattern_fill(q, size, 2);
    make_garbage(wanted);
    under_way = "realloc";
    p = must_realloc(p, 2 * size);
    expect_pattern(p, size, 1, "after realloc from %zu in which Python may have freed arrays",
                   size);
    expect_pattern(q, size, 2, "after a realloc in which Python may have freed arrays");
    make_garbage(wanted);
    under_way = "free";
    subject_free(p, 2 * size);
    expect_pattern(q, size, 2, "after a free in which Python may have freed arrays");
    expect_pattern(beside.p, size, beside.number,
                   "after calls in which Python may have freed "
                   "arrays");
    subject_free(q, size);
    subject_free(beside.p, size);
}

static void use_all_sizes(bool garbage)
{
    static const size_t sizes[] = {16, 40, 120, 5000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        use_amid_garbage(sizes[i], garbage);
        use_amid_garbage(sizes[i], garbage);
    }
}

PROPERTY(numpy_freed_inside_a_call,
    .id     = "numpy.freed-inside-a-call", .level = MUST, .basis = BASIS_CALLER,
    .title  = "free during another call is safe",
    .clause = "The garbage collector can free arrays on the same thread while a handler function "
              "runs.",
    .source = "NumPy 1.22 to 2.5: array_dealloc; CPython collects where it makes objects",
    .why    = "A handler that calls Python while it holds its lock deadlocks if that frees an "
              "array.",
    .hint   = "Call Python before you lock or after you unlock, while no list is half updated.",
    .looks  = "expected malloc to return, though Python collects garbage in it; seen no end after "
              "3.33 s")
{
    collect_at_once();
    install_handler(subject_traced());
    control_begin("without garbage");
    use_all_sizes(false);
    control_end();
    signal(SIGALRM, too_late);
    alarm_in(hang_limit());
    use_all_sizes(true);
    alarm_in(0);
}
