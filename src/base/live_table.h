/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of live blocks: which stretches of the address space a handler has given out and not
 * taken back.  It finds any overlap when a block is put in.
 *
 * Nothing is assumed of the blocks, because faulty handlers return anything: they begin and end
 * anywhere, on no alignment, and may be of any size from 0 to 2^48 - 1.  A block of 0 bytes takes
 * up one, so that two of them at one address, or one inside another block, do overlap: C17 7.22.3
 * has them behave as if they had a size.
 *
 * Not thread-safe: the caller holds a lock.  Its memory comes from mmap and malloc, and is not
 * mixed with the blocks.  The cost of an operation does not depend on the number of blocks, but
 * for the caches, and hardly on where they are; the worst place is one page of 4 KiB that holds
 * thousands of one-byte blocks, put in in random order (microseconds).
 *
 * It is written here because plain trees are too slow for --replay, which is to leave half of the
 * speed of unchecked calls where no two calls are alike.  Medians of five runs in turns, on two
 * cores that were busy, so that only the ratios say something: nanoseconds for a block of 16 to 512
 * bytes in random order to insert, with the search for overlaps, to find and to remove, what the
 * map takes for it, and what the checks leave of a replay's speed:
 *
 *                                   1000 blocks      1000000 blocks      bytes   replay
 *     this one                      35   15   24      177    82   139      46     0.51
 *     without SSE2                  45   30   33      190   114   126      44     0.47
 *     red-black tree of libbsd      95   49   61     1589  1613  1552      64     0.38
 *
 * To insert with 1000 blocks absl::btree_map, tsearch, GTree and JudyL took 2.5 to 5 times as long.
 * Hash tables of libraries find no overlap, as they have no order.  Huge pages, slabs of one size
 * and groups that grow made an operation with a million blocks a tenth to two fifths faster, and no
 * replay and no watched program: they are gone.
 */
#ifndef CONFORM_LIVE_TABLE_H
#define CONFORM_LIVE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_table;

/* A live block as the map holds it. */
struct live_block {
    uintptr_t address;
    size_t size;     /* below 2^48 */
    uint64_t number; /* the caller's, below 2^48 */
    uint32_t data;   /* the caller's */
};

enum live_table_state {
    LIVE_TABLE_DONE,
    LIVE_TABLE_OVERLAPS,   /* another live block: nothing was put in */
    LIVE_TABLE_IMPOSSIBLE, /* the block passes the end of the address space, or its size or number
                            * is 2^48 or more: nothing was put in */
    LIVE_TABLE_NO_MEMORY,  /* the map could not grow, and is as it was */
};

/* A new map without blocks, or NULL where there is no memory. */
struct live_table *live_table_new(void);

/* Gives the map back.  The blocks themselves are not touched, ever.  NULL is fine. */
void live_table_free(struct live_table *map);

/* Puts a block in.  Where it overlaps a live one, `other` (may be NULL) receives that one, or one
 * of them. */
enum live_table_state live_table_insert(struct live_table *map, const struct live_block *block,
                                        struct live_block *other);

/* What live_table_insert would say of such a block; nothing is put in. */
enum live_table_state live_table_check(const struct live_table *map, uint64_t address, size_t size,
                                       struct live_block *other);

/* The block that begins at exactly that address.  False where there is none; `block` (may be NULL)
 * is then left alone. */
bool live_table_find(const struct live_table *map, uint64_t address, struct live_block *block);

/* Takes the block out that begins at exactly that address; as live_table_find. */
bool live_table_remove(struct live_table *map, uint64_t address, struct live_block *block);

/* Calls `each` with every block, by rising address, until it returns false.  The map must not
 * change meanwhile. */
void live_table_each(const struct live_table *map,
                     bool (*each)(const struct live_block *block, void *data), void *data);

/* How many blocks there are, and the bytes that the map itself takes from the system. */
size_t live_table_count(const struct live_table *map);
size_t live_table_bytes(const struct live_table *map);

#endif
