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
    "Leave PyDataMem_SetHandler to the program. Keep what a block needs to know about its maker "  \
    "in the block or in ctx, not in the active handler."

PYTHON_PROPERTY(context, thread_isolated,
    .id     = "context.thread-isolated", .level = MUST, .basis = BASIS_NEP,
    .title  = "a handler is active in its thread only",
    .clause = "A handler is active only in the thread that chose it.",
    .tests  = "A new thread starts with NumPy's handler, or with its parent's if "
              "sys.flags.thread_inherit_context is set.",
    .source = LIFETIME "; alloc.c PyDataMem_SetHandler, 1.22 to 2.5; Python's page on "
              "sys.flags.thread_inherit_context",
    .why    = "A library with its own handler in its threads must not impose it on other threads.",
    .hint   = HINT,
    .looks  = "expected second to be the active handler after another thread's arrays were freed; "
              "seen first");

PYTHON_PROPERTY(context, task_isolated,
    .id     = "context.task-isolated", .level = MUST, .basis = BASIS_NEP,
    .title  = "asyncio tasks keep their own handler",
    .clause = "An asyncio task starts with its creator's handler, and its own choice does not "
              "affect other tasks.",
    .source = LIFETIME "; PEP 567, asyncio",
    .why    = "Tasks take turns in one thread: a choice that leaks affects the task that runs "
              "next.",
    .hint   = HINT,
    .looks  = "expected main to be the active handler in a task whose children chose others; seen "
              "first");

PYTHON_PROPERTY(context, copy,
    .id     = "context.copy", .level = MUST, .basis = BASIS_NEP,
    .title  = "copy_context() keeps the handler",
    .clause = "copy_context() copies the active handler, and a choice in the copy stays there.",
    .source = LIFETIME "; PEP 567, contextvars.copy_context",
    .why    = "Frameworks run callbacks in copied contexts.",
    .hint   = HINT,
    .looks  = "expected default_allocator to be the active handler after a choice in a copied "
              "context; seen inner");

PYTHON_PROPERTY(context, empty,
    .id     = "context.empty", .level = MUST, .basis = BASIS_NEP,
    .title  = "an empty Context has NumPy's handler",
    .clause = "In an empty Context NumPy's own handler is active, regardless of the handler "
              "outside.",
    .source = LIFETIME "; alloc.c and multiarraymodule.c, current_handler with its default, 1.22 "
              "to 2.5",
    .why    = "Arrays of other handlers are freed there too, which must not change the active "
              "handler.",
    .hint   = HINT,
    .looks  = "expected the active handler in an empty context to be 'default_allocator'; seen "
              "'outer'");

PYTHON_PROPERTY(context, executor,
    .id     = "context.executor", .level = MUST, .basis = BASIS_NEP,
    .title  = "executor workers keep their handler",
    .clause = "A worker of an executor starts like any thread and keeps a handler that a job "
              "chose.",
    .tests  = "A job that brings its own context has the handler of that context.",
    .source = LIFETIME "; Python's concurrent.futures and contextvars",
    .why    = "Arrays are made in workers and deleted by the caller, and the other way round.",
    .hint   = HINT,
    .looks  = "expected own to be the active handler in a later job of the same worker; seen "
              "default_allocator");

PYTHON_PROPERTY(context, interleaved,
    .id     = "context.interleaved", .level = MUST, .basis = BASIS_NEP,
    .title  = "mixed tasks and threads stay separate",
    .clause = "Tasks and threads that change handlers at random do not affect each other.",
    .tests  = "Each array has to be freed by the handler that made it.",
    .source = LIFETIME "; High level design",
    .why    = "Real programs combine threads, tasks and handlers.",
    .hint   = HINT,
    .looks  = "expected agent 3 1 to be the active handler as its task or thread chose it; seen "
              "agent 5 2");
