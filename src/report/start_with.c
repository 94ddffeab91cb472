/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where many properties fail: the one that most likely names the defect.
 */
#include <string.h>

#include "report/report.h"

/* How well the i-th verdict names the defect: a check that says what is wrong before a process that
 * came to its end somewhere, and what answers for others before what does not. */
static size_t telling(const struct run *run, size_t i)
{
    enum { NAMES_IT = 1000 };
    enum verdict verdict = run->records[i]->verdict;
    size_t weight = 1;
    if (run->properties[i]->target != TARGET_HANDLER || !verdict_is_bad(verdict) ||
        verdict == BROK || verdict == INCOMPLETE)
        return 0;
    if (verdict == FAIL && run->records[i]->control[0] == '\0')
        weight += NAMES_IT;
    for (size_t k = 0; k < run->count; k++)
        weight += strcmp(run->records[k]->caused_by, run->properties[i]->id) == 0;
    return weight;
}

const char *run_start_with(const struct run *run)
{
    enum { FEW = 5 };
    struct tally tally = run_tally(run, TARGET_HANDLER);
    size_t most = 0, first = 0;
    if (tally.of[FAIL] + tally.of[CRASH] + tally.of[TIMEOUT] <= FEW)
        return NULL;
    for (size_t i = 0; i < run->count; i++) {
        size_t weight = telling(run, i);
        if (weight > most)
            first = i;
        most = weight > most ? weight : most;
    }
    return most > 0 ? run->properties[first]->id : NULL;
}
