/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What an operation on the map of live blocks costs: with a thousand blocks and with a million, of
 * 16 to 512 bytes, that lie one behind the other as malloc places them and are taken in random
 * order.  Inserting includes the search for overlaps.
 *
 *     bench_live_table [ROUNDS]
 *
 * Prints nanoseconds of processor time, the median of the rounds.  In each a map is filled, every
 * block is looked up, and the map is emptied.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/live_table.h"
#include "base/random.h"

enum { INSERT, FIND, REMOVE, OPERATIONS, MOST_ROUNDS = 999 };

struct blocks {
    size_t count;
    uintptr_t *address;
    uint16_t *size;
};

_Noreturn static void stop(const char *what)
{
    fprintf(stderr, "bench_live_table: %s\n", what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Addresses as of glibc's malloc: multiples of 16, with 8 bytes before each block. */
static struct blocks make_blocks(size_t count, struct random *random)
{
    struct blocks blocks = {count, malloc(count * sizeof *blocks.address),
                            malloc(count * sizeof *blocks.size)};
    uintptr_t address = 0x55d4c3a01010;
    if (blocks.address == NULL || blocks.size == NULL)
        stop("out of memory");
    for (size_t i = 0; i < count; i++) {
        blocks.size[i] = (uint16_t)(16 + random_below(random, 497));
        blocks.address[i] = address;
        address += (blocks.size[i] + 8u + 15u) & ~(uintptr_t)15;
    }
    return blocks;
}

static void shuffle(struct blocks *blocks, struct random *random)
{
    for (size_t i = blocks->count - 1; i > 0; i--) {
        size_t other = random_below(random, i + 1);
        uintptr_t address = blocks->address[i];
        uint16_t size = blocks->size[i];
        blocks->address[i] = blocks->address[other];
        blocks->size[i] = blocks->size[other];
        blocks->address[other] = address;
        blocks->size[other] = size;
    }
}

static void insert_all(struct live_table *map, const struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        struct live_block block = {blocks->address[i], blocks->size[i], i, 0};
        if (live_table_insert(map, &block, NULL) != LIVE_TABLE_DONE)
            stop("a block could not be put in");
    }
}

static void find_all(struct live_table *map, const struct blocks *blocks)
{
    struct live_block found;
    for (size_t i = 0; i < blocks->count; i++) {
        if (!live_table_find(map, blocks->address[i], &found) || found.size != blocks->size[i])
            stop("a block is not found");
    }
}

static void remove_all(struct live_table *map, const struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        if (!live_table_remove(map, blocks->address[i], NULL))
            stop("a block is not found");
    }
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void bench(size_t count, int rounds, double limit)
{
    static void (*const operations[])(struct live_table *,
                                      const struct blocks *) = {insert_all, find_all, remove_all};
    static const char *const names[] = {"insert", "find", "remove"};
    static double ns[OPERATIONS][MOST_ROUNDS];
    struct random random = {49};
    struct blocks blocks = make_blocks(count, &random);
    struct live_table *map = live_table_new();
    size_t bytes = 0;
    if (map == NULL)
        stop("out of memory");
    for (int round = 0; round < rounds; round++) {
        for (int i = INSERT; i < OPERATIONS; i++) {
            shuffle(&blocks, &random);
            double start = now();
            operations[i](map, &blocks);
            ns[i][round] = (now() - start) / (double)count;
            if (i == FIND)
                bytes = live_table_bytes(map);
        }
    }
    printf("%8zu blocks:", count);
    for (int i = INSERT; i < OPERATIONS; i++) {
        qsort(ns[i], (size_t)rounds, sizeof ns[i][0], by_value);
        printf("  %s %5.1f ns", names[i], ns[i][rounds / 2]);
    }
    printf("  (to be below %.0f)", limit);
    if (count >= 1000000)
        printf("  %.0f bytes a block (below 100)", (double)bytes / (double)count);
    printf("\n");
    live_table_free(map);
    free(blocks.address);
    free(blocks.size);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 7;
    if (rounds < 1 || rounds > MOST_ROUNDS)
        stop("ROUNDS is from 1 to 999");
    puts("the map of live blocks, malloc-like addresses in random order:");
    bench(1000, MOST_ROUNDS, 40);
    bench(1000000, rounds, 100);
    return 0;
}
