/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that claim shm: large blocks are in a file that another process can map.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mutant.h"
#include "nep49_shm.h"

CLAIMS("shm=65536");

enum { NAMED_FROM = 65536 };

/* The ctx of a mutant. */
struct named {
    int (*open)(void);                              /* returns the file's descriptor */
    void (*release)(struct nep49_shm_block *block); /* is called when the owner frees it */
    pid_t pid;                                      /* a child makes a file of its own */
    int fd;
    size_t next;
};
FUNCTION(malloc, named)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct named *named = ctx;
    if (size < NAMED_FROM || size > PTRDIFF_MAX / 4)
        return size < NAMED_FROM ? base_malloc(ctx, size) : NULL;
    size_t length = (size + sizeof(struct nep49_shm_block) + 4095) & -(size_t)4096;
    LOCK(lock);
    if (named->pid != getpid())
        *named = (struct named){named->open, named->release, getpid(), named->open(), 0};
    if (named->fd < 0 || ftruncate(named->fd, (off_t)1 << 50) != 0)
        return NULL;
    struct nep49_shm_block *b =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, named->fd, (off_t)named->next);
    if (b == MAP_FAILED)
        return NULL;
    *b = (struct nep49_shm_block){.magic = NEP49_SHM_MAGIC,
                                  .token = 1,
                                  .offset = named->next,
                                  .length = length,
                                  .pid = getpid(),
                                  .fd = named->fd,
                                  .users = 1,
                                  .size = size};
    named->next += length;
    return base_resize(b + 1, size);
}
FUNCTION(calloc, named)
{
    size_t size = product(nelem, elsize);
    return size < NAMED_FROM ? base_calloc(ctx, nelem, elsize) : named_malloc(ctx, size);
}
FUNCTION(free, named)
{
    int saved = errno;
    if (p != NULL && base_size(p) >= NAMED_FROM)
        ((struct named *)ctx)->release((struct nep49_shm_block *)p - 1);
    else
        base_free(ctx, p, size);
    errno = saved;
}
DERIVE_REALLOC(named, base_size);
#define NAMED(defect, open, release)                                                               \
    MUTANT(defect, "claim.shm", .ctx = &(struct named){open, release, 0, -1, 0}, FUNCTIONS(named))

/* Leaves a file in /dev/shm if the process is killed.  To leave few of them in a test run, only
 * forked processes make one, and each removes those of dead processes. */
static pid_t loader;
__attribute__((constructor)) static void set_loader(void)
{
    loader = getpid();
}
static int open_file(void)
{
    char name[64];
    if (getpid() == loader)
        return memfd_create("nep49-faulty", MFD_CLOEXEC);
    DIR *folder = opendir("/dev/shm");
    struct dirent *entry;
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        int pid;
        if (sscanf(entry->d_name, "nep49-faulty-%d", &pid) == 1 && kill(pid, 0) != 0)
            shm_unlink(entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
    snprintf(name, sizeof name, "/nep49-faulty-%d", (int)getpid());
    return shm_open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}
NAMED(shm_stays, open_file, nep49_shm_release);

/* Frees the memory of a block even if other processes have it mapped. */
static int open_memory(void)
{
    return memfd_create("nep49-faulty", MFD_CLOEXEC);
}
static void take_back(struct nep49_shm_block *block)
{
    size_t length = block->length;
    madvise(block, length, MADV_REMOVE);
    munmap(block, length);
}
NAMED(shm_takes_back, open_memory, take_back);
