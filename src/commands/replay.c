/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying in a child, so that a handler which crashes or hangs is told with its call.
 */
#include "commands/commands.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reexec.h"
#include "base/text.h"
#include "commands/launch.h"
#include "harness/proc_count.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"
#include "supervise/stall.h"
#include "trace/replay.h"

/* Shared with the child. */
struct replaying {
    struct replay_result result;
    struct loaded loaded;
    uint64_t resident_before, resident_at_end, resident_peak; /* bytes */
};

static void note_resident(void *bytes)
{
    *(uint64_t *)bytes = resident_bytes_of(getpid());
}

static _Noreturn void replay_in_child(const struct options *options,
                                      const struct subject_place *place, struct replaying *shared)
{
    struct subject subject;
    struct trace_reader *reader =
        trace_open(options->operands[0], shared->loaded.why, sizeof shared->loaded.why);
    if (reader == NULL)
        _exit(EXIT_USAGE);
    shared->loaded.state =
        subject_load(place, &subject, shared->loaded.why, sizeof shared->loaded.why);
    if (shared->loaded.state != LOAD_DONE)
        _exit(EXIT_CANNOT_LOAD);
    struct claims claims = subject_all_claims(place, &subject);
    struct replay_options how = {.alignment = claims.alignment,
                                 .unchecked = options->unchecked,
                                 .fill.marks = true,
                                 .calls_end = note_resident,
                                 .data = &shared->resident_at_end};
    struct rusage used;
    note_resident(&shared->resident_before);
    replay_run(reader, subject.handler, &how, &shared->result);
    getrusage(RUSAGE_SELF, &used);
    shared->resident_peak = MAX((uint64_t)used.ru_maxrss * 1024, shared->resident_at_end);
    _exit(0);
}

static void print_violation(const char *word, const struct replay_violation *violation)
{
    if (violation->rule == HEAP_NO_RULE)
        return;
    printf("%-7s %s  call %llu, at byte %llu of the trace%s%s\n        %s\n", word,
           property_of_rule(violation->rule)->id, (unsigned long long)violation->call,
           (unsigned long long)violation->offset, violation->part[0] != '\0' ? ", in " : "",
           escape(violation->part), escape(violation->text));
    if (violation->history[0] != '\0')
        printf("        %s\n", escape(violation->history));
}

static enum exit_code conclude(const struct options *options, const struct replaying *shared)
{
    const struct replay_result *result = &shared->result;
    if (!options->quiet && static_tls_is_wide())
        printf("it loads only with GLIBC_TUNABLES=%s, which was set for it\n", STATIC_TLS_TUNABLE);
    if (!options->quiet)
        printf("%llu calls replayed in %.3f s, %.1f million a second; %llu refused by this handler "
               "alone, %llu left out; peak %llu bytes, %llu bytes in %llu blocks live at the end\n"
               "resident memory: peak %llu bytes, %llu at the end, %llu before the first call\n",
               (unsigned long long)result->calls, result->seconds,
               result->seconds > 0 ? (double)result->calls / result->seconds / 1e6 : 0,
               (unsigned long long)result->refused, (unsigned long long)result->left_out,
               (unsigned long long)result->peak_bytes, (unsigned long long)result->live_bytes,
               (unsigned long long)result->live, (unsigned long long)shared->resident_peak,
               (unsigned long long)shared->resident_at_end,
               (unsigned long long)shared->resident_before);
    print_violation("WARN", &result->warning);
    print_violation("FAIL", &result->violation);
    if (result->cut && !options->quiet)
        printf("%s\n", escape(result->wrong));
    switch (result->outcome) {
    case REPLAY_PASSED:
        return EXIT_CONFORMANT;
    case REPLAY_VIOLATED:
        return EXIT_NOT_CONFORMANT;
    case REPLAY_TRACE_WRONG:
        die(EXIT_USAGE, "%s: %s", escape(options->operands[0]), escape(result->wrong));
    case REPLAY_NO_MEMORY:
    case REPLAY_UNDER_WAY: /* told before */
        break;
    }
    die(EXIT_HARNESS_BROKE, "out of memory for the tables of the replay");
}

/* What the replaying process is doing, as seen from outside. */
struct watching {
    const struct replaying *shared;
    pid_t pid;
    double limit;           /* seconds for one call */
    uint64_t number, freed; /* which one is under way: freed at the end they have no numbers */
    struct stall stall;     /* since that one was first seen */
    bool hangs;
};

/* One call that does not come back within the limit hangs, and so does loading. */
static bool is_to_end(void *data)
{
    struct watching *watching = data;
    uint64_t number = watching->shared->result.under_way.number;
    uint64_t freed = watching->shared->result.live;
    if (number != watching->number || freed != watching->freed)
        stall_begin(&watching->stall, watching->pid);
    watching->number = number;
    watching->freed = freed;
    watching->hangs = stall_lasts(&watching->stall, watching->pid, watching->limit);
    return watching->hangs || interrupt_came() != 0;
}

/* How far it came, where it did not come to its end. */
static void print_under_way(const struct replaying *shared, const char *verdict, const char *how)
{
    const struct replay_result *result = &shared->result;
    const char *part = escape(fmt("%.*s", (int)sizeof result->part, result->part));
    if (shared->loaded.state == LOAD_UNKNOWN) {
        printf("%-7s %s, loading the handler\n", verdict, how);
        return;
    }
    printf("%-7s %s in call %llu%s%s: %s\n", verdict, how,
           (unsigned long long)result->under_way.number, *part != '\0' ? ", in " : "", part,
           trace_call_text(&result->under_way));
}

/* Forks the replay and waits for it; 0, or 1 where it was ended from here. */
static int wait_for_replay(const struct options *options, const struct subject_place *place,
                           struct replaying *shared, struct watching *watching, int *status)
{
    child_prepare();
    interrupt_catch();
    pid_t pid = child_fork(true);
    if (pid == 0)
        replay_in_child(options, place, shared);
    signal(SIGPIPE, SIG_IGN); /* whoever closes stdout is told */
    watching->pid = pid;
    int given_up = pid > 0 ? child_wait(pid, is_to_end, watching, status) : -1;
    if (given_up < 0)
        die(EXIT_HARNESS_BROKE, "no process for the replay: %s", strerror(errno));
    return given_up;
}

static enum exit_code replay(const struct options *options, char **argv)
{
    struct subject_place place;
    int status = 0;
    const char *wrong = subject_find(options->handler, &place);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
    struct launch start = {.options = options, .argv = argv, .places = &place, .count = 1};
    launch(&start);
    place.claims = options->claims;
    struct replaying *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        die(EXIT_HARNESS_BROKE, "no memory to share: %s", strerror(errno));
    struct watching watching = {.shared = shared, .limit = options->timeout};
    int given_up = wait_for_replay(options, &place, shared, &watching, &status);
    if (given_up > 0 && !watching.hangs) {
        print_under_way(shared, "PARTIAL", "interrupted");
        interrupt_die();
    }
    if (watching.hangs) {
        print_under_way(shared, "TIMEOUT", fmt("no end after %.3g s", watching.limit));
        return EXIT_NOT_CONFORMANT;
    }
    shared->loaded.why[sizeof shared->loaded.why - 1] = '\0';
    launch_again(&start, (int)shared->loaded.state, shared->loaded.why);
    loaded_or_leave(options->handler, (int)shared->loaded.state, shared->loaded.why);
    if (shared->loaded.state == LOAD_UNKNOWN && shared->loaded.why[0] != '\0')
        die(EXIT_USAGE, "%s: %s", escape(options->operands[0]), escape(shared->loaded.why));
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0 ||
        shared->result.outcome == REPLAY_UNDER_WAY) {
        print_under_way(shared, "CRASH",
                        WIFSIGNALED(status) ? child_signal_name(WTERMSIG(status)) : "exit");
        return EXIT_NOT_CONFORMANT;
    }
    return conclude(options, shared);
}

enum exit_code replay_command(const struct options *options, char **argv)
{
    char why[512];
    if (options->command != COMMAND_PRINT)
        return replay(options, argv);
    if (!trace_print(stdout, options->operands[0], why, sizeof why))
        die(EXIT_USAGE, "%s: %s", escape(options->operands[0]), escape(why));
    return fflush(stdout) == 0 ? EXIT_CONFORMANT : EXIT_HARNESS_BROKE;
}
