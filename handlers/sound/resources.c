/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sound handlers that take more than memory from the system, but a fixed number.
 */
#define _GNU_SOURCE /* memfd_create */
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base.h"

/* ---- open files, and a few threads --------------------------------------------------------- */

enum { CREW = 3, FILES = 12 };
static sem_t work;
static void *wait_for_work(void *unused)
{
    for (;;)
        sem_wait(&work);
    return unused;
}
static void begin_crew(void)
{
    pthread_t thread;
    sem_init(&work, 0, 0);
    for (int i = 0; i < CREW; i++) {
        if (pthread_create(&thread, NULL, wait_for_work, NULL) == 0)
            pthread_detach(thread);
    }
    for (int i = 0; i < FILES; i++)
        (void)!open("/dev/urandom", O_RDONLY | O_CLOEXEC);
}
FUNCTION(malloc, crewed)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, begin_crew);
    return base_malloc(ctx, size);
}
SOUND(crew_and_files, FUNCTIONS(crewed, malloc));

/* ---- a log that is kept open --------------------------------------------------------------- */

/* Writes to its descriptor only if that still is the file that the first call opened. */
static int log_file = -1;
static struct stat opened;
static void open_log(void)
{
    const char *folder = getenv("TMPDIR");
    log_file = open(folder != NULL ? folder : "/tmp", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    fstat(log_file, &opened);
}
FUNCTION(malloc, logged)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat now;
    int saved = errno;
    pthread_once(&once, open_log);
    if (size >= MIB && fstat(log_file, &now) == 0 && now.st_dev == opened.st_dev &&
        now.st_ino == opened.st_ino)
        dprintf(log_file, "malloc %zu\n", size);
    errno = saved;
    return base_malloc(ctx, size);
}
SOUND(looks_before_it_logs, FUNCTIONS(logged, malloc));

/* ---- files that hold many blocks --------------------------------------------------------- */

/* Blocks of 1000 bytes to nearly a page are in files in memory, 64 in each, which are made when
 * they are needed, eight at most, and stay open. */
enum { PAGE = 4096, IN_FILE = 64, MOST_FILES = 8, FROM = 1000, MOST = PAGE - BASE_HEADER };
MUTEX(filed_lock);
static struct {
    char *files[MOST_FILES];
    bool live[MOST_FILES][IN_FILE];
} filed;
static char *make_file(void)
{
    int fd = memfd_create("blocks", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, IN_FILE * PAGE) != 0)
        return NULL;
    char *map = mmap(NULL, IN_FILE * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    return map != MAP_FAILED ? map : NULL;
}
static void *take_page(void)
{
    char *page = NULL;
    LOCK(filed_lock);
    for (int file = 0; file < MOST_FILES && page == NULL; file++) {
        if (filed.files[file] == NULL && (filed.files[file] = make_file()) == NULL)
            break;
        for (int i = 0; i < IN_FILE && page == NULL; i++) {
            if (!filed.live[file][i])
                page = filed.files[file] + i * PAGE;
            filed.live[file][i] = true;
        }
    }
    return page;
}
FUNCTION(malloc, filed)
{
    void *page = size >= FROM && size <= MOST ? take_page() : NULL;
    return page != NULL ? base_finish(page, size) : base_malloc(ctx, size);
}
FUNCTION(free, filed)
{
    LOCK(filed_lock);
    for (int file = 0; file < MOST_FILES && filed.files[file] != NULL; file++) {
        size_t distance = (uintptr_t)p - (uintptr_t)filed.files[file];
        if (distance < IN_FILE * PAGE) {
            filed.live[file][distance / PAGE] = false;
            return;
        }
    }
    base_free(ctx, p, size);
}
DERIVE(filed);
SOUND(many_blocks_in_a_file, FUNCTIONS(filed));
