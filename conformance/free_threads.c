/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free in another thread than the one that made the block.
 */
#include "harness/growth.h"
#include "harness/harness.h"

static void free_every_other(void *data)
{
    struct blocks *blocks = data;
    for (size_t i = 0; i < blocks->count; i++)
        blocks_free(blocks, i);
}

static void free_all_here(void *data)
{
    struct blocks *blocks = data;
    while (blocks->count > 0)
        blocks_free(blocks, blocks->count - 1);
}

/* More than the rows are long in which allocators keep what others hand back. */
static void make_some(struct blocks *blocks)
{
    for (size_t i = 0; i < 320; i++) {
        size_t size = i % 8 == 7 ? 5000 : 10 + 20 * (i % 48);
        unsigned char *p = i % 2 == 0 ? must_malloc(size) : must_calloc(1, size);
        blocks_add(blocks, p, size);
    }
}

/* What is made here is freed in a thread that has never called the subject before. */
static void make_here_free_there(void *data)
{
    make_some(data);
    in_threads(1, free_all_here, data, sizeof(struct blocks));
}

static void make_and_free_here(void *data)
{
    make_some(data);
    free_all_here(data);
}

/* Large blocks, of a thread that has ended when they are freed. */
enum { LARGE = 3 };
static void make_large(void *data)
{
    static const size_t sizes[LARGE] = {70000, 200000, 900000};
    struct block *at = data;
    for (size_t i = 0; i < LARGE; i++) {
        at[i] =
            (struct block){i == 1 ? must_calloc(1, sizes[i]) : must_malloc(sizes[i]), sizes[i], 0};
        at[i].p[0] = at[i].p[sizes[i] - 1] = 1;
    }
}

static void free_large_here(struct block *at)
{
    for (size_t i = 0; i < LARGE; i++)
        subject_free(at[i].p, at[i].size);
}

static void make_there_free_here(void *unused)
{
    struct block at[LARGE];
    (void)unused;
    in_threads(1, make_large, at, sizeof at);
    free_large_here(at);
}

static void make_and_free_there(void *data)
{
    make_large(data);
    free_large_here(data);
}

/* The same, freed by the thread that made them. */
static void make_there_free_there(void *unused)
{
    struct block at[LARGE];
    (void)unused;
    in_threads(1, make_and_free_there, at, sizeof at);
}

/* As the property, by one thread alone. */
static void free_every_other_here(void *unused)
{
    struct blocks blocks = {0};
    (void)unused;
    blocks_add_neighbours(&blocks, 400);
    for (size_t i = 0; i < 3; i++) {
        free_every_other(&blocks);
        blocks_verify(&blocks, "after every other block was freed");
        blocks_add_neighbours(&blocks, 100);
        blocks_verify(&blocks, "after blocks were freed and new ones made");
        blocks_expect_disjoint(&blocks);
    }
    blocks_free_all(&blocks);
}

PROPERTY(free_in_another_thread,
    .id     = "free.in-another-thread", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 29}, .slow_ms = 43, .threads = true, .quick = true,
    .title  = "blocks can be freed by another thread",
    .clause = "Another thread than the one that made a block can free it, and the memory is not "
              "lost.",
    .tests  = "The thread that made the block is still running or has ended.",
    .source = "NEP 49, High level design; NumPy 1.22 to 2.5: array_dealloc in any thread",
    .why    = "Queues pass arrays to threads that never installed the handler.",
    .wrong  = "cache->free[class] = p; /* of this thread, not of the block's owner */",
    .right  = "pthread_mutex_lock(&header->owner->lock);\n"
              "push(header->owner, p);\n"
              "pthread_mutex_unlock(&header->owner->lock);",
    .hint   = "Store with the block what free needs. Return it to its owner's list under a lock.",
    .looks  = "expected memory to stop growing while blocks are made here and freed in others")
{
    enum { SOME = 6, QUARANTINE = 230 };
    struct blocks blocks = {0};
    control_run(free_every_other_here, NULL, "in one thread alone");
    blocks_add_neighbours(&blocks, is_instrumented() ? 100 : 400);
    for (size_t i = 0; i < 3; i++) {
        in_threads(1, free_every_other, &blocks, sizeof blocks);
        blocks_verify(&blocks, "after every other block was freed in another thread");
        blocks_add_neighbours(&blocks, 100);
        blocks_verify(&blocks, "after blocks were freed in another thread and new ones made");
        blocks_expect_disjoint(&blocks);
    }
    blocks_free_all(&blocks);
    expect_no_growth(10, make_here_free_there, make_and_free_here, &blocks,
                     "blocks are made in one thread and freed in others");
    blocks_free_all(&blocks);
    if (growth_over(SOME, make_there_free_here, NULL) == NULL)
        return;
    for (size_t i = 0; i < QUARANTINE; i++) /* of a quarter of a gibibyte, that fills by now */
        make_there_free_here(NULL);
    expect_no_growth(SOME, make_there_free_here, make_there_free_there, NULL,
                     "large blocks are freed when the thread that made them has ended");
}
