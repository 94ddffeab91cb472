/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/context.c find: their functions install a handler.
 */
#define _GNU_SOURCE
#include <unistd.h>

#include "mutant.h"
#include "python.h"

/* Installs itself, or NumPy's default, before free. */
#define INSTALLS(defect, kills, condition)                                                         \
    HOOK_BEFORE(free, defect, condition, install(ctx));                                            \
    MUTANT(defect, kills, .ctx = &defect, FUNCTIONS(defect, free))

static bool is_default_active(void)
{
    const PyDataMem_Handler *now = active_handler();
    return now != NULL && strcmp(now->name, "default_allocator") == 0;
}
static bool is_loop_running(void)
{
    if (!has_gil())
        return false;
    struct pending pending = fetch_pending();
    PyObject *module = PyImport_ImportModule("_asyncio");
    PyObject *loop = PyObject_CallMethod(module, "_get_running_loop", NULL);
    restore_pending(pending);
    return loop != (PyObject *)&_Py_NoneStruct;
}

INSTALLS(takes_over, "context.empty context.thread-isolated numpy.installs", is_default_active());
INSTALLS(enters_threads_it_meets, "context.thread-isolated context.executor context.interleaved",
         p != NULL && gettid() != getpid());
INSTALLS(enters_executors, "context.executor", p != NULL && gettid() != getpid() && CALL(3));
INSTALLS(leaves_with_one_size, "context.interleaved", p != NULL && base_size(p) / 100 == 17);
BEFORE(free, leaves_tasks, "context.task-isolated context.interleaved",
       p != NULL && is_loop_running(), install(NULL));
BEFORE(free, leaves_now_and_then, "context.interleaved", EVERY(100), install(NULL));
BEFORE(realloc, leaves_on_growth,
       "numpy.installs context.copy context.task-isolated context.thread-isolated",
       p != NULL && size > base_size(p), install(NULL));

/* New threads begin with the handler of the thread that starts them. */
static const char *const start_in_a_copy =
    "import sys, threading, contextvars\n"
    "def start(self, start=threading.Thread.start):\n"
    "    context, run = contextvars.copy_context(), self.run\n"
    "    if getattr(sys.flags, 'thread_inherit_context', 0):\n"
    "        context = contextvars.Context()\n"
    "    self.run = lambda: context.run(run)\n"
    "    start(self)\n"
    "threading.Thread.start = start\n";
BEFORE(malloc, enters_new_threads, "context.thread-isolated context.executor", has_gil() && CALL(1),
       run_python(start_in_a_copy));
