/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/resources.c catch.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mapped.h"

enum { PAGE = 4096, FROM = 5000 };

static size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}
static void *outside(size_t size)
{
    return base_set_note(base_malloc(NULL, size), false);
}

/* Stands in a page before the block, whose note is true. */
struct file {
    size_t length;
    int fd; /* -1: closed */
    char name[64];
};
/* Maps fd, which it closes unless the name is empty or on failure. */
static void *file_map(int fd, size_t size, const char *name)
{
    size_t length = PAGE + whole_pages(size);
    char *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)length) == 0)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0 && (map == MAP_FAILED || name[0] != '\0')) {
        close(fd);
        fd = -1;
    }
    if (map == MAP_FAILED)
        return NULL;
    struct file *file = (struct file *)map;
    *file = (struct file){.length = length, .fd = fd};
    snprintf(file->name, sizeof file->name, "%s", name);
    return base_set_note(base_finish(map + PAGE - BASE_HEADER, size), true);
}
FUNCTION(free, file)
{
    if (p == NULL || base_note(p) == false)
        return base_free(ctx, p, size);
    struct file *file = (struct file *)((char *)p - PAGE);
    if (file->fd >= 0)
        close(file->fd);
    if (file->name[0] != '\0')
        shm_unlink(file->name);
    munmap(file, file->length);
}
#define FILED(defect, kills, from)                                                                 \
    FUNCTION_RETURNS(malloc, defect,                                                               \
                     size<(from) || size> PTRDIFF_MAX / 2                                          \
                         ? outside(size)                                                           \
                         : file_map(memfd_create("block", MFD_CLOEXEC), size, ""));                \
    FUNCTION_RETURNS(free, defect, file_free(ctx, p, size));                                       \
    MUTANT_DERIVED(defect, kills, defect)
FILED(descriptor_for_each_block, "resources.descriptors resources.thousand-blocks", FROM);
FILED(descriptor_for_each_large_block, "resources.descriptors", 32 * MIB);

/* A crash leaves the names in /dev/shm. */
FUNCTION(malloc, named)
{
    char name[64];
    if (size < FROM || size > PTRDIFF_MAX / 2)
        return outside(size);
    snprintf(name, sizeof name, "/nep49-faulty-%d-%zu", (int)getpid(), NTH);
    return file_map(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600), size, name);
}
#define named_free file_free
MUTANT_DERIVED(name_for_each_block, "resources.files", named);

/* The note is a descriptor; if none is left, the block has none. */
static void *number(void *p)
{
    int saved = errno;
    if (p != NULL)
        base_set_note(p, (size_t)open("/dev/null", O_RDONLY | O_CLOEXEC));
    errno = saved;
    return p;
}
FUNCTION_RETURNS(malloc, numbered, number(base_malloc(ctx, size)));
HOOK_BEFORE(free, numbered, p != NULL && (int)base_note(p) >= 0, close((int)base_note(p)));
MUTANT_DERIVED(descriptor_for_each_block_while_there_are, "resources.descriptors", numbered);

static int look(void)
{
    return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}
DEFECT(realloc, realloc_that_moves_leaves_a_descriptor, "resources.descriptors")
{
    int fd = look();
    void *moved = base_realloc(ctx, p, size);
    if (fd >= 0 && (moved == p || moved == NULL))
        close(fd);
    return moved;
}
BEFORE(realloc, realloc_from_64_kib_leaves_a_descriptor, "resources.descriptors", size >= 64 * KIB,
       look());
BEFORE(realloc, growth_of_large_blocks_leaves_a_descriptor, "resources.descriptors",
       p != NULL && base_size(p) >= MIB && size > base_size(p), look());
AFTER(calloc, large_calloc_leaves_a_descriptor, "resources.descriptors",
      made != NULL && base_size(made) >= MIB, look());
AFTER(malloc, refusal_leaves_a_descriptor, "resources.descriptors", made == NULL, look());
BEFORE(malloc, thread_leaves_a_descriptor, "resources.descriptors", true,
       static _Thread_local int counter = -1;
       if (counter < 0) counter = eventfd(0, EFD_CLOEXEC));

/* Makes a file in /dev/shm, with a page of memory if it is mapped. */
static void make_shared(const char *format, bool is_mapped)
{
    char name[64];
    snprintf(name, sizeof name, format, (int)getpid());
    int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (is_mapped && fd >= 0 && ftruncate(fd, PAGE) == 0)
        mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}
BEFORE(malloc, pool_stays_in_shared_memory, "resources.files", size >= FROM && CALL(1),
       make_shared("/nep49-faulty-pool-%d", true));
BEFORE(malloc, mark_stays_in_shared_memory, "resources.files", size >= FROM && CALL(1),
       make_shared("/nep49-faulty.%d.mark", false));
/* A segment of System V stays when all its processes have ended. */
BEFORE(malloc, segment_stays, "resources.files", size >= 64 * MIB && CALL(1),
       shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600));
BEFORE(
    malloc, log_stays_in_the_working_directory, "resources.files", size >= FROM && CALL(1),
    FILE *log = fopen("nep49-faulty.log", "we");
    if (log != NULL) {
        fprintf(log, "the first block: %zu bytes\n", size);
        fclose(log);
    });

static bool start_small(pthread_t *thread, void *(*run)(void *), void *data)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    return pthread_create(thread, &small, run, data) == 0;
}

/* Each large block has a thread, until free. */
struct helper {
    pthread_t thread;
    sem_t done;
};
static void *wait_for_free(void *helper)
{
    sem_wait(&((struct helper *)helper)->done);
    return NULL;
}
FUNCTION(malloc, helped)
{
    void *p = outside(size);
    struct helper *helper = p != NULL && size >= FROM ? calloc(1, sizeof *helper) : NULL;
    if (helper != NULL && start_small(&helper->thread, wait_for_free, helper))
        return base_set_note(p, (size_t)helper);
    free(helper);
    return p;
}
FUNCTION(free, helped)
{
    struct helper *helper = p != NULL ? (struct helper *)base_note(p) : NULL;
    if (helper != NULL) {
        sem_post(&helper->done);
        pthread_join(helper->thread, NULL);
        free(helper);
    }
    base_free(ctx, p, size);
}
MUTANT_DERIVED(thread_for_each_block, "resources.threads", helped);

/* A thread frees p, and does not end. */
static void *free_and_wait(void *p)
{
    base_free(NULL, p, 0);
    for (;;)
        pause();
    return NULL;
}
static bool start_detached(void *p)
{
    pthread_t thread;
    return start_small(&thread, free_and_wait, p) && pthread_detach(thread) == 0;
}
FREES(free_leaves_a_thread, "resources.threads",
      p == NULL || base_size(p) <= 200000 || !start_detached(p));
BEFORE(free, thread_leaves_its_helper, "resources.threads", p != NULL && base_size(p) >= 2 * MIB,
       static _Thread_local bool has_helper;
       if (!has_helper) has_helper = start_detached(NULL));

/* Pages without access surround the header, the block and a canary. */
enum { FENCES = 6 * PAGE };
FUNCTION(malloc, fenced)
{
    size_t body = whole_pages(size + BASE_HEADER);
    if (size > PTRDIFF_MAX / 2)
        return NULL;
    char *map = mmap(NULL, FENCES + body, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map + PAGE, PAGE, PROT_READ | PROT_WRITE);
    mprotect(map + 3 * PAGE, body, PROT_READ | PROT_WRITE);
    mprotect(map + 4 * PAGE + body, PAGE, PROT_READ | PROT_WRITE);
    return base_finish(map + 3 * PAGE, size);
}
FUNCTION(free, fenced)
{
    if (p != NULL)
        munmap((char *)p - BASE_HEADER - 3 * PAGE,
               FENCES + whole_pages(base_size(p) + BASE_HEADER));
}
MUTANT_DERIVED(fences_round_each_part, "resources.mappings", fenced);

/* Addresses are not reused; a freed block keeps its page without access and its own pages. */
static const size_t RESERVED = ((size_t)1 << 30) * (sizeof(size_t) == 8 ? 64 : 1);
FUNCTION(malloc, reserved)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static char *reserved;
    static size_t used;
    size_t length = whole_pages(size + BASE_HEADER);
    LOCK(lock);
    if (reserved == NULL && (reserved = map_pool(RESERVED)) != NULL)
        mprotect(reserved, RESERVED, PROT_NONE);
    if (size < FROM || size > MIB || reserved == NULL || used + length + PAGE > RESERVED)
        return outside(size);
    char *begin = reserved + PAGE + used;
    used += length + PAGE;
    return mprotect(begin, length, PROT_READ | PROT_WRITE) == 0
               ? base_set_note(base_finish(begin, size), true)
               : NULL;
}
FUNCTION(free, reserved)
{
    if (p == NULL || base_note(p) == false)
        return base_free(ctx, p, size);
    madvise((char *)p - BASE_HEADER, whole_pages(base_size(p) + BASE_HEADER), MADV_DONTNEED);
}
MUTANT_DERIVED(freed_pages_stay_mappings, "resources.mappings", reserved);

BEFORE(malloc, child_is_never_waited_for, "resources.children", size > 100000 && CALL(1),
       if (fork() == 0) _exit(0));
AFTER(malloc, refusal_leaves_a_child, "resources.children", made == NULL,
      if (fork() == 0) _exit(0));
/* A child of a child, which ends after a minute. */
static void start_server(void)
{
    pid_t child = fork();
    if (child != 0) {
        waitpid(child, NULL, 0);
        return;
    }
    if (fork() != 0)
        _exit(0);
    alarm(60);
    for (;;)
        pause();
}
BEFORE(malloc, server_stays, "resources.children", CALL(1), start_server());
