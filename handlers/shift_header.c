/* SPDX-License-Identifier: BSD-3-Clause
 *
 * shift_header.c - 64 bytes before every block say what was asked for, and free checks it.
 *
 * A free with another size than was asked for, and a pointer that has no sound header, are
 * counted, and each appends a line to the file that NEP49_SHIFT_HEADER_LOG names.  Nothing that
 * the caller gets wrong ends the process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_setting.h"

#define VARIABLE "NEP49_SHIFT_HEADER_LOG"

enum { SMALL = 1024 };

/* libc writes its lists into the first bytes of a freed block, and whoever writes before the
 * start of his own meets the last ones first.  So what matters is at the end. */
struct header {
    char unused[32];
    char by[8];              /* which function, in letters, for a debugger's dump */
    uint64_t size;           /* what was asked for */
    uint64_t serial;         /* numbers malloc, calloc and realloc as they succeed, from 1 */
    volatile uint64_t check; /* check_word(), and its complement once freed */
};

_Static_assert(sizeof(struct header) == 64, "keeps malloc's alignment, and a cache line's size");

struct context {
    const char *log; /* NULL: count only */
    atomic_ulong batches, mismatches, freed_before, bad_headers;
};

/* An atomic addition for every block would cost as much as malloc does, and many times that with
 * two threads at it.  So each thread takes the next BATCH numbers and gives them out by itself. */
enum { BATCH = 1024 };
static _Thread_local uint64_t last_serial __attribute__((tls_model("initial-exec")));

static uint64_t next_serial(struct context *c)
{
    if (last_serial % BATCH == 0)
        last_serial = BATCH * atomic_fetch_add_explicit(&c->batches, 1, memory_order_relaxed);
    return ++last_serial;
}

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

/* Multiplied by an odd number, so that whichever field is changed, the word is another. */
static uint64_t check_word(const struct header *h)
{
    return ((uintptr_t)h ^ rotate(h->size, 20) ^ rotate(h->serial, 40)) * 0x9e3779b97f4a7c15u;
}

/* Opens the file each time: this happens seldom, and a descriptor that is kept could be closed,
 * or inherited.  One write, so that lines of several threads and processes do not mix. */
__attribute__((cold)) static void report(struct context *c, atomic_ulong *counter, const char *what,
                                         const char *call, const void *ptr, size_t size,
                                         const struct header *h)
{
    unsigned long count = 1 + atomic_fetch_add(counter, 1);
    int saved = errno;
    int fd = c->log ? open(c->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;

    if (fd >= 0) {
        char line[256];
        int n = snprintf(line, sizeof(line), "shift_header[%ld] %s %lu: %s(%p, %zu)",
                         (long)getpid(), what, count, call, ptr, size);
        if (h != NULL)
            n += snprintf(line + n, sizeof(line) - (size_t)n, ", block %llu: %llu bytes by %.7s",
                          (unsigned long long)h->serial, (unsigned long long)h->size, h->by);
        line[n] = '\n'; /* it fits: 185 characters come before, at most */
        (void)!write(fd, line, (size_t)n + 1);
        close(fd);
    }
    errno = saved;
}

/* The header of a live block, or NULL after having reported that there is none. */
static inline struct header *header_of(struct context *c, void *ptr, const char *call, size_t size)
{
    bool aligned = (uintptr_t)ptr % _Alignof(max_align_t) == 0;
    struct header *h = (struct header *)ptr - 1;

    if (__builtin_expect(aligned && h->check == check_word(h), 1))
        return h;
    if (aligned && h->check == ~check_word(h))
        report(c, &c->freed_before, "freed-before", call, ptr, size, h);
    else
        report(c, &c->bad_headers, "bad-header", call, ptr, size, NULL);
    return NULL;
}

/* Signs a new block; by is eight bytes long.  NULL stays NULL. */
static void *finish(struct context *c, struct header *h, size_t size, const char by[8])
{
    if (h == NULL)
        return NULL;
    memcpy(h->by, by, sizeof(h->by));
    h->size = size;
    h->serial = next_serial(c);
    h->check = check_word(h);
    return h + 1;
}

static void *shift_malloc(void *ctx, size_t size)
{
    size_t total;

    if (__builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    return finish(ctx, nep49_advise(malloc(total), total), size, "malloc\0");
}

static void *shift_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size, total;

    if (__builtin_mul_overflow(nelem, elsize, &size) ||
        __builtin_add_overflow(size, sizeof(struct header), &total))
        return NULL;
    if (size > SMALL)
        return finish(ctx, nep49_advise(calloc(1, total), total), size, "calloc\0");
    struct header *h = malloc(total); /* glibc's calloc leaves out what it keeps for each thread */
    if (h != NULL)
        memset(h + 1, 0, size);
    return finish(ctx, h, size, "calloc\0");
}

static void *shift_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct header *h, *moved;
    size_t total;

    if (__builtin_add_overflow(new_size, sizeof(struct header), &total))
        return NULL;
    if (ptr == NULL)
        return finish(ctx, malloc(total), new_size, "realloc");
    h = header_of(ctx, ptr, "realloc", new_size);
    if (h == NULL)
        return NULL; /* its size is not known, so it cannot be copied either */

    uint64_t check = h->check;
    h->check = ~check; /* for whoever still uses the old address afterwards */
    moved = realloc(h, total);
    if (moved == NULL)
        h->check = check;
    return finish(ctx, moved, new_size, "realloc");
}

static void shift_free(void *ctx, void *ptr, size_t size)
{
    struct context *c = ctx;
    struct header *h;

    if (ptr == NULL)
        return;
    h = header_of(c, ptr, "free", size);
    if (h == NULL)
        return; /* not ours, or damaged: libc might abort, and a leak harms nobody */
    if (h->size != size)
        report(c, &c->mismatches, "mismatch", "free", ptr, size, h);
    h->check = ~h->check;
    free(h);
}

static struct context context;

static PyDataMem_Handler handler = {
    .name = "shift_header",
    .version = 1,
    .allocator = {&context, shift_malloc, shift_calloc, shift_realloc, shift_free},
};

/* Decides once, and keeps a copy: later on another thread may be changing the environment while we,
 * without the GIL, would read it. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    static bool decided;
    const char *log = getenv(VARIABLE);

    if (decided || log == NULL) {
        decided = true;
        return &handler;
    }
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    context.log = fd >= 0 ? strdup(log) : NULL;
    decided = context.log != NULL;
    if (!decided)
        nep49_refuse(why, VARIABLE "='%.40s': %s", log, strerror(errno));
    if (fd >= 0)
        close(fd);
    return decided ? &handler : NULL;
}
