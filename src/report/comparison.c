/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing two runs by their reports.
 */
#include "report/comparison.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"
#include "model/record.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/report.h"

static const char *const names[DIFFERENCES] = {"NEW", "FIXED", "CHANGED", "GONE"};

/* ---- comparing --------------------------------------------------------------------------- */

/* What the reports of several are told from each other by. */
struct by {
    bool handler, interpreter;
};

struct pair {
    const json_t *before, *after; /* `before` is NULL where there is none */
    char name[1024];              /* which one it is of several, or "" */
    struct by by;
    bool strict;
};

static const json_t *property_of(const json_t *report, const char *id)
{
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        if (strcmp(word(property, "id"), id) == 0)
            return property;
    }
    return NULL;
}

/* How much a verdict says against the handler. */
static int weight(const char *verdict)
{
    bool fails = strcmp(verdict, "FAIL") == 0 || strcmp(verdict, "CRASH") == 0 ||
                 strcmp(verdict, "TIMEOUT") == 0;
    return fails ? 2 : strcmp(verdict, "WARN") == 0 ? 1 : 0;
}

/* Whether the run came to it: what an interrupt left out says nothing. */
static bool was_run(const json_t *report, const json_t *property)
{
    return property != NULL && (!json_is_true(json_object_get(report, "interrupted")) ||
                                strcmp(word(property, "verdict"), "INCOMPLETE") != 0);
}

static bool can_decide(const json_t *property)
{
    return strcmp(word(property, "target"), "runtime") != 0 &&
           json_object_get(property, "waived") == NULL;
}

static bool is_whole(const json_t *report)
{
    return json_is_true(json_object_get(report, "whole")) &&
           !json_is_true(json_object_get(report, "interrupted"));
}

/* Whether it says anything of the handler. */
static bool is_judged(const json_t *property)
{
    return strcmp(word(property, "verdict"), "PASS") == 0 || weight(word(property, "verdict")) > 0;
}

static json_t *row(const struct pair *pair, const json_t *property, const char *before,
                   const char *after)
{
    bool is_waived = after != NULL && json_object_get(property, "waived") != NULL;
    return json_pack("{s:s, s:s*, s:s*, s:s, s:s, s:b}", "id", word(property, "id"), "before",
                     before, "after", after, "target", word(property, "target"), "where",
                     pair->name, "waived", is_waived);
}

static void count(struct comparison *c, enum exit_code code)
{
    c->status = exit_code_worse(c->status, code);
}

/* What the earlier report judged and the later did not. */
static void compare_unjudged(struct comparison *c, const struct pair *pair, const json_t *property)
{
    bool is_broken = strcmp(word(property, "verdict"), "BROK") == 0;
    bool is_incomplete = strcmp(word(property, "verdict"), "INCOMPLETE") == 0;
    bool ran = was_run(pair->after, property);
    c->not_run += !ran;
    c->broken += is_broken;
    c->incomplete += is_incomplete && ran;
    if (is_broken)
        count(c, EXIT_HARNESS_BROKE);
    if (!ran || (is_incomplete && can_decide(property) &&
                 (pair->strict || strcmp(word(property, "level"), "MUST") == 0)))
        count(c, EXIT_INCOMPLETE);
}

static void compare_property(struct comparison *c, const struct pair *pair, const json_t *property)
{
    const json_t *earlier = property_of(pair->before, word(property, "id"));
    const char *is = word(property, "verdict"), *was = word(earlier, "verdict");
    bool counts = weight(is) > (pair->strict ? 0 : 1) && can_decide(property);
    if (is_judged(earlier))
        compare_unjudged(c, pair, property);
    if (!was_run(pair->after, property))
        return;
    if (!was_run(pair->before, earlier)) {
        json_array_append_new(c->unknown, row(pair, property, NULL, is));
        if (counts && !is_whole(pair->before)) /* nobody knows that it is an old one */
            count(c, EXIT_NOT_CONFORMANT);
        return;
    }
    if (strcmp(was, is) == 0)
        return;
    enum difference difference = weight(is) > weight(was)                     ? DIFFERENCE_NEW
                                 : weight(was) > 0 && strcmp(is, "PASS") == 0 ? DIFFERENCE_FIXED
                                                                              : DIFFERENCE_CHANGED;
    json_array_append_new(c->told[difference], row(pair, property, was, is));
    if (difference == DIFFERENCE_NEW && counts)
        count(c, EXIT_NOT_CONFORMANT);
}

/* Once, though every one of several has it. */
static void add_line(struct comparison *c, const char *line)
{
    const json_t *other;
    size_t i;
    json_array_foreach(c->surroundings, i, other)
    {
        if (strcmp(json_string_value(other), line) == 0)
            return;
    }
    json_array_append_new(c->surroundings, json_string(line));
}

static void compare_surroundings(struct comparison *c, const struct pair *pair)
{
    static const struct {
        const char *object, *member, *called;
        bool is_one_handlers, is_one_interpreters; /* of several */
    } all[] = {
        {NULL, "conform", "conform", false, false},
        {"subject", "sha256", "the handler's SHA-256", true, false},
        {"environment", "python", "Python", false, true},
        {"environment", "numpy", "NumPy", false, true},
        {"environment", "libc", "libc", false, false},
        {"environment", "kernel", "kernel", false, false},
        {"environment", "checker", "beside", false, false},
        {"environment", "allocator", "allocator", false, false},
        {NULL, "seed", "seed", false, false},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const json_t *one = pair->before, *other = pair->after;
        if (all[i].object != NULL) {
            one = json_object_get(one, all[i].object);
            other = json_object_get(other, all[i].object);
        }
        const char *was = word(one, all[i].member), *is = word(other, all[i].member);
        bool is_hash = strcmp(all[i].member, "sha256") == 0;
        bool named = (all[i].is_one_handlers && pair->by.handler) ||
                     (all[i].is_one_interpreters && pair->by.interpreter);
        const char *none = is_hash ? "none" : "nothing";
        if (strcmp(was, is) != 0)
            add_line(c, text("%s%s%s %.*s, now %.*s", named ? pair->name : "", named ? ": " : "",
                             all[i].called, is_hash ? 16 : 128, *was != '\0' ? was : none,
                             is_hash ? 16 : 128, *is != '\0' ? is : none));
    }
}

static void compare_reports(struct comparison *c, const struct pair *pair)
{
    const json_t *property;
    size_t i;
    if (pair->before != NULL)
        compare_surroundings(c, pair);
    json_array_foreach(json_object_get(pair->after, "properties"), i, property)
    {
        compare_property(c, pair, property);
    }
    json_array_foreach(json_object_get(pair->before, "properties"), i, property)
    {
        if (property_of(pair->after, word(property, "id")) != NULL)
            continue;
        c->left_out += !is_whole(pair->after);
        if (is_whole(pair->after))
            json_array_append_new(c->told[DIFFERENCE_GONE],
                                  row(pair, property, word(property, "verdict"), NULL));
    }
}

/* Where there is no later report, and should be. */
static void count_not_run(struct comparison *c, const json_t *before)
{
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(before, "properties"), i, property)
    {
        c->not_run += is_judged(property);
        if (is_judged(property))
            count(c, EXIT_INCOMPLETE);
    }
}

/* ---- of several -------------------------------------------------------------------------- */

static const char *of_subject(const json_t *report, const char *name)
{
    return word(json_object_get(report, "subject"), name);
}

static const char *executable(const json_t *report)
{
    return word(json_object_get(report, "environment"), "executable");
}

static bool same(const char *one, const char *other)
{
    return *one != '\0' && strcmp(one, other) == 0;
}

/* By what --python was given; a report of one interpreter says by its executable which it is. */
static bool is_same_interpreter(const json_t *one, const json_t *other)
{
    const char *given = word(one, "python"), *other_given = word(other, "python");
    if (*given != '\0' && *other_given != '\0')
        return strcmp(given, other_given) == 0;
    return same(executable(one), executable(other)) || same(given, executable(other)) ||
           same(executable(one), other_given);
}

static bool is_same_handler(const json_t *one, const json_t *other)
{
    return report_is_missing(one) || report_is_missing(other) || /* whichever it was to be */
           (strcmp(of_subject(one, "file"), of_subject(other, "file")) == 0 &&
            strcmp(of_subject(one, "symbol"), of_subject(other, "symbol")) == 0);
}

/* The report to compare that one with, or NULL. */
static const json_t *partner(const json_t *reports, const json_t *of, struct by by)
{
    const json_t *report;
    size_t i;
    json_array_foreach(reports, i, report)
    {
        if ((!by.handler || is_same_handler(report, of)) &&
            (!by.interpreter || is_same_interpreter(report, of)))
            return report;
    }
    return NULL;
}

/* What tells the reports of a file from each other. */
static void add_axes(struct by *by, const json_t *reports)
{
    bool is_matrix = *word(json_array_get(reports, 0), "python") != '\0';
    by->interpreter = by->interpreter || (json_array_size(reports) > 1 && is_matrix);
    by->handler = by->handler || (json_array_size(reports) > 1 && !is_matrix);
}

static void name_pair(struct pair *pair, const json_t *report)
{
    const char *symbol = of_subject(report, "symbol"), *python = word(report, "python");
    bool has_handler = pair->by.handler && *of_subject(report, "file") != '\0';
    bool has_python = pair->by.interpreter || report_is_missing(report);
    snprintf(pair->name, sizeof pair->name, "%s%s%s%s%s",
             has_handler ? text_safe(of_subject(report, "file")) : "",
             has_handler && *symbol != '\0' ? ":" : "", has_handler ? text_safe(symbol) : "",
             has_handler && has_python ? " in " : "",
             has_python ? text_safe(*python != '\0' ? python : executable(report)) : "");
}

/* Whether the handler said that it cannot work there. */
static bool is_unfit(const json_t *report)
{
    return json_integer_value(json_object_get(report, "exit_code")) == EXIT_CANNOT_WORK_HERE;
}

static void compare_pair(struct comparison *c, struct pair *pair)
{
    const char *error = word(pair->after, "error"), *earlier = word(pair->before, "error");
    name_pair(pair, pair->after);
    if (*error != '\0') {
        add_line(c, text("%s could not be run: %.200s", pair->name, error));
        count_not_run(c, pair->before);
        return;
    }
    if (pair->before == NULL)
        add_line(c, text("%s was not there", pair->name));
    if (*earlier != '\0')
        add_line(c, text("%s could not be run then: %.200s", pair->name, earlier));
    if (*earlier != '\0')
        pair->before = NULL;
    if (is_unfit(pair->after) && !is_unfit(pair->before))
        count(c, EXIT_CANNOT_WORK_HERE);
    compare_reports(c, pair); /* with none, all that fails counts */
}

/* Whether one of `after` was compared with it. */
static bool has_partner(const json_t *before, const json_t *after, const json_t *report,
                        struct by by)
{
    const json_t *later;
    size_t i;
    json_array_foreach(after, i, later)
    {
        if (partner(before, later, by) == report)
            return true;
    }
    return false;
}

struct comparison comparison_of(const json_t *before, const json_t *after, bool strict)
{
    struct comparison c = {.unknown = json_array(), .surroundings = json_array()};
    struct pair pair = {.strict = strict};
    const json_t *report;
    size_t i;
    for (int difference = 0; difference < DIFFERENCES; difference++)
        c.told[difference] = json_array();
    add_axes(&pair.by, before);
    add_axes(&pair.by, after);
    json_array_foreach(after, i, report)
    {
        pair.after = report;
        pair.before = partner(before, report, pair.by);
        compare_pair(&c, &pair);
        c.interrupted = c.interrupted || json_is_true(json_object_get(report, "interrupted"));
    }
    json_array_foreach(before, i, report)
    {
        if (has_partner(before, after, report, pair.by))
            continue;
        name_pair(&pair, report);
        add_line(&c, text("%s is not there now", pair.name));
        if (c.interrupted) /* which may be why */
            count_not_run(&c, report);
    }
    return c;
}

void comparison_free(struct comparison *comparison)
{
    for (int difference = 0; difference < DIFFERENCES; difference++)
        json_decref(comparison->told[difference]);
    json_decref(comparison->unknown);
    json_decref(comparison->surroundings);
}

/* ---- telling it -------------------------------------------------------------------------- */

static void print_row(FILE *file, const char *name, const json_t *row)
{
    const char *before = word(row, "before"), *after = word(row, "after");
    const char *where = word(row, "where");
    fprintf(file, "%-7s %s: ", name, text_safe(word(row, "id")));
    if (*before != '\0' && *after != '\0')
        fprintf(file, "%s, was %s", text_safe(after), text_safe(before));
    else
        fprintf(file, "%s%s", *after == '\0' ? "was " : "",
                text_safe(*after == '\0' ? before : after));
    if (strcmp(word(row, "target"), "runtime") == 0)
        fputs(" (about NumPy, and not counted)", file);
    if (json_is_true(json_object_get(row, "waived")))
        fputs(" (waived, and not counted)", file);
    if (*where != '\0')
        fprintf(file, ", %s", text_safe(where));
    fputc('\n', file);
}

/* What of the earlier report nobody can say anything of now. */
static void print_unjudged(FILE *file, const struct comparison *comparison)
{
    const struct {
        size_t count;
        const char *what;
    } all[] = {
        {comparison->not_run, comparison->interrupted ? "not run (interrupted)" : "not run"},
        {comparison->incomplete, "INCOMPLETE"},
        {comparison->broken, "BROK"},
        {comparison->left_out, "left out"},
    };
    const char *before = "; of its properties";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].count > 0)
            fprintf(file, "%s %zu %s", before, all[i].count, all[i].what);
        before = all[i].count > 0 ? "," : before;
    }
}

void comparison_print(FILE *file, const struct comparison *comparison, const char *name,
                      const struct options *options)
{
    const json_t *member;
    size_t i, failed = 0, unknown = json_array_size(comparison->unknown);
    if (!options->quiet) {
        json_array_foreach(comparison->surroundings, i, member)
        {
            fprintf(file, "        %s\n", text_safe(json_string_value(member)));
        }
    }
    for (int difference = 0; difference < DIFFERENCES; difference++) {
        json_array_foreach(comparison->told[difference], i, member)
        {
            print_row(file, names[difference], member);
        }
    }
    json_array_foreach(comparison->unknown, i, member)
    {
        failed += weight(word(member, "after")) > 0;
        if (weight(word(member, "after")) > 0)
            print_row(file, "UNKNOWN", member);
    }
    fprintf(file, "since %s: %zu new, %zu fixed, %zu changed, %zu gone", text_safe(name),
            json_array_size(comparison->told[DIFFERENCE_NEW]),
            json_array_size(comparison->told[DIFFERENCE_FIXED]),
            json_array_size(comparison->told[DIFFERENCE_CHANGED]),
            json_array_size(comparison->told[DIFFERENCE_GONE]));
    if (unknown > 0)
        fprintf(file, "; of %zu propert%s that it does not know %zu failed", unknown,
                unknown == 1 ? "y" : "ies", failed);
    print_unjudged(file, comparison);
    fputc('\n', file);
}

json_t *comparison_object(const struct comparison *comparison, const char *name)
{
    return json_pack("{s:s, s:O, s:O, s:O, s:O, s:O, s:O}", "file", text_safe(name), "new",
                     comparison->told[DIFFERENCE_NEW], "fixed", comparison->told[DIFFERENCE_FIXED],
                     "changed", comparison->told[DIFFERENCE_CHANGED], "gone",
                     comparison->told[DIFFERENCE_GONE], "unknown", comparison->unknown,
                     "surroundings", comparison->surroundings);
}
