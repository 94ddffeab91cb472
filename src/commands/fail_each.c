/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exec --fail-each: the program again and again, each time with another request refused.  One
 * process imports NumPy, and forks the runs.
 */
#include "commands/audited_process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "python/python.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* ---- in the process that forks the runs ------------------------------------------------- */

static void silence(void)
{
    int nothing = open("/dev/null", O_RDWR);
    if (nothing >= 0) {
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
    }
}

/* Returns what is wrong with the result of a run, or NULL. */
static const char *judge_run(const struct findings *findings, int status)
{
    const struct violation *lost = &findings->audit.violations[LOST_CONTENTS];
    if (WIFSIGNALED(status))
        return fmt("the program died of %s", child_signal_name(WTERMSIG(status)));
    if (lost->times > 0)
        return fmt("%s", lost->text);
    if (findings->audit.untracked > 0)
        return "there was no memory to keep track of all blocks";
    if (findings->uncaught && !findings->memory_error)
        return fmt("an exception that is no MemoryError, %s", escape(findings->exception));
    if (findings->reached_end && findings->audit.live_bytes > findings->leaked_by_success &&
        findings->leaked_by_success != SIZE_MAX)
        return fmt("memory is lost: %zu bytes more than without a refusal are left after the end",
                   findings->audit.live_bytes - findings->leaked_by_success);
    return NULL;
}

/* Adds a run to the place that it belongs to. */
static void note_bad(struct findings *findings, const char *outcome, size_t nth)
{
    size_t kind = strcspn(outcome, ":");
    struct bad_place *place = findings->bad, *end = place + findings->bad_places;
    findings->bad_runs++;
    while (place < end && (strncmp(place->outcome, outcome, kind) != 0 ||
                           strcmp(place->where, findings->refused_at) != 0))
        place++;
    if (place == &findings->bad[BAD_PLACES])
        return;
    if (place->runs++ > 0)
        return;
    findings->bad_places++;
    place->nth = nth;
    snprintf(place->outcome, sizeof place->outcome, "%s", outcome);
    snprintf(place->where, sizeof place->where, "%s", findings->refused_at);
}

/* Forks one run with the nth request refused, and waits for it.  What it finds is new. */
static int fork_run(struct findings *findings, const struct options *options, size_t nth)
{
    int status = 0;
    memset(&findings->audit, 0, sizeof findings->audit);
    findings->uncaught = findings->memory_error = findings->reached_end = false;
    findings->refused = 0;
    findings->refused_at[0] = '\0';
    python_before_fork();
    pid_t pid = child_fork(false);
    if (pid == 0) {
        python_after_fork_child();
        if (!options->verbose && (nth == 0 || options->refuse == 0))
            silence();
        program_begin_run(nth, options->keep_failing);
        program_run();
    }
    python_after_fork_parent();
    if (pid < 0 || child_wait(pid, NULL, NULL, &status) < 0)
        program_cannot_start(strerror(errno));
    return status;
}

/* One run, and what it came to; true where the nth request was made. */
static bool run_once(struct findings *findings, const struct options *options, size_t nth)
{
    int status = fork_run(findings, options, nth);
    bool violates = audit_violations(&findings->audit, BY_HANDLER) > 0; /* it counts in any run */
    if (violates && findings->violating_runs++ == 0) {
        findings->first_violating = findings->audit;
        findings->first_violating_nth = nth;
    }
    if (nth == 0) {
        snprintf(findings->first_exception, sizeof findings->first_exception, "%s",
                 findings->uncaught ? findings->exception : "");
        findings->leaked_by_success = findings->reached_end ? findings->audit.live_bytes : SIZE_MAX;
        return true;
    }
    if (findings->refused == 0 && !WIFSIGNALED(status))
        return false;
    findings->runs++;
    const char *bad = judge_run(findings, status);
    if (bad == NULL && findings->memory_error)
        findings->with_memory_error++;
    else if (bad == NULL)
        findings->with_success++;
    else
        note_bad(findings, bad, nth);
    return true;
}

static _Noreturn void fork_runs(struct findings *findings, const struct options *options)
{
    child_prepare();
    program_start("begin_with_numpy");
    run_once(findings, options, 0);
    size_t nth = options->refuse, most = options->most_runs;
    if (nth > 0) {
        run_once(findings, options, nth);
        _exit(0);
    }
    nth = 1;
    while (nth <= most && run_once(findings, options, nth))
        nth++;
    findings->incomplete = nth > most;
    _exit(0);
}

/* ---- in the process that waits ---------------------------------------------------------- */

/* The command line with --refuse before the "--" that the program's arguments follow. */
static void print_repeating(const struct options *options, char **argv, size_t nth)
{
    char **end = options->operands;
    while (end > argv && strcmp(end[-1], "--") != 0)
        end--;
    end -= end > argv;
    fputs("    repeat: ", stdout);
    for (char **word = argv; word < end; word++)
        printf("%s ", shell_quote(*word));
    printf("--refuse=%zu --", nth);
    for (char **word = options->operands; *word != NULL; word++)
        printf(" %s", shell_quote(*word));
    putchar('\n');
}

static void print_places(const struct findings *findings, const struct options *options,
                         char **argv)
{
    for (size_t i = 0; i < findings->bad_places; i++) {
        const struct bad_place *place = &findings->bad[i];
        printf("%s: request %zu refused%s: %s\n",
               place->where[0] != '\0' ? place->where : "(outside Python)", place->nth,
               place->runs > 1 ? fmt(", and %zu more of this line", place->runs - 1) : "",
               place->outcome);
        if (options->refuse == 0)
            print_repeating(options, argv, place->nth);
    }
    if (findings->bad_places == BAD_PLACES)
        printf("(no more than %d places are listed)\n", BAD_PLACES);
    if (findings->violating_runs == 0)
        printf("The handler broke no requirement: the cause is in the program or one of its "
               "libraries.\n");
}

static void print_runs(const struct findings *findings, const struct options *options, char **argv)
{
    bool well = findings->bad_runs + findings->violating_runs == 0 && !findings->incomplete;
    if (options->quiet && well)
        return;
    printf("%s, each with one request%s refused: %zu ended in MemoryError, %zu in success, "
           "%zu otherwise\n",
           plural(findings->runs, "run"), options->keep_failing ? " and all after it" : "",
           findings->with_memory_error, findings->with_success, findings->bad_runs);
    if (findings->bad_runs > 0)
        print_places(findings, options, argv);
    if (findings->leaked_by_success == SIZE_MAX)
        printf("What is left at the end was not compared: the program does not come to its own.\n");
    if (findings->incomplete)
        printf("INCOMPLETE: stopped after %s, and there are more requests; see --most-runs\n",
               plural(options->most_runs, "run"));
    if (findings->violating_runs == 0)
        return;
    fflush(stdout);
    exec_print_violations(stderr, &findings->first_violating);
    fprintf(stderr, "conform: the handler broke the contract in %s, first in the one with %s\n",
            plural(findings->violating_runs, "run"),
            findings->first_violating_nth == 0
                ? "nothing refused"
                : fmt("request %zu refused", findings->first_violating_nth));
}

int fail_each_run(const struct options *options, char **argv)
{
    interrupt_catch();
    struct findings *findings = program_prepare(options, argv);
    int status;
    children_adopt(true);
    pid_t pid = child_fork(true);
    if (pid == 0)
        fork_runs(findings, options);
    signal(SIGPIPE, SIG_IGN); /* whoever closes stdout is told */
    int given_up = pid > 0 ? child_wait(pid, is_interrupted, NULL, &status) : -1;
    if (given_up > 0)
        children_end(NULL, 0); /* the run that was under way */
    if (given_up < 0)
        die(EXIT_HARNESS_BROKE, "no process for the runs: %s", strerror(errno));
    program_check_started(findings);
    if (given_up == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        die(EXIT_HARNESS_BROKE, "the process that forks the runs died");
    if (given_up == 0 && findings->runs == 0 && options->refuse > 0)
        die(EXIT_USAGE, "--refuse=%zu: the program does not make so many requests",
            options->refuse);
    if (given_up == 0 && findings->runs == 0)
        die(EXIT_USAGE,
            "--fail-each: the program requests no memory for arrays%s, so that nothing can be "
            "refused; --verbose shows its output",
            findings->first_exception[0] != '\0'
                ? fmt(" and ends in %s", escape(findings->first_exception))
                : "");
    print_runs(findings, options, argv);
    if (given_up > 0) {
        printf("INTERRUPTED: this is a part of the runs\n");
        interrupt_die();
    }
    if (findings->violating_runs > 0)
        return EXIT_NOT_CONFORMANT;
    if (findings->bad_runs > 0)
        return EXIT_HARNESS_BROKE;
    return findings->incomplete ? EXIT_INCOMPLETE : EXIT_CONFORMANT;
}
