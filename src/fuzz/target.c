/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying the entries of a fuzzer.
 */
#include "fuzz/target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/heap.h"
#include "trace/replay.h"
#include "trace/trace.h"
#include "trace/trace_format.h"

enum { WHOLE = 1 << 12, CANNOT_WORK_HERE = 77 };

static PyDataMem_Handler *handler;
static bool is_fresh;

/* ---- recording without Python (src/trace/trace.h is for threads, and asks who has the GIL)
 */

static const struct trace_caller caller = {.gil = true};
static struct trace_writer *writer;
static PyDataMemAllocator inner;

static void *record_malloc(void *ctx, size_t size)
{
    void *p = inner.malloc(ctx, size);
    trace_malloc(writer, &caller, size, p);
    return p;
}

static void *record_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = inner.calloc(ctx, nelem, elsize);
    trace_calloc(writer, &caller, nelem, elsize, p);
    return p;
}

static void *record_realloc(void *ctx, void *p, size_t size)
{
    struct trace_given given = trace_give(writer, p);
    void *moved = inner.realloc(ctx, p, size);
    trace_realloc(writer, &caller, given, size, moved);
    return moved;
}

static void record_free(void *ctx, void *p, size_t size)
{
    trace_free(writer, &caller, trace_give(writer, p), size);
    inner.free(ctx, p, size);
}

/* Returns a handler that passes the calls of one thread on to `given` and writes each to a trace;
 * NULL with one line in `why`. */
static PyDataMem_Handler *record(const PyDataMem_Handler *given, const char *path, char *why,
                                 size_t room)
{
    static PyDataMem_Handler recorder;
    recorder = *given;
    inner = given->allocator;
    recorder.allocator =
        (PyDataMemAllocator){inner.ctx, record_malloc, record_calloc, record_realloc, record_free};
    writer = trace_create(path, false, why, room);
    return writer != NULL ? &recorder : NULL;
}

/* ---- replaying --------------------------------------------------------------------------- */

_Noreturn static void stop(const char *what, const char *why)
{
    fprintf(stderr, "conform: %s: %s\n", what, why);
    exit(CANNOT_WORK_HERE);
}

void conform_fuzz_begin(PyDataMem_Handler *given, const char *why)
{
    char wrong[256];
    const char *trace = getenv("CONFORM_FUZZ_TRACE");
    if (given == NULL)
        stop("the handler cannot work here", why);
    handler = trace != NULL ? record(given, trace, wrong, sizeof wrong) : given;
    if (handler == NULL)
        stop(trace, wrong);
    is_fresh = getenv("CONFORM_FUZZ_FRESH") != NULL;
}

_Noreturn static void tell(const struct replay_violation *violation)
{
    fprintf(stderr, "==conform== %s in call %" PRIu64 " of this entry: %s\n",
            heap_rule_name(violation->rule), violation->call, violation->text);
    if (violation->history[0] != '\0')
        fprintf(stderr, "==conform== %s\n", violation->history);
    abort();
}

/* What is no trace: from nothing, which is what a fuzzer begins with, something is reached too. */
static void make_one_block(void)
{
    const PyDataMemAllocator *a = &handler->allocator;
    void *p = a->malloc(a->ctx, 1);
    a->free(a->ctx, p, 1);
}

static void replay(struct trace_reader *reader)
{
    static const struct replay_options options = {.fill = {.whole = WHOLE, .marks = true},
                                                  .most_bytes = 4 << 20};
    static struct replay_result result;
    if (replay_run(reader, handler, &options, &result) == REPLAY_VIOLATED)
        tell(&result.violation);
}

static void replay_fresh(struct trace_reader *reader)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        replay(reader);
        _exit(0);
    }
    if (child > 0 && waitpid(child, &status, 0) == child && status != 0)
        abort();
}

void conform_fuzz_one(const uint8_t *bytes, size_t length)
{
    char why[256];
    struct trace_reader *reader = trace_open_bytes(bytes, length, why, sizeof why);
    if (reader == NULL)
        make_one_block();
    else if (is_fresh)
        replay_fresh(reader);
    else
        replay(reader);
    trace_reader_close(reader);
}

size_t conform_fuzz_put_head(uint8_t *bytes, size_t length, size_t room)
{
    enum { HEAD_BYTES = TRACE_HEADER_BYTES + FRAME_HEADER_BYTES };
    if (room < HEAD_BYTES)
        return length;
    memset(bytes, 0, HEAD_BYTES);
    memcpy(bytes, TRACE_MAGIC, sizeof TRACE_MAGIC - 1);
    put_u32(bytes + 8, TRACE_VERSION);
    put_u32(bytes + 12, header_crc(bytes));
    put_u32(bytes + TRACE_HEADER_BYTES, FRAME_SYNC);
    return MAX(length, (size_t)HEAD_BYTES);
}
