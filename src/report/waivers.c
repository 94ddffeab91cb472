/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --expect has to say about a run: which failures do not decide, and which of its entries are
 * stale.  Verdicts stay what they are.
 */
#include <string.h>

#include "base/text.h"
#include "report/report.h"

const struct expectation *run_waiver(const struct run *run, size_t i)
{
    return expectations_waive(run->expectations, run->properties[i], &run->outcomes[i],
                              run->environment);
}

const struct expectation *run_expected(const struct run *run, size_t i)
{
    size_t count = run->expectations != NULL ? run->expectations->count : 0;
    const struct outcome *outcome = &run->outcomes[i];
    bool is_bad = outcome->verdict != PASS && outcome->verdict != SKIP && !outcome->not_run;
    for (size_t k = 0; is_bad && run_waiver(run, i) == NULL && k < count; k++) {
        const struct expectation *one = &run->expectations->of[k];
        if (expectation_is_about(one, run->properties[i]) &&
            expectation_applies(one, run->environment))
            return one;
    }
    return NULL;
}

size_t run_waived(const struct run *run)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++)
        count += run_would_decide(run, i) && run_waiver(run, i) != NULL;
    return count;
}

/* How many properties it is about, whatever this run is about. */
static size_t covered(const struct expectation *one)
{
    size_t all, count = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++)
        count += expectation_is_about(one, properties[i]);
    return count;
}

bool run_is_stale(const struct run *run, size_t k)
{
    const struct expectation *one = &run->expectations->of[k];
    size_t passed = 0, there = 0;
    if (!expectation_applies(one, run->environment))
        return false;
    for (size_t i = 0; i < run->count; i++) {
        const struct outcome *outcome = &run->outcomes[i];
        if (!expectation_is_about(one, run->properties[i]))
            continue;
        if ((outcome->verdict != PASS && outcome->verdict != SKIP) || outcome->cause != NULL)
            return false;
        passed += outcome->verdict == PASS;
        there++;
    }
    return passed > 0 && there == covered(one);
}

size_t run_stale(const struct run *run)
{
    size_t stale = 0;
    for (size_t k = 0; run->expectations != NULL && k < run->expectations->count; k++)
        stale += run_is_stale(run, k);
    return stale;
}

const char *run_stale_words(const struct run *run, size_t k)
{
    const struct expectation *one = &run->expectations->of[k];
    return text("%s:%d: %s is expected to %s, and passes now: take the entry out",
                text_safe(run->expectations->file), one->line, text_safe(one->id),
                verdict_name(one->verdict));
}

const char *expectation_words(const struct expectation *one)
{
    return text("%s%s%s%s%s", text_safe(one->reason), one->url != NULL ? "; " : "",
                one->url != NULL ? text_safe(one->url) : "", one->until != NULL ? "; until " : "",
                one->until != NULL ? one->until : "");
}
