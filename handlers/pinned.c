/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned.c - blocks in page-locked memory, from and to which a CUDA device copies by itself.
 *
 * Blocks of NEP49_PINNED_FROM bytes (1 unless told) or more come from cudaHostAlloc, smaller ones
 * from libc.  The CUDA runtime is looked up when the handler is asked for, by its usual names or
 * the one in NEP49_CUDART; without it, or without a device, the handler says that it cannot work.
 *
 * cudaHostAlloc takes tens of microseconds and more, so that freed blocks of up to 1 MiB are kept,
 * by powers of two, and given out again.  Before each block stands what free has to know.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"

#define FROM "NEP49_PINNED_FROM"
#define LIBRARY "NEP49_CUDART"

enum { FIRST = 64, LOWEST = 8 /* 2^8 bytes */, HIGHEST = 20, CLASSES = HIGHEST - LOWEST + 1 };
enum { KEPT = 64 /* of each class, at most */, CUDA_PORTABLE = 1 /* for every device */ };

enum kind { LIBC, CLASSED, SINGLE };

struct header {
    _Alignas(16) size_t size; /* what was asked for */
    struct header *next;      /* while it is kept */
    int kind, class;
};

_Static_assert(sizeof(struct header) % 16 == 0 && sizeof(struct header) <= FIRST,
               "leaves libc's blocks aligned, and fits before others");

static struct {
    int (*cudaHostAlloc)(void **, size_t, unsigned);
    int (*cudaFreeHost)(void *);
    int (*cudaGetDeviceCount)(int *);
    int (*cudaGetLastError)(void); /* clears it: what we asked for is no error of the program's */
    const char *(*cudaGetErrorString)(int);
} cuda;

static struct {
    size_t from;          /* 0: not decided yet */
    bool forked;          /* CUDA does not work in a forked child: there, libc makes the blocks */
    pthread_mutex_t lock; /* of all below */
    struct {
        struct header *first;
        unsigned count;
    } kept[CLASSES];
} pinned = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The first place after the start of what cudaHostAlloc gave that keeps 64 bytes' alignment. */
static void *finish(char *start, size_t size, int kind, int class)
{
    struct header *h = (struct header *)(void *)(start + FIRST) - 1;

    *h = (struct header){.size = size, .kind = kind, .class = class};
    return h + 1;
}

static void *finish_libc(struct header *h, size_t size)
{
    if (h == NULL)
        return NULL;
    *h = (struct header){.size = size, .kind = LIBC};
    return h + 1;
}

/* The class of blocks of up to 2^(class + LOWEST) bytes, header included; CLASSES: too large. */
static int class_of(size_t size)
{
    int class = 0;

    while (class < CLASSES && size + FIRST > (size_t)1 << (class + LOWEST))
        class ++;
    return class;
}

static void *lock_pages(size_t length)
{
    void *start = NULL;

    if (cuda.cudaHostAlloc(&start, length, CUDA_PORTABLE) == 0)
        return start;
    cuda.cudaGetLastError();
    return NULL;
}

static void *pin(size_t size)
{
    int class = class_of(size);
    struct header *h = NULL;

    if (class == CLASSES) {
        char *start = lock_pages(size + FIRST);
        return start ? finish(start, size, SINGLE, class) : NULL;
    }
    pthread_mutex_lock(&pinned.lock);
    if (pinned.kept[class].first != NULL) {
        h = pinned.kept[class].first;
        pinned.kept[class].first = h->next;
        pinned.kept[class].count--;
    }
    pthread_mutex_unlock(&pinned.lock);
    char *start = h ? (char *)(h + 1) - FIRST : lock_pages((size_t)1 << (class + LOWEST));
    return start ? finish(start, size, CLASSED, class) : NULL;
}

/* In a forked child the memory is the parent's to unlock. */
static void unpin(struct header *h)
{
    if (pinned.forked)
        return;
    pthread_mutex_lock(&pinned.lock);
    if (h->kind == CLASSED && pinned.kept[h->class].count < KEPT) {
        h->next = pinned.kept[h->class].first;
        pinned.kept[h->class].first = h;
        pinned.kept[h->class].count++;
        h = NULL;
    }
    pthread_mutex_unlock(&pinned.lock);
    if (h != NULL && cuda.cudaFreeHost((char *)(h + 1) - FIRST) != 0)
        cuda.cudaGetLastError(); /* the runtime is shutting down, with the process */
}

static bool is_pinned(size_t size)
{
    return size >= pinned.from && !pinned.forked;
}

static void *pinned_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - FIRST)
        return NULL;
    if (is_pinned(size))
        return pin(size);
    return finish_libc(malloc(size + sizeof(struct header)), size);
}

static void *pinned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - FIRST)
        return NULL;
    void *block = pinned_malloc(ctx, size);
    return block ? memset(block, 0, size) : NULL;
}

static void pinned_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    if (h->kind == LIBC)
        free(h);
    else
        unpin(h);
    errno = saved;
}

static void *pinned_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return pinned_malloc(ctx, new_size);
    if (new_size > PTRDIFF_MAX - FIRST)
        return NULL;

    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size;
    if (h->kind == LIBC && !is_pinned(new_size))
        return finish_libc(realloc(h, new_size + sizeof(*h)), new_size);
    if (h->kind == CLASSED && is_pinned(new_size) && class_of(new_size) == h->class) {
        h->size = new_size;
        return ptr;
    }
    void *moved = pinned_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        pinned_free(ctx, ptr, old);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "pinned",
    .version = 1,
    .allocator = {NULL, pinned_malloc, pinned_calloc, pinned_realloc, pinned_free},
};

NEP49_EXPORT char nep49_claims[32];

static void before_fork(void)
{
    pthread_mutex_lock(&pinned.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&pinned.lock);
}

static void after_fork_in_child(void)
{
    pinned.forked = true;
    pthread_mutex_unlock(&pinned.lock);
}

/* Whatever the value of a variable was. */
static const char *on_one_line(char *text)
{
    for (char *c = text; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    return text;
}

/* NULL, or why there is no CUDA runtime to call. */
static const char *find_cuda(void)
{
    static const char *const usual[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12",
                                        "libcudart.so.11.0"};
    static char reason[256];
    const char *name = getenv(LIBRARY);
    void *library = NULL;

    if (name != NULL)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; name == NULL && library == NULL && i < sizeof(usual) / sizeof(*usual); i++)
        library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        const char *error = name ? dlerror() : NULL;
        snprintf(reason, sizeof(reason),
                 name ? LIBRARY "='%.60s': %.150s"
                      : "the CUDA runtime, libcudart.so, is not there; " LIBRARY
                        " says where it is",
                 name, error ? error : "it cannot be opened");
        return on_one_line(reason);
    }
#define FIND(function) ((*(void **)&cuda.function = dlsym(library, #function)) != NULL)
    if (FIND(cudaHostAlloc) && FIND(cudaFreeHost) && FIND(cudaGetDeviceCount) &&
        FIND(cudaGetLastError) && FIND(cudaGetErrorString))
        return NULL;
    snprintf(reason, sizeof(reason),
             name ? LIBRARY "='%.60s': it lacks CUDA's functions to lock memory"
                  : "the CUDA runtime lacks the functions to lock memory",
             name);
    return on_one_line(reason);
}

/* The number that text says, with K, M or G behind it or without, or 0 where it says none. */
static size_t parse_bytes(const char *text)
{
    static const char units[] = "KMG";
    char *end;
    size_t n;

    if (*text < '0' || *text > '9') /* strtoul lets blanks and signs pass */
        return 0;
    errno = 0;
    n = strtoul(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    size_t factor = unit ? (size_t)1 << (10 * (unit - units + 1)) : 1;
    if (errno != 0 || (unit ? end[1] : *end) != '\0' || __builtin_mul_overflow(n, factor, &n))
        return 0;
    return n;
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    static char refusal[192];
    const char *text = getenv(FROM);
    size_t from = text ? parse_bytes(text) : 1;
    int devices = 0, error;

    if (pinned.from != 0)
        return &handler;
    if (from == 0) {
        snprintf(refusal, sizeof(refusal),
                 "%s='%.40s': only a number of bytes from 1 on is accepted, as in 64K", FROM, text);
        *why = on_one_line(refusal);
        return NULL;
    }
    const char *missing = find_cuda();
    if (missing != NULL) {
        *why = missing;
        return NULL;
    }
    error = cuda.cudaGetDeviceCount(&devices);
    if (error != 0 || devices < 1) {
        snprintf(refusal, sizeof(refusal), "there is no CUDA device: %.120s",
                 error ? cuda.cudaGetErrorString(error) : "none was counted");
        *why = refusal;
        return NULL;
    }
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0) {
        *why = "out of memory";
        return NULL;
    }
    pinned.from = from;
    snprintf(nep49_claims, sizeof(nep49_claims), "pinned=%zu", from);
    return &handler;
}
