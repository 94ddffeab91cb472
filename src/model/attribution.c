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

#include "base/size_bits.h"
#include "base/text.h"
#include "model/nearness.h"

/* No machine has room for so much. */
static const size_t too_large = POWER_OF_2(48);

/* So much can be had, when little else is alive. */
static const size_t small = (size_t)1 << 20;

static bool is_missing(const struct call *call)
{
    return call->trouble == FUNCTION_IS_MISSING;
}

static bool is_refused(const struct call *call)
{
    return call->trouble == REFUSED_BELOW;
}

static bool is_not_zero(const struct call *call)
{
    return call->trouble == NOT_ZERO;
}

static bool has_wrong_size(const struct call *call)
{
    return call->trouble == WRONG_SIZE;
}

static bool is_refused_little(const struct call *call)
{
    return call->trouble == REFUSED_LITTLE;
}

static bool is_of_nothing(const struct call *call)
{
    return call->first == 0;
}

static bool is_of_one(const struct call *call)
{
    return call->first == 1;
}

static bool is_too_large(const struct call *call)
{
    return call->first >= too_large;
}

static bool has_zero_factor(const struct call *call)
{
    return call->first == 0 || call->second == 0;
}

static bool overflows(const struct call *call)
{
    size_t product;
    return __builtin_mul_overflow(call->first, call->second, &product) || product >= too_large;
}

static bool is_of_null(const struct call *call)
{
    return call->pointer == NULL;
}

static bool is_of_null_and_nothing(const struct call *call)
{
    return call->pointer == NULL && call->first == 0;
}

/* The first that fits is it. */
static const struct kind {
    enum function function;
    bool (*fits)(const struct call *call);
    struct attribution of;
} kinds[] = {
    {IN_MALLOC, is_missing, {"malloc", "abi.functions-present", NULL}},
    {IN_CALLOC, is_missing, {"calloc", "abi.functions-present", NULL}},
    {IN_REALLOC, is_missing, {"realloc", "abi.functions-present", NULL}},
    {IN_FREE, is_missing, {"free", "abi.functions-present", NULL}},
    {IN_MALLOC, is_refused, {"malloc that is refused memory", "exhaustion.nth-request", NULL}},
    {IN_CALLOC, is_refused, {"calloc that is refused memory", "exhaustion.nth-request", NULL}},
    {IN_REALLOC, is_refused, {"realloc that is refused memory", "exhaustion.nth-request", NULL}},
    {IN_MALLOC, is_refused_little, {"malloc of little", "malloc.lasts", NULL}},
    {IN_CALLOC, is_refused_little, {"calloc of little", "malloc.lasts", "calloc.zeroed"}},
    {IN_REALLOC,
     is_refused_little,
     {"realloc to little", "malloc.lasts", "realloc.keeps-contents"}},
    {IN_MALLOC, is_of_nothing, {"malloc(0)", "malloc.zero", NULL}},
    {IN_MALLOC, is_of_one, {"malloc(1)", "malloc.one-byte", NULL}},
    {IN_MALLOC, is_too_large, {"malloc of more than there can be", "malloc.too-large", NULL}},
    {IN_CALLOC,
     is_not_zero,
     {"calloc that does not zero", "calloc.zeroed", "calloc.zeroed-when-reused"}},
    {IN_CALLOC, has_zero_factor, {"calloc of nothing", "calloc.zero-arguments", NULL}},
    {IN_CALLOC, overflows, {"calloc of more than there can be", "calloc.overflow", NULL}},
    {IN_REALLOC, is_of_null, {"realloc(NULL, n)", "realloc.null-allocates", NULL}},
    {IN_REALLOC, is_of_one, {"realloc(p, 1)", "realloc.to-one", NULL}},
    {IN_REALLOC,
     is_too_large,
     {"realloc to more than there can be", "realloc.failure-keeps-block", NULL}},
    {IN_FREE,
     has_wrong_size,
     {"free with a size that is a guess", "free.best-guess-size", "free.any-size"}},
    {IN_FREE, is_of_null_and_nothing, {"free(NULL, 0)", "free.null", NULL}},
    {IN_FREE, is_of_null, {"free(NULL, n)", "free.null-with-size", NULL}},
};

const struct attribution *attribution_for(const struct call *call)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (call->function == kinds[i].function && kinds[i].fits(call))
            return &kinds[i].of;
    }
    return NULL;
}

const struct attribution *attribution_for_null(const struct call *call)
{
    bool may_not = (call->function == IN_MALLOC && is_of_one(call)) ||
                   (call->function == IN_REALLOC && call->first > 0 && call->first <= small &&
                    (is_of_null(call) || is_of_one(call)));
    return may_not ? attribution_for(call) : NULL;
}

bool attribution_is_absurd(const struct call *call)
{
    return (call->function == IN_CALLOC && overflows(call)) ||
           ((call->function == IN_MALLOC || call->function == IN_REALLOC) && is_too_large(call));
}

bool attribution_is_of_little(const struct call *call)
{
    size_t size;
    if (call->function == IN_CALLOC && __builtin_mul_overflow(call->first, call->second, &size))
        return false;
    if (call->function != IN_CALLOC)
        size = call->first;
    return call->trouble == NO_TROUBLE && size > 0 && size <= small;
}

/* ---- settling ----------------------------------------------------------------------------- */

/* All verdicts of a round, and who answers for whom: cause[i] is 1 + the place of the property that
 * the i-th is attributed to, or 0. */
struct round {
    const struct property *const *properties;
    size_t count;
    struct board *board;
    size_t *cause;
};

static bool speaks_against(enum verdict verdict)
{
    return verdict == FAIL || verdict == WARN || verdict == CRASH || verdict == TIMEOUT;
}

static bool is_decisive(enum verdict verdict)
{
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT;
}

static const struct record *record_of(const struct round *round, size_t i)
{
    return board_record(round->board, i);
}

/* Whether the property of that name has failed, and met such a refusal. */
static bool was_refused_little(const struct round *round, const char *id)
{
    for (size_t i = 0; id != NULL && i < round->count; i++) {
        if (strcmp(round->properties[i]->id, id) == 0)
            return is_decisive(record_of(round, i)->verdict) &&
                   record_of(round, i)->control[0] == '\0' &&
                   record_of(round, i)->suspects[RETURNED_WRONG].trouble == REFUSED_LITTLE;
    }
    return false;
}

/* The kind of call that a suspect of that property is of, where that is another's, or NULL. */
static const struct attribution *attribution_elsewhere(const struct round *round, const char *id,
                                                       const struct call *call)
{
    const struct attribution *kind = attribution_for(call);
    bool own = kind != NULL && (strcmp(id, kind->owner) == 0 ||
                                (kind->second != NULL && strcmp(id, kind->second) == 0));
    bool may_be_right = kind != NULL && call->trouble == REFUSED_LITTLE &&
                        !was_refused_little(round, kind->owner) &&
                        !was_refused_little(round, kind->second);
    return own || may_be_right ? NULL : kind;
}

static bool is_open(const struct round *round, size_t i)
{
    return round->cause[i] == 0 && speaks_against(record_of(round, i)->verdict);
}

/* Whether it has failed by itself: no other call, and no control, was the reason. */
static bool is_sure(const struct round *round, size_t i)
{
    const char *id = round->properties[i]->id;
    const struct record *record = record_of(round, i);
    bool sure = speaks_against(record->verdict) && record->control[0] == '\0' &&
                (record->attribute_to[0] == '\0' || strcmp(record->attribute_to, id) == 0) &&
                round->properties[i]->target == TARGET_HANDLER;
    for (size_t k = 0; k < SUSPECTS; k++)
        sure = sure && attribution_elsewhere(round, id, &record->suspects[k]) == NULL;
    return sure;
}

/* Whether a verdict of `owner` says all that the i-th would: what is decisive stays so. */
static bool may_answer(const struct round *round, size_t owner, size_t i)
{
    return owner != i && round->properties[owner]->target == TARGET_HANDLER &&
           (is_decisive(record_of(round, owner)->verdict) ||
            !is_decisive(record_of(round, i)->verdict));
}

static void attribute_to_id(struct round *round, size_t i, const char *id)
{
    for (size_t owner = 0; id[0] != '\0' && owner < round->count; owner++) {
        if (is_open(round, i) && strcmp(round->properties[owner]->id, id) == 0 &&
            may_answer(round, owner, i) && is_sure(round, owner))
            round->cause[i] = owner + 1;
    }
}

/* To the properties that are about such calls, where they failed. */
static void attribute_to_owners(struct round *round, size_t i)
{
    const struct record *record = record_of(round, i);
    for (size_t k = 0; k < SUSPECTS; k++) {
        const struct attribution *kind =
            attribution_elsewhere(round, round->properties[i]->id, &record->suspects[k]);
        if (kind != NULL)
            attribute_to_id(round, i, kind->owner);
        if (kind != NULL && kind->second != NULL)
            attribute_to_id(round, i, kind->second);
    }
    attribute_to_id(round, i, record->attribute_to);
}

/* How far from the defect what `owner` found is; what ended in another function than the i-th did
 * explains it less. */
static int distance(const struct round *round, size_t owner, size_t i)
{
    enum { ANOTHER_FUNCTION = 10000 };
    enum function in = record_of(round, i)->suspects[ENDED_IN].function;
    bool same_function =
        in != OUTSIDE && in == record_of(round, owner)->suspects[ENDED_IN].function;
    return nearness(round->properties[owner]->id, record_of(round, owner)) +
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
        const struct attribution *kind =
            attribution_elsewhere(round, round->properties[i]->id, &one->suspects[s]);
        for (size_t o = 0; o < SUSPECTS && kind != NULL; o++)
            shared = shared || attribution_for(&other->suspects[o]) == kind;
    }
    return shared;
}

/* Whether it keeps a verdict of its own, and that of no control. */
static bool stands(const struct round *round, size_t i)
{
    return is_open(round, i) && record_of(round, i)->control[0] == '\0';
}

/* Whether the k-th is to keep a verdict rather than the i-th: behind a control in which nothing was
 * wrong it tells more, and of two alike the first does. */
static bool goes_before(const struct round *round, size_t k, size_t i)
{
    bool one = record_of(round, k)->controlled != 0, other = record_of(round, i)->controlled != 0;
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
    if (record->control[0] != '\0')
        return text("it fails %s as well", record->control);
    for (size_t k = 0; k < SUSPECTS; k++) {
        const struct attribution *kind =
            attribution_elsewhere(round, round->properties[i]->id, &record->suspects[k]);
        if (kind != NULL)
            return text("%s goes wrong", kind->call);
    }
    bool struct_is_gone = strncmp(record->attribute_to, "abi.", 4) == 0;
    return struct_is_gone ? "the struct is gone" : "it came upon a defect of another kind";
}

/* The i-th becomes a SKIP that names its cause; or tells that it came in its control. */
static void write_down(const struct round *round, size_t i)
{
    struct record *record = board_record(round->board, i);
    size_t cause = round->cause[i];
    if (cause == 0 && record->control[0] != '\0' && speaks_against(record->verdict)) {
        size_t used = strlen(record->seen);
        snprintf(record->seen + used, sizeof record->seen - used, "; it is so already %s",
                 record->control);
    }
    if (cause == 0)
        return;
    const char *id = round->properties[cause - 1]->id;
    snprintf(record->caused_by, sizeof record->caused_by, "%s", id);
    snprintf(record->seen, sizeof record->seen, "caused by %s: %s", id, reason(round, i));
    record->expected[0] = '\0';
    record->verdict = SKIP;
}

static void put_ends(struct board *board, size_t count)
{
    for (size_t i = 0; i < count; i++) { /* a subject can write there */
        struct record *record = board_record(board, i);
        record->attribute_to[sizeof record->attribute_to - 1] = '\0';
        if (strspn(record->attribute_to, "abcdefghijklmnopqrstuvwxyz0123456789.-") !=
            strlen(record->attribute_to))
            record->attribute_to[0] = '\0'; /* no id */
        record_check_control(record);
        record->seen[sizeof record->seen - 1] = '\0';
        record->caused_by[0] = '\0';
    }
}

/* Whoever is sure is attributed to nobody, so that no verdict hangs on the order in which they are
 * gone through; nor is whoever stands, once a control is attributed to it. */
int attribution_settle(const struct property *const *properties, size_t count, struct board *board)
{
    struct round round = {properties, count, board, calloc(count + 1, sizeof(size_t))};
    if (round.cause == NULL)
        return -1;
    put_ends(board, count);
    for (size_t i = 0; i < count; i++)
        attribute_to_owners(&round, i);
    for (size_t i = 0; i < count; i++)
        attribute_control(&round, i, is_sure);
    attribute_to_foremost(&round, true, stands);
    for (size_t i = 0; i < count; i++)
        attribute_control(&round, i, stands);
    attribute_to_foremost(&round, false, is_open);
    for (size_t i = 0; i < count; i++)
        write_down(&round, i);
    free(round.cause);
    return 0;
}

const char *attribution_unsettled(const struct property *const *properties, size_t count,
                                  struct board *board)
{
    for (size_t i = 0; i < count; i++) {
        const struct record *record = board_record(board, i);
        bool answered = record->caused_by[0] == '\0';
        for (size_t k = 0; k < count && !answered; k++)
            answered = strcmp(properties[k]->id, record->caused_by) == 0 &&
                       speaks_against(board_record(board, k)->verdict);
        if (!answered || (record->control[0] != '\0' && record->verdict == PASS))
            return properties[i]->id;
    }
    return NULL;
}
