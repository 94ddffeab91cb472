/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/model/record.c: the memory that processes share, and the fence around one property's part of
 * it.
 */
#include "unit.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/record.h"

enum { COUNT = 5 };

static struct shared_results *make_board(void)
{
    struct shared_results *shared = results_create(COUNT);
    ck_assert_ptr_nonnull(shared);
    return shared;
}

static bool is_mapped(const void *p)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    unsigned char in_core;
    return mincore((void *)((uintptr_t)p & -page), 1, &in_core) == 0;
}

START_TEST(fence_leaves_one_record)
{
    struct shared_results *shared = make_board();
    struct load *load = results_load(shared);
    struct record *records[COUNT];
    bool keep_load = _i % 2 != 0;
    size_t own = (size_t)_i / 2;
    for (size_t i = 0; i < COUNT; i++)
        records[i] = results_record(shared, i);
    results_isolate(shared, own, keep_load);
    ck_assert(!is_mapped(shared));
    ck_assert(is_mapped(load) == keep_load);
    for (size_t i = 0; i < COUNT; i++)
        ck_assert(is_mapped(records[i]) == (i == own));
    memset(records[own], 0xff, sizeof *records[own]);
}
END_TEST

TCase *case_record(void)
{
    TCase *tcase = tcase_create("record");
    tcase_add_loop_test(tcase, fence_leaves_one_record, 0, 2 * COUNT);
    return tcase;
}
