/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Comparing two runs by their reports.
 */
#include "report/comparison.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static const char *const names[DIFFERENCES] = {"NEW", "FIXED", "CHANGED", "GONE"};

/* ---- reading ----------------------------------------------------------------------------- */

static const char *word(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

static bool is_report(const json_t *value)
{
    const json_t *properties = json_object_get(value, "properties"), *property;
    size_t i;
    if (strcmp(word(value, "format"), "conform-report-2") != 0 || !json_is_array(properties))
        return false;
    json_array_foreach(properties, i, property)
    {
        if (*word(property, "id") == '\0' || *word(property, "verdict") == '\0')
            return false;
    }
    return true;
}

/* A report, or with `errors` what tells why there is none. */
static void add_report(json_t *reports, const json_t *report, const char *where, bool errors)
{
    if (!is_report(report) && (!errors || *word(report, "error") == '\0'))
        return;
    json_t *copy = json_copy((json_t *)report);
    json_object_set_new(copy, "where", json_string(where));
    json_array_append_new(reports, copy);
}

json_t *comparison_reports(const json_t *value, bool errors)
{
    json_t *reports = json_array(), *member, *columns = json_object_get(value, "interpreters");
    size_t i;
    add_report(reports, value, "", false);
    json_array_foreach(value, i, member)
    {
        const json_t *subject = json_object_get(member, "subject");
        add_report(reports, member,
                   word(subject != NULL ? subject : member, subject != NULL ? "file" : "where"),
                   errors);
    }
    json_array_foreach(columns, i, member)
    {
        const json_t *report = json_object_get(member, "report");
        add_report(reports, report != NULL ? report : member, word(member, "python"), errors);
    }
    return reports;
}

json_t *comparison_read(const char *file, bool errors)
{
    json_error_t error;
    json_t *root = json_load_file(file, JSON_REJECT_DUPLICATES, &error);
    if (root == NULL && error.line > 0)
        leave_with(EXIT_USAGE, "%s:%d:%d: %s", file, error.line, error.column, error.text);
    if (root == NULL)
        leave_with(EXIT_USAGE, "%s", error.text);
    json_t *reports = comparison_reports(root, errors);
    if (json_array_size(reports) == 0)
        leave_with(EXIT_USAGE, "%s: is no report that --json of this program writes", file);
    json_decref(root);
    return reports;
}

/* ---- comparing --------------------------------------------------------------------------- */

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

static bool is_whole(const json_t *report)
{
    return json_is_true(json_object_get(report, "whole")) &&
           !json_is_true(json_object_get(report, "interrupted"));
}

static json_t *row(const json_t *report, const json_t *property, const char *before,
                   const char *after)
{
    bool is_waived = after != NULL && json_object_get(property, "waived") != NULL;
    return json_pack("{s:s, s:s*, s:s*, s:s, s:s, s:b}", "id", word(property, "id"), "before",
                     before, "after", after, "target", word(property, "target"), "where",
                     word(report, "where"), "waived", is_waived);
}

static void compare_property(struct comparison *c, const json_t *before, const json_t *after,
                             const json_t *property, bool strict)
{
    const json_t *earlier = property_of(before, word(property, "id"));
    const char *is = word(property, "verdict"), *was = word(earlier, "verdict");
    bool counts = weight(is) > (strict ? 0 : 1) &&
                  strcmp(word(property, "target"), "runtime") != 0 &&
                  json_object_get(property, "waived") == NULL;
    if (!was_run(after, property))
        return;
    if (!was_run(before, earlier)) {
        if (is_whole(before) || weight(is) > 0)
            json_array_append_new(c->unknown, row(after, property, NULL, is));
        c->failures += counts && !is_whole(before); /* nobody knows that it is an old one */
        return;
    }
    if (strcmp(was, is) == 0)
        return;
    enum difference difference = weight(is) > weight(was)                     ? DIFFERENCE_NEW
                                 : weight(was) > 0 && strcmp(is, "PASS") == 0 ? DIFFERENCE_FIXED
                                                                              : DIFFERENCE_CHANGED;
    json_array_append_new(c->told[difference], row(after, property, was, is));
    c->failures += difference == DIFFERENCE_NEW && counts;
}

static void compare_surroundings(struct comparison *c, const json_t *before, const json_t *after)
{
    static const struct {
        const char *object, *member, *called;
    } all[] = {
        {NULL, "conform", "conform"},         {"subject", "sha256", "the handler's SHA-256"},
        {"environment", "python", "Python"},  {"environment", "numpy", "NumPy"},
        {"environment", "libc", "libc"},      {"environment", "kernel", "kernel"},
        {"environment", "checker", "beside"}, {NULL, "seed", "seed"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const json_t *one = before, *other = after;
        if (all[i].object != NULL) {
            one = json_object_get(before, all[i].object);
            other = json_object_get(after, all[i].object);
        }
        const char *was = word(one, all[i].member), *is = word(other, all[i].member);
        const char *line = text("%s %.16s, now %.16s", all[i].called, *was != '\0' ? was : "none",
                                *is != '\0' ? is : "none");
        if (strcmp(all[i].member, "sha256") != 0)
            line = text("%s %s, now %s", all[i].called, *was != '\0' ? was : "nothing",
                        *is != '\0' ? is : "nothing");
        if (strcmp(was, is) != 0)
            json_array_append_new(c->surroundings, json_string(line));
    }
}

static void compare_reports(struct comparison *c, const json_t *before, const json_t *after,
                            bool strict)
{
    const json_t *property;
    size_t i;
    if (before != NULL)
        compare_surroundings(c, before, after);
    json_array_foreach(json_object_get(after, "properties"), i, property)
    {
        compare_property(c, before, after, property, strict);
    }
    json_array_foreach(json_object_get(before, "properties"), i, property)
    {
        if (is_whole(after) && property_of(after, word(property, "id")) == NULL)
            json_array_append_new(c->told[DIFFERENCE_GONE],
                                  row(after, property, word(property, "verdict"), NULL));
    }
}

/* The report to compare that one with: the only one, or the one of the same name. */
static const json_t *partner(const json_t *reports, const json_t *of, bool only)
{
    const json_t *report;
    size_t i;
    json_array_foreach(reports, i, report)
    {
        if (only || strcmp(word(report, "where"), word(of, "where")) == 0)
            return report;
    }
    return NULL;
}

struct comparison comparison_of(const json_t *before, const json_t *after, bool strict)
{
    struct comparison c = {.unknown = json_array(), .surroundings = json_array()};
    bool only = json_array_size(before) == 1 && json_array_size(after) == 1;
    const json_t *report;
    size_t i;
    for (int difference = 0; difference < DIFFERENCES; difference++)
        c.told[difference] = json_array();
    json_array_foreach(after, i, report)
    {
        const json_t *earlier = partner(before, report, only);
        compare_reports(&c, earlier, report, strict); /* with none, all that fails counts */
        if (earlier == NULL)
            json_array_append_new(c.surroundings,
                                  json_string(text("%s was not there", word(report, "where"))));
    }
    json_array_foreach(before, i, report)
    {
        if (partner(after, report, only) == NULL)
            json_array_append_new(c.surroundings,
                                  json_string(text("%s is not there now", word(report, "where"))));
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

void comparison_print(FILE *file, const struct comparison *comparison, const char *name,
                      const struct options *options)
{
    const json_t *member;
    size_t i, failed = 0;
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
    }
    fprintf(file, "since %s: %zu new, %zu fixed, %zu changed, %zu gone", text_safe(name),
            json_array_size(comparison->told[DIFFERENCE_NEW]),
            json_array_size(comparison->told[DIFFERENCE_FIXED]),
            json_array_size(comparison->told[DIFFERENCE_CHANGED]),
            json_array_size(comparison->told[DIFFERENCE_GONE]));
    if (json_array_size(comparison->unknown) > 0)
        fprintf(file, "; of %zu properties that it does not know %zu failed",
                json_array_size(comparison->unknown), failed);
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
