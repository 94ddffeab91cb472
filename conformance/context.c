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

PYTHON_PROPERTY(context, thread_isolated,
    .id     = "context.thread-isolated", .level = MUST, .basis = BASIS_NEP,
    .title  = "a handler is active in its thread only",
    .clause = "a handler is active only in the thread that chose it; a new thread begins as this "
              "Python says: NumPy's own, or its starter's",
    .source = LIFETIME "; alloc.c PyDataMem_SetHandler, 1.22 to 2.5; Python's page on "
              "sys.flags.thread_inherit_context",
    .why    = "a library with its own handler in its threads must not impose it on other threads",
    .hint   = HINT,
    .looks  = "second to be in force after another thread's arrays were freed: first is");

PYTHON_PROPERTY(context, task_isolated,
    .id     = "context.task-isolated", .level = MUST, .basis = BASIS_NEP,
    .title  = "asyncio tasks keep their own handler",
    .clause = "an asyncio task begins with its creator's handler and keeps its choice to itself",
    .source = LIFETIME "; PEP 567, asyncio",
    .why    = "tasks take turns in one thread: a choice that leaks meets whichever runs next",
    .hint   = HINT,
    .looks  = "main to be in force in a task whose children chose others: first is");

PYTHON_PROPERTY(context, copy,
    .id     = "context.copy", .level = MUST, .basis = BASIS_NEP,
    .title  = "copy_context() keeps the handler",
    .clause = "copy_context() takes the active handler along; a choice in the copy stays there",
    .source = LIFETIME "; PEP 567, contextvars.copy_context",
    .why    = "frameworks run callbacks in copied contexts",
    .hint   = HINT,
    .looks  = "default_allocator to be in force after a choice in a copied context: 'inner'");

PYTHON_PROPERTY(context, empty,
    .id     = "context.empty", .level = MUST, .basis = BASIS_NEP,
    .title  = "an empty Context has NumPy's handler",
    .clause = "in an empty Context NumPy's own handler is active, whatever is outside",
    .source = LIFETIME "; alloc.c and multiarraymodule.c, current_handler with its default, 1.22 "
              "to 2.5",
    .why    = "arrays of another handler end there like anywhere else, and must leave no trace",
    .hint   = HINT,
    .looks  = "the handler in force in an empty context to be 'default_allocator': 'outer'");

PYTHON_PROPERTY(context, executor,
    .id     = "context.executor", .level = MUST, .basis = BASIS_NEP,
    .title  = "executor workers keep their handler",
    .clause = "an executor's worker begins as any thread, keeps a job's choice for later jobs, "
              "and a job that brings its context has its handler",
    .source = LIFETIME "; Python's concurrent.futures and contextvars",
    .why    = "arrays are made in workers and end at the caller, and the other way round",
    .hint   = HINT,
    .looks  = "own to be in force in a later job of the same worker: default_allocator is");

PYTHON_PROPERTY(context, interleaved,
    .id     = "context.interleaved", .level = MUST, .basis = BASIS_NEP,
    .title  = "mixed tasks and threads stay separate",
    .clause = "tasks and threads that change handlers at random never disturb each other; each "
              "array is freed by the handler that made it",
    .source = LIFETIME "; High level design",
    .why    = "a real program is all of this at once",
    .hint   = HINT,
    .looks  = "agent 3 1 to be in force as its task or thread chose it: agent 5 2 is");
