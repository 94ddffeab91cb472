/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The kinds of calls that a property of their own is about.
 */
#include "model/attribution.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

/* No machine has room for so much. */
static const size_t too_large = (size_t)1 << 48;

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
    struct attribution blame;
} kinds[] = {
    {IN_MALLOC, is_missing, {"malloc", "abi.functions-present", NULL}},
    {IN_CALLOC, is_missing, {"calloc", "abi.functions-present", NULL}},
    {IN_REALLOC, is_missing, {"realloc", "abi.functions-present", NULL}},
    {IN_FREE, is_missing, {"free", "abi.functions-present", NULL}},
    {IN_MALLOC, is_refused, {"malloc that is refused memory", "exhaustion.nth-request", NULL}},
    {IN_CALLOC, is_refused, {"calloc that is refused memory", "exhaustion.nth-request", NULL}},
    {IN_REALLOC, is_refused, {"realloc that is refused memory", "exhaustion.nth-request", NULL}},
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
            return &kinds[i].blame;
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

static bool speaks_against(enum verdict verdict)
{
    return verdict == FAIL || verdict == WARN || verdict == CRASH || verdict == TIMEOUT;
}

/* The kind of call that a suspect is of, where that is another property's, or NULL. */
static const struct attribution *attribution_elsewhere(const char *id, const struct call *call)
{
    const struct attribution *blame = attribution_for(call);
    bool own = blame != NULL && (strcmp(id, blame->owner) == 0 ||
                                 (blame->second != NULL && strcmp(id, blame->second) == 0));
    return own ? NULL : blame;
}

/* Whether it has found broken what it is about: no other call can have been the reason. */
static bool is_sure(const struct property *property, const struct record *record)
{
    bool own = record->attribute_to[0] == '\0' || strcmp(record->attribute_to, property->id) == 0;
    bool sure = own && speaks_against(record->verdict);
    for (size_t k = 0; k < SUSPECTS; k++)
        sure = sure && attribution_elsewhere(property->id, &record->suspects[k]) == NULL;
    return sure;
}

struct round {
    const struct property *const *properties;
    size_t count;
    struct board *board;
};

/* Where the property `id` is found broken, the i-th record, if it speaks against the subject,
 * becomes a SKIP that points there.  A SHOULD does not answer for a MUST. */
static void attribute(const struct round *round, size_t i, const char *id, const char *what)
{
    struct record *record = board_record(round->board, i);
    size_t owner = 0;
    while (owner < round->count && strcmp(round->properties[owner]->id, id) != 0)
        owner++;
    if (owner == round->count || owner == i || !speaks_against(record->verdict) ||
        round->properties[owner]->level > round->properties[i]->level ||
        !is_sure(round->properties[owner], board_record(round->board, owner)))
        return;
    record->expected[0] = '\0';
    snprintf(record->seen, sizeof record->seen, "%s, which is for %s to say", what, id);
    record->verdict = SKIP;
}

/* A SKIP is not sure, so that no verdict hangs on the order in which they are gone through. */
void attribution_settle(const struct property *const *properties, size_t count, struct board *board)
{
    const struct round round = {properties, count, board};
    for (size_t i = 0; i < count; i++) /* a subject can write there */
        board_record(board, i)->attribute_to[sizeof board_record(board, i)->attribute_to - 1] =
            '\0';
    for (size_t i = 0; i < count; i++) {
        struct record *record = board_record(board, i);
        for (size_t k = 0; k < SUSPECTS; k++) {
            const struct attribution *blame =
                attribution_elsewhere(properties[i]->id, &record->suspects[k]);
            if (blame != NULL)
                attribute(&round, i, blame->owner, text("%s goes wrong", blame->call));
            if (blame != NULL && blame->second != NULL)
                attribute(&round, i, blame->second, text("%s goes wrong", blame->call));
        }
        attribute(&round, i, record->attribute_to, "a block is not what it should be");
    }
}
