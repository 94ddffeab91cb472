/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/trace/trace_writer.c, trace_reader.c and trace_print.c: what is written is read back, also
 * after a crash, and what is damaged is refused with its offset.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size_bits.h"
#include "history.h"
#include "trace/trace.h"
#include "trace/trace_format.h"

/* ck_assert writes to a file each time that it is passed: too slow for loops. */
#define SURE(condition, ...)                                                                       \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ck_abort_msg(__VA_ARGS__);                                                             \
    } while (0)

static char why[256];

static struct trace_writer *must_create(bool timed)
{
    struct trace_writer *writer = trace_create(history_path, timed, why, sizeof why);
    ck_assert_msg(writer != NULL, "%s", why);
    return writer;
}

static void must_close(struct trace_writer *writer)
{
    ck_assert_msg(trace_close(writer, why, sizeof why), "%s", why);
}

static struct trace_reader *must_open(void)
{
    struct trace_reader *reader = trace_open(history_path, why, sizeof why);
    ck_assert_msg(reader != NULL, "%s", why);
    return reader;
}

/* The whole file; `length` receives its size. */
static unsigned char *slurp(size_t *length)
{
    struct stat status;
    int fd = open(history_path, O_RDONLY);
    ck_assert(fd >= 0 && fstat(fd, &status) == 0);
    unsigned char *bytes = malloc((size_t)status.st_size + 1);
    ck_assert_int_eq(read(fd, bytes, (size_t)status.st_size), status.st_size);
    close(fd);
    *length = (size_t)status.st_size;
    return bytes;
}

/* ---- what is written is read back ------------------------------------------------------------ */

/* What a reader has to say of a history, kept by address. */
struct expected_block {
    uint64_t block, size;
};

struct expectation {
    struct expected_block block[HISTORY_CELLS]; /* by the address's cell; block 0: none */
    uint64_t blocks, calls, first_time;
};

static struct expected_block *expected_at(struct expectation *expected, const char *p)
{
    uintptr_t cell = history_cell(p);
    return cell < HISTORY_CELLS ? &expected->block[cell] : NULL;
}

static struct trace_call expect_call(struct expectation *expected, const struct history_call *call)
{
    struct expected_block *old = expected_at(expected, call->p);
    struct trace_call seen = {
        .step = {.kind = (uint8_t)call->kind,
                 .thread = call->caller.thread,
                 .first = call->kind == STEP_CALLOC ? call->nelem : call->size,
                 .second = call->kind == STEP_CALLOC ? call->elsize : 0},
        .pointer = call->p == NULL ? TRACE_NULL
                   : old == NULL   ? TRACE_FOREIGN
                                   : TRACE_BLOCK,
        .refused = call->kind != STEP_FREE && call->result == NULL,
        .gil = call->caller.gil,
        .number = ++expected->calls,
    };
    if (expected->calls == 1)
        expected->first_time = call->caller.time;
    seen.time = call->caller.time - expected->first_time;
    seen.moved = call->result != NULL && call->p != NULL && call->result != call->p;
    if (old != NULL) {
        seen.block = old->block;
        seen.old_size = old->size;
        if (call->kind == STEP_FREE || call->result != NULL)
            old->block = 0;
    }
    if (call->result != NULL) {
        if (seen.block == 0)
            seen.block = ++expected->blocks;
        *expected_at(expected, call->result) =
            (struct expected_block){seen.block, step_size(&seen.step)};
    }
    return seen;
}

#define SAME(field)                                                                                \
    SURE(a->field == b->field, "call %" PRIu64 ": " #field " is %" PRIu64 ", not %" PRIu64,        \
         b->number, (uint64_t)a->field, (uint64_t)b->field)

static void assert_same_call(const struct trace_call *a, const struct trace_call *b, bool timed)
{
    SAME(number);
    SAME(step.kind);
    SAME(pointer);
    SAME(refused);
    SAME(moved);
    SAME(gil);
    SAME(step.thread);
    SAME(block);
    SAME(step.first);
    SAME(step.second);
    SAME(old_size);
    if (timed)
        SAME(time);
}

/* Kind, times, seed and length. */
static const struct {
    enum history_kind kind;
    bool timed;
    uint64_t calls;
} histories[] = {
    {HISTORY_ARRAYS, false, 0},      {HISTORY_ARRAYS, false, 1},       {HISTORY_ARRAYS, true, 1000},
    {HISTORY_ARRAYS, false, 200000}, {HISTORY_ANYTHING, true, 1},      {HISTORY_ANYTHING, true, 3},
    {HISTORY_ANYTHING, false, 100},  {HISTORY_ANYTHING, true, 100000},
};

START_TEST(histories_are_read_back)
{
    static struct history history, again;
    static struct expectation expected;
    struct trace_call call;
    uint64_t offset = 0;
    history_begin(&history, histories[_i].kind, (uint64_t)_i);
    history_begin(&again, histories[_i].kind, (uint64_t)_i);
    struct trace_writer *writer = must_create(histories[_i].timed);
    trace_note(writer, "history", "made up");
    for (uint64_t i = 0; i < histories[_i].calls; i++) {
        struct history_call made = history_next(&history);
        history_record(writer, &made);
    }
    must_close(writer);

    struct trace_reader *reader = must_open();
    const char *key, *value;
    ck_assert(trace_noted(reader, 0, &key, &value));
    ck_assert_str_eq(key, "history");
    ck_assert_str_eq(value, "made up");
    ck_assert(!trace_noted(reader, 1, &key, &value));
    ck_assert_int_eq(trace_totals(reader).timed, histories[_i].timed);
    while (trace_next(reader, &call) == TRACE_CALL) {
        struct history_call made = history_next(&again);
        struct trace_call wanted = expect_call(&expected, &made);
        assert_same_call(&call, &wanted, histories[_i].timed);
        SURE(call.offset > offset, "call %" PRIu64 " is at offset %" PRIu64, call.number,
             call.offset);
        SURE(call.block == 0 || call.step.block < trace_totals(reader).slots, "slot %" PRIu32,
             call.step.block);
        offset = call.offset;
    }
    ck_assert_int_eq(trace_next(reader, &call), TRACE_END);
    ck_assert_uint_eq(trace_totals(reader).calls, histories[_i].calls);
    ck_assert_uint_eq(trace_totals(reader).live, history.live_count);
    ck_assert_uint_le(trace_totals(reader).slots, HISTORY_CELLS);
    trace_reader_close(reader);
}
END_TEST

/* ---- blocks that nobody can tell apart ------------------------------------------------------- */

static const struct trace_caller caller = {.gil = true};

static const char *at(uintptr_t address)
{
    return (const char *)address;
}

static void assert_prints(const char *expected)
{
    char *shown;
    size_t length;
    FILE *out = open_memstream(&shown, &length);
    ck_assert_msg(trace_print(out, history_path, why, sizeof why), "%s", why);
    fclose(out);
    ck_assert_str_eq(shown, expected);
    free(shown);
}

START_TEST(overlapping_blocks_do_not_end_the_trace)
{
    struct trace_writer *writer = must_create(false);
    trace_malloc(writer, &caller, 100, at(0x1000));
    trace_malloc(writer, &caller, 100, at(0x1040)); /* takes the place of the first */
    trace_malloc(writer, &caller, 0, at(0x1040));   /* and this of the second */
    trace_malloc(writer, &caller, SIZE_MAX, at(0x2000));
    trace_free(writer, &caller, trace_give(writer, at(0x1040)), 0);
    trace_free(writer, &caller, trace_give(writer, at(0x1040)), 100);
    trace_free(writer, &caller, trace_give(writer, at(0x1000)), 100);
    trace_free(writer, &caller, trace_give(writer, at(0x2000)), SIZE_MAX);
    must_close(writer);
    char expected[1000];
    int end = 39 + (SIZE_BITS + 6) / 7; /* of the largest size */
    snprintf(expected, sizeof expected,
             "#   number    offset  thread  call\n"
             "         1        32       0  malloc(100) = block 1\n"
             "         2        34       0  malloc(100) = block 2\n"
             "         3        36       0  malloc(0) = block 3\n"
             "         4        38       0  malloc(%zu) = block 4\n"
             "         5        %d       0  free(block 3 of 0, 0)\n"
             "         6        %d       0  free(foreign, 100)\n"
             "         7        %d       0  free(foreign, 100)\n"
             "         8        %d       0  free(foreign, %zu)\n"
             "# 8 calls, 3 blocks live\n",
             SIZE_MAX, end, end + 2, end + 4, end + 6, SIZE_MAX);
    assert_prints(expected);
}
END_TEST

/* While one thread is inside realloc, another gets the old address. */
START_TEST(addresses_may_be_used_again_during_realloc)
{
    struct trace_writer *writer = must_create(false);
    trace_malloc(writer, &caller, 100, at(0x1000));
    struct trace_given given = trace_give(writer, at(0x1000));
    trace_malloc(writer, &(struct trace_caller){.thread = 7}, 50, at(0x1000));
    trace_realloc(writer, &caller, given, 200, at(0x3000));
    trace_free(writer, &caller, trace_give(writer, at(0x1000)), 50);
    trace_free(writer, &caller, trace_give(writer, at(0x3000)), 200);
    must_close(writer);
    assert_prints("#   number    offset  thread  call\n"
                  "         1        32       0  malloc(100) = block 1\n"
                  "         2        36       7  malloc(50) = block 2, without the GIL\n"
                  "         3        40       0  realloc(block 1 of 100, 200) = moved\n"
                  "         4        44       0  free(block 2 of 50, 50)\n"
                  "         5        46       0  free(block 1 of 200, 200)\n"
                  "# 5 calls, 0 blocks live\n");
}
END_TEST

START_TEST(every_call_is_shown)
{
    struct trace_writer *writer = must_create(true);
    struct trace_caller late = {.thread = 3, .gil = true, .time = 5001000};
    trace_note(writer, "numpy", "1.24.2");
    trace_note(writer, "command", "python3 \x1b[31mred\n.py");
    trace_calloc(writer, &(struct trace_caller){.gil = true, .time = 1000}, 10, 8, at(0x1000));
    trace_calloc(writer, &late, 80, 1, NULL);
    trace_realloc(writer, &late, trace_give(writer, at(0x1000)), 90, at(0x1000));
    trace_realloc(writer, &late, trace_give(writer, at(0x1000)), 91, NULL);
    trace_realloc(writer, &late, trace_give(writer, NULL), 92, at(0x2000));
    trace_realloc(writer, &late, trace_give(writer, at(0x9999)), 93, at(0x3000));
    trace_free(writer, &late, trace_give(writer, at(0x1000)), 1);
    trace_free(writer, &late, trace_give(writer, NULL), 40);
    trace_note(writer, "late", "not after a call");
    trace_begin_part(writer, "what follows\n");
    trace_begin_part(writer, "");
    trace_free(writer, &late, trace_give(writer, at(0x2000)), 92);
    must_close(writer);
    assert_prints(
        "# numpy: 1.24.2\n"
        "# command: python3 \\x1b[31mred\\x0a.py\n"
        "#   number    offset      seconds  thread  call\n"
        "         1        76     0.000000       0  calloc(10, 8) = block 1\n"
        "         2        82     0.005000       3  calloc(80, 1) = NULL\n"
        "         3        88     0.005000       3  realloc(block 1 of 80, 90) = in place\n"
        "         4        92     0.005000       3  realloc(block 1 of 90, 91) = NULL\n"
        "         5        96     0.005000       3  realloc(NULL, 92) = block 2\n"
        "         6        99     0.005000       3  realloc(foreign, 93) = block 3\n"
        "         7       102     0.005000       3  free(block 1 of 90, 1)\n"
        "         8       106     0.005000       3  free(NULL, 40)\n"
        "# part: what follows\\x0a\n"
        "# part: \n"
        "         9       126     0.005000       3  free(block 2 of 92, 92)\n"
        "# 9 calls, 1 block live\n");
}
END_TEST

/* ---- crashes --------------------------------------------------------------------------------- */

/* Every call that had been recorded is there, wherever in a frame the end came. */
static const uint64_t crash_after[] = {0, 1, 2, 500, 26000, 27000, 60001};

START_TEST(nothing_recorded_is_lost_in_a_crash)
{
    static struct history history;
    struct trace_call call;
    uint64_t count = crash_after[_i];
    history_begin(&history, HISTORY_ARRAYS, 49);
    pid_t child = fork();
    if (child == 0) {
        struct trace_writer *writer = trace_create(history_path, false, why, sizeof why);
        for (uint64_t i = 0; i < count; i++) {
            struct history_call made = history_next(&history);
            history_record(writer, &made);
        }
        raise(SIGKILL);
    }
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    struct trace_reader *reader = must_open();
    uint64_t read = 0;
    while (trace_next(reader, &call) == TRACE_CALL)
        read++;
    ck_assert_int_eq(trace_next(reader, &call), TRACE_CUT);
    ck_assert_uint_eq(read, count);
    ck_assert_ptr_nonnull(strstr(trace_wrong(reader), "was not closed"));
    trace_reader_close(reader);
}
END_TEST

START_TEST(a_forked_child_writes_nothing)
{
    struct trace_writer *writer = must_create(false);
    trace_malloc(writer, &caller, 100, at(0x1000));
    pid_t child = fork();
    if (child == 0) {
        bool worked = trace_works(writer);
        for (int i = 0; i < 100000; i++)
            trace_malloc(writer, &caller, 16, at(0x2000));
        trace_close(writer, why, sizeof why);
        _exit(worked);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    trace_free(writer, &caller, trace_give(writer, at(0x1000)), 100);
    must_close(writer);
    assert_prints("#   number    offset  thread  call\n"
                  "         1        32       0  malloc(100) = block 1\n"
                  "         2        34       0  free(block 1 of 100, 100)\n"
                  "# 2 calls, 0 blocks live\n");
}
END_TEST

/* ---- what cannot be written ------------------------------------------------------------------ */

START_TEST(a_full_disk_is_told)
{
    struct rlimit limit = {100000, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN); /* as Python does */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    struct trace_writer *writer = must_create(false);
    for (int i = 0; i < 100000; i++)
        trace_malloc(writer, &caller, 16, NULL);
    ck_assert(!trace_works(writer));
    ck_assert(!trace_close(writer, why, sizeof why));
    ck_assert_str_eq(why, "cannot grow: File too large");
    struct trace_call call;
    struct trace_reader *reader = must_open();
    while (trace_next(reader, &call) == TRACE_CALL)
        ;
    ck_assert_int_eq(trace_next(reader, &call), TRACE_CUT);
    ck_assert_uint_gt(trace_totals(reader).calls, 30000);
    trace_reader_close(reader);
}
END_TEST

static const struct {
    const char *path, *why;
    int error;
} unopenable[] = {
    {"/", "cannot be opened: Is a directory", EISDIR},
    {"/no/such/folder/trace", "cannot be opened: No such file or directory", ENOENT},
    {"", "cannot be opened: No such file or directory", ENOENT},
    {"/dev/full", "cannot be written: No space left on device", 0},
};

START_TEST(what_cannot_be_opened_is_told)
{
    ck_assert_ptr_null(trace_create(unopenable[_i].path, false, why, sizeof why));
    ck_assert_int_eq(errno, unopenable[_i].error);
    ck_assert_str_eq(why, unopenable[_i].why);
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------- */

static enum trace_state read_all(const unsigned char *bytes, size_t length, uint64_t *calls)
{
    struct trace_call call;
    enum trace_state state;
    struct trace_reader *reader = trace_open_bytes(bytes, length, why, sizeof why);
    *calls = 0;
    if (reader == NULL)
        return TRACE_WRONG;
    while ((state = trace_next(reader, &call)) == TRACE_CALL)
        ++*calls;
    snprintf(why, sizeof why, "%s", trace_wrong(reader));
    trace_reader_close(reader);
    return state;
}

START_TEST(damage_anywhere_is_told)
{
    size_t length;
    uint64_t calls, before = 0;
    ck_assert(history_write(history_path, HISTORY_ANYTHING, 49, 100));
    unsigned char *bytes = slurp(&length);
    for (size_t cut = 0; cut < length; cut++) {
        unsigned char *part = malloc(cut + 1); /* a copy shows reads past its end */
        memcpy(part, bytes, cut);
        enum trace_state state = read_all(part, cut, &calls);
        SURE(state == (cut == TRACE_HEADER_BYTES ? TRACE_CUT : TRACE_WRONG),
             "cut at %zu of %zu: state %d, %s", cut, length, state, why);
        SURE(strncmp(why, "offset ", 7) == 0, "%s", why);
        SURE(calls == before || calls == before + 1, "%" PRIu64 " calls in %zu bytes", calls, cut);
        before = calls;
        free(part);
    }
    ck_assert_int_eq(read_all(bytes, length, &calls), TRACE_END);
    for (size_t bit = 0; bit < length * 8; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        SURE(read_all(bytes, length, &calls) == TRACE_WRONG, "bit %zu of byte %zu", bit % 8,
             bit / 8);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    free(bytes);
}
END_TEST

/* ---- hostile traces -------------------------------------------------------------------------- */

#define LONG_VARINT "\xff\xff\xff\xff\xff\xff\xff\xff\xff"

/* What is in a frame, and what is said of it.  END is the record that would be right after it. */
static const struct {
    const char *payload;
    size_t length;
    uint64_t calls;
    const char *why; /* or NULL: it is fine */
} hostile[] = {
#define PAYLOAD(bytes) bytes, sizeof(bytes) - 1
    {PAYLOAD("\x07\x00\x00"), 0, NULL},
    {PAYLOAD("\x01\x50\x07\x01\x01"), 1, NULL},
    {PAYLOAD("\x01\x50"), 1, "offset 34: the trace was not closed"},
    {PAYLOAD("\x00"), 0, "offset 32: a record begins with the byte 0x00, which means nothing"},
    {PAYLOAD("\x01\x50\x09"), 1, "offset 34: a record begins with the byte 0x09"},
    {PAYLOAD("\x18\x00"), 0, "offset 32: a record begins with the byte 0x18"},
    {PAYLOAD("\x08\x03one\x01\x50\x08\x00\x07\x01\x01"), 1, NULL},
    {PAYLOAD("\x08\x00\x06\x00\x00\x07\x00\x00"), 0, NULL},
    {PAYLOAD("\x08\x04one"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x08\x81\x02"), 0, "offset 32: a number in the record"}, /* a name of 257 bytes */
    {PAYLOAD("\x08" LONG_VARINT "\x01"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x0f"), 0, "offset 32: a record begins with the byte 0x0f"},
    {PAYLOAD("\x21\x50"), 0, "offset 32: a record begins with the byte 0x21"},
    {PAYLOAD("\x42\x50"), 0, "offset 32: a record begins with the byte 0x42"},
    {PAYLOAD("\x63\x50"), 0, "offset 32: a record begins with the byte 0x63"}, /* pointer 3 */
    {PAYLOAD("\x74\x50"), 0, "offset 32: a record begins with the byte 0x74"},
    {PAYLOAD("\x24\x50"), 0, "offset 32: a record begins with the byte 0x24"}, /* NULL unsized */
    {PAYLOAD("\x25\x01"), 0, "offset 32: a record begins with the byte 0x25"},
    {PAYLOAD("\x16\x01"), 0, "offset 32: a record begins with the byte 0x16"},
    {PAYLOAD("\x17\x00\x00"), 0, "offset 32: a record begins with the byte 0x17"},
    {PAYLOAD("\x01"), 0, "offset 32: a number in the record is too long, or is not all there"},
    {PAYLOAD("\x01\x80"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x11" LONG_VARINT "\x01\x07\x01\x00"), 1, NULL}, /* 2^64 - 1 */
    {PAYLOAD("\x01\x10\x01" LONG_VARINT "\x02"), 1, "offset 34: a number in the record"},
    {PAYLOAD("\x11" LONG_VARINT "\xff\x01"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x04\x00"), 0, "offset 32: the call names slot 0, in which no block is live"},
    {PAYLOAD("\x01\x50\x04\x02"), 1, "offset 34: the call names slot 1, in which no block"},
    {PAYLOAD("\x01\x50\x04\x01"), 1, "offset 34: the call names slot 18446744073709551615,"},
    {PAYLOAD("\x01\x50\x04" LONG_VARINT "\x01"), 1,
     "offset 34: the call names slot 9223372036854775808,"},
    {PAYLOAD("\x01\x50\x04\x00\x04\x00"), 2, "offset 36: the call names slot 0,"},
    {PAYLOAD("\x01\x50\x04\x00\x03\x00\x10"), 2, "offset 36: the call names slot 0,"},
    {PAYLOAD("\x01\x50\x04"), 1, "offset 34: a number in the record"},
    {PAYLOAD("\x05\x80\x80\x80\x80\x10"), 0, "offset 32: thread 4294967296, and they have 32"},
    {PAYLOAD("\x05\xff\xff\xff\xff\x0f\x01\x10\x07\x01\x01"), 1, NULL},
    {PAYLOAD("\x06\x01k\x02"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x06\x01k\x02v"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x06\x41"), 0, "offset 32: a number in the record"}, /* a key of 65 bytes */
    {PAYLOAD("\x06\x00\xff\xff\xff\xff\x0f"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x06\x00\x00\x07\x00\x00"), 0, NULL},
    {PAYLOAD("\x01\x10\x06\x00\x00"), 1, "offset 34: a note, and there can be none after a call"},
    {PAYLOAD("\x07\x01\x00"), 0, "offset 32: the trace ends with 0 calls and 0 live blocks, and"},
    {PAYLOAD("\x01\x10\x07\x01\x00"), 1, "offset 34: the trace ends with 1 calls and 1 live"},
    {PAYLOAD("\x07\x00"), 0, "offset 32: a number in the record"},
    {PAYLOAD("\x07\x00\x00\x01\x10"), 0, "offset 35: there is more behind the end of the trace"},
};

static size_t put_header(unsigned char *to, uint32_t version, uint32_t flags)
{
    memcpy(to, TRACE_MAGIC, 8);
    put_u32(to + 8, version | flags << 16);
    put_u32(to + 12, header_crc(to));
    return TRACE_HEADER_BYTES;
}

static size_t put_frame(unsigned char *to, uint32_t index, const char *payload, size_t length)
{
    put_u32(to, FRAME_SYNC);
    put_u32(to + 4, index);
    put_u32(to + 8, (uint32_t)length);
    memcpy(to + FRAME_HEADER_BYTES, payload, length);
    put_u32(to + 12, frame_crc(to, (uint32_t)length));
    return FRAME_HEADER_BYTES + length;
}

static void assert_says(enum trace_state state, const char *expected)
{
    if (expected == NULL)
        ck_assert_msg(state == TRACE_END, "%s", why);
    else
        ck_assert_msg(state != TRACE_END && strncmp(why, expected, strlen(expected)) == 0, "%s",
                      why);
}

START_TEST(hostile_records_are_told)
{
    unsigned char file[256];
    uint64_t calls;
    size_t length = put_header(file, TRACE_VERSION, 0);
    length += put_frame(file + length, 0, hostile[_i].payload, hostile[_i].length);
    enum trace_state state = read_all(file, length, &calls);
    assert_says(state, hostile[_i].why);
    ck_assert_uint_eq(calls, hostile[_i].calls);
}
END_TEST

/* Bytes that replace those at an offset of a whole trace, and what is said then. */
static const struct {
    size_t offset;
    const char *bytes;
    size_t length;
    bool mend_header;
    const char *why;
} heads[] = {
    {0, PAYLOAD("\x88"), false, "offset 0: not a trace of conform's"},
    {0,
     PAYLOAD("\x7f"
             "ELF\x02\x01\x01"),
     false, "offset 0: not a trace of conform's"},
    {6, PAYLOAD("\n"), false, "offset 0: not a trace of conform's"}, /* went through as text */
    {8, PAYLOAD("\x02"), true, "offset 8: version 2 of the format, and only 1 can be read"},
    {8, PAYLOAD("\x00"), true, "offset 8: version 0 of the format"},
    {10, PAYLOAD("\x02"), true, "offset 10: flags 0x0002, which this program does not know"},
    {12, PAYLOAD("\x01"), false, "offset 12: the head does not agree with its sum"},
    {16, PAYLOAD("XXXX"), false, "offset 16: there should be a frame, and its first bytes are 58"},
    {20, PAYLOAD("\x01"), false, "offset 16: there should be frame 0, and it is frame 1"},
    {24, PAYLOAD("\xff\xff\xff\xff"), false, "offset 16: a frame of 4294967295 bytes"},
    {24, PAYLOAD("\xf1\xff\0\0"), false, "offset 16: a frame of 65521 bytes"},
    {24, PAYLOAD("\xf0\xff\0\0"), false, "offset 37: the file is truncated: the frame at 16"},
    {24, PAYLOAD("\0\0\0\0"), false, "offset 16: a frame with a sum and without a length"},
    {24, PAYLOAD("\0\0\0\0\0\0\0\0"), false, "offset 16: the trace was not closed"},
    {28, PAYLOAD("\0\0\0\0"), false, "offset 16: the frame of 5 bytes does not agree"},
};

START_TEST(hostile_heads_are_told)
{
    unsigned char file[256];
    uint64_t calls;
    size_t length = put_header(file, TRACE_VERSION, 0);
    length += put_frame(file + length, 0, "\x01\x50\x07\x01\x01", 5);
    memcpy(file + heads[_i].offset, heads[_i].bytes, heads[_i].length);
    if (heads[_i].mend_header)
        put_u32(file + 12, header_crc(file));
    assert_says(read_all(file, length, &calls), heads[_i].why);
}
END_TEST

TCase *case_trace(void)
{
    TCase *tcase = tcase_create("trace");
    tcase_set_tags(tcase, "long"); /* too much for valgrind: tests/memcheck.py */
    tcase_add_unchecked_fixture(tcase, history_path_make, history_path_remove);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase, histories_are_read_back, 0, ROWS(histories));
    tcase_add_test(tcase, overlapping_blocks_do_not_end_the_trace);
    tcase_add_test(tcase, addresses_may_be_used_again_during_realloc);
    tcase_add_test(tcase, every_call_is_shown);
    tcase_add_loop_test(tcase, nothing_recorded_is_lost_in_a_crash, 0, ROWS(crash_after));
    tcase_add_test(tcase, a_forked_child_writes_nothing);
    tcase_add_test(tcase, a_full_disk_is_told);
    tcase_add_loop_test(tcase, what_cannot_be_opened_is_told, 0, ROWS(unopenable));
    tcase_add_test(tcase, damage_anywhere_is_told);
    tcase_add_loop_test(tcase, hostile_records_are_told, 0, ROWS(hostile));
    tcase_add_loop_test(tcase, hostile_heads_are_told, 0, ROWS(heads));
    return tcase;
}
