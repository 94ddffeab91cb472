/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exec: waiting for the program, and the summary.
 */
#include "commands/audited_process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/param.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/reexec.h"
#include "base/text.h"
#include "harness/proc_count.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

struct waiting {
    pid_t program;
    uint64_t since; /* when it was told to end, or 0 */
    const struct findings *findings;
    bool is_early;                       /* Ctrl-C came before NumPy was imported */
    uint64_t behind;                     /* when it was seen to be so after that, or 0 */
    size_t resident_peak, resident_last; /* bytes, twenty times a second */
};

static void print_calls(FILE *file, const struct audit *audit, bool gil)
{
    fprintf(file, "  calls     %zu malloc, %zu calloc, %zu realloc, %zu free (%zu of NULL)",
            audit->malloc_calls, audit->calloc_calls, audit->realloc_calls, audit->free_calls,
            audit->null_frees);
    fprintf(file, "; %zu refused, %zu %s\n", audit->refused, audit->without_gil,
            gil ? "without the GIL" : "detached from Python");
}

static void print_sizes(FILE *file, const struct audit *audit)
{
    size_t most = 1;
    for (int i = 0; i < SIZE_CLASSES; i++)
        most = audit->by_size[i] > most ? audit->by_size[i] : most;
    const char *title = "sizes";
    for (int i = 0; i < SIZE_CLASSES; i++) {
        static const char bar[] = "########################################";
        size_t count = audit->by_size[i];
        if (count == 0)
            continue;
        fprintf(file, "  %-9s below 2^%-2d %10zu %.*s\n", title, i, count,
                (int)(1 + count * (sizeof bar - 2) / most), bar);
        title = "";
    }
    fprintf(file, "  largest  ");
    for (int i = 0; i < LARGEST && audit->largest[i] > 0; i++)
        fprintf(file, " %zu", audit->largest[i]);
    fputs(audit->largest[0] > 0 ? " bytes\n" : " none\n", file);
}

static const char *const parties[] = {
    [BY_HANDLER] = "by the handler",
    [BY_NUMPY] = "by NumPy",
    [BY_THIRD_PARTY] = "by a third party, not the handler or NumPy",
};

void exec_print_violations(FILE *file, const struct audit *audit)
{
    for (int i = 0; i < VIOLATION_KINDS; i++) {
        const struct violation *violation = &audit->violations[i];
        const struct violation_facts *facts = &violation_facts[i];
        if (violation->times == 0)
            continue;
        fprintf(file, "%s %s: %s, %s\n",
                facts->counts                    ? "VIOLATION"
                : facts->party == BY_THIRD_PARTY ? "NOTE     "
                                                 : "known    ",
                parties[facts->party], facts->name, plural(violation->times, "time"));
        fprintf(file, "          first: %s%s%s\n", violation->text,
                violation->where[0][0] != '\0' ? ", at " : "", violation->where[0]);
        for (int line = 1; line < VIOLATION_LINES && violation->where[line][0] != '\0'; line++)
            fprintf(file, "          also at %s\n", violation->where[line]);
    }
}

static void print_summary(const struct waiting *waiting, bool quiet, double seconds)
{
    const struct findings *findings = waiting->findings;
    const struct audit *audit = &findings->audit;
    double inside = (double)audit->nanoseconds_inside / 1e9;
    FILE *file = stderr;
    if (!quiet) {
        fprintf(file, "\nconform: %s, audited%s\n", escape(program_handler_label()),
                !findings->free_threaded ? ""
                : findings->gil          ? " with the GIL"
                                         : " without the GIL");
        if (static_tls_is_wide())
            fprintf(file, "  it loads only with GLIBC_TUNABLES=%s, which was set for it\n",
                    STATIC_TLS_TUNABLE);
        print_calls(file, audit, findings->gil);
        bool has_left = findings->has_left;
        fprintf(file, "  memory    peak %zu bytes; live %s %zu bytes in %s", audit->peak_bytes,
                has_left ? "at exit" : "when the process ended",
                has_left ? findings->bytes_at_exit : audit->live_bytes,
                plural(has_left ? findings->blocks_at_exit : audit->live_blocks, "block"));
        if (findings->reached_end)
            fprintf(file, ", after the interpreter's end %zu in %zu", audit->live_bytes,
                    audit->live_blocks);
        fprintf(file, "\n  resident  peak %s%zu bytes, at exit %zu, with Python and its modules",
                has_left ? "" : "about ",
                has_left ? findings->resident_peak : waiting->resident_peak,
                has_left ? findings->resident_at_exit : waiting->resident_last);
        fprintf(file, "\n  time      about %.3f s inside the handler, of %.3f s\n", inside,
                seconds);
        print_sizes(file, audit);
        if (findings->own_handler > 0)
            fprintf(file, "  NOT AUDITED: the handler %s, which the program installed %s\n",
                    escape(findings->own_handler_name), plural(findings->own_handler, "time"));
        if (findings->pythons > 0)
            fprintf(file, "  NOT AUDITED: %s that the program started\n",
                    plural(findings->pythons, "Python interpreter"));
        if (findings->live[0] != '\0')
            fprintf(file, "  live at exit\n%s", findings->live);
    }
    exec_print_violations(file, audit);
    size_t handlers = audit_violations(audit, BY_HANDLER),
           numpys = audit_violations(audit, BY_NUMPY),
           others = audit_violations(audit, BY_THIRD_PARTY);
    if (handlers + numpys + others == 0 && !quiet)
        fputs("conform: no violation\n", file);
    else if (handlers + numpys + others > 0)
        fprintf(file, "conform: %s of violation by the handler, %zu by NumPy%s\n",
                plural(handlers, "kind"), numpys,
                others > 0 ? fmt(", %zu by a third party", others) : "");
}

/* An import of NumPy's may swallow Ctrl-C, which then comes again, once it is through. */
static bool swallowed_it(struct waiting *waiting)
{
    static const double moment = 0.1;
    if (!waiting->findings->imported) {
        waiting->is_early = interrupt_came() == SIGINT;
        return false;
    }
    if (waiting->is_early && waiting->behind == 0)
        waiting->behind = clock_now();
    if (!waiting->is_early || clock_since(waiting->behind) < moment)
        return false;
    waiting->is_early = false;
    return true;
}

/* Ctrl-C, which the terminal sends to the program as well, is the program's to answer, as behind a
 * shell; what was sent to this process alone is passed on, and SIGTERM has to be heard. */
static bool is_to_end(void *data)
{
    static const double grace = 1;
    struct waiting *waiting = data;
    size_t resident = resident_bytes_of(waiting->program);
    waiting->resident_last = resident > 0 ? resident : waiting->resident_last;
    waiting->resident_peak = MAX(resident, waiting->resident_peak);
    int number = interrupt_to_pass_on();
    bool swallowed = swallowed_it(waiting);
    if (number != 0 || swallowed)
        kill(waiting->program, number != 0 ? number : SIGINT);
    if (number != 0 && number != SIGINT && waiting->since == 0)
        waiting->since = clock_now();
    return waiting->since != 0 && clock_since(waiting->since) > grace;
}

/* An import of NumPy's that is interrupted may end in another exception, and the program in 1. */
static bool was_interrupted(int status, bool imported)
{
    if (WIFSIGNALED(status))
        return WTERMSIG(status) == interrupt_came();
    return interrupt_came() != 0 && !imported && WEXITSTATUS(status) != 0;
}

int exec_run(const struct options *options, char **argv)
{
    uint64_t begin = clock_now();
    interrupt_catch();
    const struct findings *findings = program_prepare(options, argv);
    int status;
    signal(SIGQUIT, SIG_IGN);
    pid_t pid = child_fork(false);
    if (pid == 0) {
        signal(SIGQUIT, SIG_DFL);
        if (interrupt_came() != 0)
            raise(interrupt_came()); /* before there was anybody to pass it on to */
        program_start("begin");
        program_run();
    }
    struct waiting waiting = {.program = pid, .findings = findings};
    signal(SIGPIPE, SIG_IGN); /* the status still matters where nobody reads the summary */
    if (pid < 0 || child_wait(pid, is_to_end, &waiting, &status) < 0)
        die(EXIT_HARNESS_BROKE, "no process for the program: %s", strerror(errno));
    double seconds = clock_since(begin);
    program_check_started(findings);
    if (findings->in_force)
        print_summary(&waiting, options->quiet, seconds);
    else if (!options->quiet)
        fputs("conform: the program did not import NumPy\n", stderr);
    if (waiting.since != 0 || was_interrupted(status, findings->imported)) {
        fputs("INTERRUPTED: this is a part of the program\n", stderr);
        interrupt_die();
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "conform: the program died of %s\n", child_signal_name(WTERMSIG(status)));
    if (findings->audit.untracked > 0)
        fprintf(stderr,
                "conform: INCOMPLETE: there was no memory to keep track of %s, and no judgement\n",
                plural(findings->audit.untracked, "block"));
    if (audit_violations(&findings->audit, BY_HANDLER) > 0)
        return EXIT_NOT_CONFORMANT;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && findings->trace_broke)
        return EXIT_HARNESS_BROKE;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && findings->audit.untracked > 0)
        return EXIT_INCOMPLETE;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
