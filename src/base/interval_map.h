/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A map of disjoint address intervals: the live blocks of a handler.
 *
 * Faulty handlers return anything, so an interval may begin and end at any byte.  An interval of 0
 * bytes counts as one byte, because C17 7.22.3 has zero-size blocks behave as if they had a size.
 *
 * Not thread-safe: the caller holds a lock.
 */
#ifndef CONFORM_INTERVAL_MAP_H
#define CONFORM_INTERVAL_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct interval_map;

struct interval {
    uintptr_t address;
    size_t size;
    uint64_t value; /* the caller's */
};

enum interval_state {
    INTERVAL_FREE,       /* no interval overlaps it; interval_map_insert has added it */
    INTERVAL_OVERLAPS,   /* it overlaps another interval */
    INTERVAL_IMPOSSIBLE, /* it passes the end of the address space */
    INTERVAL_NO_MEMORY,  /* the map cannot grow, and is as it was */
};

/* Returns an empty map, or NULL if there is no memory. */
struct interval_map *interval_map_new(void);
void interval_map_free(struct interval_map *map); /* or NULL */

/* Makes room for that many intervals, so that none needs memory when it is added. */
bool interval_map_reserve(struct interval_map *map, size_t count);

/* Checks whether an interval can be added.  If it overlaps others, `other` receives one of them. */
enum interval_state interval_map_check(const struct interval_map *map, uintptr_t address,
                                       size_t size, struct interval *other);

/* Adds an interval if interval_map_check allows it; `other` may be NULL. */
enum interval_state interval_map_insert(struct interval_map *map, struct interval interval,
                                        struct interval *other);

/* Finds the interval that begins at the address.  Returns false, and leaves `found` (may be NULL)
 * alone, if there is none. */
bool interval_map_find(const struct interval_map *map, uintptr_t address, struct interval *found);

/* Removes the interval that begins at the address; otherwise like interval_map_find. */
bool interval_map_remove(struct interval_map *map, uintptr_t address, struct interval *removed);

size_t interval_map_count(const struct interval_map *map);

/* Returns a copy of all intervals by rising address, which the caller frees, or NULL if there is no
 * memory. */
struct interval *interval_map_list(const struct interval_map *map);

#endif
