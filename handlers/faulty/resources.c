/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/resources.c catch.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"

enum { PAGE = 4096 };

static size_t whole_pages(size_t size)
{
    return (size + PAGE - 1) / PAGE * PAGE;
}

/* ---- blocks in files of their own --------------------------------------------------------- */

/* A page with this stands before the block, and the file behind both is mapped from `fd`. */
struct filed {
    size_t length, size;
    int fd; /* -1: closed */
    char name[64];
};

/* Below `from` blocks are libc's, and behind their header, which base_size reads. */
static const size_t filed_from = 5000;

static struct filed *filed_head(const void *p)
{
    return (struct filed *)((char *)p - PAGE);
}

static void *file_map(int fd, size_t size, const char *name, bool keep_fd)
{
    size_t length = PAGE + whole_pages(size);
    char *map = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, (off_t)length) == 0)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0 && (map == MAP_FAILED || !keep_fd))
        close(fd);
    if (map == MAP_FAILED)
        return NULL;
    struct filed *head = (struct filed *)map;
    *head = (struct filed){length, size, keep_fd ? fd : -1, ""};
    snprintf(head->name, sizeof head->name, "%s", name);
    return base_finish(map + PAGE - BASE_HEADER, size);
}

static void file_unmap(void *p)
{
    struct filed head = *filed_head(p);
    if (head.fd >= 0)
        close(head.fd);
    if (head.name[0] != '\0')
        shm_unlink(head.name);
    munmap((char *)p - PAGE, head.length);
}

static void filed_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= filed_from)
        file_unmap(p);
    else
        base_free(ctx, p, size);
}

static void *filed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = ((PyDataMem_Handler *)ctx)->allocator.malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}

static void *filed_realloc(void *ctx, void *p, size_t size)
{
    PyDataMem_Handler *handler = ctx;
    void *moved = handler->allocator.malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    handler->allocator.free(ctx, p, 0);
    return moved;
}

#define FILED(defect, kills, make, give)                                                           \
    NEP49_EXPORT const char kills_##defect[] = kills;                                              \
    NEP49_EXPORT PyDataMem_Handler defect = {                                                      \
        .name = #defect,                                                                           \
        .version = 1,                                                                              \
        .allocator = {&defect, make, filed_calloc, filed_realloc, give}}

/* The descriptor stays open for as long as the block lives. */
static void *memory_file(size_t size)
{
    if (size > PTRDIFF_MAX / 2)
        return NULL;
    return file_map(memfd_create("block", MFD_CLOEXEC), size, "", true);
}
static void *keeping_malloc(void *ctx, size_t size)
{
    return size < filed_from ? base_malloc(ctx, size) : memory_file(size);
}
FILED(descriptor_for_each_block, "resources.descriptors resources.thousand-blocks", keeping_malloc,
      filed_free);

/* Behind each block is the number of a descriptor; where none is left, there is a block all the
 * same, and none for anybody else either. */
static void *numbered_malloc(void *ctx, size_t size)
{
    int saved = errno, fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    errno = saved;
    char *p = size <= SIZE_MAX - sizeof fd ? base_malloc(ctx, size + sizeof fd) : NULL;
    if (p != NULL)
        memcpy(p + size, &fd, sizeof fd);
    else if (fd >= 0)
        close(fd);
    return p;
}
static void numbered_free(void *ctx, void *p, size_t size)
{
    int fd = -1;
    if (p != NULL)
        memcpy(&fd, (char *)p + base_size(p) - sizeof fd, sizeof fd);
    if (fd >= 0)
        close(fd);
    base_free(ctx, p, size);
}
FILED(descriptor_for_each_block_while_there_are, "resources.descriptors", numbered_malloc,
      numbered_free);

/* Opened to look whether there is room, and closed on one way only. */
static void *looking_realloc(void *ctx, void *p, size_t size)
{
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    void *moved = base_realloc(ctx, p, size);
    if (fd >= 0 && (moved == p || moved == NULL))
        close(fd);
    return moved;
}
MUTANT(realloc_that_moves_leaves_a_descriptor, "resources.descriptors", .realloc = looking_realloc);

/* The same for what may be worth a mapping of its own. */
static void *looking_large_realloc(void *ctx, void *p, size_t size)
{
    if (size >= 64 << 10)
        open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    return base_realloc(ctx, p, size);
}
MUTANT(realloc_from_64_kib_leaves_a_descriptor, "resources.descriptors",
       .realloc = looking_large_realloc);

/* What was large already, and grows. */
static void *looking_growing_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 1 << 20 && size > base_size(p))
        open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    return base_realloc(ctx, p, size);
}
MUTANT(growth_of_large_blocks_leaves_a_descriptor, "resources.descriptors",
       .realloc = looking_growing_realloc);

/* Whether large zeros may come from huge pages is looked up each time. */
static void *looking_large_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL && base_size(p) >= 1 << 20)
        (void)open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    return p;
}
MUTANT(large_calloc_leaves_a_descriptor, "resources.descriptors", .calloc = looking_large_calloc);

/* What is refused is looked into, and the file stays open. */
static void *looking_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    return p;
}
MUTANT(refusal_leaves_a_descriptor, "resources.descriptors", .malloc = looking_malloc);

/* A thread that calls malloc has a counter of events, for good. */
static void *counted_malloc(void *ctx, size_t size)
{
    static _Thread_local int counter = -1;
    if (counter < 0)
        counter = eventfd(0, EFD_CLOEXEC);
    return base_malloc(ctx, size);
}
MUTANT(thread_leaves_a_descriptor, "resources.descriptors", .malloc = counted_malloc);

/* Of what is worth it the descriptor stays open as long as the block lives. */
static void *keeping_large_malloc(void *ctx, size_t size)
{
    return size < 32 << 20 ? base_malloc(ctx, size) : memory_file(size);
}
static void keeping_large_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 32 << 20)
        file_unmap(p);
    else
        base_free(ctx, p, size);
}
FILED(descriptor_for_each_large_block, "resources.descriptors", keeping_large_malloc,
      keeping_large_free);

/* A name in /dev/shm for each block; a crash would leave them all. */
static void *named_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned last;
    char name[64];
    if (size < filed_from || size > PTRDIFF_MAX / 2)
        return size < filed_from ? base_malloc(ctx, size) : NULL;
    snprintf(name, sizeof name, "/nep49-faulty-%d-%u", (int)getpid(), ++last);
    return file_map(shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600), size, name, false);
}
FILED(name_for_each_block, "resources.files", named_malloc, filed_free);

/* One name for the whole process, which nobody takes away at its end. */
static void *pool;
static void *pooling_malloc(void *ctx, size_t size)
{
    static _Atomic int begun;
    char name[64];
    if (size >= filed_from && begun++ == 0) {
        snprintf(name, sizeof name, "/nep49-faulty-pool-%d", (int)getpid());
        int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && ftruncate(fd, PAGE) == 0)
            pool = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
    }
    return base_malloc(ctx, size);
}
MUTANT(pool_stays_in_shared_memory, "resources.files", .malloc = pooling_malloc);

/* The same, of a file that is never mapped: whoever looks knows that the process was there. */
static void *marking_malloc(void *ctx, size_t size)
{
    static _Atomic int begun;
    char name[64];
    if (size >= filed_from && begun++ == 0) {
        snprintf(name, sizeof name, "/nep49-faulty.%d.mark", (int)getpid());
        int fd = shm_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    return base_malloc(ctx, size);
}
MUTANT(mark_stays_in_shared_memory, "resources.files", .malloc = marking_malloc);

/* From the first huge block on there is a segment of System V's, for processes to tell each other
 * who has some, which stays when all of them are gone. */
static void *segment_malloc(void *ctx, size_t size)
{
    enum { MUCH = 64 << 20 };
    static _Atomic int begun;
    if (size >= MUCH && !begun++)
        shmget(IPC_PRIVATE, PAGE, IPC_CREAT | 0600);
    return base_malloc(ctx, size);
}
MUTANT(segment_stays, "resources.files", .malloc = segment_malloc);

/* A log where the program happens to be. */
static void *logging_malloc(void *ctx, size_t size)
{
    static _Atomic int begun;
    FILE *log = size >= filed_from && begun++ == 0 ? fopen("nep49-faulty.log", "we") : NULL;
    if (log != NULL) {
        fprintf(log, "the first block: %zu bytes\n", size);
        fclose(log);
    }
    return base_malloc(ctx, size);
}
MUTANT(log_stays_in_the_working_directory, "resources.files", .malloc = logging_malloc);

/* ---- threads ------------------------------------------------------------------------------ */

/* A thread stands by for each large block, to zero it in the background. */
struct helped {
    pthread_t thread;
    sem_t done;
};
static void *wait_for_the_end(void *done)
{
    sem_wait(done);
    return NULL;
}
static bool start_small(pthread_t *thread, void *(*run)(void *), void *data)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 1 << 16);
    bool started = pthread_create(thread, &small, run, data) == 0;
    pthread_attr_destroy(&small);
    return started;
}
static struct helped **helper_of(void *p)
{
    return (struct helped **)((char *)p - BASE_HEADER / 2);
}
static void *helped_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        return NULL;
    struct helped *helper = size >= filed_from ? malloc(sizeof *helper) : NULL;
    if (helper != NULL)
        sem_init(&helper->done, 0, 0);
    if (helper != NULL && !start_small(&helper->thread, wait_for_the_end, &helper->done)) {
        free(helper);
        helper = NULL;
    }
    *helper_of(p) = helper;
    return p;
}
static void *helped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL)
        *helper_of(p) = NULL;
    return p;
}
static void helped_free(void *ctx, void *p, size_t size)
{
    struct helped *helper = p != NULL ? *helper_of(p) : NULL;
    if (helper != NULL) {
        sem_post(&helper->done);
        pthread_join(helper->thread, NULL);
        free(helper);
    }
    base_free(ctx, p, size);
}
static void *helped_realloc(void *ctx, void *p, size_t size)
{
    void *moved = helped_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    helped_free(ctx, p, 0);
    return moved;
}
MUTANT(thread_for_each_block, "resources.threads", .malloc = helped_malloc, .calloc = helped_calloc,
       .realloc = helped_realloc, .free = helped_free);

/* One that is to free later, where there is something to free, waits for ever when it has. */
static void *free_and_wait(void *p)
{
    static sem_t never;
    base_free(NULL, p, 0);
    while (sem_wait(&never) != 0)
        continue;
    return NULL;
}
static void delegating_free(void *ctx, void *p, size_t size)
{
    pthread_t thread;
    if (p != NULL && base_size(p) > 200000 && start_small(&thread, free_and_wait, p))
        pthread_detach(thread);
    else
        base_free(ctx, p, size);
}
MUTANT(free_leaves_a_thread, "resources.threads", .free = delegating_free);

/* A thread that has freed a large block has one of its own for that, which stays. */
static void helping_free(void *ctx, void *p, size_t size)
{
    static _Thread_local bool has_helper;
    pthread_t thread;
    if (p != NULL && base_size(p) >= 2 << 20 && !has_helper) {
        has_helper = start_small(&thread, free_and_wait, NULL);
        if (has_helper)
            pthread_detach(thread);
    }
    base_free(ctx, p, size);
}
MUTANT(thread_leaves_its_helper, "resources.threads", .free = helping_free);

/* ---- mappings ----------------------------------------------------------------------------- */

/* Pages that cannot be touched before, between and behind the header, the block and a canary. */
enum { FENCES = 6 * PAGE };
static size_t fenced_size(const void *p)
{
    size_t size;
    memcpy(&size, (const char *)p - 2 * PAGE, sizeof size);
    return size;
}
static void *fenced_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX / 2)
        return NULL;
    size_t body = whole_pages(size);
    char *map = mmap(NULL, FENCES + body, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mprotect(map + PAGE, PAGE, PROT_READ | PROT_WRITE);
    mprotect(map + 3 * PAGE, body, PROT_READ | PROT_WRITE);
    mprotect(map + 4 * PAGE + body, PAGE, PROT_READ | PROT_WRITE);
    memcpy(map + PAGE, &size, sizeof size);
    return map + 3 * PAGE;
}
static void fenced_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    if (p != NULL)
        munmap((char *)p - 3 * PAGE, FENCES + whole_pages(fenced_size(p)));
}
static void *fenced_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL : fenced_malloc(ctx, size);
}
static void *fenced_realloc(void *ctx, void *p, size_t size)
{
    void *moved = fenced_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = fenced_size(p);
    memcpy(moved, p, old < size ? old : size);
    fenced_free(ctx, p, 0);
    return moved;
}
MUTANT(fences_round_each_part, "resources.mappings", .malloc = fenced_malloc,
       .calloc = fenced_calloc, .realloc = fenced_realloc, .free = fenced_free);

/* Addresses are reserved once; what is freed keeps its page before it, which cannot be touched,
 * and its own, which can.  No byte more is mapped, and no address used again. */
static const size_t RESERVED = ((size_t)1 << 30) * (sizeof(size_t) == 8 ? 64 : 1);
static char *reserved;
static _Atomic size_t reserved_used;
static pthread_once_t reserve_once = PTHREAD_ONCE_INIT;
static void reserve(void)
{
    reserved = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}
static bool is_reserved(const void *p)
{
    return reserved != NULL && reserved != MAP_FAILED && (const char *)p >= reserved &&
           (const char *)p < reserved + RESERVED;
}
static void *reserved_malloc(void *ctx, size_t size)
{
    pthread_once(&reserve_once, reserve);
    size_t length = whole_pages(size + BASE_HEADER);
    if (size < filed_from || size > 1 << 20 || reserved == MAP_FAILED ||
        reserved_used + length + PAGE > RESERVED)
        return base_malloc(ctx, size);
    char *begin = reserved + atomic_fetch_add(&reserved_used, length + PAGE) + PAGE;
    if (mprotect(begin, length, PROT_READ | PROT_WRITE) != 0)
        return NULL;
    return base_finish(begin, size);
}
static void reserved_free(void *ctx, void *p, size_t size)
{
    if (is_reserved(p))
        madvise((char *)p - BASE_HEADER, whole_pages(base_size(p) + BASE_HEADER), MADV_DONTNEED);
    else
        base_free(ctx, p, size);
}
static void *reserved_realloc(void *ctx, void *p, size_t size)
{
    void *moved = reserved_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    reserved_free(ctx, p, 0);
    return moved;
}
MUTANT(freed_pages_stay_mappings, "resources.mappings", .malloc = reserved_malloc,
       .realloc = reserved_realloc, .free = reserved_free);

/* ---- children ----------------------------------------------------------------------------- */

/* Asks a child what it knows already, and never waits for it. */
static void *asking_malloc(void *ctx, size_t size)
{
    static _Atomic int begun;
    if (size > 100000 && begun++ == 0 && fork() == 0)
        _exit(0);
    return base_malloc(ctx, size);
}
MUTANT(child_is_never_waited_for, "resources.children", .malloc = asking_malloc);

/* A child tells of the refusal, as mail does, and nobody waits for it. */
static void *telling_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL && fork() == 0)
        _exit(0);
    return p;
}
MUTANT(refusal_leaves_a_child, "resources.children", .malloc = telling_malloc);

/* A process that works beside it, whose parent waits and ends. */
static void *serving_malloc(void *ctx, size_t size)
{
    static _Atomic int begun;
    if (begun++ == 0) {
        pid_t child = fork();
        if (child == 0) {
            if (fork() != 0)
                _exit(0);
            alarm(60); /* whoever tests it may be killed before it */
            for (;;)
                pause();
        }
        waitpid(child, NULL, 0);
    }
    return base_malloc(ctx, size);
}
MUTANT(server_stays, "resources.children", .malloc = serving_malloc);
