/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/trace/replay.c: sound handlers pass on any trace, overlaps are found, and a handler may
 * refuse other requests than the recorded one.  tests/replay.py replays on faulty handlers.
 */
#include "unit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "heap/heap.h"
#include "history.h"
#include "trace/replay.h"
#include "trace/trace.h"

static char why[256];

static struct replay_result replayed(PyDataMem_Handler *handler,
                                     const struct replay_options *options)
{
    struct replay_result result;
    struct trace_reader *reader = trace_open(history_path, why, sizeof why);
    ck_assert_msg(reader != NULL, "%s", why);
    ck_assert_int_eq(replay_run(reader, handler, options, &result), result.outcome);
    trace_reader_close(reader);
    return result;
}

static const struct trace_caller caller = {.gil = true};

static const char *at(uintptr_t address)
{
    return (const char *)address;
}

/* ---- sound handlers -------------------------------------------------------------------------- */

/* libc, with a count of how many blocks are out, and nothing above a mebibyte. */
static size_t out, freed_with, resized_to; /* and the sizes that free and realloc were given last */

static void *sound_malloc(void *ctx, size_t size)
{
    (void)ctx;
    void *p = size > 1 << 20 ? NULL : malloc(size);
    out += p != NULL;
    return p;
}

static void *sound_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    void *p =
        __builtin_mul_overflow(nelem, elsize, &size) || size > 1 << 20 ? NULL : calloc(1, size);
    out += p != NULL;
    return p;
}

static void *sound_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (size > 1 << 20)
        return NULL;
    void *q = realloc(p, size);
    resized_to = size;
    out += p == NULL && q != NULL;
    out -= p != NULL && q == NULL && size == 0;
    return q;
}

static void sound_free(void *ctx, void *p, size_t size)
{
    int saved = errno;
    (void)ctx;
    out -= p != NULL;
    freed_with = size;
    free(p);
    errno = saved;
}

static void *moving_realloc(void *ctx, void *p, size_t size)
{
    extern size_t malloc_usable_size(void *);
    void *q = sound_malloc(ctx, size);
    if (q == NULL || p == NULL)
        return q;
    size_t old = malloc_usable_size(p);
    memcpy(q, p, old < size ? old : size);
    memset(p, 0xdd, old);
    sound_free(ctx, p, old);
    return q;
}

static void *null_for_nothing(void *ctx, size_t size)
{
    return size == 0 ? NULL : sound_malloc(ctx, size);
}

#define SOUND                                                                                      \
    .malloc = sound_malloc, .calloc = sound_calloc, .realloc = sound_realloc, .free = sound_free
#pragma GCC diagnostic ignored "-Woverride-init"
#if defined(__clang__)
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif

static PyDataMem_Handler sound[] = {
    {.name = "sound", .version = 1, .allocator = {SOUND}},
    {.name = "moving", .version = 1, .allocator = {SOUND, .realloc = moving_realloc}},
    {.name = "null", .version = 1, .allocator = {SOUND, .malloc = null_for_nothing}},
};

/* Kind of history, calls, unchecked, whole_up_to, for each of them. */
static const struct {
    enum history_kind kind;
    uint64_t calls;
    struct replay_options options;
} traces[] = {
    {HISTORY_ARRAYS, 30000, {.unchecked = true}},
    {HISTORY_ARRAYS, 30000, {0}},
    {HISTORY_ARRAYS, 30000, {.fill.whole = SIZE_MAX}},
    {HISTORY_ANYTHING, 30000, {0}},
    {HISTORY_ANYTHING, 30000, {.unchecked = true}},
    {HISTORY_ANYTHING, 3000, {.fill.whole = 4096}},
};

START_TEST(sound_handlers_hold)
{
    ck_assert(history_write(history_path, traces[_i].kind, 49, traces[_i].calls));
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++) {
        out = 0;
        struct replay_result result = replayed(&sound[i], &traces[_i].options);
        ck_assert_msg(result.outcome == REPLAY_PASSED, "%s: %s: %s", sound[i].name,
                      heap_rule_name(result.violation.rule), result.violation.text);
        ck_assert_int_eq(result.warning.rule, HEAP_NO_RULE);
        ck_assert_uint_eq(result.calls, traces[_i].calls);
        ck_assert_uint_eq(out, 0);
        ck_assert(result.live > 0 && result.peak_bytes > 0);
        ck_assert(traces[_i].kind == HISTORY_ANYTHING || result.left_out <= 2 * result.refused);
    }
}
END_TEST

/* ---- what exactly is said -------------------------------------------------------------------- */

static unsigned char arena[4096] __attribute__((aligned(64)));
static size_t arena_at[8], arena_calls;

/* Hands out what the test said. */
static void *arena_malloc(void *ctx, size_t size)
{
    (void)ctx, (void)size;
    return (void *)((uintptr_t)arena + arena_at[arena_calls++]); /* may be outside of it */
}

static void *arena_realloc(void *ctx, void *p, size_t size)
{
    unsigned char *q = arena_malloc(ctx, size);
    memmove(q, p, size / 2);
    return q;
}

static void arena_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)p, (void)size;
}

static PyDataMem_Handler arena_handler = {
    .name = "arena",
    .version = 1,
    .allocator = {NULL, arena_malloc, NULL, arena_realloc, arena_free},
};

START_TEST(an_overlap_is_told_with_the_other_blocks_history)
{
    struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
    trace_malloc(writer, &caller, 100, at(0x1000));
    trace_malloc(writer, &caller, 16, at(0x2000));
    trace_realloc(writer, &caller, trace_give(writer, at(0x1000)), 200, at(0x3000));
    trace_malloc(writer, &caller, 64, at(0x4000));
    ck_assert(trace_close(writer, why, sizeof why));
    arena_calls = 0;
    memcpy(arena_at, (size_t[]){0, 1024, 512, 704}, 4 * sizeof *arena_at);
    struct replay_result result = replayed(&arena_handler, &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_VIOLATED);
    ck_assert_int_eq(result.violation.rule, HEAP_DISJOINT);
    ck_assert_uint_eq(result.violation.call, 4);
    ck_assert_uint_eq(result.violation.offset, 40);
    ck_assert_str_eq(result.violation.text,
                     fmt("malloc(64) = block 3: 64 bytes at %p, where another block is live",
                         (void *)(arena + 704)));
    ck_assert_str_eq(result.violation.history,
                     fmt("block 1, 200 bytes at %p, was made by malloc in call 1, and resized 1 "
                         "time, in call 3 from 100 to 200 bytes",
                         (void *)(arena + 512)));
    ck_assert_uint_eq(result.calls, 3);
}
END_TEST

/* Blocks that are made one after the other, where, and whether the recorded handler refused it; the
 * last one overlaps that of the given number, or none, or any. */
#define ANY UINT64_MAX
static const struct {
    struct {
        size_t at, size;
        bool refused;
    } made[7];
    uint64_t overlapped;
} overlaps[] = {
    {{{0, 64, false}, {64, 64, false}}, 0},
    {{{64, 64, false}, {0, 64, false}}, 0},
    {{{0, 64, false}, {0, 64, false}}, 1},
    {{{0, 64, false}, {16, 1, false}}, 1},
    {{{0, 64, false}, {63, 1, false}}, 1},
    {{{63, 1, false}, {0, 64, false}}, 1},
    {{{63, 1, false}, {63, 1, false}}, 1},
    {{{64, 1, false}, {0, 64, false}}, 0},
    {{{64, 0, false}, {0, 128, false}}, 1},
    {{{64, 0, false}, {64, 0, false}}, 1},
    {{{0, 128, false}, {64, 0, false}}, 1},
    {{{0, 128, false}, {128, 0, false}}, 0},
    /* with a block that others have followed */
    {{{0, 64, false}, {64, 64, false}, {128, 64, false}, {192, 64, false}, {48, 16, false}}, 1},
    {{{0, 64, false}, {64, 64, false}, {128, 64, false}, {192, 64, false}, {112, 16, false}}, 2},
    {{{0, 64, false}, {64, 64, false}, {128, 64, false}, {192, 64, false}, {0, 512, false}}, ANY},
    {{{0, 64, false}, {64, 64, false}, {128, 64, false}, {192, 64, false}, {256, 64, false}}, 0},
    /* of one that nobody will keep */
    {{{0, 64, false}, {64, 64, true}}, 0},
    {{{0, 64, false}, {48, 16, true}}, 1},
    {{{0, 64, true}, {48, 16, false}}, 0},
};

START_TEST(overlaps_are_told)
{
    struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
    arena_calls = 0;
    for (size_t i = 0; i < 7; i++) {
        arena_at[i] = overlaps[_i].made[i].at;
        if (i == 0 || overlaps[_i].made[i].at + overlaps[_i].made[i].size > 0)
            trace_malloc(writer, &caller, overlaps[_i].made[i].size,
                         overlaps[_i].made[i].refused ? NULL : at(0x1000 * (i + 1)));
    }
    ck_assert(trace_close(writer, why, sizeof why));
    struct replay_result result = replayed(&arena_handler, &(struct replay_options){0});
    ck_assert_int_eq(result.outcome,
                     overlaps[_i].overlapped != 0 ? REPLAY_VIOLATED : REPLAY_PASSED);
    if (overlaps[_i].overlapped == 0)
        return;
    const char *other = overlaps[_i].overlapped == ANY
                            ? "block "
                            : fmt("block %" PRIu64 ",", overlaps[_i].overlapped);
    ck_assert_int_eq(result.violation.rule, HEAP_DISJOINT);
    ck_assert(strncmp(result.violation.history, other, strlen(other)) == 0);
}
END_TEST

START_TEST(what_cannot_be_is_told)
{
    struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
    trace_malloc(writer, &caller, 17, _i == 0 ? NULL : at(0x1000));
    ck_assert(trace_close(writer, why, sizeof why));
    arena_calls = 0;
    arena_at[0] = -(uintptr_t)arena - 16; /* so that 16 bytes are left of all addresses */
    struct replay_result result = replayed(&arena_handler, &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_VIOLATED);
    ck_assert_int_eq(result.violation.rule, HEAP_TOO_LARGE);
}
END_TEST

/* ---- where this handler and the recorded one differ ------------------------------------------ */

/* It refuses more than 1 MiB: what the program did to such blocks is left out. */
START_TEST(what_was_refused_is_left_out)
{
    struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
    trace_malloc(writer, &caller, 2 << 20, at(0x1000));
    trace_realloc(writer, &caller, trace_give(writer, at(0x1000)), 3 << 20, at(0x2000));
    trace_free(writer, &caller, trace_give(writer, at(0x2000)), 3 << 20);
    trace_malloc(writer, &caller, 100, at(0x1000));
    trace_realloc(writer, &caller, trace_give(writer, at(0x1000)), 3 << 20, at(0x2000));
    trace_free(writer, &caller, trace_give(writer, at(0x2000)), 3 << 20);
    ck_assert(trace_close(writer, why, sizeof why));
    out = 0;
    struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_msg(result.outcome == REPLAY_PASSED, "%s", result.violation.text);
    ck_assert_uint_eq(result.calls, 6);
    ck_assert_uint_eq(result.refused, 2);
    ck_assert_uint_eq(result.left_out, 2);
    ck_assert_uint_eq(out, 0);
    ck_assert_uint_eq(freed_with, 100); /* which is what this handler knows it by */
}
END_TEST

/* fromstring cuts its block, and where that is refused frees it with half its size. */
START_TEST(what_grew_behind_the_program_shrinks_again)
{
    static const size_t refused[] = {40000, 100, 1, 80000, 200000};
    for (size_t i = 0; i < 2 * sizeof refused / sizeof *refused; i++) {
        struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
        trace_malloc(writer, &caller, 65536, at(0x100000));
        trace_realloc(writer, &caller, trace_give(writer, at(0x100000)), refused[i / 2], NULL);
        trace_free(writer, &caller, trace_give(writer, at(0x100000)), i % 2 == 0 ? 65536 : 32768);
        ck_assert(trace_close(writer, why, sizeof why));
        out = 0;
        struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
        ck_assert_msg(result.outcome == REPLAY_PASSED, "%s", result.violation.text);
        ck_assert_uint_eq(resized_to, 65536);
        ck_assert_uint_eq(freed_with, i % 2 == 0 ? 65536 : 32768);
        ck_assert_uint_eq(out, 0);
    }
}
END_TEST

/* ---- traces that are not whole --------------------------------------------------------------- */

START_TEST(a_truncated_trace_is_told_and_one_never_closed_holds)
{
    struct stat status;
    ck_assert(history_write(history_path, HISTORY_ARRAYS, 49, 30000) &&
              stat(history_path, &status) == 0);
    ck_assert_int_eq(truncate(history_path, status.st_size - 1000), 0);
    out = 0;
    struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_TRACE_WRONG);
    ck_assert_ptr_nonnull(strstr(result.wrong, "the file is truncated"));
    ck_assert_uint_gt(result.calls, 25000);
    ck_assert_uint_eq(out, 0);
    ck_assert_int_eq(truncate(history_path, 16), 0);
    result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_PASSED);
    ck_assert(result.cut);
    ck_assert_ptr_nonnull(strstr(result.wrong, "was not closed"));
}
END_TEST

TCase *case_replay(void)
{
    TCase *tcase = tcase_create("replay");
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_add_unchecked_fixture(tcase, history_path_make, history_path_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, sound_handlers_hold, 0, ROWS(traces));
    tcase_add_test(tcase, an_overlap_is_told_with_the_other_blocks_history);
    tcase_add_loop_test(tcase, overlaps_are_told, 0, ROWS(overlaps));
    tcase_add_loop_test(tcase, what_cannot_be_is_told, 0, 2);
    tcase_add_test(tcase, what_was_refused_is_left_out);
    tcase_add_test(tcase, what_grew_behind_the_program_shrinks_again);
    tcase_add_test(tcase, a_truncated_trace_is_told_and_one_never_closed_holds);
    return tcase;
}
