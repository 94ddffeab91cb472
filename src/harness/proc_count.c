/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and limiting the memory of this process.  None of it allocates: there may be nothing
 * left to allocate from.
 */
#include "harness/proc_count.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/property_child.h"
#include "repro/call_log.h"

/* Pages mapped, and pages in memory: the first two numbers of a statm; 0 where it cannot be read.
 */
static void read_pages_of(int statm, size_t pages[2])
{
    char line[128] = "";
    if (statm >= 0 && pread(statm, line, sizeof line - 1, 0) < 0)
        line[0] = '\0';
    char *end = line;
    pages[0] = strtoul(line, &end, 10);
    pages[1] = strtoul(end, &end, 10);
}

/* Of this process it stays open, for a handler may leave no descriptor for later. */
static void read_pages(size_t pages[2])
{
    static int statm = -1;
    static pid_t whose;
    pages[0] = 0;
    if (whose == getpid())
        read_pages_of(statm, pages);
    if (pages[0] == 0) { /* or it is that of the parent, or is no longer ours */
        statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        whose = getpid();
        read_pages_of(statm, pages);
    }
    if (pages[0] == 0)
        harness_broke("/proc/self/statm cannot be read: %s", strerror(errno));
}

size_t resident_bytes(void)
{
    size_t pages[2];
    read_pages(pages);
    return pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

size_t resident_bytes_of(pid_t pid)
{
    size_t pages[2];
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    int statm = open(path, O_RDONLY | O_CLOEXEC);
    read_pages_of(statm, pages);
    if (statm >= 0)
        close(statm);
    return pages[1] * (size_t)sysconf(_SC_PAGESIZE);
}

void forgo_huge_pages(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

size_t mapped_bytes(void)
{
    size_t pages[2];
    read_pages(pages);
    return pages[0] * (size_t)sysconf(_SC_PAGESIZE);
}

/* The kernel reads them, and does not crash where it cannot. */
bool is_readable(const void *p, size_t size)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return true; /* nobody knows */
    ssize_t written = write(ends[1], p, size);
    close(ends[0]);
    close(ends[1]);
    return written == (ssize_t)size;
}

static struct rlimit before_limit;

void limit_mapped_bytes(size_t room)
{
    call_log_end(call_log_begin((struct step){.kind = STEP_LIMIT, .first = room}, 0), NULL, 1);
    if (is_instrumented())
        skip("memcheck and the sanitizers do not work under an address-space limit");
    if (getrlimit(RLIMIT_AS, &before_limit) != 0)
        harness_broke("RLIMIT_AS: %s", strerror(errno));
    struct rlimit limit = {mapped_bytes() + room, before_limit.rlim_max};
    if (limit.rlim_cur > before_limit.rlim_cur)
        return; /* there is a tighter one already */
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        harness_broke("RLIMIT_AS: %s", strerror(errno));
}

void lift_limit(void)
{
    call_log_end(call_log_begin((struct step){.kind = STEP_LIMIT}, 0), NULL, 1);
    if (setrlimit(RLIMIT_AS, &before_limit) != 0)
        harness_broke("RLIMIT_AS: %s", strerror(errno));
}

/* A thread of the handler's that starts late takes 64 to 128 MiB of addresses for its arena, where
 * malloc is glibc's: what is left has to be enough for what is sound. */
void absurd_begin(void)
{
    const size_t least = (size_t)256 << 20, blocks = 1024;
    size_t aligned = blocks * subject_claims().alignment; /* which a block may have for itself */
    if (!is_instrumented())
        limit_mapped_bytes(aligned > least ? aligned : least);
}

void absurd_end(void)
{
    if (!is_instrumented())
        lift_limit();
}

/* 0 if the handler has left no descriptor to read them with. */
static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL && errno == EMFILE)
        return 0;
    if (entries == NULL)
        harness_broke("%s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

size_t count_descriptors(void)
{
    struct rlimit limit;
    size_t count = count_entries("/proc/self/fd");
    if (count > 0)
        return count - 1; /* that of the folder itself */
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

size_t count_threads(void)
{
    return count_entries("/proc/self/task");
}

size_t count_mappings(void)
{
    char part[16384];
    size_t count = 0;
    ssize_t length;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == EMFILE)
        return 0;
    if (fd < 0)
        harness_broke("/proc/self/maps: %s", strerror(errno));
    while ((length = read(fd, part, sizeof part)) > 0) {
        for (const char *p = part; (p = memchr(p, '\n', (size_t)(part + length - p))) != NULL; p++)
            count++;
    }
    close(fd);
    return count;
}

void adopt_orphans(void)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
        skip("children that lose their parent cannot be adopted here: %s", strerror(errno));
}

bool has_child(void)
{
    siginfo_t info = {0};
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}
