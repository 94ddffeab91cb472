/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting what the kernel says that this process has.
 */
#include "harness/census.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/drive.h"

static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *entries = opendir(folder);
    if (entries == NULL)
        harness_broke("%s: %s", folder, strerror(errno));
    for (struct dirent *entry; (entry = readdir(entries)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(entries);
    return count;
}

size_t count_descriptors(void)
{
    return count_entries("/proc/self/fd") - 1; /* that of the folder itself */
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
