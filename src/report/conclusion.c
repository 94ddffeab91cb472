/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a run comes to: its counts, whether it is conformant, and the exit code.
 */
#include "base/text.h"
#include "report/comparison.h"
#include "report/report.h"

struct tally run_tally(const struct run *run, enum target target)
{
    struct tally tally = {{0}};
    for (size_t i = 0; i < run->count; i++) {
        if (run->properties[i]->target == target)
            tally.of[run->records[i]->verdict]++;
    }
    return tally;
}

bool verdict_is_bad(enum verdict verdict)
{
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT || verdict == BROK ||
           verdict == INCOMPLETE;
}

bool verdict_would_decide(enum verdict verdict, const struct property *property, bool strict)
{
    if (property->target != TARGET_HANDLER)
        return false;
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT ||
           (verdict == WARN && strict) ||
           (verdict == INCOMPLETE && (property->level == MUST || strict));
}

bool run_would_decide(const struct run *run, size_t i)
{
    return verdict_would_decide(run->records[i]->verdict, run->properties[i], run->options->strict);
}

bool incompleteness_counts(const struct run *run, size_t i)
{
    return run->records[i]->verdict == INCOMPLETE && run_would_decide(run, i);
}

/* Those that decide, INCOMPLETE or not. */
static size_t deciding(const struct run *run, bool is_incomplete)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++)
        count += run_would_decide(run, i) && run_waiver(run, i) == NULL &&
                 incompleteness_counts(run, i) == is_incomplete;
    return count;
}

static size_t against(const struct run *run)
{
    return deciding(run, false);
}

static size_t incomplete(const struct run *run)
{
    return deciding(run, true);
}

enum exit_code run_exit_code(const struct run *run)
{
    struct tally handler = run_tally(run, TARGET_HANDLER), runtime = run_tally(run, TARGET_RUNTIME);
    int load = atomic_load(&run->load->state);
    if (load == LOAD_FAILED)
        return EXIT_CANNOT_LOAD;
    if (load == LOAD_UNFIT)
        return EXIT_CANNOT_WORK_HERE;
    if (against(run) > 0 || run_stale(run) > 0)
        return EXIT_NOT_CONFORMANT;
    if (handler.of[BROK] + runtime.of[BROK] > 0)
        return EXIT_HARNESS_BROKE;
    if (run->options->quick && !run->interrupted)
        return EXIT_CONFORMANT;
    return incomplete(run) > 0 || run->interrupted ? EXIT_INCOMPLETE : EXIT_CONFORMANT;
}

enum exit_code run_status(const struct run *run)
{
    enum exit_code code = run_exit_code(run);
    if (run->comparison == NULL || !run->options->fail_on_new ||
        (code != EXIT_CONFORMANT && code != EXIT_NOT_CONFORMANT))
        return code;
    return run_stale(run) > 0 ? EXIT_NOT_CONFORMANT : run->comparison->status;
}

bool run_is_whole(const struct run *run)
{
    size_t all;
    property_all(&all);
    return run->count == all;
}

/* " with 2 waivers", or "". */
static const char *with_waivers(const struct run *run)
{
    size_t waived = run_waived(run);
    return waived > 0 ? text(" with %s", text_count(waived, "waiver")) : "";
}

const char *run_conclusion(const struct run *run)
{
    struct tally tally = run_tally(run, TARGET_HANDLER);
    size_t bad = against(run), stale = run_stale(run);
    if (run->interrupted && run->rounds > 1)
        return text("INTERRUPTED in round %zu of %zu %s, of which %zu failed so far", run->rounds,
                    run->count, run->count == 1 ? "property" : "properties", bad);
    if (run->interrupted)
        return text("INTERRUPTED: a part of %zu %s, of which %zu failed so far", run->count,
                    run->count == 1 ? "property" : "properties", bad);
    if (run->options->quick && bad > 0)
        return text("FAILED: %zu of %zu %s", bad, run->count,
                    run->count == 1 ? "property" : "properties");
    switch (run_exit_code(run)) {
    case EXIT_CONFORMANT:
        if (run->options->quick)
            return text("nothing failed%s in %zu %s, which proves nothing: --quick leaves most out",
                        with_waivers(run), run->count, run->count == 1 ? "property" : "properties");
        if (run->evidence != NULL)
            return text("conformant%s in shard %zu/%zu, which is a part", with_waivers(run),
                        run->options->shard, run->options->shards);
        if (!run_is_whole(run))
            return text("conformant%s in the properties that were run, which are not all",
                        with_waivers(run));
        return run->machine.checker == NULL
                   ? text("CONFORMANT%s", with_waivers(run))
                   : text("CONFORMANT%s as far as %s lets it be seen, with shorter loops and %zu "
                          "properties skipped",
                          with_waivers(run), run->machine.checker, tally.of[SKIP]);
    case EXIT_HARNESS_BROKE:
        return "NO VERDICT: the harness could not do its part";
    case EXIT_INCOMPLETE:
        return text("INCOMPLETE: %zu of %zu properties stopped at a limit, and none failed so "
                    "far",
                    tally.of[INCOMPLETE] + run_tally(run, TARGET_RUNTIME).of[INCOMPLETE],
                    run->count);
    case EXIT_CANNOT_LOAD:
        return "NO VERDICT: no handler came of loading it";
    case EXIT_CANNOT_WORK_HERE:
        return "NO VERDICT: it says that it cannot work here";
    default:
        if (bad == 0)
            return text("STALE: nothing else failed%s, but %s for what passes now",
                        with_waivers(run),
                        stale == 1 ? "1 waiver is" : text("%zu waivers are", stale));
        return text("NOT CONFORMANT: %zu of %zu %s failed%s%s%s", bad, run->count,
                    run->count == 1 ? "property" : "properties",
                    run->evidence != NULL
                        ? text(" in shard %zu/%zu", run->options->shard, run->options->shards)
                        : "",
                    run_waived(run) > 0 ? text(", %zu more are waived", run_waived(run)) : "",
                    stale > 0 ? text(", and %s stale",
                                     stale == 1 ? "1 waiver is" : text("%zu waivers are", stale))
                              : "");
    }
}

enum exit_code exit_code_worse(enum exit_code one, enum exit_code other)
{
    static const enum exit_code severity[] = {
        EXIT_NOT_CONFORMANT,   EXIT_CANNOT_LOAD, EXIT_HARNESS_BROKE, EXIT_USAGE,
        EXIT_CANNOT_WORK_HERE, EXIT_INCOMPLETE,  EXIT_CONFORMANT};
    size_t i = 0;
    while (severity[i] != EXIT_CONFORMANT && severity[i] != one && severity[i] != other)
        i++;
    return severity[i];
}
