/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: several threads at once, in a Python without the GIL above all.
 */
#include <pthread.h>

#include "harness/harness.h"
#include "harness/property_child.h"
#include "harness/threads.h"
#include "python/api.h"
#include "python/python.h"

enum { KEEPERS = 3, ARRAYS = 8, STEPS = 5000, STEPS_IF_INSTRUMENTED = 100 };

/* A thread that makes, resizes and drops arrays of its own. */
struct keeper {
    size_t number;
    struct random random;
    pthread_barrier_t *ready; /* NULL: it is alone */
    struct {
        PyArrayObject *array;
        uint64_t number; /* of its pattern */
    } kept[ARRAYS];
};

static npy_intp any_size(struct keeper *k)
{
    static const npy_intp sizes[] = {40, 40, 40, 120, 120, 500, 5000, 70000};
    return sizes[random_below(&k->random, LENGTH(sizes))];
}

static void fill(struct keeper *k, size_t at)
{
    static uint64_t last;
    PyArrayObject *array = k->kept[at].array;
    k->kept[at].number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    pattern_fill(PyArray_DATA(array), (size_t)PyArray_DIM(array, 0), k->kept[at].number);
}

static void make(struct keeper *k, size_t at, const char *when)
{
    npy_intp size = any_size(k);
    bool zeroed = random_below(&k->random, 3) == 0;
    PyObject *array =
        zeroed ? PyArray_ZEROS(1, &size, NPY_UINT8, 0) : PyArray_SimpleNew(1, &size, NPY_UINT8);
    if (array == NULL)
        fail(fmt("an array of %zd bytes, %s", size, when), "%s", python_error());
    if (zeroed)
        expect_zero(PyArray_DATA(array), (size_t)size, "in np.zeros, %s", when);
    k->kept[at].array = array;
    fill(k, at);
}

static void expect_kept(const struct keeper *k, size_t at, npy_intp had, const char *when)
{
    PyArrayObject *array = k->kept[at].array;
    npy_intp size = MIN(had, PyArray_DIM(array, 0));
    expect_pattern(PyArray_DATA(array), (size_t)size, k->kept[at].number, "in an array, %s", when);
}

static void resize(struct keeper *k, size_t at, const char *when)
{
    PyArrayObject *array = k->kept[at].array;
    npy_intp had = PyArray_DIM(array, 0), size = any_size(k);
    PyArray_Dims shape = {&size, 1};
    PyObject *none = PyArray_Resize(array, &shape, 0, NPY_CORDER);
    if (none == NULL)
        fail(fmt("ndarray.resize from %zd to %zd bytes, %s", had, size, when), "%s",
             python_error());
    Py_DECREF(none);
    expect_kept(k, at, had, when);
    fill(k, at);
}

static void drop(struct keeper *k, size_t at, const char *when)
{
    expect_kept(k, at, PyArray_DIM(k->kept[at].array, 0), when);
    Py_DECREF(k->kept[at].array);
    k->kept[at].array = NULL;
}

/* With the GIL, where there is one. */
static void keep_arrays(void *data)
{
    struct keeper *k = data;
    const char *when = k->ready != NULL ? "beside other threads" : "in one thread";
    install_handler(subject_traced()); /* the choice is each thread's own */
    for (size_t i = 0; i < (is_instrumented() ? STEPS_IF_INSTRUMENTED : STEPS); i++) {
        size_t at = random_below(&k->random, ARRAYS);
        if (k->kept[at].array == NULL)
            make(k, at, when);
        else if (random_below(&k->random, 3) == 0)
            resize(k, at, when);
        else
            drop(k, at, when);
    }
    for (size_t at = 0; at < ARRAYS; at++) {
        if (k->kept[at].array != NULL)
            drop(k, at, when);
    }
}

static void keep_alone(void *unused)
{
    struct keeper k = {.random = {random_next(rng())}};
    (void)unused;
    keep_arrays(&k);
}

static void keep_beside_others(void *data)
{
    struct keeper *k = data;
    pthread_barrier_wait(k->ready);
    perturb_begin(k->number);
    python_call_with_gil(keep_arrays, k);
    perturb_end();
}

PROPERTY(numpy_without_gil,
    .id     = "numpy.without-gil", .level = MUST, .basis = BASIS_CALLER,
    .title  = "threads work without a GIL",
    .clause = "If Python has no GIL, several threads can make, resize and free arrays at the same "
              "time.",
    .source = "PEP 703; alloc.c PyDataMem_UserNEW and its kin, which take no lock, 2.1 to 2.5",
    .why    = "Without a GIL PyGILState_Check returns true, and PyGILState_Ensure excludes no "
              "thread.",
    .wrong  = "PyGILState_STATE state = PyGILState_Ensure(); /* excludes no thread */",
    .right  = "pthread_mutex_lock(&lock);",
    .hint   = "Lock shared data with a mutex, even if the caller holds the GIL. See "
              "threads.concurrent.",
    .looks  = "expected byte 0 of 40 to be 0x6e, after calls of another thread; seen 0x22")
{
    struct keeper keepers[KEEPERS] = {0};
    pthread_barrier_t ready;
    if (python_uses_gil())
        skip("this Python has a GIL");
    control_run(keep_alone, NULL, "in one thread alone");
    pthread_barrier_init(&ready, NULL, KEEPERS);
    for (size_t i = 0; i < KEEPERS; i++) {
        keepers[i].number = i;
        keepers[i].random = (struct random){random_next(rng())};
        keepers[i].ready = &ready;
    }
    in_threads(KEEPERS, keep_beside_others, keepers, sizeof keepers[0]);
    pthread_barrier_destroy(&ready);
}
