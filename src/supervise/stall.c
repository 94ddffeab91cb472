/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A clock alone cannot tell a process that hangs from one that is not given a processor.  The
 * kernel can: the time that it has had, and the states of its threads in /proc (proc(5)).
 */
#include "supervise/stall.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/text.h"

/* Seconds of processor time that it has had. */
static double used(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
        return 0;
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Whether a thread of it would go on if it had a processor, or the memory that it touches. */
static bool is_to_run(pid_t pid)
{
    bool is = false;
    DIR *threads = opendir(fmt("/proc/%d/task", (int)pid));
    for (struct dirent *entry; threads != NULL && !is && (entry = readdir(threads)) != NULL;) {
        char state = 'S';
        FILE *file = fopen(fmt("/proc/%d/task/%s/stat", (int)pid, entry->d_name), "re");
        if (file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1)
            is = state == 'R' || state == 'D';
        if (file != NULL)
            fclose(file);
    }
    if (threads != NULL)
        closedir(threads);
    return is;
}

void stall_begin(struct stall *stall, pid_t pid)
{
    *stall = (struct stall){.since = clock_now(), .used = used(pid)};
}

bool stall_lasts(struct stall *stall, pid_t pid, double limit)
{
    enum { ASLEEP = 10 }; /* threads that work sleep for a moment as well */
    if (stall->since == 0)
        stall_begin(stall, pid);
    if (clock_since(stall->since) <= limit)
        return false;
    stall->asleep += !is_to_run(pid);
    return used(pid) - stall->used > limit / 2 || stall->asleep >= ASLEEP;
}
