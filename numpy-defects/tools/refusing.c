/* SPDX-License-Identifier: BSD-3-Clause
 *
 * refusing.c - a handler that refuses one request, and looks at what it is given back; for
 * tools/search.
 *
 * Each block has its size and a mark before it and eight bytes behind it.  What nobody has written
 * to yet is one byte all over, and so is what is gone.
 */
#define _GNU_SOURCE /* dladdr, REG_RIP */

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "nep49.h"

enum { LIVE = 0x11223344, GONE = 0x55667788, TAIL = 8, AFTER = 0xc3, DEAD = 0xdd };

struct header {
    _Alignas(16) size_t size;
    unsigned mark, number;
};

NEP49_EXPORT struct {
    long refused;          /* the request; -1: none */
    int from_there;        /* and all after it */
    int paused;            /* none is counted or refused */
    int fresh;             /* byte */
    long requests;         /* so far */
    long live;             /* blocks */
    long wrong_size;       /* frees that were told another size, but for 1 byte for none */
    size_t told, size;     /* by the last of them */
    long overrun, foreign; /* blocks that were written past, and what was no live block */
} refusing;

static int is_refused(void)
{
    if (refusing.paused)
        return 0;
    long request = refusing.requests++;
    return refusing.refused >= 0 &&
           (request == refusing.refused || (refusing.from_there && request > refusing.refused));
}

static void *finish(struct header *h, size_t size)
{
    if (h == NULL)
        return NULL;
    h->size = size;
    h->mark = LIVE;
    memset((char *)(h + 1) + size, AFTER, TAIL);
    refusing.live++;
    return h + 1;
}

/* The header of a live block, which is looked at; or NULL. */
static struct header *look(void *ptr)
{
    struct header *h = (struct header *)ptr - 1;
    if (h->mark != LIVE) {
        refusing.foreign++;
        return NULL;
    }
    for (int i = 0; i < TAIL; i++) {
        if (((unsigned char *)ptr)[h->size + (size_t)i] != AFTER) {
            refusing.overrun++;
            break;
        }
    }
    return h;
}

static void *refusing_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (is_refused() || size > PTRDIFF_MAX - 64)
        return NULL;
    void *p = finish(malloc(sizeof(struct header) + size + TAIL), size);
    return p ? memset(p, refusing.fresh, size) : NULL;
}

static void *refusing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    (void)ctx;
    if (is_refused() || __builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - 64)
        return NULL;
    return finish(calloc(1, sizeof(struct header) + size + TAIL), size);
}

static void refusing_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    struct header *h = ptr ? look(ptr) : NULL;
    if (h == NULL)
        return;
    if (size != h->size && !(h->size <= 1 && size <= 1)) {
        refusing.wrong_size++;
        refusing.told = size;
        refusing.size = h->size;
    }
    memset(ptr, DEAD, h->size);
    h->mark = GONE;
    refusing.live--;
    free(h);
}

static void *refusing_realloc(void *ctx, void *ptr, size_t new_size)
{
    struct header *h = ptr ? look(ptr) : NULL;
    if (ptr == NULL)
        return refusing_malloc(ctx, new_size);
    if (is_refused() || h == NULL || new_size > PTRDIFF_MAX - 64)
        return NULL;
    refusing.paused++;
    void *moved = refusing_malloc(ctx, new_size);
    refusing.paused--;
    if (moved != NULL) {
        memcpy(moved, ptr, h->size < new_size ? h->size : new_size);
        refusing_free(ctx, ptr, h->size);
    }
    return moved;
}

/* ---- where it crashed ------------------------------------------------------------------------ */

static char *crash_place; /* room for a name, in memory that outlives the process */
enum { PLACE_ROOM = 48 };

static void on_crash(int number, siginfo_t *info, void *context)
{
    Dl_info object;
    void *at = NULL;
    (void)info;
#if defined __x86_64__
    at = (void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    at = (void *)((ucontext_t *)context)->uc_mcontext.pc;
#endif
    if (at != NULL && dladdr(at, &object) != 0 && object.dli_fname != NULL) {
        const char *slash = strrchr(object.dli_fname, '/');
        strncpy(crash_place, slash ? slash + 1 : object.dli_fname, PLACE_ROOM - 1);
    }
    signal(number, SIG_DFL);
    raise(number);
}

/* From now on the name of the object that a crash is in comes to `place`. */
NEP49_EXPORT void refusing_tell(char *place);
void refusing_tell(char *place)
{
    struct sigaction action = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER};
    crash_place = place;
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "refusing",
    .version = 1,
    .allocator = {NULL, refusing_malloc, refusing_calloc, refusing_realloc, refusing_free},
};
