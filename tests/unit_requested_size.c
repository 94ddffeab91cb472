/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/harness/requested_size.c: which sizes are known, and that concurrent threads tear no entry.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "harness/requested_size.h"

static const void *block(uintptr_t address)
{
    return (const void *)address; /* never dereferenced */
}

START_TEST(latest_size_is_known)
{
    size_t size = 0;
    ck_assert(!requested_size(block(0x1000), &size));
    for (size_t requested = 40; requested <= 80; requested += 40) {
        requested_note(block(0x1000), requested, NULL);
        ck_assert(requested_size(block(0x1000), &size));
        ck_assert_uint_eq(size, requested);
    }
    requested_forget(block(0x1000));
    ck_assert(!requested_size(block(0x1000), &size));
    requested_note(NULL, 8, NULL);
    ck_assert(!requested_size(NULL, &size));
}
END_TEST

START_TEST(full_row_keeps_the_latest)
{
    enum { MANY = 100000 };
    size_t size, known = 0;
    for (uintptr_t i = 1; i <= MANY; i++) {
        requested_note(block(16 * i), i, NULL);
        assert_in_loop(requested_size(block(16 * i), &size) && size == i);
    }
    for (uintptr_t i = 1; i <= MANY; i++)
        known += requested_size(block(16 * i), &size) && size == i;
    ck_assert_uint_ge(known, 1024);
}
END_TEST

START_TEST(maker_of_a_zero_size_block_is_known)
{
    const struct step by = {.kind = STEP_CALLOC, .first = 0, .second = 8};
    size_t size;
    requested_note(block(0x2000), 0, &by);
    requested_forget(block(0x2000));
    ck_assert(!requested_size(block(0x2000), &size));
    ck_assert_int_eq(requested_maker(block(0x2000)).kind, STEP_CALLOC);
    ck_assert_uint_eq(requested_maker(block(0x2000)).second, 8);
    requested_note(block(0x2000), 8, NULL);
    ck_assert_int_eq(requested_maker(block(0x2000)).kind, OUTSIDE);
    ck_assert_int_eq(requested_maker(NULL).kind, OUTSIDE);
}
END_TEST

/* Each thread has its own blocks, few of which share a row with those of the others. */
enum { THREADS = 3, OWN = 16, ROUNDS = 20000 };
static atomic_size_t wrong, found;

static void *use_own(void *data)
{
    uintptr_t number = (uintptr_t)data;
    for (size_t round = 0; round < ROUNDS; round++) {
        const void *p = block(16 * (1 + number + THREADS * (round % OWN)));
        size_t size = 0, mine = round * THREADS + number;
        struct step by = {.kind = STEP_MALLOC, .first = mine, .second = mine};
        requested_note(p, mine, &by);
        bool known = requested_size(p, &size);
        struct step maker = requested_maker(p);
        atomic_fetch_add(&found, known);
        atomic_fetch_add(&wrong, known && size != mine);
        atomic_fetch_add(&wrong, maker.kind != OUTSIDE && maker.first != maker.second);
        requested_forget(p);
    }
    return NULL;
}

START_TEST(threads_tear_no_entry)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, use_own, (void *)i), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_gt(found, THREADS * ROUNDS / 2);
}
END_TEST

TCase *case_requested_size(void)
{
    TCase *tcase = tcase_create("requested_size");
    tcase_add_test(tcase, latest_size_is_known);
    tcase_add_test(tcase, full_row_keeps_the_latest);
    tcase_add_test(tcase, maker_of_a_zero_size_block_is_known);
    tcase_add_test(tcase, threads_tear_no_entry);
    return tcase;
}
