/* SPDX-License-Identifier: BSD-3-Clause
 *
 * TAP version 13: one test point for each property.  What does not count, a WARN without --strict,
 * what is waived and what is NumPy's own, is a "not ok" with a "# TODO", which readers let pass.
 */
#include <string.h>

#include "base/program_version.h"
#include "base/text.h"
#include "report/report.h"

/* In a description "#" starts a directive, and a backslash hides it. */
static void print_escaped(FILE *file, const char *words)
{
    for (; *words != '\0'; words++) {
        if (*words == '#' || *words == '\\')
            fputc('\\', file);
        fputc(*words, file);
    }
}

/* A YAML string in double quotes: text_safe has left nothing in it that needs more. */
static void print_yaml(FILE *file, const char *key, const char *words)
{
    fprintf(file, "  %s: \"", key);
    for (; *words != '\0'; words++) {
        if (*words == '"' || *words == '\\')
            fputc('\\', file);
        fputc(*words, file);
    }
    fputs("\"\n", file);
}

static void print_point(FILE *file, const struct run *run, size_t i)
{
    const struct property *property = run->properties[i];
    const struct record *record = run->records[i];
    bool passed = record->verdict == PASS || record->verdict == SKIP;
    fprintf(file, "%s %zu - %s", passed ? "ok" : "not ok", i + 1, property->id);
    if (record->verdict == SKIP) {
        fputs(" # SKIP ", file);
        print_escaped(file, record_seen(record));
    } else if (property->target == TARGET_RUNTIME && !passed && record->verdict != BROK) {
        fputs(" # TODO it is NumPy's, not the handler's", file);
    } else if (run_waiver(run, i) != NULL) {
        fputs(" # TODO waived: ", file);
        print_escaped(file, expectation_words(run_waiver(run, i)));
    } else if (record->verdict == WARN && !run->options->strict) {
        fputs(" # TODO a SHOULD failed", file);
    } else if (record->verdict == INCOMPLETE && !incompleteness_counts(run, i)) {
        fputs(" # TODO a SHOULD was not tried to its end", file);
    }
    fputc('\n', file);
    if (passed)
        return;
    fputs("  ---\n", file);
    print_yaml(file, "verdict", verdict_name(record->verdict));
    print_yaml(file, "level", level_name(property->level));
    print_yaml(file, "target", target_name(property->target));
    print_yaml(file, "clause", property->clause);
    print_yaml(file, "source", property->source);
    if (record->expected[0] != '\0')
        print_yaml(file, "expected", record_expected(record));
    print_yaml(file, "seen", record_seen(record));
    print_yaml(file, "reproduce", run_reproduce(run, i));
    fputs("  ...\n", file);
}

/* It passes, and that has to be seen: behind the properties, for an entry may be about many. */
static void print_stale(FILE *file, const struct run *run)
{
    size_t number = run->count;
    for (size_t k = 0; run->expectations != NULL && k < run->expectations->count; k++) {
        if (!run_is_stale(run, k))
            continue;
        fprintf(file, "not ok %zu - STALE ", ++number);
        print_escaped(file, run_stale_words(run, k));
        fputc('\n', file);
    }
}

int report_tap(FILE *file, const struct run *run)
{
    fprintf(file, "TAP version 13\n1..%zu\n", run->count + run_stale(run));
    fprintf(file, "# conform %s on %s; seed %llu\n", program_version, run_file(run),
            (unsigned long long)run->options->seed);
    if (run->tunables != NULL)
        fprintf(file, "# started again with GLIBC_TUNABLES=%s\n", run->tunables);
    if (run->allocator[0] != '\0')
        fprintf(file, "# %s\n", run->allocator);
    for (size_t i = 0; i < run->count; i++)
        print_point(file, run, i);
    print_stale(file, run);
    fprintf(file, "# %s\n", run_conclusion(run));
    return ferror(file) ? -1 : 0;
}
