/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of live blocks as a sorted array, for reproducers: what live_table.c does, in fewer lines
 * and not as fast.
 */
#include <stdlib.h>
#include <string.h>

#include "base/live_table.h"

struct live_table {
    struct live_block *at; /* by rising address */
    size_t count, room;
};

struct live_table *live_table_new(void)
{
    return calloc(1, sizeof(struct live_table));
}

void live_table_free(struct live_table *map)
{
    if (map != NULL)
        free(map->at);
    free(map);
}

/* The index of the first block that begins at the address or after it. */
static size_t index_from(const struct live_table *map, uintptr_t address)
{
    size_t low = 0, high = map->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (map->at[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uintptr_t last_of(uintptr_t address, size_t size)
{
    return address + (size != 0 ? size - 1 : 0); /* a block of 0 bytes takes up one */
}

enum live_table_state live_table_check(const struct live_table *map, uint64_t address, size_t size,
                                       struct live_block *other)
{
    uintptr_t first = (uintptr_t)address, last = last_of(first, size);
    size_t i = index_from(map, first);
    if (last < first)
        return LIVE_TABLE_IMPOSSIBLE;
    if (i < map->count && map->at[i].address <= last)
        *other = map->at[i];
    else if (i > 0 && last_of(map->at[i - 1].address, map->at[i - 1].size) >= first)
        *other = map->at[i - 1];
    else
        return LIVE_TABLE_DONE;
    return LIVE_TABLE_OVERLAPS;
}

enum live_table_state live_table_insert(struct live_table *map, const struct live_block *block,
                                        struct live_block *other)
{
    struct live_block unused;
    enum live_table_state state =
        live_table_check(map, block->address, block->size, other != NULL ? other : &unused);
    if (state != LIVE_TABLE_DONE)
        return state;
    if (map->count == map->room) {
        size_t room = 2 * map->room + 64;
        struct live_block *at = realloc(map->at, room * sizeof *at);
        if (at == NULL)
            return LIVE_TABLE_NO_MEMORY;
        map->at = at;
        map->room = room;
    }
    size_t i = index_from(map, block->address);
    memmove(map->at + i + 1, map->at + i, (map->count++ - i) * sizeof *block);
    map->at[i] = *block;
    return LIVE_TABLE_DONE;
}

bool live_table_find(const struct live_table *map, uint64_t address, struct live_block *block)
{
    size_t i = index_from(map, (uintptr_t)address);
    if (i == map->count || map->at[i].address != address)
        return false;
    if (block != NULL)
        *block = map->at[i];
    return true;
}

bool live_table_remove(struct live_table *map, uint64_t address, struct live_block *block)
{
    size_t i = index_from(map, (uintptr_t)address);
    if (!live_table_find(map, address, block))
        return false;
    memmove(map->at + i, map->at + i + 1, (--map->count - i) * sizeof *map->at);
    return true;
}
