/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Recording without Python.  (src/trace/trace.h is for threads, and asks who has the GIL.)
 */
#include "fuzz/recorder.h"

#include "trace/trace.h"

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

PyDataMem_Handler *recorder_begin(const PyDataMem_Handler *handler, const char *path, char *why,
                                  size_t room)
{
    static PyDataMem_Handler recorder;
    recorder = *handler;
    inner = handler->allocator;
    recorder.allocator =
        (PyDataMemAllocator){inner.ctx, record_malloc, record_calloc, record_realloc, record_free};
    writer = trace_create(path, false, why, room);
    return writer != NULL ? &recorder : NULL;
}
