/* SPDX-License-Identifier: BSD-3-Clause
 *
 * cuda.c - a stand-in for CUDA's runtime and driver where there is no device: the functions that
 * handlers/pinned.c and claim.pinned call, over ordinary memory.
 *
 * It locks no page.  It knows what it gave out, refuses what is freed twice or was never its own,
 * as CUDA does, and refuses everything in a process forked from the one that used it first.  So it
 * shows what the handler does with its blocks, and nothing about CUDA; on a machine with a device
 * nobody needs it.
 *
 * CUDA_STANDIN_LIMIT is how many bytes it gives out before it has no more; CUDA_STANDIN_DEVICES how
 * many devices it counts, 1 unless told.
 */
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "nep49.h"

/* Of driver_types.h and cuda.h. */
enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    INITIALIZATION_ERROR = 3,
    NO_DEVICE = 100
};
enum { POINTER_MEMORY_TYPE = 2, MEMORY_TYPE_HOST = 1 };

enum { ALIGNMENT = 512 }; /* which CUDA keeps */

struct given {
    uintptr_t start;
    size_t length;
};

static struct {
    pthread_mutex_t lock; /* of all below */
    pid_t process;        /* that used it first */
    int last_error;
    size_t total;
    void *given; /* a tree of struct given, of tsearch(3) */
} cuda = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static bool is_ours(void)
{
    if (cuda.process == 0)
        cuda.process = getpid();
    return cuda.process == getpid();
}

static int done(int error)
{
    if (error != SUCCESS)
        cuda.last_error = error;
    pthread_mutex_unlock(&cuda.lock);
    return error;
}

/* What overlaps is the same, so that any address within a block finds it. */
static int compare(const void *one, const void *other)
{
    const struct given *a = one, *b = other;
    if (a->start + a->length <= b->start)
        return -1;
    return a->start >= b->start + b->length;
}

/* The block that `address` is in, or NULL. */
static struct given *find(uintptr_t address)
{
    struct given byte = {address, 1}, **node = tfind(&byte, &cuda.given, compare);
    return node != NULL ? *node : NULL;
}

/* NULL where there is no memory. */
static void *give(size_t length)
{
    struct given *given = malloc(sizeof *given);
    void *start = aligned_alloc(ALIGNMENT, (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (given != NULL && start != NULL) {
        *given = (struct given){(uintptr_t)start, length};
        if (tsearch(given, &cuda.given, compare) != NULL) {
            cuda.total += length;
            return start;
        }
    }
    free(start);
    free(given);
    return NULL;
}

NEP49_EXPORT int cudaHostAlloc(void **start, size_t length, unsigned flags);
NEP49_EXPORT int cudaFreeHost(void *start);
NEP49_EXPORT int cudaGetDeviceCount(int *count);
NEP49_EXPORT int cudaGetLastError(void);
NEP49_EXPORT const char *cudaGetErrorString(int error);
NEP49_EXPORT int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer);

int cudaHostAlloc(void **start, size_t length, unsigned flags)
{
    pthread_mutex_lock(&cuda.lock);
    if (!is_ours())
        return done(INITIALIZATION_ERROR);
    if (start == NULL || length == 0 || flags > 7)
        return done(INVALID_VALUE);
    if (length > PTRDIFF_MAX || length > setting("CUDA_STANDIN_LIMIT", SIZE_MAX) - cuda.total)
        return done(OUT_OF_MEMORY);
    *start = give(length);
    return done(*start != NULL ? SUCCESS : OUT_OF_MEMORY);
}

int cudaFreeHost(void *start)
{
    pthread_mutex_lock(&cuda.lock);
    if (!is_ours())
        return done(INITIALIZATION_ERROR);
    if (start == NULL)
        return done(SUCCESS);
    struct given *given = find((uintptr_t)start);
    if (given == NULL || given->start != (uintptr_t)start)
        return done(INVALID_VALUE);
    tdelete(given, &cuda.given, compare);
    cuda.total -= given->length;
    free(given);
    free(start);
    return done(SUCCESS);
}

int cudaGetDeviceCount(int *count)
{
    pthread_mutex_lock(&cuda.lock);
    if (!is_ours())
        return done(INITIALIZATION_ERROR);
    *count = (int)setting("CUDA_STANDIN_DEVICES", 1);
    return done(*count > 0 ? SUCCESS : NO_DEVICE);
}

int cudaGetLastError(void)
{
    pthread_mutex_lock(&cuda.lock);
    int error = cuda.last_error;
    cuda.last_error = SUCCESS;
    pthread_mutex_unlock(&cuda.lock);
    return error;
}

const char *cudaGetErrorString(int error)
{
    return error == NO_DEVICE ? "no CUDA-capable device is detected" : "initialization error";
}

int cuPointerGetAttribute(void *value, int attribute, unsigned long long pointer)
{
    if (attribute != POINTER_MEMORY_TYPE)
        return INVALID_VALUE;
    pthread_mutex_lock(&cuda.lock);
    bool known = find((uintptr_t)pointer) != NULL;
    if (known)
        *(unsigned *)value = MEMORY_TYPE_HOST;
    pthread_mutex_unlock(&cuda.lock);
    return known ? SUCCESS : INVALID_VALUE;
}
