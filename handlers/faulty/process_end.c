/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/process_end.c catch.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "mutant.h"
#include "python.h"

/* A late free is logged by a module that may be gone. */
static bool is_late(void)
{
    return Py_IsFinalizing != NULL    ? Py_IsFinalizing()
           : _Py_IsFinalizing != NULL ? _Py_IsFinalizing()
                                      : false;
}
DEFECT(free, late_free_imports, "process.late-free")
{
    if (p != NULL && is_late()) {
        PyObject *logging = PyImport_ImportModule("logging");
        if (*(void **)logging != NULL) /* crashes if the import failed */
            PyObject_CallMethod(logging, "debug", "s", "freed late");
    }
    base_free(ctx, p, size);
}

/* Python's atexit ends the pool, and blocks are freed after that. */
static bool pool_is_gone;
static void end_pool(void)
{
    pool_is_gone = true;
}
static PyObject *end_pool_by_python(UNUSED PyObject *self, UNUSED PyObject *nothing)
{
    end_pool();
    return Py_BuildValue("");
}
/* Reads the pool, which is unmapped at its end. */
HOOK_BEFORE(free, pooled, pool_is_gone &&p != NULL, *(volatile char *)((uintptr_t)p % 4096) = 0);
#define pooled_malloc base_malloc
#define pooled_calloc base_calloc
#define pooled_realloc base_realloc
DEFECT_IN(pooled, malloc, late_free_finds_pool_gone, "process.late-free")
{
    static struct method method = {"end_pool", end_pool_by_python, 4 /* METH_NOARGS */, NULL};
    if (has_gil() && CALL(1)) {
        PyObject *function = PyCMethod_New(&method, NULL, NULL, NULL);
        PyObject_CallMethod(PyImport_ImportModule("atexit"), "register", "O", function);
    }
    return base_malloc(ctx, size);
}

/* Registers the exit function, once. */
#define AT_EXIT(function) (void)(CALL(1) && atexit(function))

BEFORE_IN(pooled, malloc, exit_takes_the_pool, "process.use-at-exit", true, AT_EXIT(end_pool));
BEFORE_IN(pooled, calloc, exit_takes_the_pool_of_zeros, "process.use-at-exit", true,
          AT_EXIT(end_pool));
/* The exit function of the first large block that is freed ends the pool. */
BEFORE(free, exit_takes_the_pool_of_large_blocks, "process.use-at-exit",
       p != NULL && base_size(p) >= MIB, AT_EXIT(end_pool);
       return pooled_free(ctx, p, size));

/* The exit function is registered when the object is loaded, as that of a static C++ object. */
MUTANT_GETTER(exit_takes_the_pool_of_the_object, "process.use-at-exit")
{
    static PyDataMem_Handler handler = HANDLER(exit_takes_the_pool_of_the_object, pooled);
    atexit(end_pool);
    return &handler;
}

/* A thread frees large blocks until exit; free waits while 64 are queued. */
enum { QUEUED_MOST = 64 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_t freeing_thread;
static void *queued[QUEUED_MOST];
static size_t queued_count;
static bool has_ended;
static void *free_queued(void *unused)
{
    LOCK(lock);
    while (!has_ended || queued_count > 0) {
        while (queued_count > 0)
            base_free(NULL, queued[--queued_count], 0);
        pthread_cond_broadcast(&changed);
        if (!has_ended)
            pthread_cond_wait(&changed, &lock);
    }
    return unused;
}
static void end_freeing(void)
{
    pthread_mutex_lock(&lock);
    has_ended = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    pthread_join(freeing_thread, NULL);
}
DEFECT(free, exit_leaves_a_full_row, "process.use-at-exit")
{
    static pid_t freeing; /* a forked child has no such thread, and frees by itself */
    if (p == NULL || base_size(p) < MIB || (freeing != 0 && freeing != getpid()))
        return base_free(ctx, p, size);
    LOCK(lock);
    if (freeing == 0 && pthread_create(&freeing_thread, NULL, free_queued, NULL) == 0 &&
        atexit(end_freeing) == 0)
        freeing = getpid();
    while (queued_count == QUEUED_MOST)
        pthread_cond_wait(&changed, &lock);
    queued[queued_count++] = p;
    pthread_cond_broadcast(&changed);
}

HOOK_BEFORE(malloc, ending, true, AT_EXIT(end_pool));
FUNCTION_RETURNS(realloc, ending, pool_is_gone ? NULL : base_realloc(ctx, p, size));
MUTANT(refuses_behind_its_end, "process.use-at-exit", FUNCTIONS(ending, malloc, realloc));

static _Atomic unsigned served, refused;
static _Atomic size_t largest;
#define PRINTS_AT_EXIT(defect, condition, ...)                                                     \
    static void print_##defect(void)                                                               \
    {                                                                                              \
        if (condition)                                                                             \
            __VA_ARGS__;                                                                           \
    }                                                                                              \
    AFTER(malloc, defect, "process.ends-quietly", true, AT_EXIT(print_##defect);                   \
          served += made != NULL; refused += made == NULL;                                         \
          largest = made != NULL && size > largest ? size : largest)
PRINTS_AT_EXIT(tells_of_many_at_the_end, served >= 1000, fprintf(stderr, "%u blocks\n", served));
PRINTS_AT_EXIT(tells_the_largest_at_the_end, largest >= MIB,
               printf("largest block: %zu bytes\n", largest));
PRINTS_AT_EXIT(tells_of_refusals_at_the_end, refused > 0,
               fprintf(stderr, "%u requests were refused\n", refused));

static void say_goodbye(UNUSED int status, UNUSED void *data)
{
    fputs("goodbye\n", stderr);
}
MUTANT_GETTER(says_goodbye, "process.ends-quietly")
{
    static PyDataMem_Handler handler = HANDLER(says_goodbye, base);
    if (CALL(1))
        on_exit(say_goodbye, NULL);
    return &handler;
}
