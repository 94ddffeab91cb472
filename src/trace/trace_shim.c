/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing calls down as they come, from any thread.
 */
#include "trace/trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/clock.h"
#include "python/api.h"
#include "python/python.h"

struct trace_shim {
    PyDataMem_Handler outer, *inner;
    struct trace_writer *writer; /* NULL once closed */
    pthread_mutex_t lock;
    bool timed;
};

static struct trace_caller caller_now(const struct trace_shim *shim)
{
    static atomic_uint last;
    static _Thread_local unsigned mine;
    if (mine == 0)
        mine = ++last;
    return (struct trace_caller){
        .thread = mine - 1, .gil = python_has_gil(), .time = shim->timed ? clock_now() : 0};
}

static void *traced_malloc(void *ctx, size_t size)
{
    struct trace_shim *shim = ctx;
    struct trace_caller caller = caller_now(shim);
    void *p = shim->inner->allocator.malloc(shim->inner->allocator.ctx, size);
    int error = errno;
    pthread_mutex_lock(&shim->lock);
    trace_malloc(shim->writer, &caller, size, p);
    pthread_mutex_unlock(&shim->lock);
    errno = error;
    return p;
}

static void *traced_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct trace_shim *shim = ctx;
    struct trace_caller caller = caller_now(shim);
    void *p = shim->inner->allocator.calloc(shim->inner->allocator.ctx, nelem, elsize);
    int error = errno;
    pthread_mutex_lock(&shim->lock);
    trace_calloc(shim->writer, &caller, nelem, elsize, p);
    pthread_mutex_unlock(&shim->lock);
    errno = error;
    return p;
}

static void *traced_realloc(void *ctx, void *p, size_t size)
{
    struct trace_shim *shim = ctx;
    struct trace_caller caller = caller_now(shim);
    pthread_mutex_lock(&shim->lock);
    struct trace_given what = trace_give(shim->writer, p);
    pthread_mutex_unlock(&shim->lock);
    void *moved = shim->inner->allocator.realloc(shim->inner->allocator.ctx, p, size);
    int error = errno;
    pthread_mutex_lock(&shim->lock);
    trace_realloc(shim->writer, &caller, what, size, moved);
    pthread_mutex_unlock(&shim->lock);
    errno = error;
    return moved;
}

/* Written before the handler is called: behind it the address may already be another block's. */
static void traced_free(void *ctx, void *p, size_t size)
{
    struct trace_shim *shim = ctx;
    struct trace_caller caller = caller_now(shim);
    int error = errno;
    pthread_mutex_lock(&shim->lock);
    trace_free(shim->writer, &caller, trace_give(shim->writer, p), size);
    pthread_mutex_unlock(&shim->lock);
    errno = error;
    shim->inner->allocator.free(shim->inner->allocator.ctx, p, size);
}

static struct trace_shim *only;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&only->lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&only->lock);
}

struct trace_shim *trace_shim_create(PyDataMem_Handler *inner, const char *path, bool timed,
                                     char *why, size_t room)
{
    struct trace_shim *shim = calloc(1, sizeof *shim);
    if (shim == NULL) {
        snprintf(why, room, "out of memory");
        errno = 0;
        return NULL;
    }
    shim->writer = trace_create(path, timed, why, room);
    if (shim->writer == NULL) {
        int error = errno;
        free(shim);
        errno = error;
        return NULL;
    }
    shim->inner = inner;
    shim->timed = timed;
    shim->outer = *inner;
    shim->outer.allocator =
        (PyDataMemAllocator){shim, traced_malloc, traced_calloc, traced_realloc, traced_free};
    pthread_mutex_init(&shim->lock, NULL);
    only = shim;
    pthread_atfork(lock_before_fork, unlock_after_fork, unlock_after_fork);
    return shim;
}

PyDataMem_Handler *trace_shim_handler(struct trace_shim *shim)
{
    return &shim->outer;
}

struct trace_writer *trace_shim_writer(struct trace_shim *shim)
{
    return shim->writer;
}

void trace_shim_begin_part(struct trace_shim *shim, const char *name)
{
    pthread_mutex_lock(&shim->lock);
    trace_begin_part(shim->writer, name);
    pthread_mutex_unlock(&shim->lock);
}

bool trace_shim_close(struct trace_shim *shim, char *why, size_t room)
{
    pthread_mutex_lock(&shim->lock);
    bool whole = shim->writer == NULL || trace_close(shim->writer, why, room);
    shim->writer = NULL;
    pthread_mutex_unlock(&shim->lock);
    return whole;
}
