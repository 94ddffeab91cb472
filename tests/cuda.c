/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cuda.c - a stand-in for CUDA's runtime and driver where there is no device: the functions that
 * handlers/pinned.c, claim.pinned and examples/pinned/copies.py call.  A device's memory is
 * malloc's.
 *
 * It locks no page.  It knows what is to be locked, refuses what is locked twice or unlocked and
 * was not locked, as CUDA does, and refuses everything in a process forked from the one that used
 * it first, and in one that ends.  So it shows what the handler does with its blocks, and nothing
 * about CUDA; on a machine with a device nobody needs it.
 *
 * CUDA_STANDIN_LIMIT is how many bytes it locks before it has no more; CUDA_STANDIN_DEVICES how
 * many devices it counts, 1 unless told.  With CUDA_STANDIN_TRUSTS=1 it writes to what malloc
 * returned without a look, as the driver does.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nep49.h"

/* Of driver_types.h and cuda.h. */
enum { SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, INITIALIZATION_ERROR, UNLOADING };
enum { NO_DEVICE = 100, ALREADY_REGISTERED = 712, NOT_REGISTERED = 713 };
enum { POINTER_MEMORY_TYPE = 2, MEMORY_TYPE_HOST = 1 };

enum { MOST_RANGES = 1 << 14 };

static struct {
    pthread_mutex_t lock; /* of all below */
    pid_t process;        /* that used it first */
    bool ends;            /* it does */
    int last_error;
    size_t total;
    struct range {
        uintptr_t start;
        size_t length; /* 0: nothing */
    } locked[MOST_RANGES];
} cuda = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void end(void)
{
    pthread_mutex_lock(&cuda.lock);
    cuda.ends = true;
    pthread_mutex_unlock(&cuda.lock);
}

/* Takes the lock, and returns what everything is refused with. */
static int begin(void)
{
    pthread_mutex_lock(&cuda.lock);
    if (cuda.process == 0) {
        cuda.process = getpid();
        atexit(end);
    }
    if (cuda.process != getpid())
        return INITIALIZATION_ERROR;
    return cuda.ends ? UNLOADING : SUCCESS;
}

static int done(int error)
{
    if (error != SUCCESS)
        cuda.last_error = error;
    pthread_mutex_unlock(&cuda.lock);
    return error;
}

/* The range that has a byte of these, or NULL; with no length, a place for one. */
static struct range *find(uintptr_t start, size_t length)
{
    for (struct range *r = cuda.locked; r < cuda.locked + MOST_RANGES; r++) {
        if (length == 0 ? r->length == 0
                        : start < r->start + r->length && r->start < start + length)
            return r;
    }
    return NULL;
}

NEP49_EXPORT int cudaHostRegister(void *start, size_t length, unsigned flags)
{
    int error = begin();
    if (error != SUCCESS)
        return done(error);
    if (start == NULL || length == 0 || flags > 15)
        return done(INVALID_VALUE);
    if (find((uintptr_t)start, length) != NULL)
        return done(ALREADY_REGISTERED);
    char *own = malloc(100);
    if (setting("CUDA_STANDIN_TRUSTS", 0))
        *(volatile char *)own = 0;
    struct range *range = own != NULL ? find(0, 0) : NULL;
    free(own);
    if (range == NULL || length > setting("CUDA_STANDIN_LIMIT", SIZE_MAX) - cuda.total)
        return done(OUT_OF_MEMORY);
    *range = (struct range){(uintptr_t)start, length};
    cuda.total += length;
    return done(SUCCESS);
}

NEP49_EXPORT int cudaHostUnregister(void *start)
{
    int error = begin();
    if (error != SUCCESS)
        return done(error);
    struct range *range = find((uintptr_t)start, 1);
    if (range == NULL || range->start != (uintptr_t)start)
        return done(NOT_REGISTERED);
    cuda.total -= range->length;
    range->length = 0;
    return done(SUCCESS);
}

NEP49_EXPORT int cudaGetDeviceCount(int *count)
{
    int error = begin();
    if (error != SUCCESS)
        return done(error);
    *count = (int)setting("CUDA_STANDIN_DEVICES", 1);
    return done(*count > 0 ? SUCCESS : NO_DEVICE);
}

NEP49_EXPORT int cudaGetLastError(void)
{
    pthread_mutex_lock(&cuda.lock);
    int error = cuda.last_error;
    cuda.last_error = SUCCESS;
    pthread_mutex_unlock(&cuda.lock);
    return error;
}

NEP49_EXPORT const char *cudaGetErrorString(int error)
{
    return error == NO_DEVICE ? "no CUDA-capable device is detected" : "initialization error";
}

NEP49_EXPORT int cudaMalloc(void **memory, size_t size)
{
    *memory = malloc(size);
    return *memory != NULL ? SUCCESS : OUT_OF_MEMORY;
}

NEP49_EXPORT int cudaFree(void *memory)
{
    free(memory);
    return SUCCESS;
}

NEP49_EXPORT int cudaStreamCreate(void **stream)
{
    *stream = stream;
    return SUCCESS;
}

NEP49_EXPORT int cudaStreamSynchronize(void *stream)
{
    (void)stream;
    return SUCCESS;
}

NEP49_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t size, int way, void *stream)
{
    (void)way;
    (void)stream;
    memcpy(to, from, size);
    return SUCCESS;
}

NEP49_EXPORT int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer)
{
    if (attribute != POINTER_MEMORY_TYPE)
        return INVALID_VALUE;
    pthread_mutex_lock(&cuda.lock);
    bool known = find((uintptr_t)pointer, 1) != NULL;
    if (known)
        *(unsigned *)value = MEMORY_TYPE_HOST;
    pthread_mutex_unlock(&cuda.lock);
    return known ? SUCCESS : INVALID_VALUE;
}
