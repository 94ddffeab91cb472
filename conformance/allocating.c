/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Alignment, disjointness and neighbours, for malloc and calloc.
 */
#include "block_checks.h"

#include <time.h>

#include "heap/heap.h"

/* ---- alignment ------------------------------------------------------------------------------- */

struct aligning {
    const struct maker *maker;
    struct random random;
};

enum { RING = 32 };

/* Replaces the block at one place of the ring. */
static void align_next(const struct maker *maker, struct block *place, size_t size)
{
    if (place->p != NULL)
        subject_free(place->p, place->size);
    *place = (struct block){maker->must(size), size, 0};
    expect_aligned(place->p, size, "%s", maker->call(size));
}

static void align_all_sizes(void *data)
{
    struct aligning *a = data;
    struct block ring[RING] = {0};
    size_t calls = is_instrumented() ? 2000 : 5000;
    for_each_size (size, 1 << 20) {
        if (!is_instrumented() || size % 5 <= 1)
            align_next(a->maker, &ring[size <= 4096 ? size % RING : 0], size);
    }
    for (size_t i = 0; i < calls; i++) /* in no order, so that blocks are recycled */
        align_next(a->maker, &ring[random_below(&a->random, RING)],
                   1 + random_below(&a->random, 600));
    for (size_t i = 0; i < RING; i++) {
        if (ring[i].p != NULL)
            subject_free(ring[i].p, ring[i].size);
    }
}

void check_alignment(const struct maker *maker)
{
    struct aligning here = {maker, {random_next(rng())}}, there = {maker, {random_next(rng())}};
    align_all_sizes(&here);
    in_threads(1, align_all_sizes, &there, sizeof there);
    static const size_t large[] = {2 << 20, (4 << 20) + 1, 16 << 20, (32 << 20) - 8};
    for (size_t i = 0; i < LENGTH(large); i++) {
        void *p = maker->ask(large[i]);
        if (p == NULL)
            continue;
        expect_aligned(p, large[i], "%s", maker->call(large[i]));
        subject_free(p, large[i]);
    }
    check_huge_alignment(maker);
}

/* ---- disjoint -------------------------------------------------------------------------------- */

/* Two that overlap are told by their addresses or as forked_workers.  Else the handler has written
 * there, and that is another property's matter. */
static void expect_whole(const char *neighbours, const struct blocks *blocks, const char *when)
{
    blocks_expect_disjoint(blocks);
    attribute_to(neighbours, NULL);
    blocks_verify(blocks, "%s", when);
    attribute_to("", NULL);
}

struct churn {
    const struct maker *maker;
    struct random random;
    struct blocks blocks;
};

static void churn(void *data)
{
    struct churn *c = data;
    size_t count = is_instrumented() ? 200 : 800;
    for (int round = 0; round < 5; round++) {
        while (c->blocks.count > count / 3)
            blocks_free(&c->blocks, random_below(&c->random, c->blocks.count));
        while (c->blocks.count < count) {
            size_t size = 1 + random_below(&c->random, c->blocks.count % 16 == 0 ? 8192 : 512);
            blocks_add(&c->blocks, c->maker->must(size), size);
        }
        expect_whole(c->maker->neighbours, &c->blocks, "after others came and went");
    }
}

/* On two threads, one after the other, as the handler may count on the GIL; what they leave is then
 * freed on this one. */
static void churn_on_two_threads(const struct maker *maker)
{
    struct churn churns[2] = {{.maker = maker, .random = {random_next(rng())}},
                              {.maker = maker, .random = {random_next(rng())}}};
    struct blocks both = {0};
    for (int i = 0; i < 2; i++) {
        in_threads(1, churn, &churns[i], sizeof churns[i]);
        for (size_t j = 0; j < churns[i].blocks.count; j++)
            blocks_add(&both, churns[i].blocks.at[j].p, churns[i].blocks.at[j].size);
        free(churns[i].blocks.at);
    }
    expect_whole(maker->neighbours, &both, "after two threads made blocks");
    blocks_free_all(&both);
}

/* A handler may spend pages on each small block, and then so many take memory and time. */
static void ask_for_the_rest(const struct blocks *blocks, size_t resident, size_t count)
{
    enum { LITTLE = 64 << 20, MUCH = 1 << 30 };
    size_t now = resident_bytes(), each = now > resident ? (now - resident) / blocks->count : 0;
    if (each * count <= LITTLE)
        return;
    blocks_expect_disjoint(blocks);
    if (each * count > MUCH)
        skip("each of %zu small blocks takes %zu KiB of memory, which is too much for %zu; they "
             "do not overlap",
             blocks->count, each >> 10, count);
    ask_for_memory(each * count);
}

void check_disjoint(const struct maker *maker, size_t large)
{
    enum { FIRST = 2048 };
    size_t count = is_instrumented() ? 2 * FIRST : 65536 + 512;
    struct blocks blocks = {0};
    check_alone(maker->must, maker->neighbours);
    churn_on_two_threads(maker);
    check_large_disjoint(maker, is_instrumented() ? 6 : large);
    size_t resident = resident_bytes();
    while (blocks.count < count) {
        size_t size = maker->least + blocks.count % 16; /* one class, in most handlers */
        void *p = maker->ask(size);
        if (p == NULL && !heap_may_refuse(size, blocks.bytes, blocks.count))
            fail(fmt("%s to return a block: %zu blocks of that size are live", maker->call(size),
                     blocks.count),
                 "NULL");
        if (p == NULL)
            break;
        blocks_add(&blocks, p, size);
        if (blocks.count == FIRST)
            ask_for_the_rest(&blocks, resident, count);
    }
    size_t made = blocks.count;
    expect_whole(maker->neighbours, &blocks, fmt("with %zu blocks live", made));
    blocks_free_all(&blocks);
    if (made < count)
        skip("it refuses block %zu of up to %zu bytes; those before it do not overlap", made + 1,
             maker->least + 15);
}

/* ---- alone ----------------------------------------------------------------------------------- */

/* As check_alone, of a block of that size. */
static void one_alone(void *(*make)(size_t size), const char *neighbours, size_t size)
{
    enum { ROUNDS = 3, OTHERS = 4 };
    struct blocks blocks = {0};
    blocks_add(&blocks, make(size), size);
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < OTHERS; i++)
            blocks_add(&blocks, i == 2 ? must_calloc(size, 1) : must_malloc(size), size);
        expect_whole(neighbours, &blocks, "as others came, one being the only one left");
        while (blocks.count > 1)
            blocks_free(&blocks, 1);
    }
    expect_whole(neighbours, &blocks, "after all others were freed");
    blocks_free_all(&blocks);
}

void check_alone(void *(*make)(size_t size), const char *neighbours)
{
    static const size_t sizes[] = {24, 200, 3000, 40000};
    for (size_t i = 0; i < LENGTH(sizes); i++)
        one_alone(make, neighbours, sizes[i]);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* What comes of writing into a block shows that another one has its memory. */
static void fill_beside(const struct blocks *blocks, void *p, int byte, size_t size,
                        const char *which)
{
    memset(p, byte, size);
    attribute_to("malloc.disjoint", NULL);
    blocks_verify(blocks, "after %s was filled", which);
    attribute_to("", NULL);
}

/* What free writes into another block is another property's matter. */
static void expect_whole_after_free(const struct blocks *blocks, const char *which, size_t size)
{
    attribute_to("free.poison-stays-inside", NULL);
    blocks_verify(blocks, "after %s freed, of %zu bytes", which, size);
    attribute_to("", NULL);
}

/* Three blocks of a size, of which the second goes, comes back and goes again. */
static void one_among_three(const struct maker *maker, size_t size)
{
    struct blocks blocks = {0};
    struct block at[2];
    blocks.at = at;
    blocks.room = 2;
    void *first = maker->must(size), *second = maker->must(size), *third = maker->must(size);
    blocks_add(&blocks, first, size);
    blocks_add(&blocks, third, size);
    fill_beside(&blocks, second, 0xff, size, fmt("another block of %zu bytes", size));
    subject_free(second, size);
    expect_whole_after_free(&blocks, "another block was", size);
    second = maker->must(size);
    blocks_verify(&blocks, "after %s", maker->call(size));
    fill_beside(&blocks, second, 0x55, size, fmt("the block of %s", maker->call(size)));
    subject_free(first, size);
    subject_free(second, size);
    blocks.at[0] = blocks.at[1];
    blocks.count = 1;
    expect_whole_after_free(&blocks, "two other blocks were", size);
    subject_free(third, size);
}

/* Blocks that were freed and are at once in use again, while a thread of the handler's may still
 * be busy with what they were before. */
static void look_again_later(const struct maker *maker)
{
    enum { COUNT = 400, ROUNDS = 3, MICROSECONDS = 2000 };
    struct blocks blocks = {0};
    for (int round = 0; round < ROUNDS; round++) {
        while (blocks.count > 0)
            blocks_free(&blocks, blocks.count - 1);
        while (blocks.count < COUNT) {
            size_t size = 1 + blocks.count % 200;
            blocks_add(&blocks, maker->must(size), size);
        }
        blocks_verify(&blocks, "after all were made");
        nanosleep(&(struct timespec){0, MICROSECONDS * 1000}, NULL);
        attribute_to("free.leaves-recycled-alone", NULL);
        blocks_verify(&blocks, "%d ms after all were made, and others freed before them",
                      MICROSECONDS / 1000);
        attribute_to("", NULL);
    }
    blocks_free_all(&blocks);
}

void check_neighbours(const struct maker *maker)
{
    struct blocks company = {0};
    blocks_add_neighbours(&company, 100);
    for (size_t i = 0; i < 50; i++) /* with holes between them */
        blocks_free(&company, i);
    for_each_size (size, 8192) {
        if (size > 256 && size % (is_instrumented() ? 61 : 7) != 0)
            continue;
        one_among_three(maker, size);
        if (size % 16 == 0)
            blocks_verify(&company, "after %s and free", maker->call(size));
    }
    one_among_three(maker, 65537);
    one_among_three(maker, 300000);
    look_again_later(maker);
    blocks_verify(&company, "at the end");
    blocks_free_all(&company);
}
