/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Processes that a property forks.
 */
#include "harness/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer_detect.h"
#include "harness/limits.h"
#include "harness/proc_count.h"
#include "harness/test_process.h"
#include "harness/verdict.h"

static _Thread_local bool forks_trial; /* what this thread is about to fork is_trial */

void note_child(void)
{
    struct record *record = test_process.setup.record;
    test_process.memcheck_errors_before = memcheck_error_count();
    if (forks_trial || test_process.is_trial)
        return;
    size_t number = atomic_fetch_add(&record->children, 1);
    if (number < MEMCHECK_CHILDREN)
        record->child[number] = getpid();
}

static void end_program(void)
{
    count_memcheck_errors();
    exit(SURVIVED);
}

/* If a handler ignores SIGCHLD, the exit status of a child is lost, so it is not ignored meanwhile.
 */
static struct sigaction subjects_sigchld;
static bool keeps_ends;

static void keep_ends(void)
{
    struct sigaction action;
    sigaction(SIGCHLD, NULL, &action);
    keeps_ends = action.sa_handler == SIG_IGN || (action.sa_flags & SA_NOCLDWAIT) != 0;
    if (!keeps_ends)
        return;
    subjects_sigchld = action;
    signal(SIGCHLD, SIG_DFL);
}

static void give_sigchld_back(void)
{
    if (keeps_ends)
        sigaction(SIGCHLD, &subjects_sigchld, NULL);
    keeps_ends = false;
}

/* False if the handler has waited for it: its exit status is not known. */
static bool wait_for(pid_t pid, int *status)
{
    pid_t ended;
    do
        ended = waitpid(pid, status, 0);
    while (ended < 0 && errno == EINTR);
    give_sigchld_back();
    return ended == pid;
}

static const char end_is_lost[] = "a process of the harness was waited for by other code";

static pid_t fork_child(void)
{
    fflush(stdout);
    keep_ends();
    pid_t pid = fork();
    if (pid < 0)
        harness_broke("fork: %s", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        give_sigchld_back();
    }
    return pid;
}

/* `end` does not return. */
static pid_t begin_process(void (*body)(void *data), void *data, void (*end)(void))
{
    pid_t pid = fork_child();
    if (pid == 0) {
        test_process.is_child = true;
        body(data);
        end();
    }
    return pid;
}

/* Ends this property if the child has reached its verdict. */
static void take_verdict(void)
{
    struct record *record = test_process.setup.record;
    if (atomic_load(&record->state) == RECORD_ENDED) {
        enter_exit_path();
        leave(record->reached);
    }
}

/* `done` is the number of children that had ended before this one started.  False if it died of the
 * signal `spared`. */
static bool await_process(pid_t pid, int done, bool is_program, int spared)
{
    struct record *record = test_process.setup.record;
    int status;
    bool is_known = wait_for(pid, &status);
    take_verdict();
    if (!is_known && atomic_load(&record->children_done) > done)
        return true;
    if (!is_known)
        harness_broke("%s", end_is_lost);
    if (WIFSIGNALED(status) && WTERMSIG(status) == spared)
        return false;
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    bool program_ended = is_program && WEXITSTATUS(status) == SURVIVED;
    if (atomic_load(&record->children_done) == done && !program_ended)
        _exit(WEXITSTATUS(status)); /* the subject ended the child: the worker sees no verdict */
    return true;
}

struct child start_child(void (*body)(void *data), void *data)
{
    int done = atomic_load(&test_process.setup.record->children_done);
    return (struct child){begin_process(body, data, pass), done};
}

void await_child(struct child child)
{
    await_process(child.pid, child.done, false, 0);
}

void in_child(void (*body)(void *data), void *data)
{
    await_child(start_child(body, data));
}

static void forget_calls(void)
{
    for (int i = 0; i < CALL_SLOTS; i++)
        test_process.setup.record->calls[i].kind = OUTSIDE;
}

bool in_child_unless(int killed_by, void (*body)(void *data), void *data)
{
    struct child child = start_child(body, data);
    bool lived = await_process(child.pid, child.done, false, killed_by);
    if (!lived)
        forget_calls();
    return lived;
}

/* Fatal signals of this process are not recorded from now on: the record is the parent's. */
static void die_unnoticed(void)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
        signal(fatal[i], SIG_DFL);
}

struct work {
    void (*body)(void *);
    void *data;
};

static void run_unnoticed(void *work)
{
    const struct work *its = work;
    die_unnoticed();
    its->body(its->data);
}

void in_child_within(double seconds, size_t bytes, void (*body)(void *data), void *data)
{
    static const struct timespec moment = {0, 200000};
    struct work work = {body, data};
    size_t most = resident_bytes() + bytes;
    int done = atomic_load(&test_process.setup.record->children_done), status;
    pid_t pid = begin_process(run_unnoticed, &work, pass), ended;
    uint64_t begun = clock_now();
    /* from here, for a subject can have the timers and the signals of the child */
    while ((ended = waitpid(pid, &status, WNOHANG)) == 0 || (ended < 0 && errno == EINTR)) {
        if (clock_since(begun) > seconds || resident_bytes_of(pid) > most)
            kill(pid, SIGKILL);
        nanosleep(&moment, NULL);
    }
    give_sigchld_back();
    take_verdict();
    if (atomic_load(&test_process.setup.record->children_done) > done)
        return;
    forget_calls();
    test_process.setup.record->step[0] = '\0';
}

void in_program(void (*body)(void *data), void *data)
{
    int done = atomic_load(&test_process.setup.record->children_done);
    await_process(begin_process(body, data, end_program), done, true, 0);
}

static bool survives(void (*body)(void *data), void *data, void (*end)(int status))
{
    forks_trial = true;
    pid_t pid = fork_child();
    forks_trial = false;
    if (pid == 0) {
        die_unnoticed();
        static struct record nobodys;
        test_process.setup.record = &nobodys;
        test_process.is_trial = true;
        signal(SIGALRM, SIG_DFL);
        alarm_in(hang_limit());
        body(data);
        end(SURVIVED);
    }
    int status;
    if (!wait_for(pid, &status))
        harness_broke("%s", end_is_lost);
    return WIFEXITED(status) && WEXITSTATUS(status) == SURVIVED;
}

bool child_survives(void (*body)(void *data), void *data)
{
    return survives(body, data, _exit);
}

bool program_survives(void (*body)(void *data), void *data)
{
    return survives(body, data, exit);
}

void control_run(void (*body)(void *data), void *data, const char *when)
{
    if (is_instrumented())
        return; /* it does little else there */
    step("it is tried %s", when);
    control_begin(when);
    in_child(body, data);
    control_end();
    test_process.setup.record->step[0] = '\0';
}
