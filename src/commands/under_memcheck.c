/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --memcheck: this program once more, under valgrind.
 */
#include "commands/under_memcheck.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/instrumented.h"
#include "base/text.h"
#include "model/options.h"
#include "runner/memcheck.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* Tells the program that valgrind runs where the reports go. */
#define MEMCHECK_FOLDER "CONFORM_MEMCHECK_FOLDER"

static void clear_line(bool shows_progress)
{
    if (shows_progress)
        fputs("\r\033[K", stderr);
}

static _Noreturn void start(char **argv, const char *folder, bool shows_progress)
{
    setenv(MEMCHECK_FOLDER, folder, 1);
    const char *wrong = memcheck_start(argv, folder);
    clear_line(shows_progress);
    leave_with(EXIT_HARNESS_BROKE, "--memcheck: %s", wrong);
}

_Noreturn void memcheck_start_again(char **argv, const char *folder)
{
    start(argv, folder, false);
}

/* What interrupts this process goes on to the one under valgrind, again and again: it may come when
 * nobody there listens yet. */
static bool pass_interrupt_on(void *data)
{
    if (interrupt_came() != 0)
        kill(*(pid_t *)data, interrupt_came());
    return false;
}

/* Runs this program again, under valgrind, and leaves as it does.  This process stays to clear up
 * behind it: valgrind takes a second before there is anybody in it who could. */
static _Noreturn void run_under_memcheck(char **argv, bool shows_progress)
{
    char folder[PATH_MAX];
    int status = 0;
    if (memcheck_make_folder(folder, sizeof folder) != 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: %s: %s; set TMPDIR", folder, strerror(errno));
    if (shows_progress)
        fputs("\r\033[Kstarting valgrind, under which everything takes much longer", stderr);
    pid_t pid = child_fork(false);
    int error = errno;
    if (pid == 0)
        start(argv, folder, shows_progress);
    if (pid > 0)
        child_wait(pid, pass_interrupt_on, &pid, &status);
    const char *refusal = memcheck_refusal(folder, pid);
    if (refusal != NULL)
        clear_line(shows_progress);
    memcheck_remove_folder(folder);
    if (pid < 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: no process for it: %s", strerror(error));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && refusal != NULL)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: valgrind did not start: %s",
                   *refusal != '\0' ? text_safe(refusal) : "it says why above");
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (interrupt_came() == 0)
        leave_with(EXIT_HARNESS_BROKE, "--memcheck: valgrind died of %s",
                   child_signal_name(WTERMSIG(status)));
    interrupt_die();
}

void memcheck_look_for_parent(void)
{
    if (memcheck_is_running() && getenv(MEMCHECK_FOLDER) != NULL)
        interrupt_leave_words_to_another();
}

const char *memcheck_enter(char **argv, bool shows_progress)
{
    const char *folder = getenv(MEMCHECK_FOLDER);
    if (!memcheck_is_running() || folder == NULL)
        run_under_memcheck(argv, shows_progress);
    memcheck_note_begun(folder);
    clear_line(shows_progress);
    const char *kept = strdup(folder);
    if (kept == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    unsetenv(MEMCHECK_FOLDER);
    return kept;
}
