/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pinned.c - blocks in page-locked memory, from and to which a CUDA device copies by itself.
 *
 * Blocks of NEP49_PINNED_FROM bytes (1 unless told) or more lie in mappings that cudaHostRegister
 * locks, smaller ones come from libc.  The CUDA runtime is looked up when the handler is asked for,
 * by its usual names or the one in NEP49_CUDART; without it, or without a device, the handler says
 * that it cannot work.
 *
 * The mappings are our own and private, which cudaHostAlloc's are not: a forked child has copies of
 * them, and they stay when CUDA ends before the process does.  To lock one takes long, so that
 * small blocks are cut from regions, by powers of two, and large ones that were freed are kept for
 * others of their length.  Before each block stands what free has to know.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nep49.h"
#include "nep49_kept.h"
#include "nep49_setting.h"

#define FROM "NEP49_PINNED_FROM"
#define LIBRARY "NEP49_CUDART"

enum {
    HEADER = 64,      /* bytes before a block, which leaves it as well aligned */
    REGION = 2 << 20, /* bytes, at a multiple of as many: a huge page, where the kernel has one */
    SMALLEST = 7,     /* 2^7 bytes, header included */
    LARGEST = 17,     /* of those that are cut from regions */
    CLASSES = LARGEST - SMALLEST + 1
};

/* Of the CUDA runtime. */
enum { PORTABLE = 1 /* for every device */, UNLOADING = 4, CONTEXT_IS_DESTROYED = 709 };

/* At the start of each region, whose blocks are of one class. */
struct region {
    struct region *next, *before; /* in the list of those with room */
    struct header *freed;
    unsigned class, live;
    size_t cut; /* bytes from its start on that were given out once */
};

enum kind { LIBC, CUT, MAPPED };

struct header {
    _Alignas(16) size_t size; /* what was asked for */
    struct header *next;      /* while it is free */
    enum kind kind;
};

_Static_assert(sizeof(struct header) % 16 == 0 && sizeof(struct header) <= HEADER,
               "leaves libc's blocks aligned, and fits before others");

static struct {
    int (*cudaHostRegister)(void *, size_t, unsigned);
    int (*cudaHostUnregister)(void *);
    int (*cudaGetDeviceCount)(int *);
    int (*cudaGetLastError)(void); /* clears it: what we asked for is no error of the program's */
    const char *(*cudaGetErrorString)(int);
} cuda;

static struct {
    size_t from;          /* 0: not decided yet */
    bool forked;          /* CUDA does not work in a forked child, where nothing is locked */
    pthread_mutex_t lock; /* of all below */
    struct region *room[CLASSES]; /* the regions from which another block can be cut */
} pinned = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- mappings --------------------------------------------------------------------------- */

static bool lock_pages(void *start, size_t length)
{
    if (pinned.forked)
        return true;
    int error = cuda.cudaHostRegister(start, length, PORTABLE);
    if (error != 0)
        cuda.cudaGetLastError();
    return error == 0 || error == UNLOADING || error == CONTEXT_IS_DESTROYED; /* the end is near */
}

static int unmap(void *start, size_t length)
{
    if (!pinned.forked && cuda.cudaHostUnregister(start) != 0)
        cuda.cudaGetLastError(); /* CUDA has ended, and has unlocked all */
    return munmap(start, length);
}

/* So many bytes, whole pages, that begin at a multiple of REGION.  NULL where there is no such
 * memory, or it may not be locked. */
static void *map(size_t length)
{
    char *start =
        mmap(NULL, length + REGION, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED)
        return NULL;
    size_t before = -(uintptr_t)start % REGION;
    if (before != 0)
        munmap(start, before);
    start += before;
    munmap(start + length, REGION - before);
    madvise(start, length, MADV_HUGEPAGE); /* there are fewer to lock */
    if (lock_pages(start, length))
        return start;
    munmap(start, length);
    return NULL;
}

/* ---- blocks that are cut from regions ------------------------------------------------------- */

/* The class of blocks of up to 2^(class + SMALLEST) bytes; CLASSES: too large for a region. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;

    while (class < CLASSES && size + HEADER > (size_t)1 << (class + SMALLEST))
        class ++;
    return class;
}

static struct region *region_of(struct header *h)
{
    return (struct region *)((uintptr_t)h & -(uintptr_t)REGION);
}

static bool has_room(const struct region *r)
{
    return r->freed != NULL || r->cut + ((size_t)1 << (r->class + SMALLEST)) <= REGION;
}

static void enter(struct region *r)
{
    struct region **first = &pinned.room[r->class];

    r->before = NULL;
    r->next = *first;
    if (r->next != NULL)
        r->next->before = r;
    *first = r;
}

static void leave(struct region *r)
{
    *(r->before ? &r->before->next : &pinned.room[r->class]) = r->next;
    if (r->next != NULL)
        r->next->before = r->before;
}

/* With the lock. */
static struct header *cut(unsigned class)
{
    size_t length = (size_t)1 << (class + SMALLEST);
    struct region *r = pinned.room[class];

    if (r == NULL) {
        if ((r = map(REGION)) == NULL)
            return NULL;
        *r = (struct region){.class = class, .cut = length};
        enter(r);
    }
    struct header *h = r->freed;
    if (h != NULL) {
        r->freed = h->next;
    } else {
        h = (struct header *)(void *)((char *)r + r->cut + HEADER) - 1;
        r->cut += length;
    }
    r->live++;
    if (!has_room(r))
        leave(r);
    return h;
}

/* Likewise.  A region without blocks goes when another of its class has room. */
static void put_back(struct header *h)
{
    struct region *r = region_of(h);

    if (!has_room(r))
        enter(r);
    h->next = r->freed;
    r->freed = h;
    if (--r->live > 0 || (r->next == NULL && r->before == NULL))
        return;
    leave(r);
    unmap(r, REGION);
}

/* ---- blocks that are mappings -------------------------------------------------------------- */

/* With its header, and in steps that others of about its length share. */
static size_t mapped_length(size_t size)
{
    return (size + HEADER + 0xffff) & ~(size_t)0xffff;
}

static struct header *take_mapping(size_t size)
{
    size_t length = mapped_length(size);
    char *start = nep49_take_kept(length, unmap);

    if (start == NULL)
        start = map(length);
    return start ? (struct header *)(void *)(start + HEADER) - 1 : NULL;
}

/* ---- the four functions ---------------------------------------------------------------------- */

static void *finish(struct header *h, size_t size, enum kind kind)
{
    if (h == NULL)
        return NULL;
    *h = (struct header){.size = size, .kind = kind};
    return h + 1;
}

static void *pinned_malloc(void *ctx, size_t size)
{
    unsigned class = class_of(size);

    (void)ctx;
    if (size > PTRDIFF_MAX - 2 * (size_t)REGION)
        return NULL;
    if (size < pinned.from)
        return finish(malloc(size + sizeof(struct header)), size, LIBC);
    if (class == CLASSES)
        return finish(take_mapping(size), size, MAPPED);
    pthread_mutex_lock(&pinned.lock);
    struct header *h = cut(class);
    pthread_mutex_unlock(&pinned.lock);
    return finish(h, size, CUT);
}

static void *pinned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    if (__builtin_mul_overflow(nelem, elsize, &size))
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
    if (h->kind == LIBC) {
        free(h);
    } else if (h->kind == MAPPED) {
        nep49_keep((char *)ptr - HEADER, mapped_length(h->size), unmap);
    } else {
        pthread_mutex_lock(&pinned.lock);
        put_back(h);
        pthread_mutex_unlock(&pinned.lock);
    }
    errno = saved;
}

/* Whether a block of the new size would lie in memory of the same length. */
static bool stays(const struct header *h, size_t new_size)
{
    if (h->kind == LIBC || new_size < pinned.from || class_of(new_size) != class_of(h->size))
        return false;
    return h->kind == CUT || mapped_length(new_size) == mapped_length(h->size);
}

static void *pinned_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return pinned_malloc(ctx, new_size);
    if (new_size > PTRDIFF_MAX - 2 * (size_t)REGION)
        return NULL;

    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size;
    if (h->kind == LIBC && new_size < pinned.from)
        return finish(realloc(h, new_size + sizeof(*h)), new_size, LIBC);
    if (stays(h, new_size)) {
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

/* Finds the CUDA runtime, or refuses. */
static bool find_cuda(const char **why)
{
    static const char *const usual[] = {"libcudart.so", "libcudart.so.13", "libcudart.so.12",
                                        "libcudart.so.11.0"};
    const char *name = getenv(LIBRARY);
    void *library = NULL;

    if (name != NULL)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; name == NULL && library == NULL && i < sizeof(usual) / sizeof(*usual); i++)
        library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    const char *error = name != NULL && library == NULL ? dlerror() : NULL;
    if (library == NULL && name == NULL)
        return nep49_refuse(why, "the CUDA runtime, libcudart.so, is not there; " LIBRARY
                                 " says where it is");
    if (library == NULL)
        return nep49_refuse(why, LIBRARY "='%.60s': %.150s", name,
                            error != NULL ? error : "it cannot be opened");
#define FIND(function) ((*(void **)&cuda.function = dlsym(library, #function)) != NULL)
    if (FIND(cudaHostRegister) && FIND(cudaHostUnregister) && FIND(cudaGetDeviceCount) &&
        FIND(cudaGetLastError) && FIND(cudaGetErrorString))
        return true;
    if (name == NULL)
        return nep49_refuse(why, "the CUDA runtime lacks the functions to lock memory");
    return nep49_refuse(why, LIBRARY "='%.60s': it lacks CUDA's functions to lock memory", name);
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *text = getenv(FROM);
    size_t from = nep49_parse_bytes(text, 1);
    int devices = 0, error;

    if (pinned.from != 0)
        return &handler;
    if (from == 0)
        return nep49_refuse(
            why, FROM "='%.40s': only a number of bytes from 1 on is accepted, as in 64K", text);
    if (!find_cuda(why))
        return NULL;
    error = cuda.cudaGetDeviceCount(&devices);
    if (error != 0 || devices < 1)
        return nep49_refuse(why, "there is no CUDA device: %.120s",
                            error ? cuda.cudaGetErrorString(error) : "none was counted");
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return nep49_refuse(why, "out of memory");
    pinned.from = from;
    snprintf(nep49_claims, sizeof(nep49_claims), "pinned=%zu", from);
    return &handler;
}
