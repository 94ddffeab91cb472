/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/search/search.h: what is found, and whom it is attributed to.
 */
#include "unit.h"

#include <sys/mman.h>

#include "base/clock.h"
#include "search/search.h"
#include "subject/subject.h"
#include "supervise/child.h"

static void *dirty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    unsigned char *p = plain_handler(NULL)->allocator.calloc(ctx, nelem, elsize);
    if (p != NULL && nelem != 0 && elsize != 0)
        p[nelem * elsize - 1] = 1;
    return p;
}

static PyDataMem_Handler *get_dirty(void *data)
{
    static PyDataMem_Handler dirty;
    (void)data;
    dirty = *plain_handler(NULL);
    dirty.allocator.calloc = dirty_calloc;
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
    return (++at->asked == ONCE || clock_since(at->begun) > at->always ? get_dirty
                                                                       : plain_handler)(NULL);
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

START_TEST(one_call_is_left_of_what_was_found)
{
    struct search_result result = search_for(0.5, get_dirty, NULL, plain_handler);
    ck_assert(result.has_found && !result.plain_shows);
    ck_assert_int_eq(result.found.rule, HEAP_ZEROED);
    ck_assert_uint_eq(result.list.count, 1);
    ck_assert_uint_eq(result.shown, result.tried);
    search_result_free(&result);
}
END_TEST

START_TEST(what_libc_shows_as_well_is_told)
{
    struct search_result result = search_for(0.5, get_dirty, NULL, get_dirty);
    ck_assert(result.has_found && result.plain_shows);
    search_result_free(&result);
}
END_TEST

/* What comes once and not again is told, and for all of its time the search goes on. */
START_TEST(what_comes_once_is_no_verdict)
{
    struct search_result result = search_for(2, get_at_times, at_times_new(1e9), plain_handler);
    ck_assert(result.has_found && result.shown == 0 && result.tried > 1);
    ck_assert_double_gt(result.seconds, 1);
    search_result_free(&result);
}
END_TEST

/* Of the time left it makes use.  Cutting what came once in vain takes some six seconds. */
START_TEST(what_comes_once_hides_nothing)
{
    struct search_result result = search_for(14, get_at_times, at_times_new(8), plain_handler);
    ck_assert(result.has_found && result.shown == result.tried && result.tried > 1);
    search_result_free(&result);
}
END_TEST

TCase *case_search(void)
{
    TCase *tcase = tcase_create("search");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, one_call_is_left_of_what_was_found);
    tcase_add_test(tcase, what_comes_once_is_no_verdict);
    tcase_add_test(tcase, what_comes_once_hides_nothing);
    tcase_add_test(tcase, what_libc_shows_as_well_is_told);
    return tcase;
}
