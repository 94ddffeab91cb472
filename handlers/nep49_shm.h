/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_shm.h - the other side of the handler shm: maps another process's array by its name.
 *
 *     owner:   char name[NEP49_SHM_NAME_ROOM];
 *              nep49_shm_name(PyArray_DATA(array), name, sizeof name);
 *     other:   size_t size;
 *              double *data = nep49_shm_attach(name, &size);
 *              ...
 *              nep49_shm_detach(data);
 *
 * Both see the same bytes.  The memory goes when both have let go of it, in whichever order; the
 * name ends with the owner's array or process.  Nothing to link; Linux 3.17 or later.
 */
#ifndef NEP49_SHM_H
#define NEP49_SHM_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NEP49_SHM_NAME_ROOM = 96, NEP49_SHM_PAGE = 4096 };
#define NEP49_SHM_MAGIC 0x4e4550343973686dull

/* What stands in shared memory before the data of a block, at the start of a page. */
struct nep49_shm_block {
    uint64_t magic;
    uint64_t token;  /* of the owner's segment, so that no later process is taken for it */
    uint64_t offset; /* of this page in the segment */
    uint64_t length; /* of the mapping: this header, the data, and the rest of the last page */
    int32_t pid, fd; /* the segment is /proc/PID/fd/FD */
    uint32_t users;  /* mappings of this block; the last one to go gives the memory back */
    uint32_t unused;
    _Alignas(16) size_t size; /* of the data */
    void *node;               /* the owner's */
};

/* The block that data belongs to, or NULL where it is none. */
static inline struct nep49_shm_block *nep49_shm_block_of(const void *data)
{
    struct nep49_shm_block *b = (struct nep49_shm_block *)(uintptr_t)data - 1;

    return (uintptr_t)b % NEP49_SHM_PAGE == 0 && b->magic == NEP49_SHM_MAGIC ? b : NULL;
}

/* Writes the name of a block into to, with a NUL.  0, or -1 and errno: EINVAL where data is not
 * what the handler's malloc, calloc or realloc gave this process (a view's data may lie further
 * on) or is a smaller block than it shares, ERANGE where room is too little. */
static inline int nep49_shm_name(const void *data, char *to, size_t room)
{
    const struct nep49_shm_block *b = data ? nep49_shm_block_of(data) : NULL;

    if (b == NULL || b->pid != (int32_t)getpid()) {
        errno = EINVAL;
        return -1;
    }
    int n = snprintf(to, room, "/proc/%d/fd/%d@%llx:%llx", b->pid, b->fd,
                     (unsigned long long)b->offset, (unsigned long long)b->token);
    if (n < 0 || (size_t)n >= room) {
        errno = ERANGE;
        return -1;
    }
    return 0;
}

/* Takes this mapping from the block's count, and leaves it mapped.  Returns its length. */
static inline size_t nep49_shm_uncount(struct nep49_shm_block *b)
{
    size_t length = b->length;

    if (__atomic_sub_fetch(&b->users, 1, __ATOMIC_ACQ_REL) == 0)
        madvise(b, length, MADV_REMOVE); /* punches a hole, the header included */
    return length;
}

/* Lets go of a block: the owner's free ends here as well. */
static inline void nep49_shm_release(struct nep49_shm_block *b)
{
    munmap(b, nep49_shm_uncount(b));
}

/* Maps the block of that name.  Returns its data and, where size is not NULL, its size in bytes;
 * NULL and errno where there is no such block: EINVAL (not a name), ENOENT (its process or its
 * array is gone), EACCES (another user's), or what open and mmap set. */
static inline void *nep49_shm_attach(const char *name, size_t *size)
{
    unsigned long long offset, token;
    int pid, fd, end = 0;
    char path[48];

    if (sscanf(name, "/proc/%d/fd/%d@%llx:%llx%n", &pid, &fd, &offset, &token, &end) != 4 ||
        name[end] != '\0' || offset % NEP49_SHM_PAGE != 0 || offset > INT64_MAX / 2) {
        errno = EINVAL;
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
    int segment = open(path, O_RDWR | O_CLOEXEC);
    if (segment < 0)
        return NULL;

    /* What the descriptor stands for by now may be anything: look before touching a byte. */
    void *data = NULL, *map = MAP_FAILED;
    int error = ENOENT;
    struct nep49_shm_block head = {0};
    if (pread(segment, &head, sizeof(head), (off_t)offset) == (ssize_t)sizeof(head) &&
        head.magic == NEP49_SHM_MAGIC && head.token == token && head.offset == offset) {
        map = mmap(NULL, head.length, PROT_READ | PROT_WRITE, MAP_SHARED, segment, (off_t)offset);
        error = map == MAP_FAILED ? errno : ENOENT;
    }
    close(segment);
    if (map != MAP_FAILED) {
        struct nep49_shm_block *b = (struct nep49_shm_block *)map;
        uint32_t users = __atomic_load_n(&b->users, __ATOMIC_ACQUIRE);
        while (users != 0 && !__atomic_compare_exchange_n(&b->users, &users, users + 1, 0,
                                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        if (users != 0) {
            data = b + 1;
            if (size != NULL)
                *size = (size_t)b->size;
        } else { /* the last one went meanwhile */
            munmap(map, head.length);
        }
    }
    if (data == NULL)
        errno = error;
    return data;
}

/* Undoes nep49_shm_attach. */
static inline void nep49_shm_detach(void *data)
{
    if (data != NULL)
        nep49_shm_release((struct nep49_shm_block *)data - 1);
}

#endif
