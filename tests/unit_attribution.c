/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/model/attribution.c: which property answers for a call, and what becomes of those that it
 * ended as well.
 */
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "base/size_bits.h"
#include "model/attribution.h"

static int somewhere;
#define P &somewhere
#define CALL(function, p, one, other, what)                                                        \
    {                                                                                              \
        .kind = STEP_##function, .pointer = p, .first = one, .second = other, .trouble = what      \
    }

enum { NO_TOPIC = -1 };

static const struct {
    struct step call;
    int topic; /* or NO_TOPIC */
} kinds[] = {
    {CALL(MALLOC, NULL, 64, 0, 0), NO_TOPIC},
    {CALL(MALLOC, NULL, 64, 0, FUNCTION_IS_MISSING), TOPIC_MISSING_FUNCTION},
    {CALL(FREE, NULL, 0, 0, FUNCTION_IS_MISSING), TOPIC_MISSING_FUNCTION},
    {CALL(MALLOC, NULL, 1, 0, REFUSED_BELOW), TOPIC_REFUSED_MEMORY},
    {CALL(FREE, P, 8, 0, REFUSED_BELOW), NO_TOPIC},
    {CALL(CALLOC, NULL, 8, 8, NOT_ZERO), TOPIC_CALLOC_NOT_ZERO},
    {CALL(FREE, P, 8, 0, WRONG_SIZE), TOPIC_FREE_WRONG_SIZE},
    {CALL(MALLOC, NULL, 0, 0, 0), TOPIC_MALLOC_ZERO},
    {CALL(MALLOC, NULL, 1, 0, 0), TOPIC_MALLOC_ONE},
    {CALL(MALLOC, NULL, 2, 0, 0), NO_TOPIC},
    {CALL(MALLOC, NULL, POWER_OF_2(5 * SIZE_BITS / 8), 0, 0), NO_TOPIC},
    {CALL(MALLOC, NULL, SIZE_MAX / 2 + 1, 0, 0), TOPIC_MALLOC_TOO_LARGE},
    {CALL(CALLOC, NULL, 0, 8, 0), TOPIC_CALLOC_ZERO},
    {CALL(CALLOC, NULL, 8, 0, 0), TOPIC_CALLOC_ZERO},
    {CALL(CALLOC, NULL, 1, 1, 0), NO_TOPIC},
    {CALL(CALLOC, NULL, SIZE_MAX / 2 + 2, 2, 0), TOPIC_CALLOC_TOO_LARGE},
    {CALL(CALLOC, NULL, SIZE_MAX / 8, 8, 0), TOPIC_CALLOC_TOO_LARGE},
    {CALL(REALLOC, NULL, 1, 0, 0), TOPIC_REALLOC_NULL},
    {CALL(REALLOC, NULL, 100, 0, 0), TOPIC_REALLOC_NULL},
    {CALL(REALLOC, P, 1, 0, 0), TOPIC_REALLOC_ONE},
    {CALL(REALLOC, P, 100, 0, 0), NO_TOPIC},
    {CALL(REALLOC, P, SIZE_MAX, 0, 0), TOPIC_REALLOC_TOO_LARGE},
    {CALL(FREE, NULL, 0, 0, 0), TOPIC_FREE_NULL_ZERO},
    {CALL(FREE, NULL, 1, 0, 0), TOPIC_FREE_NULL},
    {CALL(FREE, P, 0, 0, 0), NO_TOPIC},
    {{.kind = OUTSIDE}, NO_TOPIC},
    {{.kind = 77}, NO_TOPIC},
};

START_TEST(a_call_has_a_topic)
{
    const struct call_kind *kind = call_kind(&kinds[_i].call);
    ck_assert_int_eq(kind != NULL ? (int)kind->topic : NO_TOPIC, kinds[_i].topic);
}
END_TEST

/* ---- settling ----------------------------------------------------------------------------- */

static const struct property null = {.id = "free.null", .answers_for = ABOUT(FREE_NULL_ZERO)},
                             present = {.id = "abi.functions-present",
                                        .answers_for = ABOUT(MISSING_FUNCTION)},
                             quiet = {.id = "env.quiet", .level = SHOULD},
                             guess = {.id = "free.best-guess-size",
                                      .answers_for = ABOUT(FREE_WRONG_SIZE)},
                             any = {.id = "free.any-size",
                                    .level = SHOULD,
                                    .answers_next_for = ABOUT(FREE_WRONG_SIZE)},
                             lasts = {.id = "malloc.lasts", .answers_for = ABOUT(LITTLE_MALLOC)},
                             rows = {.id = "scenarios.blocks", .scenarios = true},
                             numpys = {.id = "runtime.x", .target = TARGET_RUNTIME};

/* clang-format off */
#define OF_NULL CALL(FREE, NULL, 0, 0, 0)
#define OF_NOTHING CALL(FREE, NULL, 0, 0, FUNCTION_IS_MISSING)
#define ORDINARY CALL(FREE, P, 8, 0, 0)
#define GUESSED CALL(FREE, P, 8, 0, WRONG_SIZE)
#define REFUSED CALL(MALLOC, NULL, 40, 0, REFUSED_LITTLE)
#define DIRTY CALL(CALLOC, NULL, 8, 1, NOT_ZERO)
#define ONE CALL(MALLOC, NULL, 1, 0, 0)
/* clang-format on */
#define WRONG RETURNED_WRONG

/* The table has zeros where it has nothing. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { MOST = 4 };
static const struct {
    const char *what;
    struct {
        const struct property *property;
        enum verdict verdict;
        enum suspect suspect;
        struct step call;
        int cause; /* 1 + the place of the property that answers for it; 0: its verdict stands */
        const struct property *attribute_to;
        bool is_finding;
        bool in_control, controlled;
        enum verdict moved; /* of the record that it reports in place of its own, or VERDICT_NONE */
    } of[MOST];
} rounds[] = {
    {"the owner of the call", {{&quiet, FAIL, ENDED_IN, OF_NULL, 2}, {&null, CRASH, 0, OF_NULL}}},
    {"the owner of the call", {{&quiet, WARN, WRONG, OF_NULL, 2}, {&null, CRASH, 0, OF_NULL}}},
    {"the owner of the call",
     {{&quiet, CRASH, MADE_EMPTY, OF_NULL, 2}, {&null, CRASH, 0, OF_NULL}}},
    {"the owner of the call", {{&quiet, TIMEOUT, ENDED_IN, OF_NULL, 2}, {&null, FAIL, 0, OF_NULL}}},
    {"the owner passed", {{&quiet, CRASH, 0, OF_NULL}, {&null, PASS}}},
    {"the owner was skipped", {{&quiet, CRASH, 0, OF_NULL}, {&null, SKIP}}},
    {"no verdict on the owner", {{&quiet, CRASH, 0, OF_NULL}, {&null, BROK}}},
    {"the owner is incomplete", {{&quiet, CRASH, 0, OF_NULL}, {&null, INCOMPLETE}}},
    {"the owner was not run", {{&quiet, CRASH, 0, OF_NULL}}},
    {"another call", {{&quiet, CRASH, 0, ORDINARY}, {&null, CRASH, 0, OF_NULL}}},
    {"an internal error", {{&quiet, BROK, 0, OF_NULL}, {&null, CRASH, 0, OF_NULL}}},
    {"an owner that another one answers for does not answer",
     {{&quiet, CRASH, 0, OF_NULL}, {&null, CRASH, 0, OF_NOTHING, 3}, {&present, FAIL}}},
    {"without the owner the first one stands",
     {{&quiet, CRASH, 0, OF_NOTHING}, {&null, CRASH, 0, OF_NOTHING, 1}}},
    {"attributed by the property",
     {{&quiet, FAIL, 0, ORDINARY, 2, &null}, {&null, FAIL, 0, ORDINARY, 0, &null}}},
    {"attributed to one that passed",
     {{&quiet, FAIL, 0, ORDINARY, 0, &null}, {&null, PASS, 0, ORDINARY, 0, &null}}},
    {"attributed to each other",
     {{&null, FAIL, 0, ORDINARY, 0, &present}, {&present, FAIL, 0, ORDINARY, 0, &null}}},
    {"a WARN answers for no crash",
     {{&guess, FAIL},
      {&any, WARN, 0, GUESSED},
      {&quiet, CRASH, 0, GUESSED, 1},
      {&present, CRASH, 0, GUESSED, 1}}},
    {"a WARN answers for no crash, and the first owner passed",
     {{&guess, PASS},
      {&any, WARN, 0, GUESSED},
      {&quiet, CRASH, 0, GUESSED},
      {&present, CRASH, 0, GUESSED, 3}}},
    {"little was refused, to the owner too",
     {{&quiet, FAIL, WRONG, REFUSED, 2},
      {&lasts, FAIL, WRONG, REFUSED},
      {&present, CRASH, WRONG, REFUSED, 2}}},
    {"little was refused, which may be right",
     {{&quiet, FAIL, WRONG, REFUSED},
      {&lasts, FAIL, WRONG, ORDINARY},
      {&present, CRASH, WRONG, REFUSED}}},
    {"little was refused, and the owner passed",
     {{&quiet, FAIL, WRONG, REFUSED},
      {&lasts, PASS, WRONG, ORDINARY},
      {&present, CRASH, WRONG, REFUSED}}},
    {"controls, and nothing that is sure",
     {{&quiet, CRASH, 0, ORDINARY, .in_control = true},
      {&null, PASS},
      {&present, FAIL, 0, ORDINARY, 1, .in_control = true}}},
    {"controls, and a WARN",
     {{&quiet, CRASH, 0, ORDINARY, .in_control = true},
      {&null, WARN},
      {&present, FAIL, 0, ORDINARY, 1, .in_control = true}}},
    {"controls, and a property that is sure",
     {{&quiet, CRASH, 0, ORDINARY, 2, .in_control = true},
      {&null, FAIL},
      {&present, FAIL, 0, ORDINARY, 2, .in_control = true}}},
    {"a control, and one of those that met the same stands",
     {{&quiet, FAIL, 0, ORDINARY, 2, .in_control = true},
      {&null, FAIL, WRONG, DIRTY},
      {&present, FAIL, WRONG, DIRTY, 2}}},
    {"a control, and a WARN that weighs less",
     {{&quiet, FAIL, 0, ORDINARY, 3, .in_control = true},
      {&null, WARN, WRONG, DIRTY},
      {&present, FAIL, WRONG, DIRTY}}},
    {"a defect of NumPy", {{&numpys, FAIL}, {&quiet, FAIL, 0, ORDINARY, .in_control = true}}},
    {"what a scenario found, and who met the same, are the owner's",
     {{&rows, FAIL, 0, OF_NOTHING, 3, &null, .is_finding = true},
      {&quiet, CRASH, 0, OF_NOTHING, 3},
      {&null, PASS, .moved = FAIL}}},
    {"what a scenario found is the owner's, whom it met in a control",
     {{&rows, FAIL, 0, OF_NOTHING, 2, &null, .is_finding = true},
      {&null, FAIL, 0, OF_NOTHING, 0, &null, .is_finding = true}}},
    {"one that met it after its control comes first",
     {{&quiet, FAIL, WRONG, ONE, 2},
      {&null, FAIL, WRONG, ONE, .controlled = true},
      {&present, FAIL, WRONG, ONE, 2, .controlled = true}}},
};

START_TEST(a_round_is_settled)
{
    const struct property *properties[MOST];
    struct outcome outcomes[MOST];
    static struct record before[MOST];
    struct shared_results *shared = results_create(MOST);
    ck_assert_ptr_nonnull(shared);
    size_t count = 0;
    for (; count < MOST && rounds[_i].of[count].property != NULL; count++) {
        struct record *record = results_record(shared, count);
        properties[count] = rounds[_i].of[count].property;
        record->verdict = rounds[_i].of[count].verdict;
        record->suspects[rounds[_i].of[count].suspect] = rounds[_i].of[count].call;
        record->controlled = rounds[_i].of[count].controlled;
        if (rounds[_i].of[count].attribute_to != NULL)
            strcpy(record->attribute_to, rounds[_i].of[count].attribute_to->id);
        record->is_finding = rounds[_i].of[count].is_finding;
        if (rounds[_i].of[count].in_control)
            record_enter_control(record, "without a fork");
        before[count] = *record;
    }
    attribution_settle(properties, count, shared, outcomes);
    for (size_t i = 0; i < count; i++) {
        int cause = rounds[_i].of[i].cause;
        enum verdict moved = rounds[_i].of[i].moved,
                     kept = moved != VERDICT_NONE ? moved : rounds[_i].of[i].verdict;
        ck_assert_msg(outcomes[i].verdict == (cause != 0 ? SKIP : kept) &&
                          outcomes[i].cause == (cause != 0 ? properties[cause - 1] : NULL),
                      "%s: %s is a %s", rounds[_i].what, properties[i]->id,
                      verdict_name(outcomes[i].verdict));
        ck_assert_mem_eq(results_record(shared, i), &before[i], sizeof before[i]);
        ck_assert_int_eq(outcomes[i].in_control, cause == 0 && rounds[_i].of[i].in_control);
        if (cause != 0 && rounds[_i].of[i].in_control)
            ck_assert_str_eq(outcomes[i].note, "it fails without a fork as well");
    }
}
END_TEST

static const struct property *const two[] = {&quiet, &null};

START_TEST(a_forged_control_is_none)
{
    struct outcome outcomes[2];
    struct shared_results *shared = results_create(2);
    ck_assert_ptr_nonnull(shared);
    results_record(shared, 0)->verdict = CRASH;
    results_record(shared, 1)->verdict = FAIL;
    memset(results_record(shared, 0)->control, 0xff, sizeof results_record(shared, 0)->control);
    attribution_settle(two, 2, shared, outcomes);
    ck_assert_int_eq(outcomes[0].verdict, CRASH);
}
END_TEST

/* ---- distance to the root cause ---------------------------------------------------------- */

static const struct property disjoint = {.id = "", .rank = {RANK_PLACE, RANK_FRESH, 8}},
                             extent = {.id = "", .rank = {RANK_PLACE, RANK_BESIDE, 10}},
                             neighbors = {.id = "", .rank = {RANK_BESIDE, RANK_FRESH, 13}},
                             keeps = {.id = "", .rank = {RANK_RESIZED, RANK_RESIZED, 24}},
                             grown = {.id = "", .rank = {RANK_FRESH, RANK_RESIZED, 28}},
                             stays = {.id = "", .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 1}},
                             free_null = {.id = "",
                                          .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 5},
                                          .answers_for = ABOUT(FREE_NULL_ZERO)},
                             route = {.id = "", .rank = {RANK_IN_USE, RANK_AT_LENGTH, 40}},
                             stray = {.id = ""};

/* The first finding of each pair is closer. */
static const struct {
    struct {
        const struct property *property;
        enum verdict verdict;
        struct step in;
    } closer, farther;
} pairs[] = {
    {{&disjoint, FAIL, {0}}, {&keeps, FAIL, {0}}},
    {{&keeps, FAIL, {0}}, {&route, FAIL, {0}}},
    {{&route, FAIL, {0}}, {&stray, FAIL, {0}}},
    {{&neighbors, FAIL, {0}}, {&disjoint, CRASH, CALL(MALLOC, NULL, 64, 0, 0)}},
    {{&disjoint, FAIL, {0}}, {&extent, FAIL, {0}}},
    {{&stays, FAIL, {0}}, {&extent, FAIL, {0}}},
    {{&extent, CRASH, CALL(FREE, P, 8, 0, 0)}, {&stays, CRASH, CALL(FREE, P, 8, 0, 0)}},
    {{&free_null, CRASH, CALL(FREE, NULL, 0, 0, 0)}, {&extent, FAIL, {0}}},
    {{&extent, FAIL, {0}}, {&free_null, CRASH, CALL(FREE, P, 8, 0, 0)}},
    {{&grown, CRASH, {0}}, {&keeps, FAIL, {0}}},
    {{&keeps, FAIL, {0}}, {&grown, TIMEOUT, CALL(REALLOC, P, 8, 0, 0)}},
};

START_TEST(a_cause_is_closer)
{
    struct record closer = {.verdict = pairs[_i].closer.verdict,
                            .suspects[ENDED_IN] = pairs[_i].closer.in};
    struct record farther = {.verdict = pairs[_i].farther.verdict,
                             .suspects[ENDED_IN] = pairs[_i].farther.in};
    ck_assert_int_lt(cause_distance(pairs[_i].closer.property, &closer),
                     cause_distance(pairs[_i].farther.property, &farther));
}
END_TEST

TCase *case_attribution(void)
{
    TCase *tcase = tcase_create("attribution");
    tcase_add_loop_test(tcase, a_call_has_a_topic, 0, ROWS(kinds));
    tcase_add_loop_test(tcase, a_round_is_settled, 0, ROWS(rounds));
    tcase_add_test(tcase, a_forged_control_is_none);
    tcase_add_loop_test(tcase, a_cause_is_closer, 0, ROWS(pairs));
    return tcase;
}
