/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How all report formats word what came of the run, and where.
 */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/sanitizer_detect.h"
#include "base/text.h"

enum { ESCAPED = 4 /* bytes of "\x1b" */ };

const char *report_clean(const char *bytes, size_t size, int keep_lines)
{
    enum { BUFFERS = 8 };
    static char *buffers[BUFFERS];
    static unsigned next;
    char **buffer = &buffers[next++ % BUFFERS];
    size_t length = strnlen(bytes, size), room = ESCAPED * length + 1;
    free(*buffer);
    *buffer = malloc(room);
    if (*buffer == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    return sanitize(*buffer, room, bytes, length, keep_lines);
}

const char *run_expected(const struct run *run, size_t i)
{
    const struct outcome *outcome = &run->outcomes[i];
    if (outcome->expected != NULL)
        return outcome->expected;
    return outcome->note[0] == '\0' ? CLEAN(run->records[i]->expected) : "";
}

const char *run_actual(const struct run *run, size_t i)
{
    enum { ROOM = 2048 };
    static char actual[ESCAPED * sizeof((struct record *)0)->seen + ROOM];
    const struct record *record = run->records[i];
    const struct outcome *outcome = &run->outcomes[i];
    const char *note = CLEAN(outcome->note);
    size_t used;
    if (outcome->cause != NULL)
        used =
            (size_t)snprintf(actual, sizeof actual, "caused by %s: %s", outcome->cause->id, note);
    else
        used = (size_t)snprintf(actual, sizeof actual, "%s",
                                note[0] != '\0' ? note : CLEAN(record->seen));
    if (note[0] == '\0' && record->memcheck[0] != '\0')
        used += (size_t)snprintf(actual + used, sizeof actual - used, "; memcheck: %s",
                                 escape(record->memcheck));
    if (outcome->in_control)
        used += (size_t)snprintf(actual + used, sizeof actual - used, "; it is so already %s",
                                 escape(record->control));
    if (outcome->verdict == SKIP && run->rounds > 1 && outcome->skipped_rounds < run->rounds)
        snprintf(actual + used, sizeof actual - used, " (in %zu of %zu rounds)",
                 outcome->skipped_rounds, run->rounds);
    return actual;
}

const char *run_seen(const struct run *run, size_t i)
{
    static char seen[ESCAPED * sizeof(struct record)];
    const struct record *record = run->records[i];
    const char *call = CLEAN(record->call), *past = CLEAN(record->past);
    const char *situation = CLEAN(record->situation);
    if (run->outcomes[i].note[0] != '\0' || run->outcomes[i].verdict == SKIP)
        return run_actual(run, i);
    snprintf(seen, sizeof seen, "%s%s%s%s%s%s%s", call, *call != '\0' ? ": " : "",
             run_actual(run, i), *past != '\0' ? "; " : "", past, *situation != '\0' ? "; " : "",
             situation);
    return seen;
}

bool run_has_same_reason(const struct run *run, size_t i, size_t k)
{
    const struct outcome *one = &run->outcomes[i], *other = &run->outcomes[k];
    const struct record *a = run->records[i], *b = run->records[k];
    return one->verdict == other->verdict && one->cause == other->cause &&
           one->skipped_rounds == other->skipped_rounds && strcmp(one->note, other->note) == 0 &&
           (one->note[0] != '\0' || strncmp(a->seen, b->seen, sizeof a->seen) == 0) &&
           one->in_control == other->in_control &&
           (!one->in_control || strcmp(a->control, b->control) == 0);
}

const char *record_output(const struct record *record)
{
    size_t length = __atomic_load_n(&record->output_length, __ATOMIC_RELAXED); /* once */
    return report_clean(record->output, MIN(length, sizeof record->output), 1);
}

const char *run_message(const struct run *run, size_t i)
{
    static char message[ESCAPED * (sizeof((struct record *)0)->expected +
                                   sizeof((struct record *)0)->seen) +
                        2048];
    const char *expected = run_expected(run, i);
    if (run->outcomes[i].verdict == PASS)
        return "";
    if (*expected == '\0')
        return run_seen(run, i);
    snprintf(message, sizeof message, "expected %s; seen %s", expected, run_seen(run, i));
    return message;
}

const char *stale_words(const struct expectations *all, const struct expectation *one)
{
    return fmt("%s:%d: %s is expected to %s, and passes now: take the entry out", escape(all->file),
               one->line, escape(one->id), verdict_name(one->verdict));
}

const char *expectation_words(const struct expectation *one)
{
    return fmt("%s%s%s%s%s", escape(one->reason), one->url != NULL ? "; " : "",
               one->url != NULL ? escape(one->url) : "", one->until != NULL ? "; until " : "",
               one->until != NULL ? one->until : "");
}

const char *record_hint(const struct record *record, const struct property *property)
{
    const struct property *about = property_find(record->attribute_to);
    if (record->by_checker == FOUND_UNDEFINED)
        return "Look at the printed line: its behavior is undefined in C, so another compiler may "
               "give another result.";
    if (record->by_checker == FOUND_ERROR)
        return "Build the handler with -g, and look at the reported line: it uses memory that the "
               "handler does not own at that time.";
    if (record->control[0] != '\0')
        return "Ordinary use fails too, without what this test is about: look at the reported call "
               "and sizes.";
    if (about == NULL && record->verdict == CRASH && !property->ends_process &&
        call_in_words(&record->suspects[ENDED_IN]) != NULL)
        return fmt("%s A crash can have another cause: debug the reported call.", property->hint);
    return about != NULL ? about->hint : property->hint;
}

bool run_has_gil(const struct run *run)
{
    return run->environment->gil || run->load->has_gil != 0;
}

struct machine machine_here(void)
{
    static char libc[64] = "unknown", kernel[256];
    struct utsname name;
    bool is_known = uname(&name) == 0;
    snprintf(kernel, sizeof kernel, "%s",
             is_known ? escape(fmt("%s %s %s", name.sysname, name.release, name.machine))
                      : "unknown");
#ifdef __GLIBC__
    snprintf(libc, sizeof libc, "glibc %s", gnu_get_libc_version());
#endif
    return (struct machine){
        .libc = libc,
        .kernel = kernel,
        .page_size = sysconf(_SC_PAGESIZE),
        .checker = memcheck_is_running()    ? "memcheck"
                   : sanitizer_is_running() ? "a sanitizer"
                   : emulator_is_running()  ? "an emulator"
                                            : NULL,
    };
}
