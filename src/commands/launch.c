/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One decision on how to start, and one exec.
 */
#include "commands/launch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/reexec.h"
#include "base/text.h"
#include "harness/limits.h"
#include "python/api.h"
#include "python/interpreter.h"
#include "runner/memcheck.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

#define TUNABLES "GLIBC_TUNABLES"

/* ---- under valgrind ---------------------------------------------------------------------- */

static void clear_line(const struct launch *l)
{
    if (l->shows_progress)
        fputs("\r\033[K", stderr);
}

/* Replaces this process.  Valgrind's own temporary files go to the folder of its reports, because
 * it leaves one behind if it is killed at the wrong moment. */
static _Noreturn void start(const struct launch *l, const char *words[REEXEC_WORDS])
{
    const char *const nothing[] = {NULL}, *valgrind[MEMCHECK_WORDS], *wrong = NULL;
    const char *folder = words[REEXEC_REPORTS], *temporary = getenv("TMPDIR");
    bool under_valgrind = *folder != '\0';
    if (under_valgrind) {
        words[REEXEC_TMPDIR] = temporary != NULL ? strdup(temporary) : "";
        setenv("TMPDIR", folder, 1);
        wrong = memcheck_command(valgrind, folder);
    }
    if (wrong == NULL)
        wrong = reexec(under_valgrind ? valgrind : nothing, words, l->argv);
    clear_line(l);
    if (under_valgrind && errno == ENOENT)
        wrong = "valgrind is not installed; install it, or leave the option out";
    if (under_valgrind)
        die(EXIT_HARNESS_BROKE, "--memcheck: %s", wrong);
    if (*words[REEXEC_ENGINE] != '\0')
        die(EXIT_USAGE, "%s has no libpython, the shared library, %s", escape(words[REEXEC_PYTHON]),
            wrong);
    die(EXIT_HARNESS_BROKE, "conform cannot be started again: %s", wrong);
}

/* Passes a signal on to the process under valgrind, again and again: it may come before that
 * process catches it. */
static bool pass_interrupt_on(void *data)
{
    if (interrupt_came() != 0)
        kill(*(pid_t *)data, interrupt_came());
    return false;
}

/* Starts the program under valgrind and exits as it does.  This process stays in order to clean up:
 * valgrind takes a second until the program runs, which could. */
static _Noreturn void wait_for_valgrind(const struct launch *l, const char *words[REEXEC_WORDS])
{
    char folder[PATH_MAX];
    int status = 0;
    if (memcheck_make_folder(folder, sizeof folder) != 0)
        die(EXIT_HARNESS_BROKE, "--memcheck: %s: %s; set TMPDIR", folder, strerror(errno));
    words[REEXEC_REPORTS] = folder;
    if (l->shows_progress)
        fputs("\r\033[Kstarting valgrind, under which everything takes much longer", stderr);
    pid_t pid = child_fork(false);
    int error = errno;
    if (pid == 0)
        start(l, words);
    if (pid > 0)
        child_wait(pid, pass_interrupt_on, &pid, &status);
    const char *refusal = memcheck_refusal(folder, pid);
    if (refusal != NULL)
        clear_line(l);
    scratch_remove(folder);
    if (pid < 0)
        die(EXIT_HARNESS_BROKE, "--memcheck: no process for it: %s", strerror(error));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 1 && refusal != NULL)
        die(EXIT_HARNESS_BROKE, "--memcheck: valgrind did not start: %s",
            *refusal != '\0' ? escape(refusal) : "it says why above");
    if (WIFEXITED(status))
        exit(WEXITSTATUS(status));
    if (interrupt_came() == 0)
        die(EXIT_HARNESS_BROKE, "--memcheck: valgrind died of %s",
            child_signal_name(WTERMSIG(status)));
    interrupt_die();
}

/* In the process that valgrind runs: the one that waits for it reports an interrupt. */
static void begin_under_valgrind(const struct launch *l)
{
    const char *temporary = reexec_word(REEXEC_TMPDIR);
    interrupt_leave_words_to_another();
    memcheck_note_begun(reexec_word(REEXEC_REPORTS));
    clear_line(l);
    if (*temporary != '\0')
        setenv("TMPDIR", temporary, 1);
    else
        unsetenv("TMPDIR");
}

/* ---- the plan ---------------------------------------------------------------------------- */

/* The interpreter to embed: the one that this process was started for, or else one that has to be
 * looked for.  `executable` is NULL without Python. */
static struct interpreter find_python(const struct launch *l)
{
    struct interpreter python = {.executable = NULL, .library = "", .has_numpy = true};
    const char *wrong = NULL;
    if (*reexec_word(REEXEC_PYTHON) != '\0') {
        python.executable = reexec_word(REEXEC_PYTHON);
        python.library = reexec_word(REEXEC_LIBRARY);
        python.program = reexec_word(REEXEC_EXECUTABLE);
    } else if (l->python != WITHOUT_PYTHON) {
        wrong = interpreter_find(l->options->python, &python);
    }
    if (wrong != NULL && interrupt_came() != 0)
        interrupt_die(); /* that may be why */
    if (wrong == NULL && l->python == WITH_NUMPY && !python.has_numpy)
        wrong = fmt("%s has no NumPy: %s -m pip install numpy", escape(python.executable),
                    shell_quote(python.executable));
    if (wrong != NULL)
        die(python.is_late && l->options->python == NULL ? EXIT_HARNESS_BROKE : EXIT_USAGE, "%s",
            wrong);
    return python;
}

/* True if the user has not decided how much static TLS there is. */
static bool can_widen_static_tls(void)
{
    const char *tunables = getenv(TUNABLES);
    return !static_tls_is_wide() &&
           (tunables == NULL || strstr(tunables, "glibc.rtld.optional_static_tls") == NULL);
}

static void widen_static_tls(void)
{
    const char *tunables = getenv(TUNABLES);
    char *wider;
    if (tunables == NULL || *tunables == '\0')
        setenv(TUNABLES, STATIC_TLS_TUNABLE, 1);
    else if (asprintf(&wider, "%s:%s", tunables, STATIC_TLS_TUNABLE) >= 0)
        setenv(TUNABLES, wider, 1);
}

static const char *launch_or_start(const struct launch *l, bool must_start)
{
    const char *words[REEXEC_WORDS];
    if (*reexec_word(REEXEC_REPORTS) != '\0')
        begin_under_valgrind(l);
    struct interpreter python = find_python(l);
    bool has_python = python.executable != NULL;
    bool is_guest = has_python && *python.library == '\0';
    char *runtimes = sanitizer_runtimes(l->options, l->places, l->count, python.executable);
    bool widens = l->static_tls && can_widen_static_tls();
    bool wants_valgrind = l->options->memcheck && *reexec_word(REEXEC_REPORTS) == '\0';
    bool lacks_host = is_guest && reexec_host() == NULL;
    if (runtimes != NULL || widens || wants_valgrind || lacks_host || must_start) {
        for (int i = 0; i < REEXEC_WORDS; i++)
            words[i] = reexec_word((enum reexec_word)i);
        words[REEXEC_EXECUTABLE] = is_guest ? python.program : "";
        words[REEXEC_ENGINE] = is_guest ? "to be found" : "";
        words[REEXEC_PYTHON] = has_python ? python.executable : "";
        words[REEXEC_LIBRARY] = has_python ? python.library : "";
        if (runtimes != NULL)
            reexec_preload(runtimes);
        if (widens) {
            words[REEXEC_STATIC_TLS] = STATIC_TLS_TUNABLE;
            widen_static_tls();
        }
        if (interrupt_came() != 0)
            interrupt_die(); /* the next process would not know of it */
        if (wants_valgrind)
            wait_for_valgrind(l, words);
        start(l, words);
    }
    const char *wrong = has_python ? python_api_open(python.library) : NULL;
    if (wrong != NULL)
        die(EXIT_USAGE, "%s", wrong);
    return has_python ? python.executable : "";
}

const char *launch(const struct launch *l)
{
    return launch_or_start(l, false);
}

void launch_again(const struct launch *l, int state, const char *why)
{
    struct launch other = *l;
    bool calls_python =
        strstr(why, "undefined symbol: Py") != NULL || strstr(why, "undefined symbol: _Py") != NULL;
    struct interpreter python;
    if ((state != LOAD_FAILED && state != LOAD_UNFIT) || interrupt_came() != 0)
        return;
    if (static_tls_was_short(why) && can_widen_static_tls()) {
        other.static_tls = true;
    } else if (calls_python && l->python == WITHOUT_PYTHON && *reexec_word(REEXEC_PYTHON) == '\0') {
        const char *wrong = interpreter_find(NULL, &python);
        other.python = WITH_PYTHON;
        if (wrong != NULL)
            die(EXIT_CANNOT_LOAD, "%s: it calls Python, and %s", escape(l->options->handler),
                wrong);
    } else {
        return;
    }
    launch_or_start(&other, true);
}
