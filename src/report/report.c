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

/* Four bytes for each one hold what has to be escaped. */
enum { ESCAPED = 4 };

const char *run_expected_text(const struct run *run, size_t i)
{
    const struct record *record = run->records[i];
    static char clean[ESCAPED * sizeof record->expected + 1];
    if (run->outcomes[i].expected != NULL)
        return run->outcomes[i].expected;
    return text_clean(clean, sizeof clean, record->expected,
                      strnlen(record->expected, sizeof record->expected), 0);
}

const char *run_seen(const struct run *run, size_t i)
{
    enum { ROOM = 1024 };
    static char clean[ESCAPED * sizeof((struct record *)0)->seen + ROOM];
    const struct record *record = run->records[i];
    const struct outcome *outcome = &run->outcomes[i];
    if (outcome->cause != NULL)
        snprintf(clean, sizeof clean, "caused by %s: %s", outcome->cause->id, outcome->note);
    else if (outcome->note[0] != '\0')
        text_clean(clean, sizeof clean - ROOM, outcome->note, strlen(outcome->note), 0);
    else
        text_clean(clean, sizeof clean - ROOM + 1, record->seen,
                   strnlen(record->seen, sizeof record->seen), 0);
    size_t used = strlen(clean);
    if (outcome->note[0] == '\0' && record->memcheck[0] != '\0')
        used += (size_t)snprintf(clean + used, sizeof clean - used, "; memcheck: %s",
                                 text_safe(record->memcheck));
    if (outcome->in_control)
        used += (size_t)snprintf(clean + used, sizeof clean - used, "; it is so already %s",
                                 text_safe(record->control));
    if (outcome->verdict == SKIP && run->rounds > 1 && outcome->skipped_rounds < run->rounds)
        snprintf(clean + used, sizeof clean - used, " (in %zu of %zu rounds)",
                 outcome->skipped_rounds, run->rounds);
    return clean;
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

const char *record_output(const struct record *record, int keep_lines)
{
    static char clean[ESCAPED * sizeof record->output + 1];
    size_t length = __atomic_load_n(&record->output_length, __ATOMIC_RELAXED); /* once */
    return text_clean(clean, sizeof clean, record->output, MIN(length, sizeof record->output),
                      keep_lines);
}

bool run_has_expected(const struct run *run, size_t i)
{
    const struct outcome *outcome = &run->outcomes[i];
    return outcome->expected != NULL ||
           (outcome->note[0] == '\0' && run->records[i]->expected[0] != '\0');
}

const char *run_message(const struct run *run, size_t i)
{
    static char message[ESCAPED * (sizeof((struct record *)0)->expected +
                                   sizeof((struct record *)0)->seen) +
                        600];
    if (run->outcomes[i].verdict == PASS)
        return "";
    if (!run_has_expected(run, i))
        return run_seen(run, i);
    snprintf(message, sizeof message, "expected %s; seen %s", run_expected_text(run, i),
             run_seen(run, i));
    return message;
}

const char *record_hint(const struct record *record, const struct property *property)
{
    const struct property *about = property_find(record->attribute_to);
    if (record->by_checker == FOUND_UNDEFINED)
        return "look at the line that was printed: C says nothing of what comes of it, so that the "
               "next compiler may make something else of it";
    if (record->by_checker == FOUND_ERROR)
        return "build the handler with -g, and look at the line that is named: the memory there is "
               "not the handler's, or not yet, or no longer";
    if (record->control[0] != '\0')
        return "it comes without what the clause is about: ordinary use goes wrong, so look at the "
               "call and the sizes that are named";
    if (about == NULL && record->verdict == CRASH && !property->ends_process &&
        call_in_words(&record->suspects[ENDED_IN]) != NULL)
        return text("it ended inside the handler, which may have another reason than what is tried "
                    "here: look at the call and the block that are named, under a debugger by the "
                    "command that reproduces it; and if it is that, %s",
                    property->hint);
    return about != NULL ? about->hint : property->hint;
}

const char *run_file(const struct run *run)
{
    static char clean[ESCAPED * PATH_MAX + 1];
    return text_clean(clean, sizeof clean, run->place->path, strlen(run->place->path), 0);
}

const char *run_handler_name(const struct run *run)
{
    static char clean[ESCAPED * sizeof run->load->name + 1];
    if (run->load->has_name == 0)
        return "";
    return text_clean(clean, sizeof clean, run->load->name,
                      strnlen(run->load->name, sizeof run->load->name), 0);
}

bool run_has_gil(const struct run *run)
{
    return run->environment->gil || run->load->has_gil != 0;
}

const char *run_gil(const struct run *run)
{
    if (!run->environment->free_threaded)
        return "";
    if (run->environment->gil)
        return " with the GIL";
    return run_has_gil(run) ? " with the GIL, which loading the handler turned on"
                            : " without the GIL";
}

const char *run_claims(const struct run *run)
{
    static char clean[ESCAPED * sizeof run->load->claims + 1];
    return text_clean(clean, sizeof clean, run->load->claims,
                      strnlen(run->load->claims, sizeof run->load->claims), 0);
}

struct machine machine_here(void)
{
    static char libc[64] = "unknown", kernel[256];
    struct utsname name;
    bool is_known = uname(&name) == 0;
    snprintf(kernel, sizeof kernel, "%s",
             is_known ? text_safe(text("%s %s %s", name.sysname, name.release, name.machine))
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
