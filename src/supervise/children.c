/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Adopting and ending processes.
 */
#include "supervise/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>

void children_adopt(bool adopt)
{
    prctl(PR_SET_CHILD_SUBREAPER, adopt);
}

static bool is_kept(pid_t pid, const pid_t *keep, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keep[i] == pid)
            return true;
    }
    return false;
}

/* Ends those that there are now, and returns how many. */
static int end_once(const pid_t *keep, size_t count)
{
    int pid, ended = 0;
    FILE *file = fopen("/proc/thread-self/children", "re");
    while (file != NULL && fscanf(file, "%d", &pid) == 1) {
        if (is_kept(pid, keep, count))
            continue;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        ended++;
    }
    if (file != NULL)
        fclose(file);
    return ended;
}

static bool there_are_some(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD;
}

void children_end(const pid_t *keep, size_t count)
{
    if (!there_are_some())
        return;
    int rounds = 1000; /* for those that fork faster than they are killed */
    while (end_once(keep, count) > 0 && --rounds > 0)
        continue;
}
