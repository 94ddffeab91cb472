/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kinds of calls that a property of their own is about, and who answers for whom.
 */
#include "model/attribution.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/size_bits.h"
#include "base/text.h"
#include "model/options.h"

/* No machine has room for so much. */
static const size_t too_large = POWER_OF_2(48);

/* So much can be had, when little else is alive. */
static const size_t small = (size_t)1 << 20;

static bool is_of_null(const struct step *call)
{
    return call->pointer == NULL;
}

static bool overflows(const struct step *call)
{
    return step_size(call) >= too_large;
}

/* What makes a call one of a kind. */
enum condition {
    MISSING = FUNCTION_IS_MISSING, /* those of enum trouble */
    REFUSED = REFUSED_BELOW,
    UNALIGNED = NOT_ALIGNED,
    DIRTY = NOT_ZERO,
    GUESSED_SIZE = WRONG_SIZE,
    OF_LITTLE = REFUSED_LITTLE,
    OF_NOTHING, /* those of the arguments */
    OF_ONE,
    TOO_LARGE,
    ZERO_FACTOR,
    OVERFLOWING,
    OF_NULL,
    OF_NULL_AND_NOTHING,
};

static bool fits(const struct step *call, enum condition condition)
{
    switch (condition) {
    case OF_NOTHING:
        return call->first == 0;
    case OF_ONE:
        return call->first == 1;
    case TOO_LARGE:
        return call->first >= too_large;
    case ZERO_FACTOR:
        return call->first == 0 || call->second == 0;
    case OVERFLOWING:
        return overflows(call);
    case OF_NULL:
        return is_of_null(call);
    case OF_NULL_AND_NOTHING:
        return is_of_null(call) && call->first == 0;
    default:
        return call->trouble == (int)condition;
    }
}

/* The first row that fits is the kind of a call. */
static const struct call_kind kinds[] = {
    {STEP_MALLOC, MISSING, TOPIC_MISSING_FUNCTION, "malloc"},
    {STEP_CALLOC, MISSING, TOPIC_MISSING_FUNCTION, "calloc"},
    {STEP_REALLOC, MISSING, TOPIC_MISSING_FUNCTION, "realloc"},
    {STEP_FREE, MISSING, TOPIC_MISSING_FUNCTION, "free"},
    {STEP_MALLOC, REFUSED, TOPIC_REFUSED_MEMORY, "malloc that is refused memory"},
    {STEP_CALLOC, REFUSED, TOPIC_REFUSED_MEMORY, "calloc that is refused memory"},
    {STEP_REALLOC, REFUSED, TOPIC_REFUSED_MEMORY, "realloc that is refused memory"},
    {STEP_MALLOC, OF_LITTLE, TOPIC_LITTLE_MALLOC, "malloc of little"},
    {STEP_CALLOC, OF_LITTLE, TOPIC_LITTLE_CALLOC, "calloc of little"},
    {STEP_REALLOC, OF_LITTLE, TOPIC_LITTLE_REALLOC, "realloc to little"},
    {STEP_MALLOC, UNALIGNED, TOPIC_NOT_ALIGNED, "malloc that does not align"},
    {STEP_CALLOC, UNALIGNED, TOPIC_NOT_ALIGNED, "calloc that does not align"},
    {STEP_REALLOC, UNALIGNED, TOPIC_NOT_ALIGNED, "realloc that does not align"},
    {STEP_MALLOC, OF_NOTHING, TOPIC_MALLOC_ZERO, "malloc(0)"},
    {STEP_MALLOC, OF_ONE, TOPIC_MALLOC_ONE, "malloc(1)"},
    {STEP_MALLOC, TOO_LARGE, TOPIC_MALLOC_TOO_LARGE, "malloc of more than there can be"},
    {STEP_CALLOC, DIRTY, TOPIC_CALLOC_NOT_ZERO, "calloc that does not zero"},
    {STEP_CALLOC, ZERO_FACTOR, TOPIC_CALLOC_ZERO, "calloc of nothing"},
    {STEP_CALLOC, OVERFLOWING, TOPIC_CALLOC_TOO_LARGE, "calloc of more than there can be"},
    {STEP_REALLOC, OF_NULL, TOPIC_REALLOC_NULL, "realloc(NULL, n)"},
    {STEP_REALLOC, OF_ONE, TOPIC_REALLOC_ONE, "realloc(p, 1)"},
    {STEP_REALLOC, TOO_LARGE, TOPIC_REALLOC_TOO_LARGE, "realloc to more than there can be"},
    {STEP_FREE, GUESSED_SIZE, TOPIC_FREE_WRONG_SIZE, "free with a size that is a guess"},
    {STEP_FREE, OF_NULL_AND_NOTHING, TOPIC_FREE_NULL_ZERO, "free(NULL, 0)"},
    {STEP_FREE, OF_NULL, TOPIC_FREE_NULL, "free(NULL, n)"},
};

const struct call_kind *call_kind(const struct step *call)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (call->kind == kinds[i].function && fits(call, kinds[i].condition))
            return &kinds[i];
    }
    return NULL;
}

bool call_may_not_return_null(const struct step *call)
{
    return (call->kind == STEP_MALLOC && fits(call, OF_ONE)) ||
           (call->kind == STEP_REALLOC && call->first > 0 && call->first <= small &&
            (is_of_null(call) || fits(call, OF_ONE)));
}

bool call_is_absurd(const struct step *call)
{
    return (call->kind == STEP_CALLOC && overflows(call)) ||
           ((call->kind == STEP_MALLOC || call->kind == STEP_REALLOC) && fits(call, TOO_LARGE));
}

bool call_is_of_little(const struct step *call)
{
    uint64_t size = step_size(call);
    return call->trouble == NO_TROUBLE && size > 0 && size <= small;
}

/* True if the property is about calls of that kind, first or next. */
static bool is_about(const struct property *property, const struct call_kind *kind)
{
    return ((property->answers_for | property->answers_next_for) >> kind->topic & 1) != 0;
}

/* ---- distance to the root cause ---------------------------------------------------------- */

/* True if it ended in a call of the kind that it is about. */
static bool ended_in_its_own(const struct property *property, const struct record *record)
{
    const struct call_kind *kind = call_kind(&record->suspects[ENDED_IN]);
    return kind != NULL && is_about(property, kind);
}

/* True if bytes were not what was written, or there was no block, and this is not limited by a
 * control to what the property is about. */
static bool came_of_memory(const struct record *record)
{
    const struct step *wrong = &record->suspects[RETURNED_WRONG];
    return record->controlled == 0 &&
           (record->overwritten != 0 || (wrong->kind != OUTSIDE && !call_is_absurd(wrong)));
}

static enum closeness closeness_of_failure(const struct property *property, enum step_kind about,
                                           const struct record *record)
{
    enum closeness fails = property_rank(property).fails;
    if (fails == RANK_BY_ITSELF && came_of_memory(record))
        return RANK_AT_LENGTH;
    if (about == STEP_MALLOC && fails <= RANK_ONE_FUNCTION && record->overwritten == 0 &&
        !came_of_memory(record))
        return MIN(fails, RANK_BESIDE); /* what malloc returned is wrong before it is used */
    return fails;
}

/* Memory that was overwritten ends any process, at any call.  So a crash is farther from the cause
 * than a check that fails, unless the property itself writes into blocks up to their ends, or makes
 * the call that crashes on purpose. */
static enum closeness closeness_of_end(const struct property *property, enum step_kind about,
                                       bool threads, const struct record *record)
{
    struct rank rank = property_rank(property);
    enum step_kind in = record->suspects[ENDED_IN].kind;
    if (record->signal_elsewhere != 0 && !threads)
        return RANK_AT_LENGTH; /* the first thread does the same and does not crash */
    if (rank.fails == RANK_BY_ITSELF && ended_in_its_own(property, record))
        return RANK_BY_ITSELF;
    if (rank.fails <= RANK_BESIDE && record->controlled != 0 && in != OUTSIDE && in == about)
        return RANK_BESIDE;
    if (rank.crashes > RANK_BY_ITSELF && in == OUTSIDE)
        return rank.crashes - 1; /* it wrote into a block that is not all there */
    return rank.crashes;
}

int cause_distance(const struct property *property, const struct record *record)
{
    enum { TIES = 1024 };
    static const struct group none;
    const struct group *group = property_group(property);
    if (group == NULL)
        group = &none;
    bool fails = record->verdict == FAIL || record->verdict == WARN;
    enum closeness closeness =
        fails ? closeness_of_failure(property, group->function, record)
              : closeness_of_end(property, group->function, property_has_threads(property), record);
    return (2 * (int)closeness + !fails) * TIES + property_rank(property).tie;
}

/* ---- settling ----------------------------------------------------------------------------- */

/* All verdicts of a round, and who answers for whom: cause[i] is 1 + the place of the property that
 * the i-th is attributed to, or 0. */
struct round {
    const struct property *const *properties;
    size_t count;
    struct shared_results *shared;
    size_t *cause;
    size_t *record; /* by property: the place of the record that its outcome is about */
};

static const struct record *record_of(const struct round *round, size_t i)
{
    return results_record(round->shared, round->record[i]);
}

/* True if a property that is about such calls has failed because of such a refusal. */
static bool was_refused_little(const struct round *round, const struct call_kind *kind)
{
    for (size_t i = 0; i < round->count; i++) {
        if (is_about(round->properties[i], kind) &&
            verdict_facts[record_of(round, i)->verdict].decides &&
            record_of(round, i)->control[0] == '\0' &&
            record_of(round, i)->suspects[RETURNED_WRONG].trouble == REFUSED_LITTLE)
            return true;
    }
    return false;
}

/* The kind of a suspect call of the i-th property if another property is about it, else NULL. */
static const struct call_kind *kind_elsewhere(const struct round *round, size_t i,
                                              const struct step *call)
{
    const struct call_kind *kind = call_kind(call);
    bool elsewhere = kind != NULL && !is_about(round->properties[i], kind) &&
                     (call->trouble != REFUSED_LITTLE || was_refused_little(round, kind));
    return elsewhere ? kind : NULL;
}

static bool is_open(const struct round *round, size_t i)
{
    return round->cause[i] == 0 && verdict_facts[record_of(round, i)->verdict].against;
}

/* Whether it has failed by itself: no other call, and no control, was the reason.  What another
 * property has found is a violation of the requirement that it names. */
static bool is_sure(const struct round *round, size_t i)
{
    const struct record *record = record_of(round, i);
    const char *id = round->properties[i]->id;
    bool sure = verdict_facts[record->verdict].against && record->control[0] == '\0' &&
                (record->attribute_to[0] == '\0' || strcmp(record->attribute_to, id) == 0) &&
                round->properties[i]->target == TARGET_HANDLER;
    bool is_moved = round->record[i] != i;
    for (size_t k = 0; k < SUSPECTS && !(is_moved && record->is_definite == 1); k++)
        sure = sure && ((is_moved && k == ENDED_IN) ||
                        kind_elsewhere(round, i, &record->suspects[k]) == NULL);
    return sure;
}

/* Whether a verdict of `owner` says all that the i-th would: what is decisive stays so. */
static bool may_answer(const struct round *round, size_t owner, size_t i)
{
    return owner != i && round->properties[owner]->target == TARGET_HANDLER &&
           (verdict_facts[record_of(round, owner)->verdict].decides ||
            !verdict_facts[record_of(round, i)->verdict].decides);
}

static void attribute_to_owner(struct round *round, size_t i, size_t owner)
{
    if (is_open(round, i) && may_answer(round, owner, i) && is_sure(round, owner))
        round->cause[i] = owner + 1;
}

/* Attributes the i-th to the properties that are about the calls it met, if they failed. */
static void attribute_to_owners(struct round *round, size_t i)
{
    const struct record *record = record_of(round, i);
    for (size_t k = 0; k < SUSPECTS; k++) {
        const struct call_kind *kind = kind_elsewhere(round, i, &record->suspects[k]);
        for (size_t owner = 0; kind != NULL && owner < round->count; owner++) {
            if ((round->properties[owner]->answers_for >> kind->topic & 1) != 0)
                attribute_to_owner(round, i, owner);
        }
        for (size_t owner = 0; kind != NULL && owner < round->count; owner++) {
            if (is_about(round->properties[owner], kind))
                attribute_to_owner(round, i, owner);
        }
    }
    for (size_t owner = 0; record->attribute_to[0] != '\0' && owner < round->count; owner++) {
        if (strcmp(round->properties[owner]->id, record->attribute_to) == 0)
            attribute_to_owner(round, i, owner);
    }
}

/* How far from the defect what `owner` found is; what ended in another function than the i-th did
 * explains it less. */
static int distance(const struct round *round, size_t owner, size_t i)
{
    enum { ANOTHER_FUNCTION = 10000 };
    enum step_kind in = record_of(round, i)->suspects[ENDED_IN].kind;
    bool same_function = in != OUTSIDE && in == record_of(round, owner)->suspects[ENDED_IN].kind;
    return cause_distance(round->properties[owner], record_of(round, owner)) +
           (same_function ? 0 : ANOTHER_FUNCTION);
}

/* What failed in its control shows a defect of another kind: that of whichever property `may_own`
 * it, the nearest to the defect first. */
static void attribute_control(struct round *round, size_t i,
                              bool may_own(const struct round *, size_t))
{
    int least = INT_MAX;
    if (!is_open(round, i) || record_of(round, i)->control[0] == '\0')
        return;
    for (size_t owner = 0; owner < round->count; owner++) {
        if (!may_answer(round, owner, i) || !may_own(round, owner) ||
            distance(round, owner, i) >= least)
            continue;
        least = distance(round, owner, i);
        round->cause[i] = owner + 1;
    }
}

/* Whether the same call, or the same other property, is behind both of them. */
static bool share_a_reason(const struct round *round, size_t i, size_t k)
{
    const struct record *one = record_of(round, i), *other = record_of(round, k);
    bool shared = one->control[0] != '\0' && other->control[0] != '\0';
    shared = shared ||
             (one->attribute_to[0] != '\0' && strcmp(one->attribute_to, other->attribute_to) == 0);
    for (size_t s = 0; s < SUSPECTS && !shared; s++) {
        const struct call_kind *kind = kind_elsewhere(round, i, &one->suspects[s]);
        for (size_t o = 0; o < SUSPECTS && kind != NULL; o++)
            shared = shared || call_kind(&other->suspects[o]) == kind;
    }
    return shared;
}

/* Whether it keeps a verdict of its own, and that of no control. */
static bool stands(const struct round *round, size_t i)
{
    return is_open(round, i) && record_of(round, i)->control[0] == '\0';
}

/* Whether it has found a violation of the requirement that it states. */
static bool states_it(const struct round *round, size_t i)
{
    return record_of(round, i)->is_finding == 1 &&
           strcmp(record_of(round, i)->attribute_to, round->properties[i]->id) == 0;
}

/* Whether the k-th is to keep a verdict rather than the i-th: one that states the requirement says
 * more, then one after a control in which nothing failed; of two alike the first does. */
static bool goes_before(const struct round *round, size_t k, size_t i)
{
    bool one = states_it(round, k), other = states_it(round, i);
    if (one != other)
        return one;
    one = record_of(round, k)->controlled != 0;
    other = record_of(round, i)->controlled != 0;
    return one != other ? one : k < i;
}

/* Where nobody that it could be attributed to has failed, because that one was left out, say, one
 * of those that met it keeps the verdict: the foremost that `may_own` it. */
static void attribute_to_first(struct round *round, size_t i,
                               bool may_own(const struct round *, size_t))
{
    size_t first = i;
    for (size_t k = 0; k < round->count && is_open(round, i) && !is_sure(round, i); k++) {
        if (goes_before(round, k, first) && may_own(round, k) && may_answer(round, k, i) &&
            share_a_reason(round, i, k))
            first = k;
    }
    if (first != i)
        round->cause[i] = first + 1;
}

/* The same for all that stand, or do not: the foremost of them first, so that nobody is attributed
 * to one that is attributed to another itself. */
static void attribute_to_foremost(struct round *round, bool standing,
                                  bool may_own(const struct round *, size_t))
{
    for (int controlled = 1; controlled >= 0; controlled--) {
        for (size_t i = 0; i < round->count; i++) {
            if ((record_of(round, i)->controlled != 0) == controlled &&
                stands(round, i) == standing)
                attribute_to_first(round, i, may_own);
        }
    }
}

static const char *reason(const struct round *round, size_t i)
{
    const struct record *record = record_of(round, i);
    if (round->record[round->cause[i] - 1] != round->cause[i] - 1)
        return "it found a violation of that requirement";
    if (record->control[0] != '\0')
        return fmt("it fails %s as well", record->control);
    for (size_t k = 0; k < SUSPECTS; k++) {
        const struct call_kind *kind = kind_elsewhere(round, i, &record->suspects[k]);
        if (kind != NULL)
            return fmt("%s goes wrong", kind->call);
    }
    bool is_struct = record->attribute_to[0] != '\0' &&
                     (strcmp(record->attribute_to, property_about(TOPIC_STRUCT_GONE)) == 0 ||
                      strcmp(record->attribute_to, property_about(TOPIC_STRUCT_CHANGED)) == 0);
    return is_struct ? "the struct is gone" : "it came upon a defect of another kind";
}

static void put_ends(struct shared_results *shared, size_t count)
{
    for (size_t i = 0; i < count; i++) { /* a subject can write there */
        struct record *record = results_record(shared, i);
        record->attribute_to[sizeof record->attribute_to - 1] = '\0';
        if (strspn(record->attribute_to, "abcdefghijklmnopqrstuvwxyz0123456789.-") !=
            strlen(record->attribute_to))
            record->attribute_to[0] = '\0'; /* no id */
        record_check_control(record);
        record->seen[sizeof record->seen - 1] = '\0';
        record->memcheck[sizeof record->memcheck - 1] = '\0';
    }
}

/* Returns the index of a property that does not count against the handler although no property
 * answers for it, or that passed inside its own control; or `count`, which is the only right
 * result.
 */
static size_t unsettled(const struct round *round, const struct outcome *outcomes)
{
    for (size_t i = 0; i < round->count; i++) {
        bool answered = outcomes[i].cause == NULL;
        for (size_t k = 0; k < round->count && !answered; k++)
            answered = round->properties[k] == outcomes[i].cause &&
                       verdict_facts[outcomes[k].verdict].against;
        if (!answered || (record_of(round, i)->control[0] != '\0' && outcomes[i].verdict == PASS))
            return i;
    }
    return round->count;
}

/* A violation that another property came across is reported by the property that states the
 * requirement, unless that one has found a violation of it by itself. */
static void move_findings(struct round *round)
{
    for (size_t k = 0; k < round->count; k++) {
        const struct record *own = results_record(round->shared, k);
        const char *id = round->properties[k]->id;
        if (verdict_facts[own->verdict].against && own->control[0] == '\0' &&
            (own->attribute_to[0] == '\0' || strcmp(own->attribute_to, id) == 0))
            continue;
        for (size_t i = 0; i < round->count && round->record[k] == k; i++) {
            const struct record *other = results_record(round->shared, i);
            if (other->is_finding == 1 && verdict_facts[other->verdict].against &&
                other->control[0] == '\0' && strcmp(other->attribute_to, id) == 0)
                round->record[k] = i;
        }
    }
}

/* A property that failed by itself is attributed to no other, so the order of the properties does
 * not matter; nor is one that keeps its verdict, once a control is attributed to it. */
void attribution_settle(const struct property *const *properties, size_t count,
                        struct shared_results *shared, struct outcome *outcomes)
{
    struct round round = {properties, count, shared, calloc(count + 1, sizeof(size_t)),
                          calloc(count + 1, sizeof(size_t))};
    if (round.cause == NULL || round.record == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    put_ends(shared, count);
    for (size_t i = 0; i < count; i++)
        round.record[i] = i;
    move_findings(&round);
    for (size_t i = 0; i < count; i++)
        attribute_to_owners(&round, i);
    for (size_t i = 0; i < count; i++)
        attribute_control(&round, i, is_sure);
    attribute_to_foremost(&round, true, stands);
    for (size_t i = 0; i < count; i++)
        attribute_control(&round, i, stands);
    attribute_to_foremost(&round, false, is_open);
    for (size_t i = 0; i < count; i++) {
        struct outcome *outcome = &outcomes[i];
        *outcome = outcome_of(record_of(&round, i));
        if (round.record[i] != i)
            outcome->found_by = properties[round.record[i]];
        if (round.cause[i] == 0)
            continue;
        const struct record *own = results_record(shared, i);
        if (own->is_complete == 1 && own->verdict == WARN) { /* it found nothing of its own */
            *outcome = (struct outcome){.verdict = PASS};
            continue;
        }
        *outcome = (struct outcome){.verdict = SKIP, .cause = properties[round.cause[i] - 1]};
        snprintf(outcome->note, sizeof outcome->note, "%s", reason(&round, i));
    }
    size_t i = unsettled(&round, outcomes);
    free(round.cause);
    free(round.record);
    if (i < count)
        outcomes[i] = (struct outcome){.verdict = BROK, .note = "nobody answers for what ended it"};
}
