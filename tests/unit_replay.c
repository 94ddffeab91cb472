/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/trace/replay.c: sound handlers hold on any trace, and of a faulty one the first thing that is
 * wrong is told, with its call.
 */
#include "unit.h"

#include <errno.h>
#include <fenv.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "heap/heap.h"
#include "history.h"
#include "subject/subject.h"
#include "trace/replay.h"
#include "trace/trace.h"

#define MAX(a, b) ((a) > (b) ? (a) : (b))

static char path[256], why[256];

static void make_path(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/conform-replay-XXXXXX", folder != NULL ? folder : "/tmp");
    int fd = mkstemp(path);
    if (fd < 0)
        abort();
    close(fd);
}

static void remove_path(void)
{
    unlink(path);
}

static struct replay_result replayed(PyDataMem_Handler *handler,
                                     const struct replay_options *options)
{
    struct replay_result result;
    struct trace_reader *reader = trace_open(path, why, sizeof why);
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

/* ---- sound handlers ---------------------------------------------------------------------------
 */

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
#define WATCHED .calloc = sound_calloc, .realloc = watching_realloc, .free = watching_free
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
    {HISTORY_LOOPS, 30000, {0}},
    {HISTORY_LOOPS, 30000, {.unchecked = true}},
    {HISTORY_ARRAYS, 30000, {0}},
    {HISTORY_ARRAYS, 30000, {.fill.whole = SIZE_MAX}},
    {HISTORY_ANYTHING, 30000, {0}},
    {HISTORY_ANYTHING, 30000, {.unchecked = true}},
    {HISTORY_ANYTHING, 3000, {.fill.whole = 4096}},
};

START_TEST(sound_handlers_hold)
{
    ck_assert(history_write(path, traces[_i].kind, 49, traces[_i].calls));
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

static const char *const references[] = {"aligned", "shift_header"};

START_TEST(reference_handlers_hold)
{
    static struct subject_place place;
    struct subject subject;
    struct replay_options options = {.alignment = _i == 0 ? 64 : 0};
    const char *wrong = subject_find(references[_i], &place);
    ck_assert_msg(wrong == NULL, "%s", wrong);
    ck_assert_msg(subject_load(&place, &subject, why, sizeof why) == LOAD_DONE, "%s", why);
    ck_assert(history_write(path, HISTORY_ARRAYS, 49, 30000));
    struct replay_result result = replayed(subject.handler, &options);
    ck_assert_msg(result.outcome == REPLAY_PASSED, "%s: %s", heap_rule_name(result.violation.rule),
                  result.violation.text);
    ck_assert_str_eq(result.warning.text, "");
}
END_TEST

/* ---- faulty ones ------------------------------------------------------------------------------
 */

static unsigned calls_so_far;
static unsigned char *last_block;
static PyDataMem_Handler *current;

/* The defects below are in a block that is still live. */
static void watching_free(void *ctx, void *p, size_t size)
{
    if ((uintptr_t)last_block - (uintptr_t)p < MAX(size, 1))
        last_block = NULL;
    sound_free(ctx, p, size);
}

static void *watching_realloc(void *ctx, void *p, size_t size)
{
    last_block = NULL;
    return sound_realloc(ctx, p, size);
}

static void *same_twice(void *ctx, size_t size)
{
    if (++calls_so_far > 2000 && last_block != NULL && size <= 64)
        return last_block;
    unsigned char *p = sound_malloc(ctx, size);
    return last_block = size >= 64 ? p : NULL, p;
}

static void *inside_the_last(void *ctx, size_t size)
{
    if (++calls_so_far > 2000 && last_block != NULL && size <= 16)
        return last_block;
    unsigned char *p = sound_malloc(ctx, size);
    return last_block = size >= 64 ? p + (size - 16) / 16 * 16 : NULL, p;
}

static void *misaligned(void *ctx, size_t size)
{
    unsigned char *p = sound_malloc(ctx, size + 64);
    return p == NULL || ++calls_so_far < 3000 ? p : p + (size < 16 ? 4 : 8);
}

static void *dirty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    unsigned char *p = sound_malloc(ctx, nelem * elsize);
    if (p == NULL)
        return NULL;
    memset(p, 0, nelem * elsize);
    p[nelem * elsize - 1] = calls_so_far++ > 100;
    return p;
}

static void *wrapping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return sound_calloc(ctx, __builtin_mul_overflow(nelem, elsize, &size) ? 16 : size, 1);
}

static void *forgetful_realloc(void *ctx, void *p, size_t size)
{
    unsigned char *q = moving_realloc(ctx, p, size);
    if (q != NULL && p != NULL && size > 1000)
        memset(q + 200, 0, 40); /* more than the new size needs to show it often */
    return q;
}

static void *short_realloc(void *ctx, void *p, size_t size)
{
    unsigned char *q = sound_realloc(ctx, p, size);
    if (q != NULL && p != NULL && size >= 8)
        q[7] ^= 1;
    return q;
}

static void *spoiling_realloc(void *ctx, void *p, size_t size)
{
    void *q = sound_realloc(ctx, p, size);
    if (q == NULL && p != NULL && size > 0)
        *(unsigned char *)p ^= 1;
    return q;
}

static void *neighbourly_malloc(void *ctx, size_t size)
{
    unsigned char *p = sound_malloc(ctx, size);
    static bool done;
    if (++calls_so_far > 5000 && last_block != NULL && !done) {
        *last_block ^= 1;
        done = true;
    }
    return last_block = p;
}

static void *refusing_malloc(void *ctx, size_t size)
{
    return ++calls_so_far == 900 ? NULL : sound_malloc(ctx, size);
}

static void *too_large(void *ctx, size_t size)
{
    void *p = sound_malloc(ctx, size);
    return p == NULL && size > SIZE_MAX / 2 ? (void *)(UINTPTR_MAX - 15) : p;
}

static void *renaming_malloc(void *ctx, size_t size)
{
    if (++calls_so_far == 700)
        current->name[0] = 'X';
    return sound_malloc(ctx, size);
}

static void *restless_malloc(void *ctx, size_t size)
{
    if (++calls_so_far == 700)
        current->allocator.ctx = &calls_so_far;
    return sound_malloc(ctx, size);
}

static void rounding_free(void *ctx, void *p, size_t size)
{
    sound_free(ctx, p, size);
    if (++calls_so_far == 700)
        fesetround(FE_UPWARD);
}

static void spoiling_free(void *ctx, void *p, size_t size)
{
    sound_free(ctx, p, size);
    errno = EINVAL;
}

/* What fails, on which history, and what the text has to have in it. */
static const struct {
    PyDataMemAllocator allocator;
    enum history_kind kind;
    size_t alignment;
    enum heap_rule rule;
    const char *text;
} faulty[] = {
    {{WATCHED, .malloc = same_twice}, HISTORY_ARRAYS, 0, HEAP_DISJOINT, "another block is live"},
    {{WATCHED, .malloc = inside_the_last}, HISTORY_ARRAYS, 0, HEAP_DISJOINT, "another block"},
    {{SOUND, .malloc = misaligned}, HISTORY_ARRAYS, 0, HEAP_MALLOC_ALIGNMENT, "is not aligned to"},
    {{SOUND}, HISTORY_ARRAYS, 4096, HEAP_CLAIMED_ALIGNMENT, "is not aligned to 4096 bytes"},
    {{SOUND, .calloc = dirty_calloc}, HISTORY_ARRAYS, 0, HEAP_ZEROED, "is 0x01"},
    {{SOUND, .calloc = wrapping_calloc}, HISTORY_ANYTHING, 0, HEAP_OVERFLOW, "NULL was expected"},
    {{SOUND, .realloc = short_realloc}, HISTORY_LOOPS, 0, HEAP_KEEPS_CONTENTS, "byte 7 is"},
    {{SOUND, .realloc = forgetful_realloc}, HISTORY_ARRAYS, 0, HEAP_KEEPS_CONTENTS, "byte 2"},
    {{SOUND, .realloc = spoiling_realloc},
     HISTORY_ANYTHING,
     0,
     HEAP_FAILURE_KEEPS_BLOCK,
     "byte 0 is"},
    {{WATCHED, .malloc = neighbourly_malloc}, HISTORY_ARRAYS, 0, HEAP_NEIGHBORS, "byte 0 is"},
    {{SOUND, .malloc = refusing_malloc}, HISTORY_ARRAYS, 0, HEAP_LASTS, "it was refused with"},
    {{SOUND, .malloc = too_large}, HISTORY_ANYTHING, 0, HEAP_TOO_LARGE, "NULL was expected"},
    {{SOUND, .malloc = renaming_malloc}, HISTORY_LOOPS, 0, HEAP_STRUCT_CONSTANT, "the name of"},
    {{SOUND, .malloc = restless_malloc}, HISTORY_LOOPS, 0, HEAP_STRUCT_CONSTANT, "ctx or one of"},
    {{SOUND, .free = rounding_free}, HISTORY_LOOPS, 0, HEAP_FLOAT_STATE, "floating-point"},
};

/* The text of that call, read once more. */
static const char *call_text(uint64_t number, uint64_t *offset)
{
    struct trace_call call = {0};
    struct trace_reader *reader = trace_open(path, why, sizeof why);
    while (call.number != number && trace_next(reader, &call) == TRACE_CALL)
        ;
    trace_reader_close(reader);
    *offset = call.offset;
    return trace_call_text(&call);
}

START_TEST(faulty_handlers_are_told)
{
    PyDataMem_Handler handler = {.name = "faulty", .version = 1, .allocator = faulty[_i].allocator};
    struct replay_options options = {.alignment = faulty[_i].alignment};
    uint64_t offset;
    current = &handler;
    calls_so_far = 0;
    ck_assert(history_write(path, faulty[_i].kind, 49, 30000));
    struct replay_result result = replayed(&handler, &options);
    ck_assert_int_eq(result.outcome, REPLAY_VIOLATED);
    ck_assert_msg(result.violation.rule == faulty[_i].rule &&
                      strstr(result.violation.text, faulty[_i].text) != NULL,
                  "%s: %s", heap_rule_name(result.violation.rule), result.violation.text);
    ck_assert_uint_eq(result.violation.call, result.calls + 1);
    const char *text_of_call = call_text(result.violation.call, &offset);
    ck_assert_uint_eq(result.violation.offset, offset);
    ck_assert(strncmp(result.violation.text, text_of_call, strlen(text_of_call)) == 0);
}
END_TEST

/* Without checks nothing is judged. */
START_TEST(unchecked_replays_judge_nothing)
{
    PyDataMem_Handler handler = {
        .name = "f", .version = 1, .allocator = {SOUND, .calloc = dirty_calloc}};
    ck_assert(history_write(path, HISTORY_ARRAYS, 49, 30000));
    struct replay_result result = replayed(&handler, &(struct replay_options){.unchecked = true});
    ck_assert_int_eq(result.outcome, REPLAY_PASSED);
    ck_assert_uint_eq(result.calls, 30000);
}
END_TEST

START_TEST(a_broken_should_is_told_once_and_goes_on)
{
    PyDataMem_Handler handler = {
        .name = "e", .version = 1, .allocator = {SOUND, .free = spoiling_free}};
    ck_assert(history_write(path, HISTORY_LOOPS, 49, 5000));
    struct replay_result result = replayed(&handler, &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_PASSED);
    ck_assert_uint_eq(result.calls, 5000);
    ck_assert_int_eq(result.warning.rule, HEAP_KEEPS_ERRNO);
    ck_assert_ptr_nonnull(strstr(result.warning.text, "errno was 4949 before and is 22"));
    ck_assert_uint_gt(result.warning.call, 1000);
}
END_TEST

/* ---- what exactly is said ---------------------------------------------------------------------
 */

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
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
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
                     text("malloc(64) = block 3: 64 bytes at %p, where another block is live",
                          (void *)(arena + 704)));
    ck_assert_str_eq(result.violation.history,
                     text("block 1, 200 bytes at %p, was made by malloc in call 1, and resized 1 "
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
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
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
                            : text("block %" PRIu64 ",", overlaps[_i].overlapped);
    ck_assert_int_eq(result.violation.rule, HEAP_DISJOINT);
    ck_assert(strncmp(result.violation.history, other, strlen(other)) == 0);
}
END_TEST

START_TEST(what_cannot_be_is_told)
{
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
    trace_malloc(writer, &caller, 17, _i == 0 ? NULL : at(0x1000));
    ck_assert(trace_close(writer, why, sizeof why));
    arena_calls = 0;
    arena_at[0] = -(uintptr_t)arena - 16; /* so that 16 bytes are left of all addresses */
    struct replay_result result = replayed(&arena_handler, &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_VIOLATED);
    ck_assert_int_eq(result.violation.rule, HEAP_TOO_LARGE);
}
END_TEST

/* One behind the other is fine, and so is a block where some were freed. */
START_TEST(blocks_may_come_again)
{
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
    for (uintptr_t i = 1; i <= 6; i++)
        trace_malloc(writer, &caller, 64, at(0x1000 * i));
    for (uintptr_t i = 1; i <= 6; i++)
        trace_free(writer, &caller, trace_give(writer, at(0x1000 * i)), 64);
    trace_malloc(writer, &caller, 384, at(0x1000));
    ck_assert(trace_close(writer, why, sizeof why));
    arena_calls = 0;
    memcpy(arena_at, (size_t[]){64, 0, 128, 256, 192, 320, 0}, 7 * sizeof *arena_at);
    struct replay_result result = replayed(&arena_handler, &(struct replay_options){0});
    ck_assert_msg(result.outcome == REPLAY_PASSED, "%s", result.violation.text);
    ck_assert_uint_eq(result.live, 1);
    ck_assert_uint_eq(result.peak_bytes, 384);
}
END_TEST

/* ---- where this handler and the recorded one differ --------------------------------------------
 */

/* It refuses more than 1 MiB: what the program did to such blocks is left out. */
START_TEST(what_was_refused_is_left_out)
{
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
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

START_TEST(free_is_given_the_recorded_size)
{
    static const size_t sizes[] = {100, 0, 1, 50, 101, SIZE_MAX};
    for (size_t i = 0; i < 2 * sizeof sizes / sizeof *sizes; i++) {
        struct trace_writer *writer = trace_create(path, false, why, sizeof why);
        const char *p = i % 2 == 0 ? at(0x1000) : NULL;
        trace_malloc(writer, &caller, 100, p);
        trace_free(writer, &caller, trace_give(writer, p), sizes[i / 2]);
        ck_assert(trace_close(writer, why, sizeof why));
        struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
        ck_assert_int_eq(result.outcome, REPLAY_PASSED);
        ck_assert_uint_eq(freed_with, sizes[i / 2]);
    }
}
END_TEST

/* The recorded one had refused: nobody will free these. */
START_TEST(what_nobody_has_is_given_back)
{
    struct trace_writer *writer = trace_create(path, false, why, sizeof why);
    trace_malloc(writer, &caller, 100, NULL);
    trace_calloc(writer, &caller, 100, 1, NULL);
    trace_realloc(writer, &caller, trace_give(writer, NULL), 100, NULL);
    trace_realloc(writer, &caller, trace_give(writer, at(0x9000)), 100, NULL);
    trace_malloc(writer, &caller, 100, at(0x1000));
    trace_realloc(writer, &caller, trace_give(writer, at(0x1000)), 200, NULL);
    trace_realloc(writer, &caller, trace_give(writer, at(0x1000)), 0, NULL);
    trace_free(writer, &caller, trace_give(writer, at(0x1000)), 100);
    trace_free(writer, &caller, trace_give(writer, NULL), 100);
    trace_free(writer, &caller, trace_give(writer, at(0x9000)), 100);
    ck_assert(trace_close(writer, why, sizeof why));
    out = 0;
    struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_msg(result.outcome == REPLAY_PASSED, "%s", result.violation.text);
    ck_assert_uint_eq(result.refused, 0);
    ck_assert_uint_eq(result.left_out, 3); /* two foreign ones, and what realloc(p, 0) freed */
    ck_assert_uint_eq(out, 0);
}
END_TEST

/* fromstring cuts its block, and where that is refused frees it with half its size. */
START_TEST(what_grew_behind_the_program_shrinks_again)
{
    static const size_t refused[] = {40000, 100, 1, 80000, 200000};
    for (size_t i = 0; i < 2 * sizeof refused / sizeof *refused; i++) {
        struct trace_writer *writer = trace_create(path, false, why, sizeof why);
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

/* ---- handlers that end the process -------------------------------------------------------------
 */

static void *leaving_malloc(void *ctx, size_t size)
{
    return ++calls_so_far == 1500 ? _exit(0), NULL : sound_malloc(ctx, size);
}

START_TEST(whoever_leaves_is_told_by_shared_memory)
{
    PyDataMem_Handler handler = {
        .name = "leaving", .version = 1, .allocator = {SOUND, .malloc = leaving_malloc}};
    struct replay_result *result =
        mmap(NULL, sizeof *result, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    ck_assert(history_write(path, HISTORY_LOOPS, 49, 30000));
    pid_t child = fork();
    if (child == 0) {
        struct trace_reader *reader = trace_open(path, why, sizeof why);
        replay_run(reader, &handler, &(struct replay_options){0}, result);
        _exit(1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(result->outcome, REPLAY_UNDER_WAY);
    ck_assert_uint_eq(result->under_way.number, result->calls + 1);
    ck_assert_int_eq(result->under_way.function, TRACE_MALLOC);
    ck_assert_uint_gt(result->calls, 1500);
    munmap(result, sizeof *result);
}
END_TEST

/* ---- traces that are not whole ----------------------------------------------------------------
 */

START_TEST(a_truncated_trace_is_told_and_one_never_closed_holds)
{
    struct stat status;
    ck_assert(history_write(path, HISTORY_LOOPS, 49, 30000) && stat(path, &status) == 0);
    ck_assert_int_eq(truncate(path, status.st_size - 1000), 0);
    out = 0;
    struct replay_result result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_TRACE_WRONG);
    ck_assert_ptr_nonnull(strstr(result.wrong, "the file is truncated"));
    ck_assert_uint_gt(result.calls, 25000);
    ck_assert_uint_eq(out, 0);
    ck_assert_int_eq(truncate(path, 16), 0);
    result = replayed(&sound[0], &(struct replay_options){0});
    ck_assert_int_eq(result.outcome, REPLAY_PASSED);
    ck_assert(result.cut);
    ck_assert_ptr_nonnull(strstr(result.wrong, "was not closed"));
}
END_TEST

Suite *suite_replay(void)
{
    Suite *suite = suite_create("replay");
    TCase *tcase = tcase_create("replay");
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_add_unchecked_fixture(tcase, make_path, remove_path);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, sound_handlers_hold, 0, ROWS(traces));
    tcase_add_loop_test(tcase, reference_handlers_hold, 0, ROWS(references));
    tcase_add_loop_test(tcase, faulty_handlers_are_told, 0, ROWS(faulty));
    tcase_add_test(tcase, unchecked_replays_judge_nothing);
    tcase_add_test(tcase, a_broken_should_is_told_once_and_goes_on);
    tcase_add_test(tcase, an_overlap_is_told_with_the_other_blocks_history);
    tcase_add_loop_test(tcase, overlaps_are_told, 0, ROWS(overlaps));
    tcase_add_loop_test(tcase, what_cannot_be_is_told, 0, 2);
    tcase_add_test(tcase, blocks_may_come_again);
    tcase_add_test(tcase, what_was_refused_is_left_out);
    tcase_add_test(tcase, what_grew_behind_the_program_shrinks_again);
    tcase_add_test(tcase, free_is_given_the_recorded_size);
    tcase_add_test(tcase, what_nobody_has_is_given_back);
    tcase_add_test(tcase, whoever_leaves_is_told_by_shared_memory);
    tcase_add_test(tcase, a_truncated_trace_is_told_and_one_never_closed_holds);
    suite_add_tcase(suite, tcase);
    return suite;
}
