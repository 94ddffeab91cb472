/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/repro/shrink.h: what goes by chance where no single step may.
 */
#include "unit.h"

#include <stdio.h>

#include "repro/shrink.h"

enum { CALLS = 50, LARGE = 5000 };

/* Shows a defect behind so many calls, if a large block is freed then; and only where each block
 * that is made is freed, so that no step can go alone. */
static struct attempt needs_calls(const void *about, const struct call_list *list)
{
    struct attempt attempt = {.outcome = NOT_REPRODUCED, .at = list->count};
    size_t calls = 0, live = 0;
    (void)about;
    for (size_t i = 0; i < list->count; i++) {
        const struct step *step = &list->at[i];
        bool is_pair = step->kind == STEP_MALLOC_FREE;
        calls += (is_pair ? 2 : 1) * (size_t)step->times;
        live += step->kind == STEP_MALLOC;
        live -= step->kind == STEP_FREE;
        if (calls > CALLS && live == 0 && step->first == LARGE && step->kind == STEP_FREE) {
            attempt.outcome = REPRODUCED;
            attempt.at = i;
            snprintf(attempt.what, sizeof attempt.what, "wrong");
            return attempt;
        }
    }
    return attempt;
}

START_TEST(a_stretch_becomes_a_row)
{
    enum { PAIRS = 40 };
    struct step steps[2 * PAIRS];
    struct call_list whole = {.at = steps, .count = 2 * PAIRS};
    for (uint32_t i = 0; i < PAIRS; i++) {
        uint64_t size = i + 1 < PAIRS ? 16 : LARGE;
        steps[2 * i] = (struct step){.kind = STEP_MALLOC, .block = i, .times = 1, .first = size};
        steps[2 * i + 1] = (struct step){.kind = STEP_FREE, .block = i, .times = 1, .first = size};
    }
    struct call_list list = call_list_copy(&whole);
    struct attempt seen = needs_calls(NULL, &list);
    ck_assert_int_eq(seen.outcome, REPRODUCED);
    seen = shrink_by_chance(needs_calls, NULL, &list, seen, 3, 10);
    ck_assert_int_eq(seen.outcome, REPRODUCED);
    ck_assert_int_eq(needs_calls(NULL, &list).outcome, REPRODUCED);
    ck_assert_uint_le(list.count, 8);
    call_list_free(&list);
}
END_TEST

Suite *suite_shrink(void)
{
    Suite *suite = suite_create("shrink");
    TCase *tcase = tcase_create("shrink");
    tcase_add_test(tcase, a_stretch_becomes_a_row);
    suite_add_tcase(suite, tcase);
    return suite;
}
