/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abi: what is handed over when a handler is loaded.
 */
#include "battery.h"

GROUP(abi, 1, "What is handed over: the struct, its name and version, and the object around it.");

PROPERTY(abi_loads,
    .id     = "abi.loads",
    .level  = MUST, .basis = BASIS_NEP, .judge = JUDGE_HANDLER,
    .clause = "loading the object gives a handler that can make one block and take it back",
    .source = "NEP 49, PyDataMem_SetHandler; nep49.h",
    .why    = "nothing else can be tested on a handler that does not get this far",
    .hint   = "run it under a debugger: what crashes is a constructor, the getter, or the very "
              "first malloc or free",
    .looks  = "CRASH: SIGSEGV, while loading libmine.so",
    .world  = WORLD_PYTHON)
{
    PyDataMem_Handler *handler = subject_handler();
    if (handler->allocator.malloc == NULL || handler->allocator.free == NULL)
        return; /* abi.functions-present says it */
    void *p = subject_malloc(64);
    expect(p != NULL, "malloc(64) to return a block: nothing else is live", "NULL");
    memset(p, 0x5a, 64);
    subject_free(p, 64);
}
