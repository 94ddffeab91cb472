/* SPDX-License-Identifier: BSD-3-Clause
 *
 * context: which handler is in force where.
 */
#include "harness/harness.h"
#include "python/python.h"

GROUP(context, 11, "One handler for each thread and task, by NumPy's context variable.");

/* What a handler can do to break these is meddle with the context variable from inside its own
 * functions: free and realloc are called wherever an array ends or is resized. */
#define LIFETIME "NEP 49, PyDataMem_Handler thread safety and lifetime"
#define HINT                                                                                       \
    "leave PyDataMem_SetHandler to the program; what a block needs to know of its maker belongs "  \
    "to the block or the ctx, not to what is in force"

PROPERTY(context_thread_isolated,
    .id     = "context.thread-isolated",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "the handler that a thread chooses is in force in that thread alone, and a new "
              "thread begins as this version of Python says: with NumPy's own, or with its "
              "starter's",
    .source = LIFETIME "; alloc.c PyDataMem_SetHandler, 1.22 to 2.5; Python's page on "
              "sys.flags.thread_inherit_context",
    .why    = "a library that wants its own handler in its own threads must not impose it on "
              "everybody else's",
    .hint   = HINT,
    .looks  = "second to be in force after another thread's arrays were resized and freed: first "
              "is",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "thread_isolated");
}

PROPERTY(context_task_isolated,
    .id     = "context.task-isolated",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "an asyncio task begins with the handler of whoever created it, and what it chooses "
              "is in force in that task alone",
    .source = LIFETIME "; PEP 567, asyncio",
    .why    = "tasks take turns in one thread: a choice that leaks meets whichever runs next",
    .hint   = HINT,
    .looks  = "main to be in force in a task whose children chose others: first is",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "task_isolated");
}

PROPERTY(context_copy,
    .id     = "context.copy",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "copy_context() takes the handler in force along, and a choice made in the copy "
              "stays in the copy",
    .source = LIFETIME "; PEP 567, contextvars.copy_context",
    .why    = "frameworks run callbacks in copied contexts",
    .hint   = HINT,
    .looks  = "default_allocator to be in force after another was chosen in a copied context: "
              "'inner'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "copy");
}

PROPERTY(context_empty,
    .id     = "context.empty",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "in an empty Context NumPy's own handler is in force, whatever is outside",
    .source = LIFETIME "; alloc.c and multiarraymodule.c, current_handler with its default, 1.22 "
              "to 2.5",
    .why    = "arrays of another handler end there like anywhere else, and must leave no trace",
    .hint   = HINT,
    .looks  = "the handler in force in an empty context to be 'default_allocator': 'outer'",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "empty");
}

PROPERTY(context_executor,
    .id     = "context.executor",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "a worker of an executor begins as any thread does, keeps what a job chose for the "
              "jobs that follow, and a job that brings its context has the handler of that",
    .source = LIFETIME "; Python's concurrent.futures and contextvars",
    .why    = "arrays are made in workers and end at the caller, and the other way round",
    .hint   = HINT,
    .looks  = "own to be in force in a later job of the same worker: default_allocator is",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "executor");
}

PROPERTY(context_interleaved,
    .id     = "context.interleaved",
    .level  = MUST, .basis = BASIS_NEP, .target = TARGET_HANDLER,
    .clause = "many tasks and threads, each with handlers of its own that it changes at random, "
              "never disturb each other, and every array is freed by the handler that made it",
    .source = LIFETIME "; High level design",
    .why    = "a real program is all of this at once",
    .hint   = HINT,
    .looks  = "agent 3 1 to be in force as its task or thread chose it: agent 5 2 is",
    .fixture  = FIXTURE_PYTHON)
{
    python_call("context", "interleaved");
}
