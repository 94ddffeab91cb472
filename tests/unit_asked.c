/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/harness/asked.c: what blocks were asked for with, by one thread and by several at once.
 */
#include "unit.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "harness/asked.h"

static const void *block(uintptr_t address)
{
    return (const void *)address; /* nothing is read there */
}

START_TEST(size_is_what_it_was_made_with)
{
    size_t size = 0;
    ck_assert(!asked_size(block(0x1000), &size));
    asked_note(block(0x1000), 40);
    ck_assert(asked_size(block(0x1000), &size));
    ck_assert_uint_eq(size, 40);
    asked_note(block(0x1000), 80);
    ck_assert(asked_size(block(0x1000), &size));
    ck_assert_uint_eq(size, 80);
    asked_forget(block(0x1000));
    ck_assert(!asked_size(block(0x1000), &size));
    asked_note(NULL, 8);
    ck_assert(!asked_size(NULL, &size));
}
END_TEST

START_TEST(full_row_keeps_the_latest)
{
    enum { MANY = 100000 };
    size_t size, known = 0;
    for (uintptr_t i = 1; i <= MANY; i++) {
        asked_note(block(16 * i), i);
        assert_in_loop(asked_size(block(16 * i), &size) && size == i);
    }
    for (uintptr_t i = 1; i <= MANY; i++) {
        if (!asked_size(block(16 * i), &size))
            continue;
        assert_in_loop(size == i);
        known++;
    }
    ck_assert_uint_ge(known, 1024);
}
END_TEST

START_TEST(maker_of_empty_block_is_known)
{
    const struct call by = {.function = IN_CALLOC, .first = 0, .second = 8};
    asked_note_empty(block(0x2000), &by);
    struct call maker = asked_maker_of_empty(block(0x2000));
    ck_assert_int_eq(maker.function, IN_CALLOC);
    ck_assert_uint_eq(maker.second, 8);
    ck_assert_int_eq(asked_maker_of_empty(block(0x3000)).function, OUTSIDE);
    ck_assert_int_eq(asked_maker_of_empty(NULL).function, OUTSIDE);
}
END_TEST

/* Each thread has blocks of its own, which share few rows with those of the others. */
enum { THREADS = 3, OWN = 16, ROUNDS = 20000 };
static atomic_size_t wrong, found;

static void *use_own(void *data)
{
    uintptr_t number = (uintptr_t)data;
    for (size_t round = 0; round < ROUNDS; round++) {
        const void *p = block(16 * (1 + number + THREADS * (round % OWN)));
        size_t size = 0, mine = round * THREADS + number;
        asked_note(p, mine);
        bool known = asked_size(p, &size);
        atomic_fetch_add(&found, known);
        atomic_fetch_add(&wrong, known && size != mine);
        struct call by = {.function = IN_MALLOC, .first = mine, .second = mine};
        asked_note_empty(p, &by);
        struct call maker = asked_maker_of_empty(p);
        atomic_fetch_add(&wrong, maker.function != OUTSIDE && maker.first != maker.second);
        asked_forget(p);
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

Suite *suite_asked(void)
{
    Suite *suite = suite_create("asked");
    TCase *tcase = tcase_create("asked");
    tcase_add_test(tcase, size_is_what_it_was_made_with);
    tcase_add_test(tcase, full_row_keeps_the_latest);
    tcase_add_test(tcase, maker_of_empty_block_is_known);
    tcase_add_test(tcase, threads_tear_no_entry);
    suite_add_tcase(suite, tcase);
    return suite;
}
