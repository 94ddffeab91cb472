/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the outcomes of a run mean: its counts, whether it is conformant, the exit status, and which
 * failure to look at first.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/attribution.h"
#include "report/report.h"

bool outcome_would_decide(const struct outcome *outcome, const struct property *property,
                          bool strict)
{
    enum verdict verdict = outcome->verdict;
    return property->target == TARGET_HANDLER &&
           (verdict_facts[verdict].decides || (verdict == WARN && strict) ||
            (verdict == INCOMPLETE && (property->level == MUST || strict)));
}

static void count_outcomes(const struct run *run, struct conclusion *c)
{
    size_t all, about_handler = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++)
        about_handler += properties[i]->target == TARGET_HANDLER;
    for (size_t i = 0; i < run->count; i++) {
        const struct outcome *outcome = &run->outcomes[i];
        bool is_about_handler = run->properties[i]->target == TARGET_HANDLER;
        ++(is_about_handler ? &c->handler : &c->runtime)->of[outcome->verdict];
        c->count += is_about_handler;
        if (!outcome_would_decide(outcome, run->properties[i], run->options->strict))
            continue;
        if (outcome->waiver != NULL)
            c->waived++;
        else if (outcome->verdict == INCOMPLETE)
            c->undecided++;
        else
            c->against++;
    }
    c->whole = c->count == about_handler;
    for (size_t k = 0; run->expectations != NULL && k < run->expectations->count; k++)
        c->stale += run->expectations->of[k].is_stale;
}

static enum exit_code exit_code_of(const struct run *run, const struct conclusion *c)
{
    int load = atomic_load(&run->load->state);
    if (load == LOAD_FAILED)
        return EXIT_CANNOT_LOAD;
    if (load == LOAD_UNFIT)
        return EXIT_CANNOT_WORK_HERE;
    if (c->against > 0 || c->stale > 0)
        return EXIT_NOT_CONFORMANT;
    if (c->handler.of[BROK] + c->runtime.of[BROK] > 0)
        return EXIT_HARNESS_BROKE;
    if (run->interrupted || (c->undecided > 0 && !run->options->quick))
        return EXIT_INCOMPLETE;
    return EXIT_CONFORMANT;
}

/* "CONFORMANT" or why not, without the handler's name. */
static const char *words_of(const struct run *run, const struct conclusion *c)
{
    const char *properties = fmt(c->count == 1 ? "%zu property" : "%zu properties", c->count);
    const char *waivers = c->waived > 0 ? fmt(" with %s", plural(c->waived, "waiver")) : "";
    const char *stale = fmt(c->stale == 1 ? "%zu waiver is" : "%zu waivers are", c->stale);
    if (run->interrupted && run->rounds > 1)
        return fmt("INTERRUPTED in round %zu of %s, of which %zu failed so far", run->rounds,
                   properties, c->against);
    if (run->interrupted)
        return fmt("INTERRUPTED: a part of %s, of which %zu failed so far", properties, c->against);
    if (run->options->quick && c->against > 0)
        return fmt("FAILED: %zu of %s", c->against, properties);
    switch (c->code) {
    case EXIT_CONFORMANT:
        if (run->options->quick)
            return fmt("nothing failed%s in %s, which proves nothing: --quick leaves most out",
                       waivers, properties);
        if (c->count == 0)
            return "no property about the handler was run";
        if (!c->whole)
            return fmt("conformant%s in the properties that were run, which are not all", waivers);
        if (run->machine.checker != NULL)
            return fmt("CONFORMANT%s as far as %s lets it be seen, with shorter loops and %zu "
                       "properties skipped",
                       waivers, run->machine.checker, c->handler.of[SKIP]);
        return fmt("CONFORMANT%s", waivers);
    case EXIT_HARNESS_BROKE:
        return "NO VERDICT: the harness could not do its part";
    case EXIT_INCOMPLETE:
        return fmt("INCOMPLETE: %zu of %zu properties stopped at a limit, and none failed so far",
                   c->handler.of[INCOMPLETE], c->count);
    case EXIT_CANNOT_LOAD:
        return "NO VERDICT: no handler came of loading it";
    case EXIT_CANNOT_WORK_HERE:
        return "NO VERDICT: it says that it cannot work here";
    default:
        if (c->against == 0)
            return fmt("STALE: nothing else failed%s, but %s for what passes now", waivers, stale);
        return fmt("NOT CONFORMANT: %zu of %s failed%s%s", c->against, properties,
                   c->waived > 0 ? fmt(", %zu more are waived", c->waived) : "",
                   c->stale > 0 ? fmt(", and %s stale", stale) : "");
    }
}

/* ---- where to start ------------------------------------------------------------------------ */

static bool is_against(const struct run *run, size_t i)
{
    return verdict_facts[run->outcomes[i].verdict].decides;
}

/* True if the property found what it is about, and not in its control.  After a control, what it
 * found is its own if the property that is about it has not failed. */
static bool is_own(const struct run *run, size_t i)
{
    const struct record *record = run->records[i];
    const char *about = record->attribute_to;
    bool own = about[0] == '\0' || strcmp(about, run->properties[i]->id) == 0;
    if (!own && record->controlled != 0) {
        own = true;
        for (size_t k = 0; k < run->count; k++)
            own = own && !(is_against(run, k) && strcmp(about, run->properties[k]->id) == 0);
    }
    return own && record->control[0] == '\0';
}

static bool is_failure(const struct run *run, size_t i)
{
    return run->properties[i]->target == TARGET_HANDLER && is_against(run, i) &&
           run->outcomes[i].waiver == NULL;
}

/* Of the failures that `belongs` to, returns the one that most likely names the defect, or i. */
static size_t nearest_to_the_cause(const struct run *run, size_t i,
                                   bool belongs(const struct run *, size_t i, size_t k))
{
    enum { NOT_ITS_OWN = 10000, OF_ANOTHER_FUNCTION = 5000 };
    int least = INT_MAX;
    size_t nearest = i;
    for (size_t k = 0; k < run->count; k++) {
        if (!is_failure(run, k) || !belongs(run, i, k))
            continue;
        const struct group *group = property_group(run->properties[k]);
        enum step_kind in = run->records[k]->suspects[ENDED_IN].kind;
        bool is_of_another = in != OUTSIDE && (group == NULL || group->function != in);
        int distance = cause_distance(run->properties[k], run->records[k]) +
                       (is_own(run, k) ? 0 : NOT_ITS_OWN) +
                       (is_of_another ? OF_ANOTHER_FUNCTION : 0);
        if (distance < least) {
            least = distance;
            nearest = k;
        }
    }
    return nearest;
}

/* True if the same was observed: blocks that are not aligned, or processes that ended at the same
 * place in the handler. */
static bool are_alike(const struct run *run, size_t i, size_t k)
{
    bool are_unaligned =
        rule_is_alignment(run->properties[i]->rule) && rule_is_alignment(run->properties[k]->rule);
    return k == i ||
           (are_unaligned && run->outcomes[i].verdict == FAIL &&
            run->outcomes[k].verdict == FAIL) ||
           (run->outcomes[i].verdict == run->outcomes[k].verdict &&
            run->outcomes[i].verdict != FAIL && run->places[i] != NULL && run->places[k] != NULL &&
            strcmp(run->places[i], run->places[k]) == 0);
}

static bool are_any(const struct run *run, size_t i, size_t k)
{
    (void)run, (void)i, (void)k;
    return true;
}

/* Finds for each failure the one that most likely has the same cause, which is reported in full.
 * Where many remain, that is one for all. */
static void find_leads(struct run *run, struct conclusion *c)
{
    enum { FEW = 5 };
    size_t leads = 0;
    free(run->leads);
    run->leads = allocate(run->count, sizeof *run->leads);
    for (size_t i = 0; i < run->count; i++) {
        bool fails = is_failure(run, i);
        run->leads[i] = fails ? nearest_to_the_cause(run, i, are_alike) : i;
        leads += fails && run->leads[i] == i;
        c->crash_places += fails && run->leads[i] == i && run->outcomes[i].verdict == CRASH;
    }
    size_t first = nearest_to_the_cause(run, SIZE_MAX, are_any);
    if (first == SIZE_MAX ||
        c->handler.of[FAIL] + c->handler.of[CRASH] + c->handler.of[TIMEOUT] <= FEW)
        return;
    c->start_with = run->properties[first]->id;
    for (size_t i = 0; i < run->count && leads > FEW; i++)
        run->leads[i] = is_failure(run, i) ? first : i;
}

void run_conclude(struct run *run)
{
    struct conclusion c = {.count = 0};
    if (run->expectations != NULL)
        expectations_find_stale(run->expectations, run);
    count_outcomes(run, &c);
    c.code = c.status = exit_code_of(run, &c);
    c.conformant = c.code == EXIT_CONFORMANT && c.waived == 0;
    find_leads(run, &c);
    snprintf(c.words, sizeof c.words, "%s", words_of(run, &c));
    run->conclusion = c;
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
