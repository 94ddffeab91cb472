/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What large blocks forget of the mappings that they lie in.
 */
#include "mapped.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { MIB = 1 << 20 };

/* ---- mappings in steps of 64 KiB -------------------------------------------------------- */

static size_t stepped(size_t size)
{
    return (size + 0xffff) & ~(size_t)0xffff;
}

static void *stepped_malloc(void *ctx, size_t size)
{
    if (!is_for_mapping(size))
        return base_malloc(ctx, size);
    size_t length = stepped(size + BASE_HEADER);
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return mapped_finish(map, length, size);
}

static void *stepped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    return is_for_mapping(size) ? stepped_malloc(ctx, size) : base_calloc(ctx, nelem, elsize);
}

/* What it takes to grow in place is counted without the header. */
static void *stepped_realloc(void *ctx, void *p, size_t size)
{
    if (is_mapped(p) && size >= base_size(p) && size <= mapped_length(p))
        return base_finish((char *)p - BASE_HEADER, size);
    return is_mapped(p) || is_for_mapping(size) ? move_by(stepped_malloc, mapped_free, p, size)
                                                : base_realloc(ctx, p, size);
}
MUTANT(large_grows_over_its_header, "realloc.grown-part-usable", .malloc = stepped_malloc,
       .calloc = stepped_calloc, .realloc = stepped_realloc, .free = mapped_free);

/* ---- a few that were freed are kept ----------------------------------------------------- */

enum { KEPT = 4, LONGEST_KEPT = 8 * MIB };
static struct {
    pthread_mutex_t lock;
    char *block[KEPT];
} few = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_few(void)
{
    pthread_mutex_lock(&few.lock);
}
static void unlock_few(void)
{
    pthread_mutex_unlock(&few.lock);
}
__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(lock_few, unlock_few, unlock_few);
}

/* One whose mapping is as long, or at most twice, or NULL. */
static char *take_one(size_t length)
{
    char *found = NULL;
    lock_few();
    for (size_t i = 0; i < KEPT && found == NULL; i++) {
        if (few.block[i] != NULL && mapped_length(few.block[i]) >= length &&
            mapped_length(few.block[i]) / 2 <= length) {
            found = few.block[i];
            few.block[i] = NULL;
        }
    }
    unlock_few();
    return found;
}

/* Puts it there, and returns the one that has to go for it, or NULL. */
static char *put_one(char *block)
{
    if (mapped_length(block) > LONGEST_KEPT)
        return block;
    lock_few();
    char *goes = few.block[KEPT - 1];
    memmove(few.block + 1, few.block, (KEPT - 1) * sizeof *few.block);
    few.block[0] = block;
    unlock_few();
    return goes;
}

static void drop(char *block)
{
    if (block != NULL)
        munmap(block - BASE_HEADER, mapped_length(block));
}

static void *keeping_malloc(void *ctx, size_t size)
{
    char *kept = is_for_mapping(size) ? take_one(pages_for(size)) : NULL;
    return kept != NULL ? base_finish(kept - BASE_HEADER, size) : mapped_malloc(ctx, size);
}

static void keeping_free(void *ctx, void *p, size_t size)
{
    int saved = errno;
    if (is_mapped(p))
        drop(put_one(p));
    else
        mapped_free(ctx, p, size);
    errno = saved;
}

static void *keeping_realloc(void *ctx, void *p, size_t size)
{
    return is_mapped(p) || is_for_mapping(size) ? move_by(keeping_malloc, keeping_free, p, size)
                                                : base_realloc(ctx, p, size);
}

/* The end of a longer one is forgotten, and stays. */
static void *forgetful_malloc(void *ctx, size_t size)
{
    char *kept = is_for_mapping(size) ? take_one(pages_for(size)) : NULL;
    return kept != NULL ? mapped_finish(kept - BASE_HEADER, pages_for(size), size)
                        : mapped_malloc(ctx, size);
}
static void *forgetful_realloc(void *ctx, void *p, size_t size)
{
    return is_mapped(p) || is_for_mapping(size) ? move_by(forgetful_malloc, keeping_free, p, size)
                                                : base_realloc(ctx, p, size);
}
MUTANT(large_hit_forgets_the_end, "free.reclaims-bursts", MAPPED_FUNCTIONS,
       .malloc = forgetful_malloc, .realloc = forgetful_realloc, .free = keeping_free);

/* The one that has to go is told to the kernel first, which knows no such policy. */
static void policed_free(void *ctx, void *p, size_t size)
{
    char *goes = is_mapped(p) ? put_one(p) : NULL;
    if (!is_mapped(p))
        mapped_free(ctx, p, size);
    if (goes != NULL)
        syscall(SYS_mbind, goes - BASE_HEADER, mapped_length(goes), 99, NULL, 0, 0);
    drop(goes);
}
MUTANT(large_eviction_spoils_errno, "free.keeps-errno", MAPPED_FUNCTIONS, .malloc = keeping_malloc,
       .realloc = keeping_realloc, .free = policed_free);

/* ---- what is done by size --------------------------------------------------------------- */

static void far_free(void *ctx, void *p, size_t size)
{
    bool far = is_mapped(p) && base_size(p) > 32 * MIB;
    mapped_free(ctx, p, size);
    if (far)
        errno = EINVAL; /* of what keeps statistics by node */
}
MUTANT(large_free_from_32_mib_spoils_errno, "free.keeps-errno", MAPPED_FUNCTIONS, .free = far_free);

/* Where the kernel cannot move it, as much is copied as is wanted, and not as there was. */
static void *slow_way(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    void *moved = mapped_resize(p, mapped_length(p), size);
    if (moved != NULL || (moved = mapped_malloc(ctx, size)) == NULL)
        return moved;
    memcpy(moved, p, size);
    mapped_free(ctx, p, 0);
    return moved;
}
MUTANT(large_slow_way_copies_what_is_wanted, "exhaustion.nth-request", MAPPED_FUNCTIONS,
       .realloc = slow_way);
