/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/report/report.c and src/report/: what is concluded from a run, and that each format can be
 * read back whatever the subject put into it.  The properties are those of tests/unit_property.c.
 */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

enum { COUNT = 4, RUNTIME = 2 }; /* properties, and the one of them about NumPy itself */

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

/* ---- the conclusion -----------------------------------------------------------------------------
 */

static const struct {
    enum verdict verdicts[COUNT]; /* the third is NumPy's */
    bool strict;
    int load;
    enum exit_code code;
    const char *conclusion;
} rows[] = {
    {{PASS, PASS, PASS, PASS}, false, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, PASS, PASS, PASS}, true, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{SKIP, SKIP, SKIP, SKIP}, false, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, WARN, PASS, PASS}, false, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, WARN, PASS, PASS}, true, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of 3"},
    {{FAIL, PASS, PASS, PASS}, false, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of 3"},
    {{PASS, CRASH, PASS, PASS}, false, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of 3"},
    {{PASS, TIMEOUT, PASS, FAIL}, false, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 2 of 3"},
    {{FAIL, WARN, PASS, CRASH}, true, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 3 of 3"},
    {{PASS, PASS, FAIL, PASS}, false, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, PASS, CRASH, PASS}, true, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, PASS, TIMEOUT, PASS}, true, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, PASS, WARN, PASS}, true, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, BROK, PASS, PASS}, false, LOAD_DONE, EXIT_HARNESS_BROKE, "NO VERDICT: the harness"},
    {{PASS, PASS, BROK, PASS}, false, LOAD_DONE, EXIT_HARNESS_BROKE, "NO VERDICT: the harness"},
    {{FAIL, BROK, PASS, PASS}, false, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of 3"},
    {{PASS, PASS, PASS, INCOMPLETE}, false, LOAD_DONE, EXIT_INCOMPLETE, "INCOMPLETE: 1 of 3"},
    {{INCOMPLETE, INCOMPLETE, INCOMPLETE, PASS},
     true,
     LOAD_DONE,
     EXIT_INCOMPLETE,
     "INCOMPLETE: 2 of 3"},
    {{PASS, PASS, INCOMPLETE, PASS}, true, LOAD_DONE, EXIT_CONFORMANT, "CONFORMANT"},
    {{PASS, BROK, PASS, INCOMPLETE}, false, LOAD_DONE, EXIT_HARNESS_BROKE, "NO VERDICT: the harn"},
    {{FAIL, PASS, PASS, INCOMPLETE}, false, LOAD_DONE, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of"},
    {{FAIL, SKIP, SKIP, SKIP}, false, LOAD_FAILED, EXIT_CANNOT_LOAD, "NO VERDICT: no handler"},
    {{SKIP, SKIP, SKIP, SKIP}, false, LOAD_UNFIT, EXIT_CANNOT_WORK_HERE, "NO VERDICT: it says"},
    {{CRASH, SKIP, SKIP, SKIP}, false, LOAD_UNKNOWN, EXIT_NOT_CONFORMANT, "NOT CONFORMANT: 1 of 3"},
};

START_TEST(conclusion_is_what_the_table_says)
{
    struct run *run = make_run(rows[_i].verdicts);
    made.options.strict = rows[_i].strict;
    atomic_store(&made.load.state, rows[_i].load);
    ck_assert_int_eq(run_exit_code(run), rows[_i].code);
    const char *conclusion = run_conclusion(run);
    ck_assert_msg(strncmp(conclusion, rows[_i].conclusion, strlen(rows[_i].conclusion)) == 0,
                  "\"%s\" does not begin with \"%s\"", conclusion, rows[_i].conclusion);
}
END_TEST

START_TEST(a_part_is_not_called_the_whole)
{
    struct run *run = make_run((enum verdict[]){PASS, PASS, PASS, PASS});
    ck_assert(run_is_whole(run));
    run->count--;
    ck_assert(!run_is_whole(run));
    ck_assert_ptr_nonnull(strstr(run_conclusion(run), "not all"));
    ck_assert_ptr_null(strstr(run_conclusion(run), "CONFORMANT"));
}
END_TEST

/* ---- words -------------------------------------------------------------------------------- */

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

/* ---- the formats, read back --------------------------------------------------------------- */

static const char *const hostile[] = {
    "plain",
    "",
    "\nok 1 - forged\nnot ok 2 - forged\n1..9\nBail out!\n",
    "\n  ...\n  ---\n  verdict: \"PASS\"\n",
    " # SKIP not really",
    "\" \\ \\\" ' # : - [ ] { } %s %n %d",
    "<failure/> & &amp; ]]> <![CDATA[ <!-- --> <?x ?>",
    "\x01\x02\x03\x07\b\t\v\f\r\x1b[2J\x1b]0;title\x07\x7f",
    "\xff\xfe\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xef\xbf\xbe\xc2\x85",
    ("\xe2\x80\xae" /* a new literal: d is a hexadecimal digit */
     "desrever\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf"),
};

/* In row 0 each field holds the bytes once; in row 1, as often as they fit, cut anywhere. */
static void fill_with(char *to, size_t room, const char *bytes, bool often)
{
    size_t used = 0, length = strlen(bytes);
    do {
        for (size_t i = 0; i < length && used + 1 < room; i++)
            to[used++] = bytes[i];
    } while (often && length > 0 && used + 1 < room);
    to[used] = '\0';
}

static struct run *make_hostile_run(int row)
{
    static char words[8][700];
    static const enum verdict verdicts[][COUNT] = {{FAIL, SKIP, WARN, CRASH},
                                                   {TIMEOUT, INCOMPLETE, BROK, SKIP}};
    const char *bytes = hostile[row / 2 % ROWS(hostile)];
    bool often = row % 2 != 0;
    struct run *run = make_run(verdicts[row / (2 * ROWS(hostile))]);
    for (int i = 0; i < COUNT; i++) {
        struct record *record = &made.records[i];
        fill_with(record->seen, sizeof record->seen, bytes, often);
        if (record->verdict != SKIP)
            fill_with(record->expected, sizeof record->expected, bytes, often);
        fill_with(record->output, sizeof record->output, bytes, often);
        record->output_length = strlen(record->output) * (often ? 100 : 1);
    }
    for (int i = 0; i < 8; i++)
        fill_with(words[i], sizeof words[i], bytes, often);
    made.options.program = words[0];
    made.options.python = run->python = words[1];
    made.place = (struct subject_place){
        .argument = words[2], .path = words[3], .symbol = words[4], .label = words[5]};
    fill_with(made.load.name, sizeof made.load.name, bytes, often);
    fill_with(made.load.claims, sizeof made.load.claims, bytes, often);
    fill_with(made.load.why, sizeof made.load.why, bytes, often);
    made.options.strict = row % 3 == 0;
    return run;
}

enum { HOSTILE_ROWS = 2 * 2 * ROWS(hostile) };

/* The whole report as one string, to be freed. */
static char *written(int (*write)(FILE *, const struct run *), const struct run *run)
{
    char *bytes;
    size_t length;
    FILE *file = open_memstream(&bytes, &length);
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(write(file, run), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_uint_eq(strlen(bytes), length);
    for (size_t i = 0; i < length; i++)
        assert_in_loop(((unsigned char)bytes[i] >= 0x20 && bytes[i] != 0x7f) || bytes[i] == '\n');
    return bytes;
}

static json_t *member(const json_t *object, const char *name)
{
    json_t *value = json_object_get(object, name);
    ck_assert_msg(value != NULL, "no member %s", name);
    return value;
}

static int write_json(FILE *file, const struct run *run)
{
    json_t *value = report_value(run);
    int failed = json_dumpf(value, file, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    json_decref(value);
    return failed;
}

START_TEST(json_is_read_back)
{
    struct run *run = make_hostile_run(_i);
    char *bytes = written(write_json, run);
    json_error_t error;
    json_t *root = json_loads(bytes, JSON_REJECT_DUPLICATES, &error);
    ck_assert_msg(root != NULL, "line %d: %s", error.line, error.text);
    ck_assert_int_eq(json_integer_value(member(root, "expected")), COUNT);
    ck_assert_int_eq(json_integer_value(member(root, "exit_code")), run_exit_code(run));
    ck_assert_str_eq(json_string_value(member(root, "seed")), "18446744073709551615");
    ck_assert_str_eq(json_string_value(member(member(root, "subject"), "file")), run_file(run));
    ck_assert_str_eq(json_string_value(member(member(root, "subject"), "name")),
                     run_handler_name(run));
    json_t *properties = member(root, "properties");
    ck_assert_uint_eq(json_array_size(properties), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        json_t *property = json_array_get(properties, i);
        const struct record *record = run->records[i];
        ck_assert_str_eq(json_string_value(member(property, "id")), run->properties[i]->id);
        ck_assert_str_eq(json_string_value(member(property, "verdict")),
                         verdict_name(record->verdict));
        ck_assert_str_eq(json_string_value(member(property, "message")), run_message(run, i));
        if (record->verdict != SKIP)
            ck_assert_str_eq(json_string_value(member(property, "reproduce")),
                             run_reproduce(run, (size_t)i));
    }
    json_decref(root);
    free(bytes);
}
END_TEST

static int write_text(FILE *file, const struct run *run)
{
    return report_text(file, run, false);
}

START_TEST(text_names_all_that_did_not_pass)
{
    struct run *run = make_hostile_run(_i);
    char *bytes = written(write_text, run);
    for (size_t i = 0; i < COUNT; i++) /* NumPy's are counted, and named by --verbose */
        ck_assert(run->properties[i]->target == TARGET_RUNTIME ||
                  strstr(bytes, run->properties[i]->id) != NULL);
    ck_assert_ptr_nonnull(strstr(bytes, run_conclusion(run)));
    free(bytes);
}
END_TEST

START_TEST(a_full_disk_is_noticed)
{
    struct run *run = make_run((enum verdict[]){FAIL, PASS, PASS, PASS});
    FILE *file = fopen("/dev/full", "w");
    if (file == NULL)
        return;
    setvbuf(file, NULL, _IONBF, 0);
    ck_assert_int_ne(write_text(file, run), 0);
    fclose(file);
}
END_TEST

Suite *suite_report(void)
{
    Suite *suite = suite_create("report");
    TCase *conclusions = tcase_create("conclusion");
    tcase_add_loop_test(conclusions, conclusion_is_what_the_table_says, 0, ROWS(rows));
    tcase_add_test(conclusions, a_part_is_not_called_the_whole);
    suite_add_tcase(suite, conclusions);
    TCase *words = tcase_create("words");
    tcase_add_test(words, reproduce_is_a_command_at_any_length);
    tcase_add_test(words, message_is_whole);
    tcase_add_test(words, an_outcome_is_reported);
    suite_add_tcase(suite, words);
    TCase *formats = tcase_create("formats");
    tcase_add_loop_test(formats, json_is_read_back, 0, HOSTILE_ROWS);
    tcase_add_loop_test(formats, text_names_all_that_did_not_pass, 0, HOSTILE_ROWS);
    tcase_add_test(formats, a_full_disk_is_noticed);
    suite_add_tcase(suite, formats);
    return suite;
}
