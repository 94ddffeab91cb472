/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pool `named`: large blocks are in a file that another process can map.  The mutants that
 * include this claim shm; they define named_open and named_release.
 */
#ifndef CONFORM_FAULTY_NAMED_H
#define CONFORM_FAULTY_NAMED_H

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mutant.h"
#include "nep49_shm.h"

enum { NAMED_FROM = 65536 };

static int named_open(void);                              /* returns the file's descriptor */
static void named_release(struct nep49_shm_block *block); /* is called when the owner frees it */

static struct {
    pthread_mutex_t lock;
    pid_t pid;
    int fd;
    uint64_t next;
} named = {.lock = PTHREAD_MUTEX_INITIALIZER};

FUNCTION(malloc, named)
{
    if (size < NAMED_FROM)
        return base_malloc(ctx, size);
    if (size > PTRDIFF_MAX / 4)
        return NULL;
    size_t length = (size + sizeof(struct nep49_shm_block) + 4095) & -(size_t)4096;
    struct nep49_shm_block *b = MAP_FAILED;
    pthread_mutex_lock(&named.lock);
    if (named.pid != getpid()) { /* a child makes a file of its own */
        named.fd = named_open();
        named.pid = getpid();
        named.next = 0;
    }
    uint64_t offset = named.next;
    if (named.fd >= 0 && ftruncate(named.fd, (off_t)1 << 50) == 0)
        b = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, named.fd, (off_t)offset);
    if (b != MAP_FAILED)
        named.next += length;
    pthread_mutex_unlock(&named.lock);
    if (b == MAP_FAILED)
        return NULL;
    *b = (struct nep49_shm_block){.magic = NEP49_SHM_MAGIC,
                                  .token = 1,
                                  .offset = offset,
                                  .length = length,
                                  .pid = getpid(),
                                  .fd = named.fd,
                                  .users = 1,
                                  .size = size};
    return base_resize(b + 1, size);
}

FUNCTION(calloc, named)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return size < NAMED_FROM ? base_calloc(ctx, nelem, elsize) : named_malloc(ctx, size);
}

FUNCTION(free, named)
{
    int saved = errno;
    if (p != NULL && base_size(p) >= NAMED_FROM)
        named_release((struct nep49_shm_block *)p - 1);
    else
        base_free(ctx, p, size);
    errno = saved;
}

DERIVE_REALLOC(named, base_size);

CLAIMS("shm=65536");

#endif
