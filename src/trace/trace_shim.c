/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing calls down as they come, from any thread.
 */
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "python/api.h"
#include "python/python.h"

/* A process has one. */
static struct {
    PyDataMem_Handler outer;
    const PyDataMemAllocator *inner;
    struct trace_writer *writer; /* NULL before the first call and once closed */
    pthread_mutex_t lock;
    bool timed;
} shim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct trace_caller caller_now(void)
{
    static atomic_uint last;
    static _Thread_local unsigned mine;
    if (mine == 0)
        mine = ++last;
    return (struct trace_caller){
        .thread = mine - 1, .gil = python_has_gil(), .time = shim.timed ? clock_now() : 0};
}

static void lock(void)
{
    pthread_mutex_lock(&shim.lock);
}

static void unlock(void)
{
    pthread_mutex_unlock(&shim.lock);
}

static void *traced_malloc(void *ctx, size_t size)
{
    struct trace_caller caller = caller_now();
    (void)ctx;
    void *p = shim.inner->malloc(shim.inner->ctx, size);
    int error = errno;
    lock();
    trace_malloc(shim.writer, &caller, size, p);
    unlock();
    errno = error;
    return p;
}

static void *traced_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct trace_caller caller = caller_now();
    (void)ctx;
    void *p = shim.inner->calloc(shim.inner->ctx, nelem, elsize);
    int error = errno;
    lock();
    trace_calloc(shim.writer, &caller, nelem, elsize, p);
    unlock();
    errno = error;
    return p;
}

static void *traced_realloc(void *ctx, void *p, size_t size)
{
    struct trace_caller caller = caller_now();
    (void)ctx;
    lock();
    struct trace_given what = trace_give(shim.writer, p);
    unlock();
    void *moved = shim.inner->realloc(shim.inner->ctx, p, size);
    int error = errno;
    lock();
    trace_realloc(shim.writer, &caller, what, size, moved);
    unlock();
    errno = error;
    return moved;
}

/* Written before the handler is called: after that the address may already be another block's. */
static void traced_free(void *ctx, void *p, size_t size)
{
    struct trace_caller caller = caller_now();
    int error = errno;
    (void)ctx;
    lock();
    trace_free(shim.writer, &caller, trace_give(shim.writer, p), size);
    unlock();
    errno = error;
    shim.inner->free(shim.inner->ctx, p, size);
}

PyDataMem_Handler *trace_shim_begin(PyDataMem_Handler *inner, const char *path, bool timed,
                                    char *why, size_t room)
{
    shim.writer = trace_create(path, timed, why, room);
    if (shim.writer == NULL)
        return NULL;
    shim.inner = &inner->allocator;
    shim.timed = timed;
    shim.outer = *inner;
    shim.outer.allocator =
        (PyDataMemAllocator){NULL, traced_malloc, traced_calloc, traced_realloc, traced_free};
    pthread_atfork(lock, unlock, unlock);
    return &shim.outer;
}

struct trace_writer *trace_shim_writer(void)
{
    return shim.writer;
}

void trace_shim_begin_part(const char *name)
{
    lock();
    trace_begin_part(shim.writer, name);
    unlock();
}

bool trace_shim_close(char *why, size_t room)
{
    lock();
    bool whole = shim.writer == NULL || trace_close(shim.writer, why, room);
    shim.writer = NULL;
    unlock();
    return whole;
}
