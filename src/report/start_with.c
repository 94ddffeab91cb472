/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where many properties fail: the one that most likely names the defect.
 */
#include <limits.h>
#include <string.h>

#include "model/attribution.h"
#include "report/report.h"

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
