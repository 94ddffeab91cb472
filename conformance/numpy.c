/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: real arrays on the handler.
 */
#include "battery.h"
#include "python.h"

GROUP(numpy, 10, "Real arrays on the handler, through NumPy.");

PROPERTY(numpy_installs,
    .id     = "numpy.installs",
    .level  = MUST, .basis = BASIS_NEP, .judge = JUDGE_HANDLER,
    .clause = "SetHandler puts the handler in force and returns the one before it, NULL brings "
              "back NumPy's own, and nothing else changes what is in force",
    .source = "NEP 49, NumPy C-API functions: PyDataMem_SetHandler, PyDataMem_GetHandler",
    .why    = "whoever installs a handler for a while puts the old one back, and takes for granted "
              "that it stays",
    .hint   = "leave PyDataMem_SetHandler to the program: do not install or remove the handler "
              "from inside its own functions",
    .looks  = "default_allocator to be in force after an array of the old handler was freed: "
              "mine is",
    .world  = WORLD_PYTHON)
{
    python_call("numpy", "installs");
}

PROPERTY(numpy_name,
    .id     = "numpy.name",
    .level  = MUST, .basis = BASIS_NEP, .judge = JUDGE_HANDLER,
    .clause = "get_handler_name gives the handler's name, at any time: of what is in force, of "
              "an array and of a view's base; of a view it gives None",
    .source = "NEP 49, High level design; alloc.c get_handler_name, 1.22 to 2.5",
    .why    = "the name is how a program finds out who made an array",
    .hint   = "fill the name in once, in UTF-8 and with its NUL, and leave it",
    .looks  = "the name in force after 120 arrays to be 'mine': 'mine (busy)'",
    .world  = WORLD_PYTHON)
{
    python_call("numpy", "name");
}

PROPERTY(numpy_version,
    .id     = "numpy.version",
    .level  = MUST, .basis = BASIS_NEP, .judge = JUDGE_HANDLER,
    .clause = "get_handler_version gives 1, at any time: of what is in force, of an array and of "
              "a view's base; of a view it gives None",
    .source = "NEP 49, High level design; alloc.c get_handler_version, 1.22 to 2.5",
    .why    = "a later NumPy will go by it to know which functions the struct has",
    .hint   = "set the version to 1, and leave it",
    .looks  = "the version in force after 120 arrays to be 1: 2",
    .world  = WORLD_PYTHON)
{
    python_call("numpy", "version");
}

PROPERTY(numpy_array_keeps_its_handler,
    .id     = "numpy.array-keeps-its-handler",
    .level  = MUST, .basis = BASIS_NEP, .judge = JUDGE_HANDLER,
    .clause = "an array is resized and freed by the handler that made it, and keeps its contents, "
              "whatever is in force by then",
    .source = "NEP 49, High level design; shape.c PyArray_Resize, methods.c array_setstate, "
              "arrayobject.c array_dealloc, 1.22 to 2.5",
    .why    = "arrays outlive the block of code that their handler was installed for",
    .hint   = "free and resize by what the block itself tells, or the ctx; never by what is in "
              "force",
    .looks  = "first to be given its own blocks alone: free(0x55d0c0a8, 80) of a block of second's",
    .world  = WORLD_PYTHON)
{
    python_call("numpy", "array_keeps_its_handler");
}
