/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/search/search.h: what is found, and whom it is attributed to.
 */
#include "unit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "heap/heap.h"
#include "search/search.h"
#include "supervise/child.h"

static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return malloc(size != 0 ? size : 1);
}

static void *plain_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return nelem != 0 && elsize != 0 ? calloc(nelem, elsize) : calloc(1, 1);
}

static void *plain_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return realloc(p, size != 0 ? size : 1);
}

static void plain_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    (void)size;
    free(p);
}

static void *dirty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    unsigned char *p = plain_calloc(ctx, nelem, elsize);
    if (p != NULL && nelem != 0 && elsize != 0)
        p[nelem * elsize - 1] = 1;
    return p;
}

static PyDataMem_Handler plain = {
    "plain", 1, {NULL, plain_malloc, plain_calloc, plain_realloc, plain_free}};
static PyDataMem_Handler dirty = {
    "dirty", 1, {NULL, plain_malloc, dirty_calloc, plain_realloc, plain_free}};

static PyDataMem_Handler *get_plain(void *data)
{
    (void)data;
    return &plain;
}

static PyDataMem_Handler *get_dirty(void *data)
{
    (void)data;
    return &dirty;
}

/* Wrong once, in the third process that asks for it, and from so many seconds on. */
struct at_times {
    double always;
    uint64_t begun;
    _Atomic unsigned asked; /* in memory that the processes share */
};

static PyDataMem_Handler *get_at_times(void *data)
{
    struct at_times *at = data;
    enum { ONCE = 3 };
    return ++at->asked == ONCE || clock_since(at->begun) > at->always ? &dirty : &plain;
}

static struct at_times *at_times_new(double always)
{
    struct at_times *at =
        mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    at->always = always;
    at->begun = clock_now();
    return at;
}

static struct search_result search_for(double seconds, get_handler *get, void *data,
                                       get_handler *control)
{
    struct search_options options = {.get = get,
                                     .data = data,
                                     .get_plain = control,
                                     .seed = 7,
                                     .seconds = seconds,
                                     .hangs = 10,
                                     .jobs = 1,
                                     .most_bytes = 16 << 20};
    struct search_result result;
    child_prepare();
    search_run(&options, &result);
    ck_assert(!result.is_broken);
    return result;
}

static struct search_result search(get_handler *get, get_handler *control)
{
    return search_for(0.5, get, NULL, control);
}

START_TEST(what_is_sound_shows_nothing)
{
    struct search_result result = search(get_plain, get_plain);
    ck_assert(!result.has_found);
    ck_assert_uint_gt(result.trials, 0);
}
END_TEST

START_TEST(one_call_is_left_of_what_was_found)
{
    struct search_result result = search(get_dirty, get_plain);
    ck_assert(result.has_found && !result.plain_shows);
    ck_assert_int_eq(result.found.rule, HEAP_ZEROED);
    ck_assert_uint_eq(result.list.count, 1);
    ck_assert_uint_eq(result.shown, result.tried);
    search_result_free(&result);
}
END_TEST

START_TEST(what_libc_shows_as_well_is_told)
{
    struct search_result result = search(get_dirty, get_dirty);
    ck_assert(result.has_found && result.plain_shows);
    search_result_free(&result);
}
END_TEST

/* What comes once and not again is told, and for all of its time the search goes on. */
START_TEST(what_comes_once_is_no_verdict)
{
    struct search_result result = search_for(2, get_at_times, at_times_new(1e9), get_plain);
    ck_assert(result.has_found && result.shown == 0 && result.tried > 1);
    ck_assert_double_gt(result.seconds, 1);
    search_result_free(&result);
}
END_TEST

/* Of the time left it makes use.  Cutting what came once in vain takes some six seconds. */
START_TEST(what_comes_once_hides_nothing)
{
    struct search_result result = search_for(14, get_at_times, at_times_new(8), get_plain);
    ck_assert(result.has_found && result.shown == result.tried && result.tried > 1);
    search_result_free(&result);
}
END_TEST

/* A quota of 16 MiB is enough for all that is asked for, with what is asked for. */
START_TEST(what_a_quota_has_no_room_for_may_be_refused)
{
    enum { QUOTA = 16 << 20, SIZE = 56174 };
    ck_assert(heap_may_refuse(SIZE, QUOTA - SIZE + 1, 298));
    ck_assert(!heap_may_refuse(SIZE, QUOTA - SIZE, 298));
    ck_assert(!heap_may_refuse(SIZE, 0, 0));
}
END_TEST

Suite *suite_search(void)
{
    Suite *suite = suite_create("search");
    TCase *tcase = tcase_create("search");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, what_is_sound_shows_nothing);
    tcase_add_test(tcase, one_call_is_left_of_what_was_found);
    tcase_add_test(tcase, what_a_quota_has_no_room_for_may_be_refused);
    tcase_add_test(tcase, what_comes_once_is_no_verdict);
    tcase_add_test(tcase, what_comes_once_hides_nothing);
    tcase_add_test(tcase, what_libc_shows_as_well_is_told);
    suite_add_tcase(suite, tcase);
    return suite;
}
