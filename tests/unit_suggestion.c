/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/base/suggestion.c: what may have been meant.
 */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/suggestion.h"

static const char *const known[] = {"handler", "help", "json", "malloc.alignment",
                                    "calloc.alignment"};

static const struct {
    const char *word, *meant; /* "": none */
} rows[] = {
    {"hanlder", "handler"},                  /* swapped */
    {"handlr", "handler"},                   /* left out */
    {"handdler", "handler"},                 /* put in */
    {"jsan", "json"},                        /* another */
    {"hnaldre", ""},                         /* three, of seven letters */
    {"malloc.algnmnt", "malloc.alignment"},  /* two, of fourteen */
    {"calloc.aligment", "calloc.alignment"}, /* the nearer of two */
    {"halp", "help"},
    {"yaml", ""},
    {"", ""},
};

START_TEST(what_was_meant)
{
    struct suggestion suggestion = suggestion_for(rows[_i].word, strlen(rows[_i].word));
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        suggestion_consider(&suggestion, known[k]);
    char expected[64] = "";
    if (rows[_i].meant[0] != '\0')
        snprintf(expected, sizeof expected, " (did you mean --%s?)", rows[_i].meant);
    ck_assert_str_eq(suggestion_words(&suggestion, "--"), expected);
}
END_TEST

START_TEST(long_words_and_none)
{
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct suggestion suggestion = suggestion_for(longest, strlen(longest));
    suggestion_consider(&suggestion, "x");
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion = suggestion_for("x", 1);
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion_consider(&suggestion, longest);
    ck_assert_str_eq(suggestion_words(&suggestion, ""), "");
    suggestion = suggestion_for("xy=1", 2);
    suggestion_consider(&suggestion, "yx");
    ck_assert_str_eq(suggestion_words(&suggestion, ""), " (did you mean yx?)");
}
END_TEST

Suite *suite_suggestion(void)
{
    Suite *suite = suite_create("suggestion");
    TCase *tcase = tcase_create("suggestion");
    tcase_add_loop_test(tcase, what_was_meant, 0, ROWS(rows));
    tcase_add_test(tcase, long_words_and_none);
    suite_add_tcase(suite, tcase);
    return suite;
}
