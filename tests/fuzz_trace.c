/* SPDX-License-Identifier: BSD-3-Clause
 *
 * libFuzzer's entry for traces: whatever the bytes are, they are read, shown and replayed without a
 * step out of bounds.  `make fuzz` builds it with clang, AddressSanitizer and
 * UndefinedBehaviorSanitizer, and begins with the traces in profiles/.
 *
 * Bytes go in twice: as they are, and with every sum and length in the frames put right, because no
 * mutation gets past a CRC by itself.
 */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "trace/replay.h"
#include "trace/trace.h"
#include "trace/trace_format.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

/* ---- a handler that grants only what a handler has to ---------------------------------------- */

enum { MOST_SIZE = 1 << 20, MOST_BYTES = 17 << 20, MOST_LIVE = 17000, WHOLE = 512 };

static size_t blocks, bytes_live;

static bool granted(size_t size)
{
    return size <= MOST_SIZE && bytes_live <= MOST_BYTES && blocks < MOST_LIVE;
}

static void *given(void *p)
{
    blocks += p != NULL;
    bytes_live += p != NULL ? malloc_usable_size(p) : 0;
    return p;
}

static void *fuzz_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return granted(size) ? given(malloc(size)) : NULL;
}

static void *fuzz_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    bool fits = !__builtin_mul_overflow(nelem, elsize, &size) && granted(size);
    return fits ? given(calloc(1, size)) : NULL;
}

static void fuzz_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    blocks -= p != NULL;
    bytes_live -= p != NULL ? malloc_usable_size(p) : 0;
    free(p);
}

/* Always moves; to nothing it frees, as glibc's does. */
static void *fuzz_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && size == 0) {
        fuzz_free(ctx, p, 0);
        return NULL;
    }
    unsigned char *q = fuzz_malloc(ctx, size);
    if (p == NULL || q == NULL)
        return q;
    size_t old = malloc_usable_size(p);
    memcpy(q, p, old < size ? old : size);
    fuzz_free(ctx, p, 0);
    return q;
}

static PyDataMem_Handler handler = {
    .name = "fuzz",
    .version = 1,
    .allocator = {NULL, fuzz_malloc, fuzz_calloc, fuzz_realloc, fuzz_free},
};

/* What is freed need not be remembered for long. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4";
}

/* ---- what must hold ------------------------------------------------------------------------- */

static void must(bool condition)
{
    if (!condition)
        abort();
}

static struct trace_reader *open_bytes(const uint8_t *bytes, size_t length)
{
    char why[256];
    struct trace_reader *reader = trace_open_bytes(bytes, length, why, sizeof why);
    must(reader != NULL || strncmp(why, "offset ", 7) == 0);
    return reader;
}

static void check_call(const struct trace_reader *reader, const struct trace_call *call,
                       size_t length)
{
    must(call->number == trace_totals(reader).calls);
    must(call->offset < length);
    must(call->block == 0 || call->step.block < trace_totals(reader).slots);
    must(trace_call_text(call)[0] != '\0');
}

static void read_all(const uint8_t *bytes, size_t length)
{
    struct trace_call call;
    const char *key, *value;
    enum trace_state state;
    struct trace_reader *reader = open_bytes(bytes, length);
    if (reader == NULL)
        return;
    for (size_t i = 0; trace_noted(reader, i, &key, &value); i++)
        must(strlen(key) <= NOTE_KEY_MOST && strlen(value) <= NOTE_VALUE_MOST);
    while ((state = trace_next(reader, &call)) == TRACE_CALL)
        check_call(reader, &call, length);
    must(trace_totals(reader).calls <= length && trace_totals(reader).slots <= length);
    must(trace_totals(reader).live <= trace_totals(reader).slots);
    must(state == TRACE_END || strncmp(trace_wrong(reader), "offset ", 7) == 0);
    must(trace_next(reader, &call) == state);
    trace_reader_close(reader);
}

/* A trace is never the handler's fault.  One of three ways to replay it, by the length. */
static void replay_all(const uint8_t *bytes, size_t length)
{
    static const struct replay_options ways[] = {
        {.fill.whole = WHOLE}, {.unchecked = true}, {.alignment = 1}};
    struct replay_result result;
    struct trace_reader *reader = open_bytes(bytes, length);
    if (reader == NULL)
        return;
    blocks = bytes_live = 0;
    enum replay_outcome outcome = replay_run(reader, &handler, &ways[length % 3], &result);
    must(outcome == REPLAY_PASSED || outcome == REPLAY_TRACE_WRONG);
    must(blocks == 0);
    trace_reader_close(reader);
}

/* Puts the head right, and in all frames sync, index and sum, and a length that passes the end.  A
 * length of 0, the mark of a frame that was never completed, stays. */
static void mend(uint8_t *bytes, size_t length)
{
    size_t at = TRACE_HEADER_BYTES;
    if (length < TRACE_HEADER_BYTES)
        return;
    memcpy(bytes, TRACE_MAGIC, 8);
    put_u32(bytes + 8, TRACE_VERSION | (uint32_t)(bytes[10] & TRACE_FLAG_TIMED) << 16);
    put_u32(bytes + 12, header_crc(bytes));
    for (uint32_t index = 0; length - at >= FRAME_HEADER_BYTES; index++) {
        size_t most = length - at - FRAME_HEADER_BYTES;
        uint32_t payload = get_u32(bytes + at + 8);
        if (payload > most)
            payload = most < FRAME_PAYLOAD ? (uint32_t)most : FRAME_PAYLOAD;
        put_u32(bytes + at, FRAME_SYNC);
        put_u32(bytes + at + 4, index);
        put_u32(bytes + at + 8, payload);
        put_u32(bytes + at + 12, payload == 0 ? 0 : frame_crc(bytes + at, payload));
        if (payload == 0)
            return;
        at += FRAME_HEADER_BYTES + payload;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
    read_all(bytes, length);
    replay_all(bytes, length);
    uint8_t *mended = malloc(length + 1);
    if (mended == NULL)
        return 0;
    memcpy(mended, bytes, length);
    mend(mended, length);
    read_all(mended, length);
    replay_all(mended, length);
    free(mended);
    return 0;
}
