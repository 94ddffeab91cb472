/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying in a child, so that a handler which crashes or hangs is told with its call.
 */
#include "commands/replay.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"
#include "model/record.h"
#include "subject/claims.h"
#include "subject/static_tls.h"
#include "subject/subject.h"
#include "trace/replay.h"

/* Shared with the child. */
struct replaying {
    struct replay_result result;
    enum load_state load;
    char why[512];
};

static _Noreturn void replay_in_child(const struct options *options,
                                      const struct subject_place *place, struct replaying *shared)
{
    struct subject subject;
    struct claims claims;
    struct trace_reader *reader = trace_open(options->replay, shared->why, sizeof shared->why);
    if (reader == NULL)
        _exit(EXIT_USAGE);
    shared->load = subject_load(place, &subject, shared->why, sizeof shared->why);
    if (shared->load != LOAD_DONE)
        _exit(EXIT_CANNOT_LOAD);
    claims_parse(subject.claims, &claims);
    struct replay_options how = {.alignment = claims.alignment, .unchecked = options->unchecked};
    replay_run(reader, subject.handler, &how, &shared->result);
    _exit(0);
}

static void print_violation(const char *word, const struct replay_violation *violation)
{
    if (violation->property[0] == '\0')
        return;
    printf("%-7s %s  call %llu, at byte %llu of the trace%s%s\n        %s\n", word,
           violation->property, (unsigned long long)violation->call,
           (unsigned long long)violation->offset, violation->part[0] != '\0' ? ", in " : "",
           text_safe(violation->part), text_safe(violation->text));
    if (violation->history[0] != '\0')
        printf("        %s\n", text_safe(violation->history));
}

static enum exit_code conclude(const struct options *options, const struct replaying *shared)
{
    const struct replay_result *result = &shared->result;
    if (!options->quiet && static_tls_is_wide())
        printf("it loads only with GLIBC_TUNABLES=%s, which was set for it\n", STATIC_TLS_TUNABLE);
    if (!options->quiet)
        printf("%llu calls replayed in %.3f s, %.1f million a second; %llu refused by this handler "
               "alone, %llu left out; peak %llu bytes, %llu blocks live at the end\n",
               (unsigned long long)result->calls, result->seconds,
               result->seconds > 0 ? (double)result->calls / result->seconds / 1e6 : 0,
               (unsigned long long)result->refused, (unsigned long long)result->left_out,
               (unsigned long long)result->peak_bytes, (unsigned long long)result->live);
    print_violation("WARN", &result->warning);
    print_violation("FAIL", &result->violation);
    if (result->cut && !options->quiet)
        printf("%s\n", text_safe(result->wrong));
    switch (result->outcome) {
    case REPLAY_HOLDS:
        return EXIT_CONFORMANT;
    case REPLAY_VIOLATED:
        return EXIT_NOT_CONFORMANT;
    case REPLAY_TRACE_WRONG:
        leave_with(EXIT_USAGE, "%s: %s", text_safe(options->replay), text_safe(result->wrong));
    case REPLAY_NO_MEMORY:
    case REPLAY_UNDER_WAY: /* told before */
        break;
    }
    leave_with(EXIT_HARNESS_BROKE, "out of memory for the books of the replay");
}

static enum exit_code replay(const struct options *options, char **argv)
{
    struct subject_place place;
    const char *wrong = subject_find(options->handler, &place);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
    struct replaying *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        leave_with(EXIT_HARNESS_BROKE, "no memory to share: %s", strerror(errno));
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        replay_in_child(options, &place, shared);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        leave_with(EXIT_HARNESS_BROKE, "no process for the replay: %s", strerror(errno));
    if ((shared->load == LOAD_UNFIT || shared->load == LOAD_FAILED) &&
        static_tls_was_short(shared->why))
        static_tls_start_again(argv, NULL, NULL);
    if (shared->load == LOAD_UNFIT)
        leave_with(EXIT_CANNOT_WORK_HERE, "%s: it says that it cannot work here: %s",
                   text_safe(options->handler), text_safe(shared->why));
    if (shared->load == LOAD_FAILED)
        leave_with(EXIT_CANNOT_LOAD, "%s: %s", text_safe(options->handler), text_safe(shared->why));
    if (shared->load == LOAD_UNKNOWN && shared->why[0] != '\0')
        leave_with(EXIT_USAGE, "%s: %s", text_safe(options->replay), text_safe(shared->why));
    if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0 ||
        shared->result.outcome == REPLAY_UNDER_WAY) {
        printf("CRASH   %s in call %llu%s%s: %s\n",
               WIFSIGNALED(status) ? text("SIG%s", sigabbrev_np(WTERMSIG(status))) : "exit",
               (unsigned long long)shared->result.under_way.number,
               shared->result.part[0] != '\0' ? ", in " : "", text_safe(shared->result.part),
               trace_call_text(&shared->result.under_way));
        return EXIT_NOT_CONFORMANT;
    }
    return conclude(options, shared);
}

enum exit_code replay_command(const struct options *options, char **argv)
{
    char why[512];
    if (!options->print)
        return replay(options, argv);
    if (!trace_print(stdout, options->replay, why, sizeof why))
        leave_with(EXIT_USAGE, "%s: %s", text_safe(options->replay), text_safe(why));
    return fflush(stdout) == 0 ? EXIT_CONFORMANT : EXIT_HARNESS_BROKE;
}
