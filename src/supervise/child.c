/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forking and waiting.  SIGCHLD is blocked and taken with a time limit, so that an end is seen at
 * once and no handler is needed.
 */
#include "supervise/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "model/options.h"
#include "model/record.h"
#include "supervise/interrupt.h"

static sigset_t of_child(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    return set;
}

void child_prepare(void)
{
    sigset_t set = of_child();
    signal(SIGCHLD, SIG_DFL); /* ignored, it would take the ends of children away */
    sigprocmask(SIG_BLOCK, &set, NULL);
}

pid_t child_fork(bool own_group)
{
    sigset_t all, before;
    pid_t parent = getpid();
    fflush(NULL);
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before); /* none is to be noted by the child, and be lost */
    pid_t pid = fork();
    if (own_group && pid >= 0)
        setpgid(pid, pid); /* by both, whoever comes first */
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            raise(SIGKILL);
        interrupt_reset();
        sigdelset(&before, SIGCHLD);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return pid;
}

bool child_is_adopted(pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent;
}

static void end(pid_t pid, int *status)
{
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
    while (waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
}

int child_wait(pid_t pid, bool (*give_up)(void *data), void *data, int *status)
{
    static const struct timespec now_and_then = {0, 50000000};
    sigset_t set = of_child();
    for (;;) {
        pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid)
            return 0;
        if (ended < 0 && errno != EINTR)
            return -1;
        if (give_up != NULL && give_up(data)) {
            end(pid, status);
            return 1;
        }
        sigtimedwait(&set, NULL, &now_and_then);
    }
}

const char *child_signal_name(int number)
{
    const char *name = sigabbrev_np(number);
    return name != NULL ? fmt("SIG%s", name) : fmt("signal %d", number);
}

/* ---- descendants whose parent has ended ---------------------------------------------------- */

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

void children_end(const pid_t *keep, size_t count)
{
    siginfo_t info;
    if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD)
        return;
    int rounds = 1000; /* for processes that fork faster than they are killed */
    while (end_once(keep, count) > 0 && --rounds > 0)
        continue;
}

void loaded_or_leave(const char *argument, int state, const char *why)
{
    if (state == LOAD_FAILED)
        die(EXIT_CANNOT_LOAD, "%s: %s", escape(argument), escape(why));
    if (state == LOAD_CONTRADICTED)
        die(EXIT_USAGE, "%s: %s", escape(argument), escape(why));
    if (state == LOAD_UNFIT)
        die(EXIT_CANNOT_WORK_HERE, "%s: it says that it cannot work here: %s", escape(argument),
            escape(why));
}
