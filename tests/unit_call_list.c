/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/repro/call_list.c: calls with addresses become calls with blocks, and are made fit to be
 * read.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "repro/call_list.h"
#include "search/show.h"

enum { OURS = 7, CHILDS = 8, OTHERS = 9 };

static struct call_log *log_of_test;

static void make_log(void)
{
    log_of_test = call_log_create();
    ck_assert_ptr_nonnull(log_of_test);
    log_of_test->process = OURS;
}

static void end_log(void)
{
    munmap(log_of_test, sizeof *log_of_test);
}

static struct logged *add(pid_t process, enum step_kind kind, uintptr_t given, uint64_t first,
                          uintptr_t result)
{
    struct logged *call = &log_of_test->calls[log_of_test->count++];
    *call = (struct logged){.step = {.kind = (uint8_t)kind, .times = 1, .first = first},
                            .process = process,
                            .given = (const void *)given,
                            .result = (const void *)result};
    return call;
}

/* "m0:24 f0:24 m0:1 x3", a step each, with its times where there are more. */
static const char *in_words(const struct call_list *list)
{
    static const char letters[] = "mcrfMCnwlgs";
    static char words[512];
    size_t used = 0;
    words[0] = '\0';
    for (size_t i = 0; i < list->count && used < sizeof words; i++) {
        const struct step *step = &list->at[i];
        used += (size_t)snprintf(words + used, sizeof words - used, "%s%c%u:%zu", i > 0 ? " " : "",
                                 letters[step->kind], step->block, (size_t)step->first);
        if (step->times > 1)
            used += (size_t)snprintf(words + used, sizeof words - used, "x%u", step->times);
    }
    return words;
}

static void expect_list(enum list_of which, bool tidy, const char *words)
{
    struct call_list list = call_list_of(log_of_test, which);
    if (tidy)
        call_list_tidy(&list);
    ck_assert_str_eq(in_words(&list), words);
    call_list_free(&list);
}

START_TEST(addresses_become_blocks)
{
    add(OURS, STEP_MALLOC, 0, 24, 0x1000);
    add(OURS, STEP_MALLOC, 0, 25, 0x2000);
    add(OURS, STEP_REALLOC, 0x1000, 48, 0x3000);
    add(OURS, STEP_MALLOC, 0, 26, 0x1000); /* again, and another block */
    add(OURS, STEP_FREE, 0x3000, 48, 0);
    add(OURS, STEP_FREE, 0x1000, 26, 0);
    add(OURS, STEP_FREE, 0, 7, 0);
    add(OURS, STEP_FREE, 0x4000, 1, 0);      /* of nobody's */
    add(OURS, STEP_REALLOC, 0x2000, 100, 0); /* refused: the block stays */
    add(OURS, STEP_FREE, 0x2000, 25, 0);
    expect_list(OF_LAST_PROCESS, false, "m0:24 m1:25 r0:48 m2:26 f0:48 f2:26 n0:7 r1:100 f1:25");
}
END_TEST

START_TEST(contents_come_before_the_call)
{
    struct logged *call = add(OURS, STEP_MALLOC, 0, 8, 0x1000);
    call = add(OURS, STEP_FREE, 0x1000, 8, 0);
    call->has_word = true;
    call->word = 255;
    expect_list(OF_LAST_PROCESS, false, "m0:8 w0:255 f0:8");
}
END_TEST

START_TEST(one_process_is_followed)
{
    add(OURS, STEP_MALLOC, 0, 1, 0x1000);
    add(OTHERS, STEP_MALLOC, 0, 2, 0x2000); /* which has ended */
    add(CHILDS, STEP_MALLOC, 0, 3, 0x2000);
    add(OURS, STEP_MALLOC, 0, 4, 0x2000); /* meanwhile */
    add(CHILDS, STEP_FREE, 0x1000, 1, 0);
    expect_list(OF_LAST_PROCESS, false, "m0:1 m1:3 f0:1");
    expect_list(OF_FIRST_PROCESS, false, "m0:1 m1:4");
}
END_TEST

START_TEST(pairs_and_rows_are_joined)
{
    for (uintptr_t i = 0; i < 3; i++) {
        add(OURS, STEP_MALLOC, 0, 40, 0x1000);
        add(OURS, STEP_FREE, 0x1000, 40, 0);
    }
    for (uintptr_t i = 0; i < 4; i++)
        add(OURS, STEP_MALLOC, 0, 16, 0x1000 * (i + 1));
    for (uintptr_t i = 0; i < 2; i++)
        add(OURS, STEP_FREE, 0x1000 * (i + 1), 16, 0);
    add(OURS, STEP_FREE, 0x4000, 17, 0); /* a wrong size, and not the next */
    expect_list(OF_LAST_PROCESS, true, "M0:40x3 m1:16x4 f1:16x2 f4:17");
}
END_TEST

START_TEST(what_does_nothing_is_gone)
{
    struct call_list list;
    add(OURS, STEP_MALLOC, 0, 8, 0x1000);
    add(OURS, STEP_MALLOC, 0, 9, 0x2000);
    add(OURS, STEP_FREE, 0x1000, 8, 0);
    add(OURS, STEP_FREE, 0x2000, 9, 0);
    list = call_list_of(log_of_test, OF_LAST_PROCESS);
    memmove(list.at, list.at + 1, 3 * sizeof *list.at); /* without what made the first */
    list.count = 3;
    call_list_tidy(&list);
    ck_assert_str_eq(in_words(&list), "M0:9");
    call_list_free(&list);
}
END_TEST

START_TEST(closed_it_frees_what_it_made)
{
    struct call_list list, copy;
    add(OURS, STEP_MALLOC, 0, 8, 0x1000);
    add(OURS, STEP_CALLOC, 0, 5, 0x2000)->step.second = 3;
    add(OURS, STEP_REALLOC, 0, 7, 0x3000);
    add(OURS, STEP_FREE, 0x1000, 8, 0);
    list = call_list_of(log_of_test, OF_LAST_PROCESS);
    copy = call_list_copy(&list);
    call_list_close(&copy);
    ck_assert_str_eq(in_words(&copy), "m0:8 c1:5 r2:7 f0:8 f1:15 f2:7");
    ck_assert_uint_eq(list.count, 4);
    call_list_free(&list);
    call_list_free(&copy);
}
END_TEST

START_TEST(nothing_was_logged)
{
    expect_list(OF_LAST_PROCESS, true, "");
    expect_list(OF_FIRST_PROCESS, true, "");
}
END_TEST

/* What is shown of it; owned. */
static char *shown(const struct call_list *list)
{
    char *text = NULL;
    size_t length;
    FILE *file = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(file);
    show_calls(file, 0, list);
    fclose(file);
    return text;
}

/* One step or two that come again and again are told once. */
START_TEST(what_is_repeated_is_a_line)
{
    enum { TIMES = 1000 };
    static struct step steps[2 * TIMES + 2] = {{.kind = STEP_MALLOC, .times = 1, .first = 8}};
    struct call_list list = {.at = steps, .count = 2 * TIMES + 2};
    for (size_t i = 1; i <= 2 * TIMES; i++)
        steps[i] = (struct step){.kind = STEP_REALLOC, .times = 1, .first = i % 2 != 0 ? 16 : 32};
    steps[2 * TIMES + 1] = (struct step){.kind = STEP_FREE, .times = 1, .first = 32};
    char *text = shown(&list);
    ck_assert_str_eq(text, "p = malloc(8)\n"
                           "p = realloc(p, 16)\n"
                           "p = realloc(p, 32)\n"
                           "(these two, 999 times more)\n"
                           "free(p, 32)\n");
    free(text);
}
END_TEST

/* A block has a letter, unless another step is about a row of them. */
START_TEST(a_row_has_numbers)
{
    struct step steps[] = {{.kind = STEP_MALLOC, .times = 3, .first = 8},
                           {.kind = STEP_MALLOC, .times = 1, .block = 3, .first = 16}};
    struct call_list both = {.at = steps, .count = 2}, one = {.at = steps + 1, .count = 1};
    char *text = shown(&both);
    ck_assert_str_eq(text, "p[0..2] = malloc(8)\np[3] = malloc(16)\n");
    free(text);
    text = shown(&one);
    ck_assert_str_eq(text, "s = malloc(16)\n");
    free(text);
}
END_TEST

Suite *suite_call_list(void)
{
    Suite *suite = suite_create("call_list");
    TCase *lists = tcase_create("call_list");
    tcase_add_checked_fixture(lists, make_log, end_log);
    tcase_add_test(lists, addresses_become_blocks);
    tcase_add_test(lists, contents_come_before_the_call);
    tcase_add_test(lists, what_is_repeated_is_a_line);
    tcase_add_test(lists, a_row_has_numbers);
    tcase_add_test(lists, one_process_is_followed);
    tcase_add_test(lists, pairs_and_rows_are_joined);
    tcase_add_test(lists, what_does_nothing_is_gone);
    tcase_add_test(lists, closed_it_frees_what_it_made);
    tcase_add_test(lists, nothing_was_logged);
    suite_add_tcase(suite, lists);
    return suite;
}
