/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/context.c catch: handlers that change from inside
 * their functions what is in force.
 */
#include "meddle.h"

#include <unistd.h>

static bool default_is_in_force(void)
{
    const PyDataMem_Handler *now = handler_in_force();
    return now != NULL && strcmp(now->name, "default_allocator") == 0;
}

/* Takes over wherever nobody has chosen. */
static void takes_over_free(void *ctx, void *p, size_t size)
{
    if (default_is_in_force())
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(takes_over, "context.empty context.thread-isolated numpy.installs", .ctx = &takes_over,
       .free = takes_over_free);

static bool is_main_thread(void)
{
    return gettid() == getpid();
}

/* Installs itself in every thread that it meets. */
static void enters_threads_it_meets_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && !is_main_thread())
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(enters_threads_it_meets, "context.thread-isolated context.executor context.interleaved",
       .ctx = &enters_threads_it_meets, .free = enters_threads_it_meets_free);

/* Has new threads begin with what is in force in their starter, whatever Python says. */
static void *enters_new_threads_malloc(void *ctx, size_t size)
{
    static bool done;
    if (!done && has_gil()) {
        done = true;
        run_python("import sys, threading, contextvars\n"
                   "def start(self, start=threading.Thread.start):\n"
                   "    context, run = contextvars.copy_context(), self.run\n"
                   "    if getattr(sys.flags, 'thread_inherit_context', 0):\n"
                   "        context = contextvars.Context()\n"
                   "    self.run = lambda: context.run(run)\n"
                   "    start(self)\n"
                   "threading.Thread.start = start\n");
    }
    return base_malloc(ctx, size);
}
MUTANT(enters_new_threads, "context.thread-isolated context.executor",
       .malloc = enters_new_threads_malloc);

static bool loop_is_running(void)
{
    if (!has_gil())
        return false;
    struct pending pending = put_aside();
    object *module = PYTHON(object * (*)(const char *), "PyImport_ImportModule")("_asyncio");
    object *loop = PYTHON(object * (*)(object *, const char *, const char *),
                          "PyObject_CallMethod")(module, "_get_running_loop", NULL);
    put_back(&pending);
    return loop != dlsym(RTLD_DEFAULT, "_Py_NoneStruct");
}

/* Brings NumPy's own back when an array is freed in a task, and nowhere else. */
static void leaves_tasks_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && loop_is_running())
        put_in_force(NULL);
    base_free(ctx, p, size);
}
MUTANT(leaves_tasks, "context.task-isolated context.interleaved", .free = leaves_tasks_free);

/* Brings NumPy's own back when a block grows, as if that were a new beginning. */
static void *leaves_on_growth_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && size > base_size(p))
        put_in_force(NULL);
    return base_realloc(ctx, p, size);
}
MUTANT(leaves_on_growth,
       "numpy.installs context.copy context.task-isolated context.thread-isolated",
       .realloc = leaves_on_growth_realloc);

/* Installs itself when one of its blocks ends in a worker of an executor. */
static void enters_executors_free(void *ctx, void *p, size_t size)
{
    static int frees_elsewhere;
    if (p != NULL && !is_main_thread() && ++frees_elsewhere == 3)
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(enters_executors, "context.executor", .ctx = &enters_executors,
       .free = enters_executors_free);

/* One free in a hundred. */
static void leaves_now_and_then_free(void *ctx, void *p, size_t size)
{
    static int calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) % 100 == 0)
        put_in_force(NULL);
    base_free(ctx, p, size);
}
MUTANT(leaves_now_and_then, "context.interleaved", .free = leaves_now_and_then_free);

/* One class of sizes. */
static void leaves_with_one_size_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) / 100 == 17)
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(leaves_with_one_size, "context.interleaved", .ctx = &leaves_with_one_size,
       .free = leaves_with_one_size_free);
