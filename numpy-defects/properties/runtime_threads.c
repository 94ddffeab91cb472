/* SPDX-License-Identifier: BSD-3-Clause
 *
 * runtime: NumPy among several threads and interpreters.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/clock.h"
#include "harness/harness.h"
#include "harness/property_child.h"
#include "python/api.h"
#include "python/python.h"

#define NOT_YOURS "NumPy has to fix this; the handler cannot."

/* ---- one array, two threads ------------------------------------------------------------------ */

struct user {
    void (*body)(void *array);
    PyArrayObject *array;
};

/* A handler before libc that keeps whoever resizes or frees one block for a moment, to see whether
 * another thread does so as well.  Nobody can where the first has the GIL. */
static struct {
    void *block;
    size_t size;
    double moment;
    atomic_int threads;
    const char *once;        /* what is to happen so */
    pthread_barrier_t begin; /* for both */
} shared;

static void await_another(void)
{
    static const struct timespec a_little = {0, 200000};
    if (atomic_fetch_add(&shared.threads, 1) > 0)
        fail(shared.once, "two threads do so at once");
    for (uint64_t begun = clock_now(); clock_since(begun) < shared.moment;)
        nanosleep(&a_little, NULL);
}

static void *awaiting_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size);
}

static void *awaiting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return calloc(nelem, elsize);
}

/* The block stays: nobody else is given its address. */
static void *awaiting_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (p != shared.block)
        return realloc(p, size);
    await_another();
    void *moved = malloc(size);
    return moved != NULL ? memcpy(moved, p, MIN(size, shared.size)) : NULL;
}

static void awaiting_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != shared.block)
        free(p);
    else
        await_another();
}

static void use_shared(void *data)
{
    struct user *user = data;
    pthread_barrier_wait(&shared.begin);
    python_call_with_gil(user->body, user->array);
}

/* Two threads do that to an array at once. */
static void in_two_threads(void (*body)(void *array), const char *once)
{
    static PyDataMem_Handler awaiting = {
        .name = "awaiting",
        .version = 1,
        .allocator = {NULL, awaiting_malloc, awaiting_calloc, awaiting_realloc, awaiting_free}};
    static const double a_moment = 0.5, with_gil = 0.002;
    npy_intp size = 1000;
    install_handler(&awaiting);
    PyArrayObject *array = (PyArrayObject *)PyArray_ZEROS(1, &size, NPY_UINT8, 0);
    if (array == NULL)
        harness_broke("no array to work with: %s", python_error());
    shared.block = PyArray_DATA(array);
    shared.size = (size_t)size;
    shared.moment = python_uses_gil() ? with_gil : a_moment;
    shared.once = once;
    pthread_barrier_init(&shared.begin, NULL, 2);
    struct user users[] = {{body, array}, {body, array}};
    in_threads(2, use_shared, users, sizeof users[0]);
    pthread_barrier_destroy(&shared.begin);
    shared.block = NULL;
    Py_DECREF(array);
}

static void resize_it(void *array)
{
    npy_intp size = 2000;
    PyArray_Dims shape = {&size, 1};
    Py_XDECREF(PyArray_Resize(array, &shape, 0, NPY_CORDER));
    PyErr_Clear();
}

PROPERTY(runtime_resize_in_two_threads,
    .id     = "runtime.resize-in-two-threads",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "resizes in two threads",
    .clause = "If two threads resize one array, they do so one after the other, or one gets an "
              "exception.",
    .source = "shape.c PyArray_Resize, which takes no lock, 2.1 to 2.5 in a Python without the GIL; "
              "NumPy's page on thread safety says that its arrays have none",
    .why    = "NumPy calls realloc twice for one block, which frees it twice.",
    .hint   = NOT_YOURS " Workaround: hold a lock around each use of an array that "
              "threads resize.",
    .looks  = "expected the block of an array that two threads resize to be moved once; seen two "
              "threads do so at once",
    .fixture  = FIXTURE_UNLOADED)
{
    in_two_threads(resize_it, "the block of an array that two threads resize to be moved once");
}

static void set_its_state(void *array)
{
    PyObject *reduced = PyObject_CallMethod(array, "__reduce__", NULL);
    PyObject *state = reduced != NULL ? PyObject_CallMethod(reduced, "__getitem__", "i", 2) : NULL;
    if (state == NULL)
        harness_broke("no state of an array: %s", python_error());
    Py_XDECREF(PyObject_CallMethod(array, "__setstate__", "(O)", state));
    PyErr_Clear();
    Py_DECREF(state);
    Py_DECREF(reduced);
}

PROPERTY(runtime_setstate_in_two_threads,
    .id     = "runtime.setstate-in-two-threads",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "__setstate__ in two threads",
    .clause = "If two threads call __setstate__ of one array, they do so in turn, or one gets an "
              "exception.",
    .source = "methods.c array_setstate, which takes no lock, 2.1 to 2.5 in a Python without the "
              "GIL; NumPy's page on thread safety says that its arrays have none",
    .why    = "The array's old block is freed twice.",
    .hint   = NOT_YOURS " Workaround: unpickle into an array that no other thread has.",
    .looks  = "expected the block of an array whose state two threads set to be freed once; seen "
              "two threads do so at once",
    .fixture  = FIXTURE_UNLOADED)
{
    in_two_threads(set_its_state,
                   "the block of an array whose state two threads set to be freed once");
}

PROPERTY(runtime_resize_while_read,
    .id     = "runtime.resize-while-read",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "resize while a ufunc reads",
    .clause = "While a ufunc reads an array, no other thread can resize it, or its block stays "
              "until the end.",
    .source = "shape.c PyArray_Resize, 1.22 to 2.5, with the GIL and without; NumPy's page on "
              "thread safety says that it can crash",
    .why    = "The ufunc continues to read freed memory.",
    .hint   = NOT_YOURS " Workaround: use refcheck=False only for arrays that no other "
              "thread has.",
    .looks  = "expected the block that a ufunc reads to stay while another thread resizes the "
              "array; seen it was freed",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "resize_while_read");
}

/* ---- sub-interpreters ------------------------------------------------------------------------ */

PROPERTY(runtime_sub_interpreter,
    .id     = "runtime.sub-interpreter",
    .slow_ms = 77,
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_RUNTIME,
    .title  = "import in a sub-interpreter",
    .clause = "NumPy can be imported in a sub-interpreter of a Python whose main interpreter "
              "imported it.",
    .source = "PEP 684; multiarraymodule.c and NumPy's Cython modules, which refuse it with an "
              "ImportError, 1.22 to 2.5",
    .why    = "A program that isolates its parts in interpreters has arrays in the first "
              "interpreter only.",
    .hint   = NOT_YOURS " Workaround: use processes, or threads of one interpreter.",
    .looks  = "expected NumPy 2.5.0 to be imported in a sub-interpreter: ImportError; seen module "
              "numpy._core._multiarray_umath does not support loading in subinterpreters",
    .fixture  = FIXTURE_UNLOADED)
{
    python_call("runtime", "sub_interpreter");
}
