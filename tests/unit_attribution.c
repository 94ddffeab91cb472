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

enum { NO_TOPIC = -1 };

static const struct {
    struct call call;
    int topic; /* or NO_TOPIC */
} kinds[] = {
    {{IN_MALLOC, NULL, 64, 0, 0}, NO_TOPIC},
    {{IN_MALLOC, NULL, 64, 0, FUNCTION_IS_MISSING}, TOPIC_MISSING_FUNCTION},
    {{IN_FREE, NULL, 0, 0, FUNCTION_IS_MISSING}, TOPIC_MISSING_FUNCTION},
    {{IN_MALLOC, NULL, 1, 0, REFUSED_BELOW}, TOPIC_REFUSED_MEMORY},
    {{IN_FREE, P, 8, 0, REFUSED_BELOW}, NO_TOPIC},
    {{IN_CALLOC, NULL, 8, 8, NOT_ZERO}, TOPIC_CALLOC_NOT_ZERO},
    {{IN_FREE, P, 8, 0, WRONG_SIZE}, TOPIC_FREE_WRONG_SIZE},
    {{IN_MALLOC, NULL, 0, 0, 0}, TOPIC_MALLOC_ZERO},
    {{IN_MALLOC, NULL, 1, 0, 0}, TOPIC_MALLOC_ONE},
    {{IN_MALLOC, NULL, 2, 0, 0}, NO_TOPIC},
    {{IN_MALLOC, NULL, POWER_OF_2(5 * SIZE_BITS / 8), 0, 0}, NO_TOPIC},
    {{IN_MALLOC, NULL, SIZE_MAX / 2 + 1, 0, 0}, TOPIC_MALLOC_TOO_LARGE},
    {{IN_CALLOC, NULL, 0, 8, 0}, TOPIC_CALLOC_ZERO},
    {{IN_CALLOC, NULL, 8, 0, 0}, TOPIC_CALLOC_ZERO},
    {{IN_CALLOC, NULL, 1, 1, 0}, NO_TOPIC},
    {{IN_CALLOC, NULL, SIZE_MAX / 2 + 2, 2, 0}, TOPIC_CALLOC_TOO_LARGE},
    {{IN_CALLOC, NULL, SIZE_MAX / 8, 8, 0}, TOPIC_CALLOC_TOO_LARGE},
    {{IN_REALLOC, NULL, 1, 0, 0}, TOPIC_REALLOC_NULL},
    {{IN_REALLOC, NULL, 100, 0, 0}, TOPIC_REALLOC_NULL},
    {{IN_REALLOC, P, 1, 0, 0}, TOPIC_REALLOC_ONE},
    {{IN_REALLOC, P, 100, 0, 0}, NO_TOPIC},
    {{IN_REALLOC, P, SIZE_MAX, 0, 0}, TOPIC_REALLOC_TOO_LARGE},
    {{IN_FREE, NULL, 0, 0, 0}, TOPIC_FREE_NULL_ZERO},
    {{IN_FREE, NULL, 1, 0, 0}, TOPIC_FREE_NULL},
    {{IN_FREE, P, 0, 0, 0}, NO_TOPIC},
    {{OUTSIDE, NULL, 0, 0, 0}, NO_TOPIC},
    {{(enum function)77, NULL, 0, 0, 0}, NO_TOPIC},
};

START_TEST(a_call_has_a_topic)
{
    const struct call_kind *kind = call_kind(&kinds[_i].call);
    ck_assert_int_eq(kind != NULL ? (int)kind->topic : NO_TOPIC, kinds[_i].topic);
}
END_TEST

static const struct {
    struct call call;
    bool is_wrong;
} nulls[] = {
    {{IN_MALLOC, NULL, 0, 0, 0}, false},   {{IN_MALLOC, NULL, 1, 0, 0}, true},
    {{IN_MALLOC, NULL, 2, 0, 0}, false},   {{IN_MALLOC, NULL, SIZE_MAX, 0, 0}, false},
    {{IN_CALLOC, NULL, 0, 8, 0}, false},   {{IN_REALLOC, NULL, 0, 0, 0}, false},
    {{IN_REALLOC, NULL, 100, 0, 0}, true}, {{IN_REALLOC, NULL, (size_t)1 << 30, 0, 0}, false},
    {{IN_REALLOC, P, 1, 0, 0}, true},      {{IN_REALLOC, P, 100, 0, 0}, false},
};

START_TEST(null_may_be_wrong)
{
    ck_assert_int_eq(call_may_not_return_null(&nulls[_i].call), nulls[_i].is_wrong);
}
END_TEST

static const struct {
    struct call call;
    bool is_absurd;
} blocks[] = {
    {{IN_MALLOC, NULL, SIZE_MAX, 0, 0}, true},
    {{IN_MALLOC, NULL, 0, 0, 0}, false},
    {{IN_MALLOC, NULL, (size_t)1 << 30, 0, 0}, false},
    {{IN_CALLOC, NULL, SIZE_MAX / 2, 3, 0}, true},
    {{IN_CALLOC, NULL, SIZE_MAX, 0, 0}, false},
    {{IN_CALLOC, NULL, 1 << 10, 1 << 10, 0}, false},
    {{IN_REALLOC, P, SIZE_MAX - 64, 0, 0}, true},
    {{IN_REALLOC, NULL, 100, 0, 0}, false},
    {{IN_FREE, P, SIZE_MAX, 0, 0}, false},
};

START_TEST(no_block_is_that_long)
{
    ck_assert_int_eq(call_is_absurd(&blocks[_i].call), blocks[_i].is_absurd);
}
END_TEST

/* ---- settling ----------------------------------------------------------------------------- */

static const struct property null = {
    .id = "free.null", .level = MUST, .answers_for = ABOUT(FREE_NULL_ZERO)};
static const struct property present = {
    .id = "abi.functions-present", .level = MUST, .answers_for = ABOUT(MISSING_FUNCTION)};
static const struct property quiet = {.id = "env.quiet", .level = SHOULD};
static const struct property *const properties[] = {&quiet, &null, &present};
enum { QUIET, NULLS, PRESENT, COUNT };

static const struct call of_null = {IN_FREE, NULL, 0, 0, 0};
static const struct call of_nothing = {IN_FREE, NULL, 0, 0, FUNCTION_IS_MISSING};
static const struct call ordinary = {IN_FREE, P, 8, 0, 0};

static struct board *make_board(void)
{
    struct board *board = board_create(COUNT);
    ck_assert_ptr_nonnull(board);
    for (size_t i = 0; i < COUNT; i++)
        board_record(board, i)->verdict = PASS;
    return board;
}

static struct record *end(struct board *board, size_t i, enum verdict verdict, enum suspect suspect,
                          const struct call *call)
{
    struct record *record = board_record(board, i);
    record->verdict = verdict;
    record->suspects[suspect] = *call;
    strcpy(record->expected, "the property to run to its end");
    strcpy(record->seen, "SIGSEGV");
    return record;
}

START_TEST(owner_alone_fails)
{
    static const enum verdict bad[] = {FAIL, WARN, CRASH, TIMEOUT};
    struct board *board = make_board();
    struct record *other = end(board, QUIET, bad[_i % 4], (enum suspect)(_i / 4), &of_null);
    struct record *owner = end(board, NULLS, CRASH, ENDED_IN, &of_null);
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(owner->verdict, CRASH);
    ck_assert_str_eq(owner->seen, "SIGSEGV");
    ck_assert_int_eq(other->verdict, SKIP);
    ck_assert_str_eq(other->seen, "caused by free.null: free(NULL, 0) goes wrong");
    ck_assert_str_eq(other->expected, "");
}
END_TEST

START_TEST(attributed_to_another)
{
    struct board *board = make_board();
    struct record *other = end(board, QUIET, FAIL, ENDED_IN, &ordinary);
    struct record *owner = end(board, NULLS, _i == 0 ? FAIL : PASS, ENDED_IN, &ordinary);
    strcpy(other->attribute_to, "free.null");
    strcpy(owner->attribute_to, "free.null");
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(owner->verdict, _i == 0 ? FAIL : PASS);
    ck_assert_int_eq(other->verdict, _i == 0 ? SKIP : FAIL);
    if (_i == 0)
        ck_assert_str_eq(other->seen, "caused by free.null: it came upon a defect of another kind");
}
END_TEST

/* Of two that point at each other, the first to be looked at would be the one that is not told. */
START_TEST(neither_of_two_that_point)
{
    struct board *board = make_board();
    struct record *one = end(board, NULLS, FAIL, ENDED_IN, &ordinary);
    struct record *other = end(board, PRESENT, FAIL, ENDED_IN, &ordinary);
    strcpy(one->attribute_to, "abi.functions-present");
    strcpy(other->attribute_to, "free.null");
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(one->verdict, FAIL);
    ck_assert_int_eq(other->verdict, FAIL);
}
END_TEST

/* A WARN answers for no crash, and for what a property is about itself nobody else does: one of
 * those that crashed then answers for the others. */
START_TEST(of_two_owners)
{
    static const struct property guess = {
        .id = "free.best-guess-size", .level = MUST, .answers_for = ABOUT(FREE_WRONG_SIZE)};
    static const struct property any = {
        .id = "free.any-size", .level = SHOULD, .answers_next_for = ABOUT(FREE_WRONG_SIZE)};
    static const struct property *const two[] = {&guess, &any, &quiet, &present};
    static const struct call guessed = {IN_FREE, P, 8, 0, WRONG_SIZE};
    struct board *board = board_create(4);
    ck_assert_ptr_nonnull(board);
    board_record(board, 0)->verdict = _i == 0 ? FAIL : PASS;
    end(board, 1, WARN, ENDED_IN, &guessed);
    end(board, 2, CRASH, ENDED_IN, &guessed);
    end(board, 3, CRASH, ENDED_IN, &guessed);
    attribution_settle(two, 4, board);
    ck_assert_int_eq(board_record(board, 1)->verdict, WARN);
    ck_assert_int_eq(board_record(board, 2)->verdict, _i == 0 ? SKIP : CRASH);
    ck_assert_int_eq(board_record(board, 3)->verdict, SKIP);
    ck_assert_str_eq(board_record(board, 3)->caused_by, _i == 0 ? guess.id : quiet.id);
    ck_assert_ptr_null(attribution_unsettled(two, 4, board));
}
END_TEST

/* Little may be refused, with much live, say: it counts where the owner met that as well. */
START_TEST(little_that_is_refused)
{
    static const struct property lasts = {
        .id = "malloc.lasts", .level = MUST, .answers_for = ABOUT(LITTLE_MALLOC)};
    static const struct property *const three[] = {&quiet, &lasts, &present};
    static const struct call refused = {IN_MALLOC, NULL, 40, 0, REFUSED_LITTLE};
    struct board *board = board_create(3);
    ck_assert_ptr_nonnull(board);
    struct record *first = end(board, 0, FAIL, RETURNED_WRONG, &refused);
    struct record *owner =
        end(board, 1, _i == 2 ? PASS : FAIL, RETURNED_WRONG, _i == 0 ? &refused : &ordinary);
    struct record *other = end(board, 2, CRASH, RETURNED_WRONG, &refused);
    ck_assert_int_eq(attribution_settle(three, 3, board), 0);
    ck_assert_int_eq(owner->verdict, _i == 2 ? PASS : FAIL);
    ck_assert_int_eq(first->verdict, _i == 0 ? SKIP : FAIL);
    ck_assert_int_eq(other->verdict, _i == 0 ? SKIP : CRASH);
    ck_assert_str_eq(other->caused_by, _i == 0 ? lasts.id : "");
}
END_TEST

/* Nothing is lost where the owner has nothing to say, or was not run. */
START_TEST(without_the_owner_it_stands)
{
    static const enum verdict fine[] = {PASS, SKIP, BROK, INCOMPLETE};
    struct board *board = make_board();
    struct record *other = end(board, QUIET, CRASH, ENDED_IN, &of_null);
    board_record(board, NULLS)->verdict = fine[_i];
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(other->verdict, CRASH);
    board_record(board, NULLS)->verdict = CRASH;
    attribution_settle(properties, 1, board);
    ck_assert_int_eq(other->verdict, CRASH);
    ck_assert_str_eq(other->seen, "SIGSEGV");
}
END_TEST

START_TEST(other_calls_and_verdicts_stand)
{
    struct board *board = make_board();
    struct record *other =
        end(board, QUIET, _i == 0 ? CRASH : BROK, ENDED_IN, _i == 0 ? &ordinary : &of_null);
    end(board, NULLS, CRASH, ENDED_IN, &of_null);
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(other->verdict, _i == 0 ? CRASH : BROK);
}
END_TEST

/* Whoever was itself ended by somebody else's call answers for nothing. */
START_TEST(attribution_is_not_passed_on)
{
    struct board *board = make_board();
    struct record *other = end(board, QUIET, CRASH, ENDED_IN, &of_null);
    struct record *owner = end(board, NULLS, CRASH, ENDED_IN, &of_nothing);
    end(board, PRESENT, FAIL, ENDED_IN, &(struct call){.function = OUTSIDE});
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(owner->verdict, SKIP);
    ck_assert_int_eq(other->verdict, CRASH);
}
END_TEST

/* ---- controls ----------------------------------------------------------------------------- */

/* What goes wrong in a control is another one's, if there is one that is sure; else its own. */
START_TEST(a_control_is_answered_for)
{
    static const enum verdict own[] = {PASS, WARN, FAIL, CRASH, TIMEOUT};
    struct board *board = make_board();
    struct record *first = end(board, QUIET, CRASH, ENDED_IN, &ordinary);
    struct record *second = end(board, PRESENT, FAIL, ENDED_IN, &ordinary);
    struct record *sure = board_record(board, NULLS);
    record_enter_control(first, "without a fork");
    record_enter_control(second, "in one thread alone");
    sure->verdict = own[_i];
    ck_assert_int_eq(attribution_settle(properties, COUNT, board), 0);
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
    ck_assert_int_eq(sure->verdict, own[_i]);
    ck_assert_int_eq(first->verdict, _i < 2 ? CRASH : SKIP);
    ck_assert_int_eq(second->verdict, SKIP);
    ck_assert_str_eq(second->caused_by, _i < 2 ? quiet.id : null.id);
    ck_assert_str_eq(first->caused_by, _i < 2 ? "" : null.id);
    ck_assert_ptr_nonnull(strstr(first->seen, "without a fork"));
}
END_TEST

/* Where the property about such a call was left out, one of those that met it stands for all of
 * them and for what failed in a control, before it or behind it; what weighs less does not. */
START_TEST(one_stands_for_what_was_left_out)
{
    static const struct call dirty = {IN_CALLOC, NULL, 8, 1, NOT_ZERO};
    struct board *board = make_board();
    bool warns = _i == 1;
    struct record *control = end(board, QUIET, FAIL, ENDED_IN, &ordinary);
    struct record *first = end(board, NULLS, warns ? WARN : FAIL, RETURNED_WRONG, &dirty);
    struct record *second = end(board, PRESENT, FAIL, RETURNED_WRONG, &dirty);
    record_enter_control(control, "without a fork");
    ck_assert_int_eq(attribution_settle(properties, COUNT, board), 0);
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
    ck_assert_int_eq(first->verdict, warns ? WARN : FAIL);
    ck_assert_int_eq(second->verdict, warns ? FAIL : SKIP);
    ck_assert_int_eq(control->verdict, SKIP);
    ck_assert_str_eq(control->caused_by, warns ? present.id : null.id);
}
END_TEST

/* What the subject has written there is no control. */
START_TEST(a_forged_control_is_none)
{
    struct board *board = make_board();
    struct record *first = end(board, QUIET, CRASH, ENDED_IN, &ordinary);
    end(board, NULLS, FAIL, ENDED_IN, &(struct call){.function = OUTSIDE});
    memset(first->control, 0xff, sizeof first->control);
    memset(board_record(board, PRESENT)->control, 'x', 8);
    attribution_settle(properties, COUNT, board);
    ck_assert_int_eq(first->verdict, CRASH);
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
}
END_TEST

/* A defect of NumPy's is no answer for one of the handler's. */
START_TEST(numpy_answers_for_nobody)
{
    static const struct property numpys = {
        .id = "runtime.x", .level = MUST, .target = TARGET_RUNTIME};
    static const struct property *const two[] = {&numpys, &quiet};
    struct board *board = board_create(2);
    ck_assert_ptr_nonnull(board);
    end(board, 0, FAIL, ENDED_IN, &ordinary);
    record_enter_control(end(board, 1, FAIL, ENDED_IN, &ordinary), "without a fork");
    attribution_settle(two, 2, board);
    ck_assert_int_eq(board_record(board, 1)->verdict, FAIL);
}
END_TEST

/* With the owner left out, one of those that its call ended keeps the verdict, and not all. */
START_TEST(one_is_left_of_many)
{
    struct board *board = make_board();
    struct record *first = end(board, QUIET, CRASH, ENDED_IN, &of_nothing);
    struct record *second = end(board, NULLS, CRASH, ENDED_IN, &of_nothing);
    attribution_settle(properties, 2, board);
    ck_assert_int_eq(first->verdict, CRASH);
    ck_assert_int_eq(second->verdict, SKIP);
    ck_assert_str_eq(second->caused_by, quiet.id);
}
END_TEST

/* Of those that met the same, one keeps the verdict that met it behind its control. */
START_TEST(behind_a_control_is_foremost)
{
    static const struct call one = {IN_MALLOC, NULL, 1, 0, 0};
    struct board *board = make_board();
    struct record *first = end(board, QUIET, FAIL, RETURNED_WRONG, &one);
    struct record *second = end(board, NULLS, FAIL, RETURNED_WRONG, &one);
    struct record *third = end(board, PRESENT, FAIL, RETURNED_WRONG, &one);
    second->controlled = third->controlled = 1;
    ck_assert_int_eq(attribution_settle(properties, COUNT, board), 0);
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
    ck_assert_int_eq(second->verdict, FAIL);
    ck_assert_str_eq(first->caused_by, null.id);
    ck_assert_str_eq(third->caused_by, null.id);
}
END_TEST

/* The coordinator asks, and would have to say that the harness broke. */
START_TEST(what_is_not_answered_for_is_found)
{
    struct board *board = make_board();
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
    strcpy(board_record(board, QUIET)->caused_by, null.id);
    ck_assert_str_eq(attribution_unsettled(properties, COUNT, board), quiet.id);
    board_record(board, NULLS)->verdict = FAIL;
    ck_assert_ptr_null(attribution_unsettled(properties, COUNT, board));
    record_enter_control(board_record(board, PRESENT), "without a fork");
    ck_assert_str_eq(attribution_unsettled(properties, COUNT, board), present.id);
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
        struct call in;
    } closer, farther;
} pairs[] = {
    {{&disjoint, FAIL, {0}}, {&keeps, FAIL, {0}}},
    {{&keeps, FAIL, {0}}, {&route, FAIL, {0}}},
    {{&route, FAIL, {0}}, {&stray, FAIL, {0}}},
    {{&neighbors, FAIL, {0}}, {&disjoint, CRASH, {IN_MALLOC, NULL, 64, 0, 0}}},
    {{&disjoint, FAIL, {0}}, {&extent, FAIL, {0}}},
    {{&stays, FAIL, {0}}, {&extent, FAIL, {0}}},
    {{&extent, CRASH, {IN_FREE, P, 8, 0, 0}}, {&stays, CRASH, {IN_FREE, P, 8, 0, 0}}},
    {{&free_null, CRASH, {IN_FREE, NULL, 0, 0, 0}}, {&extent, FAIL, {0}}},
    {{&extent, FAIL, {0}}, {&free_null, CRASH, {IN_FREE, P, 8, 0, 0}}},
    {{&grown, CRASH, {0}}, {&keeps, FAIL, {0}}},
    {{&keeps, FAIL, {0}}, {&grown, TIMEOUT, {IN_REALLOC, P, 8, 0, 0}}},
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

Suite *suite_attribution(void)
{
    Suite *suite = suite_create("attribution");
    TCase *tcase = tcase_create("attribution");
    tcase_add_loop_test(tcase, a_call_has_a_topic, 0, ROWS(kinds));
    tcase_add_loop_test(tcase, null_may_be_wrong, 0, ROWS(nulls));
    tcase_add_loop_test(tcase, no_block_is_that_long, 0, ROWS(blocks));
    tcase_add_loop_test(tcase, owner_alone_fails, 0, 4 * SUSPECTS);
    tcase_add_loop_test(tcase, attributed_to_another, 0, 2);
    tcase_add_loop_test(tcase, of_two_owners, 0, 2);
    tcase_add_loop_test(tcase, little_that_is_refused, 0, 3);
    tcase_add_loop_test(tcase, without_the_owner_it_stands, 0, 4);
    tcase_add_loop_test(tcase, other_calls_and_verdicts_stand, 0, 2);
    tcase_add_test(tcase, attribution_is_not_passed_on);
    tcase_add_test(tcase, neither_of_two_that_point);
    tcase_add_loop_test(tcase, a_control_is_answered_for, 0, 5);
    tcase_add_loop_test(tcase, one_stands_for_what_was_left_out, 0, 2);
    tcase_add_test(tcase, a_forged_control_is_none);
    tcase_add_test(tcase, numpy_answers_for_nobody);
    tcase_add_test(tcase, one_is_left_of_many);
    tcase_add_test(tcase, behind_a_control_is_foremost);
    tcase_add_test(tcase, what_is_not_answered_for_is_found);
    tcase_add_loop_test(tcase, a_cause_is_closer, 0, ROWS(pairs));
    suite_add_tcase(suite, tcase);
    return suite;
}
