/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The embedding demo's arena and tracker, and minimal's handler, by themselves, for the battery.
 */
#define main minimal_main
#define PYTHON "python"
#include "../embed_demo/minimal.c"

#include "../embed_demo/handlers.h"

NEP49_EXPORT PyDataMem_Handler *get_minimal(const char **why)
{
    (void)why;
    return &handler;
}

NEP49_EXPORT PyDataMem_Handler *get_arena(const char **why)
{
    static struct arena arena;
    if (arena.region == NULL && arena_open(&arena, &handler.allocator, 1 << 30) != 0) {
        *why = "there is no memory";
        return NULL;
    }
    return &arena.handler;
}

NEP49_EXPORT PyDataMem_Handler *get_tracker(const char **why)
{
    static struct tracker tracker;
    (void)why;
    if (tracker.handler.version == 0)
        tracker_open(&tracker, &handler, "nobody");
    return &tracker.handler;
}
