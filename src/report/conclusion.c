/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a run comes to: its counts, whether it is conformant, and the exit code.
 */
#include <limits.h>
#include <string.h>

#include "base/text.h"
#include "model/attribution.h"
#include "report/report.h"

struct tally run_tally(const struct run *run, enum target target)
{
    struct tally tally = {{0}};
    for (size_t i = 0; i < run->count; i++) {
        if (run->properties[i]->target == target)
            tally.of[run->outcomes[i].verdict]++;
    }
    return tally;
}

size_t tally_sum(const struct tally *tally)
{
    size_t sum = 0;
    for (int verdict = 0; verdict < VERDICT_COUNT; verdict++)
        sum += tally->of[verdict];
    return sum;
}

bool verdict_is_bad(enum verdict verdict)
{
    return verdict_facts[verdict].severity > verdict_facts[WARN].severity;
}

bool verdict_would_decide(enum verdict verdict, const struct property *property, bool strict)
{
    if (property->target != TARGET_HANDLER)
        return false;
    return verdict_facts[verdict].decides || (verdict == WARN && strict) ||
           (verdict == INCOMPLETE && (property->level == MUST || strict));
}

bool run_would_decide(const struct run *run, size_t i)
{
    return verdict_would_decide(run->outcomes[i].verdict, run->properties[i], run->options->strict);
}

bool incompleteness_counts(const struct run *run, size_t i)
{
    return run->outcomes[i].verdict == INCOMPLETE && run_would_decide(run, i);
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
    size_t all, missing = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++)
        missing += properties[i]->target == TARGET_HANDLER;
    for (size_t i = 0; i < run->count; i++)
        missing -= run->properties[i]->target == TARGET_HANDLER;
    return missing == 0;
}

/* " with 2 waivers", or "". */
static const char *with_waivers(const struct figures *f)
{
    return f->waived > 0 ? text(" with %s", text_count(f->waived, "waiver")) : "";
}

static const char *waivers_are(const struct figures *f)
{
    return f->stale == 1 ? "1 waiver is" : text("%zu waivers are", f->stale);
}

const char *conclusion_of(const struct figures *f)
{
    const char *properties = f->count == 1 ? "property" : "properties";
    if (f->interrupted && f->rounds > 1)
        return text("INTERRUPTED in round %zu of %zu %s, of which %zu failed so far", f->rounds,
                    f->count, properties, f->against);
    if (f->interrupted)
        return text("INTERRUPTED: a part of %zu %s, of which %zu failed so far", f->count,
                    properties, f->against);
    if (f->quick && f->against > 0)
        return text("FAILED: %zu of %zu %s", f->against, f->count, properties);
    switch (f->code) {
    case EXIT_CONFORMANT:
        if (f->quick)
            return text("nothing failed%s in %zu %s, which proves nothing: --quick leaves most out",
                        with_waivers(f), f->count, properties);
        if (f->count == 0)
            return "no property about the handler was run";
        if (!f->whole)
            return text("conformant%s in the properties that were run, which are not all",
                        with_waivers(f));
        return f->checker == NULL
                   ? text("CONFORMANT%s", with_waivers(f))
                   : text("CONFORMANT%s as far as %s lets it be seen, with shorter loops and %zu "
                          "properties skipped",
                          with_waivers(f), f->checker, f->skipped);
    case EXIT_HARNESS_BROKE:
        return "NO VERDICT: the harness could not do its part";
    case EXIT_INCOMPLETE:
        return text("INCOMPLETE: %zu of %zu properties stopped at a limit, and none failed so "
                    "far",
                    f->unfinished, f->count);
    case EXIT_CANNOT_LOAD:
        return "NO VERDICT: no handler came of loading it";
    case EXIT_CANNOT_WORK_HERE:
        return "NO VERDICT: it says that it cannot work here";
    default:
        if (f->against == 0)
            return text("STALE: nothing else failed%s, but %s for what passes now", with_waivers(f),
                        waivers_are(f));
        return text("NOT CONFORMANT: %zu of %zu %s failed%s%s", f->against, f->count, properties,
                    f->waived > 0 ? text(", %zu more are waived", f->waived) : "",
                    f->stale > 0 ? text(", and %s stale", waivers_are(f)) : "");
    }
}

const char *run_conclusion(const struct run *run)
{
    struct tally handler = run_tally(run, TARGET_HANDLER);
    struct figures figures = {
        .code = run_exit_code(run),
        .count = tally_sum(&handler),
        .against = against(run),
        .waived = run_waived(run),
        .skipped = handler.of[SKIP],
        .unfinished = handler.of[INCOMPLETE],
        .stale = run_stale(run),
        .rounds = run->rounds,
        .checker = run->machine.checker,
        .interrupted = run->interrupted,
        .quick = run->options->quick,
        .whole = run_is_whole(run),
    };
    return conclusion_of(&figures);
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

/* ---- where to start ------------------------------------------------------------------------ */

static bool is_against(const struct run *run, size_t i)
{
    enum verdict verdict = run->outcomes[i].verdict;
    return verdict_facts[verdict].decides;
}

/* Whether what it found is its own matter, and no control met it; behind a control it is, where the
 * one that is about such things has found nothing. */
static bool is_own(const struct run *run, size_t i)
{
    const char *about = run->records[i]->attribute_to;
    bool own = about[0] == '\0' || strcmp(about, run->properties[i]->id) == 0;
    if (!own && run->records[i]->controlled != 0) {
        own = true;
        for (size_t k = 0; k < run->count; k++)
            own = own && !(is_against(run, k) && strcmp(about, run->properties[k]->id) == 0);
    }
    return own && run->records[i]->control[0] == '\0';
}

/* The lowest is the nearest to the defect.  What a property came upon that is another one's matter,
 * or found in its control, tells less than whatever a property has found that it is about. */
static int distance(const struct run *run, size_t i)
{
    enum { NOT_ITS_OWN = 10000 };
    if (run->properties[i]->target != TARGET_HANDLER || !is_against(run, i))
        return INT_MAX;
    return cause_distance(run->properties[i], run->records[i]) + (is_own(run, i) ? 0 : NOT_ITS_OWN);
}

const char *run_start_with(const struct run *run)
{
    enum { FEW = 5 };
    struct tally tally = run_tally(run, TARGET_HANDLER);
    int least = INT_MAX;
    size_t first = 0;
    if (tally.of[FAIL] + tally.of[CRASH] + tally.of[TIMEOUT] <= FEW)
        return NULL;
    for (size_t i = 0; i < run->count; i++) {
        if (distance(run, i) < least) {
            least = distance(run, i);
            first = i;
        }
    }
    return run->properties[first]->id;
}
