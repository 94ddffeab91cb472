/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ways to use the subject.  Other properties test what comes back of these calls.
 */
#include "ordinary_use.h"

#include "harness/harness.h"

void resize_and_free(void *p, size_t old, size_t new, size_t given)
{
    void *q = p != NULL ? subject_realloc(p, new) : NULL;
    give_back(q != NULL ? q : p, q != NULL ? given : old);
}

/* Where a block comes all the same, that is for malloc.too-large, calloc.overflow and
 * realloc.failure-keeps-block to say, and it is left alone here. */
void ask_too_much(void)
{
    enum { LARGE = 5 << 20 };
    void *p = subject_malloc(100), *large = subject_malloc(LARGE);
    absurd_begin();
    static const size_t sizes[] = {SIZE_MAX,       SIZE_MAX - 15,    SIZE_MAX - 4096,
                                   PTRDIFF_MAX,    PTRDIFF_MAX - 63, (size_t)PTRDIFF_MAX + 1,
                                   POWER_OF_2(60), POWER_OF_2(50)};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        size_t size = sizes[i];
        subject_malloc(size);
        subject_calloc(size, 1);
        subject_calloc(size / 4, 8);
        if (p != NULL && subject_realloc(p, size) != NULL)
            p = NULL;
        if (large != NULL && subject_realloc(large, size) != NULL)
            large = NULL;
        subject_free(NULL, size);
    }
    subject_calloc(POWER_OF_2(33), POWER_OF_2(33));
    give_back(large, LARGE);
    give_back(p, 100);
    absurd_end();
}

/* Large blocks by calloc, in rising order up to one that it writes all of. */
static void use_large_calloc(void)
{
    static const size_t sizes[] = {8 << 20, (64 << 20) - 4096, ((size_t)1 << 31) + 8};
    static bool fills; /* what is kept for the next time is resident */
    for (size_t i = 0; i < LENGTH(sizes) && !fills; i++) {
        size_t size = sizes[i], before = resident_bytes();
        void *p = subject_calloc(1, size);
        fills = resident_bytes() > before + size / 2;
        give_back(p, size);
    }
}

void use_large_blocks(void)
{
    static const size_t sizes[] = {1 << 20,
                                   (4 << 20) + 8,
                                   16 << 20,
                                   (size_t)64 << 20,
                                   (size_t)200 << 20,
                                   ((size_t)1 << 30) + 1,
                                   ((size_t)1 << 31) + 8};
    enum { SIZES = LENGTH(sizes), LITTLE = 4 << 20 };
    bool is_spared =
        is_instrumented() || lacking_memory(2 * sizes[SIZES - 1]) != NULL || subject_fills_blocks();
    if (!is_spared) /* while nothing so large was freed, which it would have to clear */
        use_large_calloc();
    for (size_t i = 0; i < SIZES && (!is_spared || sizes[i] <= LITTLE); i++) {
        size_t size = sizes[i];
        give_back(subject_malloc(size), size);
        resize_and_free(subject_malloc(100), 100, size, size);
        resize_and_free(subject_malloc(size), size, 100, 100);
    }
}

void use_and_free_all(void *unused)
{
    struct blocks blocks = {0};
    (void)unused;
    blocks_add_neighbours(&blocks, 50);
    for (size_t size = 5000; size <= 500000; size *= 10)
        blocks_add(&blocks, must_malloc(size), size);
    blocks_free_all(&blocks);
}
