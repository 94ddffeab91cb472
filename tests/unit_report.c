/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/report/: what is concluded from a run, and how it is worded.  The properties are those of
 * tests/unit_property.c.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

enum { COUNT = 4 }; /* properties */

/* A run of its own for each test, which runs in a process of its own. */
static struct {
    struct options options;
    struct subject_place place;
    struct load load;
    struct environment environment;
    struct record records[COUNT];
    struct outcome outcomes[COUNT];
    const struct record *pointers[COUNT];
    struct run run;
} made;

static struct run *make_run(const enum verdict verdicts[COUNT])
{
    made.options = (struct options){.program = "./no-such/conform", .seed = 18446744073709551615u};
    static char file[] = "/tmp/libx.so";
    made.place = (struct subject_place){.argument = file, .path = file, .label = file + 5};
    atomic_store(&made.load.state, LOAD_DONE);
    made.load.has_name = 1;
    made.load.version = 1;
    strcpy(made.load.name, "x");
    strcpy(made.environment.python, "3.11.2");
    strcpy(made.environment.numpy, "1.24.2");
    for (int i = 0; i < COUNT; i++) {
        made.records[i].verdict = verdicts[i];
        made.outcomes[i] = outcome_of(&made.records[i]);
        made.records[i].seconds = 0.25;
        made.pointers[i] = &made.records[i];
    }
    size_t count;
    made.run = (struct run){
        .options = &made.options,
        .place = &made.place,
        .load = &made.load,
        .environment = &made.environment,
        .machine = machine_here(),
        .python = "/usr/bin/python3",
        .properties = property_all(&count),
        .records = made.pointers,
        .outcomes = made.outcomes,
        .count = COUNT,
        .rounds = 1,
        .seconds = 1.5,
    };
    ck_assert_uint_eq(count, COUNT);
    return &made.run;
}

static const struct {
    enum verdict verdicts[COUNT]; /* the third is NumPy's */
    bool strict;
    int load;
    enum exit_code code;
    const char *conclusion;
} rows[] = {
    {{PASS, PASS, PASS, PASS}, true, LOAD_DONE, 0, "CONFORMANT"},
    {{SKIP, SKIP, SKIP, SKIP}, false, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, WARN, PASS, PASS}, false, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, WARN, PASS, PASS}, true, LOAD_DONE, 1, "NOT CONFORMANT: 1 of 3"},
    {{FAIL, PASS, PASS, PASS}, false, LOAD_DONE, 1, "NOT CONFORMANT: 1 of 3"},
    {{PASS, TIMEOUT, PASS, FAIL}, false, LOAD_DONE, 1, "NOT CONFORMANT: 2 of 3"},
    {{FAIL, WARN, PASS, CRASH}, true, LOAD_DONE, 1, "NOT CONFORMANT: 3 of 3"},
    {{PASS, PASS, FAIL, PASS}, false, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, PASS, CRASH, PASS}, true, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, PASS, WARN, PASS}, true, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, BROK, PASS, PASS}, false, LOAD_DONE, 4, "NO VERDICT: the harness"},
    {{PASS, PASS, BROK, PASS}, false, LOAD_DONE, 4, "NO VERDICT: the harness"},
    {{FAIL, BROK, PASS, PASS}, false, LOAD_DONE, 1, "NOT CONFORMANT: 1 of 3"},
    {{PASS, PASS, PASS, INCOMPLETE}, false, LOAD_DONE, 5, "INCOMPLETE: 1 of 3"},
    {{INCOMPLETE, INCOMPLETE, INCOMPLETE, PASS}, true, LOAD_DONE, 5, "INCOMPLETE: 2 of 3"},
    {{PASS, PASS, INCOMPLETE, PASS}, true, LOAD_DONE, 0, "CONFORMANT"},
    {{PASS, BROK, PASS, INCOMPLETE}, false, LOAD_DONE, 4, "NO VERDICT: the harness"},
    {{FAIL, PASS, PASS, INCOMPLETE}, false, LOAD_DONE, 1, "NOT CONFORMANT: 1 of 3"},
    {{FAIL, SKIP, SKIP, SKIP}, false, LOAD_FAILED, 3, "NO VERDICT: no handler"},
    {{SKIP, SKIP, SKIP, SKIP}, false, LOAD_UNFIT, 77, "NO VERDICT: it says"},
    {{CRASH, SKIP, SKIP, SKIP}, false, LOAD_UNKNOWN, 1, "NOT CONFORMANT: 1 of 3"},
};

START_TEST(conclusion_is_what_the_table_says)
{
    struct run *run = make_run(rows[_i].verdicts);
    made.options.strict = rows[_i].strict;
    atomic_store(&made.load.state, rows[_i].load);
    run_conclude(run);
    ck_assert_int_eq(run->conclusion.code, rows[_i].code);
    ck_assert_msg(begins_with(run->conclusion.words, rows[_i].conclusion),
                  "\"%s\" does not begin with \"%s\"", run->conclusion.words, rows[_i].conclusion);
}
END_TEST

START_TEST(a_part_is_not_called_the_whole)
{
    struct run *run = make_run((enum verdict[]){PASS, PASS, PASS, PASS});
    run->count--;
    run_conclude(run);
    ck_assert(!run->conclusion.whole);
    ck_assert_str_eq(run->conclusion.words,
                     "conformant in the properties that were run, which are not all");
}
END_TEST

START_TEST(reproduce_is_a_command_at_any_length)
{
    struct run *run = make_run((enum verdict[]){FAIL, PASS, PASS, PASS});
    char argument[4000], expected[8200];
    memset(argument, ' ', sizeof argument - 1);
    argument[sizeof argument - 1] = '\0';
    unsetenv("LD_PRELOAD"); /* which the command sets again, and valgrind has set */
    made.place.argument = argument;
    made.options.python = "/my venv/bin/python";
    snprintf(expected, sizeof expected,
             "gdb -ex 'break conform_fail' -ex run --args ./no-such/conform --handler='%s' "
             "--python='/my venv/bin/python' "
             "--run=sooner.first "
             "--seed=18446744073709551615 --no-fork",
             argument);
    ck_assert_str_eq(run_reproduce(run, 0), expected);
}
END_TEST

START_TEST(message_is_whole)
{
    struct run *run = make_run((enum verdict[]){FAIL, PASS, PASS, PASS});
    struct record *record = &made.records[0];
    memset(record->expected, 'e', sizeof record->expected); /* no NUL at all */
    memset(record->seen, '\n', sizeof record->seen);
    const char *message = run_message(run, 0);
    ck_assert_uint_eq(strlen(message), strlen("expected ; seen ") + sizeof record->expected +
                                           4 * sizeof record->seen);
    ck_assert_str_eq(message + strlen(message) - 4, "\\x0a");
    ck_assert_str_eq(run_message(run, 1), "");
}
END_TEST

/* The record stays what it was; the conclusion is added to what is reported, or replaces it. */
START_TEST(an_outcome_is_reported)
{
    struct run *run = make_run((enum verdict[]){FAIL, FAIL, PASS, SKIP});
    for (int i = 0; i < COUNT; i++) {
        strcpy(made.records[i].seen, "2");
        strcpy(made.records[i].expected, "1");
        strcpy(made.records[i].control, "without a fork");
    }
    made.records[3].expected[0] = '\0';
    run->rounds = 3;
    made.outcomes[0] = (struct outcome){
        .verdict = SKIP, .cause = run->properties[1], .note = "why", .skipped_rounds = 3};
    made.outcomes[1].in_control = true;
    made.outcomes[3].skipped_rounds = 2;
    static const char *const messages[] = {"caused by later.zz-first: why",
                                           "expected 1; seen 2; it is so already without a fork",
                                           "", "2 (in 2 of 3 rounds)"};
    for (size_t i = 0; i < COUNT; i++)
        ck_assert_str_eq(run_message(run, i), messages[i]);
}
END_TEST

TCase *case_report(void)
{
    TCase *tcase = tcase_create("report");
    tcase_add_loop_test(tcase, conclusion_is_what_the_table_says, 0, ROWS(rows));
    tcase_add_test(tcase, a_part_is_not_called_the_whole);
    tcase_add_test(tcase, reproduce_is_a_command_at_any_length);
    tcase_add_test(tcase, message_is_whole);
    tcase_add_test(tcase, an_outcome_is_reported);
    return tcase;
}
