/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shm.c - large blocks lie in shared memory, where another process can map them by name.
 *
 * All of them lie in one anonymous file of this process (memfd_create), each at a place of its own
 * that is never used again, and their names are the file's path below /proc with that place.  So a
 * name lasts as long as the process and the block, and when the process ends, however it ends,
 * nothing is left: a name in /dev/shm would stay behind after a crash.  What another process has
 * mapped by then it keeps.
 *
 * Blocks of less than NEP49_SHM_FROM bytes (64K unless told) are libc's.  The other side, and what
 * stands before each block, are in nep49_shm.h.  A forked child gets copies of its own.
 */
#define _GNU_SOURCE /* memfd_create */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include "nep49.h"
#include "nep49_setting.h"
#include "nep49_shm.h"

#define VARIABLE "NEP49_SHM_FROM"

enum { PAGE = NEP49_SHM_PAGE };

/* What stands before every block, at the end of the header of a shared one too. */
struct header {
    _Alignas(16) size_t size; /* what was asked for */
    struct node *node;        /* NULL: libc's */
};

_Static_assert(sizeof(struct nep49_shm_block) == 64, "data is aligned to 64 bytes");
_Static_assert(offsetof(struct nep49_shm_block, size) == 64 - sizeof(struct header),
               "both headers end alike");

/* A shared block, in memory that is not shared: what fork has to copy. */
struct node {
    struct node *next, **link;
    struct nep49_shm_block *block;
    size_t length;
    bool copied; /* this process is the child of the one that made it */
};

static struct {
    size_t from;          /* 0: not decided yet */
    pthread_mutex_t lock; /* of all below */
    int fd;
    uint64_t token, next, end; /* next: where the next block goes */
    struct node *nodes;
    int fork_pipe[2];
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

/* ---- the segment ----------------------------------------------------------------------------- */

/* As long as a file may be: pages that were never written to take no memory. */
static bool open_segment(void)
{
    struct rlimit limit;

    shared.end = (uint64_t)1 << 62;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < shared.end)
        shared.end = limit.rlim_cur; /* to go beyond it is a signal */
    shared.next = 0;
    shared.nodes = NULL;
    shared.fd = memfd_create("nep49-shm", MFD_CLOEXEC);
    if (shared.fd < 0)
        return false;
    if (ftruncate(shared.fd, (off_t)shared.end) != 0 ||
        getrandom(&shared.token, sizeof(shared.token), 0) != (ssize_t)sizeof(shared.token)) {
        close(shared.fd);
        shared.fd = -1;
        return false;
    }
    return true;
}

static void insert(struct node *node)
{
    node->next = shared.nodes;
    node->link = &shared.nodes;
    if (node->next != NULL)
        node->next->link = &node->next;
    shared.nodes = node;
}

static size_t length_of(size_t size)
{
    return (size + sizeof(struct nep49_shm_block) + PAGE - 1) & -(size_t)PAGE;
}

static void *map_block(size_t size)
{
    size_t length = length_of(size); /* size is at most PTRDIFF_MAX - 2 * PAGE */
    struct node *node = malloc(sizeof(*node));
    void *map = MAP_FAILED;

    if (node == NULL)
        return NULL;
    pthread_mutex_lock(&shared.lock);
    uint64_t offset = shared.next;
    if (shared.fd >= 0 && length <= shared.end - offset)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, shared.fd, (off_t)offset);
    if (map == MAP_FAILED) {
        pthread_mutex_unlock(&shared.lock);
        free(node);
        return NULL;
    }
    shared.next += length;
    *node = (struct node){.block = map, .length = length};
    insert(node);
    *node->block = (struct nep49_shm_block){.magic = NEP49_SHM_MAGIC,
                                            .token = shared.token,
                                            .offset = offset,
                                            .length = length,
                                            .pid = (int32_t)getpid(),
                                            .fd = shared.fd,
                                            .users = 1,
                                            .size = size,
                                            .node = node};
    pthread_mutex_unlock(&shared.lock);
    return node->block + 1;
}

static void unmap_block(struct node *node)
{
    pthread_mutex_lock(&shared.lock);
    *node->link = node->next;
    if (node->next != NULL)
        node->next->link = node->link;
    pthread_mutex_unlock(&shared.lock);
    if (node->copied)
        munmap(node->block, node->length);
    else
        nep49_shm_release(node->block);
    free(node);
}

/* ---- fork ------------------------------------------------------------------------------------ */

/* The parent waits until the child has its copies, or is dead, for it may free or change what the
 * child is about to copy.  Each side closes the end of the pipe that it does not use. */
static void before_fork(void)
{
    pthread_mutex_lock(&shared.lock);
    if (shared.nodes == NULL || pipe2(shared.fork_pipe, O_CLOEXEC) != 0)
        shared.fork_pipe[0] = shared.fork_pipe[1] = -1;
}

static void after_fork_in_parent(void)
{
    char nothing;

    if (shared.fork_pipe[0] >= 0) {
        close(shared.fork_pipe[1]);
        while (read(shared.fork_pipe[0], &nothing, 1) < 0 && errno == EINTR)
            continue;
        close(shared.fork_pipe[0]);
    }
    pthread_mutex_unlock(&shared.lock);
}

/* At the same address.  Where memory for it is lacking the block is at least this process's own,
 * page by page, from when it first writes to one. */
static void copy_block(struct node *node, int fd)
{
    char *copy =
        mmap(NULL, node->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t used = sizeof(struct nep49_shm_block) + node->block->size;

    node->copied = true;
    if (copy != MAP_FAILED) {
        memcpy(copy, node->block, used);
        if (mremap(copy, node->length, node->length, MREMAP_MAYMOVE | MREMAP_FIXED, node->block) !=
            MAP_FAILED)
            return;
        munmap(copy, node->length);
    }
    (void)!mmap(node->block, node->length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                (off_t)node->block->offset);
}

static void after_fork_in_child(void)
{
    struct node *inherited = shared.nodes;
    int fd = shared.fd;

    for (struct node *node = inherited; node != NULL; node = node->next) {
        if (!node->copied)
            copy_block(node, fd);
    }
    if (shared.fork_pipe[0] >= 0) {
        close(shared.fork_pipe[0]);
        close(shared.fork_pipe[1]);
    }
    if (fd >= 0)
        close(fd);
    open_segment(); /* where that fails, large blocks are refused */
    shared.nodes = inherited;
    pthread_mutex_unlock(&shared.lock);
}

/* ---- the handler ----------------------------------------------------------------------------- */

static void *finish_libc(struct header *h, size_t size)
{
    if (h == NULL)
        return NULL;
    *h = (struct header){.size = size, .node = NULL};
    return h + 1;
}

static void *share_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;
    if (size >= shared.from)
        return map_block(size);
    return finish_libc(malloc(size + sizeof(struct header)), size);
}

/* Pages of the file that nothing was ever written to are zero. */
static void *share_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;
    if (size >= shared.from)
        return map_block(size);
    return finish_libc(calloc(1, size + sizeof(struct header)), size);
}

static void share_free(void *ctx, void *ptr, size_t size)
{
    int saved = errno;

    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    if (h->node != NULL)
        unmap_block(h->node);
    else
        free(h);
    errno = saved;
}

/* A shared block that grows gets another name: others go on seeing the old one. */
static void *share_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return share_malloc(ctx, new_size);
    if (new_size > PTRDIFF_MAX - 2 * PAGE)
        return NULL;

    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size;
    if (h->node == NULL && new_size < shared.from)
        return finish_libc(realloc(h, new_size + sizeof(*h)), new_size);
    if (h->node != NULL && new_size >= shared.from && length_of(new_size) == h->node->length) {
        h->size = new_size;
        return ptr;
    }
    void *moved = share_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        share_free(ctx, ptr, old);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "shm",
    .version = 1,
    .allocator = {NULL, share_malloc, share_calloc, share_realloc, share_free},
};

NEP49_EXPORT char nep49_claims[32];

/* ---- nep49_shm.h for those who cannot include it, such as ctypes ----------------------------- */

/* What shm_attach mapped here, so that the end of the process can take it from the counts. */
struct attached {
    struct attached *next;
    void *data;
    pid_t pid; /* a forked child has the mapping as well, but is not counted */
};

static struct attached *attached;

NEP49_EXPORT int shm_name(const void *data, char *to, size_t room);
int shm_name(const void *data, char *to, size_t room)
{
    return nep49_shm_name(data, to, room);
}

NEP49_EXPORT void *shm_attach(const char *name, size_t *size);
void *shm_attach(const char *name, size_t *size)
{
    void *data = nep49_shm_attach(name, size);
    struct attached *a = data != NULL ? malloc(sizeof(*a)) : NULL;

    if (a != NULL) {
        pthread_mutex_lock(&shared.lock);
        *a = (struct attached){attached, data, getpid()};
        attached = a;
        pthread_mutex_unlock(&shared.lock);
    }
    return data;
}

NEP49_EXPORT void shm_detach(void *data);
void shm_detach(void *data)
{
    struct attached *a, **link = &attached;

    pthread_mutex_lock(&shared.lock);
    while ((a = *link) != NULL && a->data != data)
        link = &a->next;
    if (a != NULL)
        *link = a->next;
    pthread_mutex_unlock(&shared.lock);
    if (a == NULL || a->pid == getpid()) /* else it stays mapped: its count may be 0 by now */
        nep49_shm_detach(data);
    free(a);
}

/* At its end Python runs no finalizers of objects that globals still hold. */
__attribute__((destructor)) static void uncount_attached(void)
{
    for (struct attached *a = attached; a != NULL; a = a->next) {
        if (a->pid == getpid())
            nep49_shm_uncount((struct nep49_shm_block *)a->data - 1);
    }
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *text = getenv(VARIABLE);
    size_t from = nep49_parse_bytes(text, 64 << 10);

    if (shared.from != 0)
        return &handler;
    if (from == 0)
        return nep49_refuse(
            why, VARIABLE "='%.40s': only a number of bytes from 1 on is accepted, as in 64K",
            text);
    if (sysconf(_SC_PAGESIZE) != PAGE)
        return nep49_refuse(why,
                            "it is written for pages of 4096 bytes, and this kernel has others");
    if (!open_segment())
        return nep49_refuse(why, "shared memory cannot be made: %s", strerror(errno));
    if (pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child) != 0)
        return nep49_refuse(why, "out of memory");
    shared.from = from;
    snprintf(nep49_claims, sizeof(nep49_claims), "shm=%zu", from);
    return &handler;
}
