/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading reports.
 */
#include "report/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "base/text.h"
#include "model/options.h"
#include "model/record.h"
#include "report/members.h"

static bool is_verdict(const char *name)
{
    for (int verdict = PASS; verdict < VERDICT_COUNT; verdict++) {
        if (strcmp(name, verdict_name((enum verdict)verdict)) == 0)
            return true;
    }
    return false;
}

const char *report_wrong(const json_t *value)
{
    const json_t *properties = json_object_get(value, "properties"), *property;
    size_t i;
    if (strcmp(word(value, "format"), "conform-report-2") != 0 || !json_is_array(properties))
        return "is no report that --json of this program writes";
    json_array_foreach(properties, i, property)
    {
        if (*word(property, "id") == '\0')
            return text("property %zu has no id", i + 1);
        if (!is_verdict(word(property, "verdict")))
            return text("%.128s has the verdict \"%.128s\", and there is none of that name",
                        word(property, "id"), word(property, "verdict"));
    }
    return NULL;
}

bool report_is_missing(const json_t *member)
{
    return *word(member, "error") != '\0';
}

const char *reports_wrong(const json_t *root)
{
    const json_t *columns = json_object_get(root, "interpreters"), *member;
    const json_t *several = columns != NULL ? columns : root;
    size_t i;
    if (json_array_size(several) == 0)
        return report_wrong(root);
    json_array_foreach(several, i, member)
    {
        const json_t *report = columns != NULL ? json_object_get(member, "report") : member;
        const char *wrong =
            columns != NULL && report_is_missing(member) ? NULL : report_wrong(report);
        if (wrong != NULL)
            return text("report %zu of %zu: %s", i + 1, json_array_size(several), wrong);
    }
    return NULL;
}

/* A report, or with `errors` what tells why there is none. */
static void add_report(json_t *reports, const json_t *report, const char *where, const char *python,
                       bool errors)
{
    if (report_wrong(report) != NULL && (!errors || !report_is_missing(report)))
        return;
    json_t *copy = json_copy((json_t *)report);
    json_object_set_new(copy, "where", json_string(where));
    if (python != NULL)
        json_object_set_new(copy, "python", json_string(python));
    json_array_append_new(reports, copy);
}

json_t *reports_in(const json_t *value, bool errors)
{
    json_t *reports = json_array(), *member, *columns = json_object_get(value, "interpreters");
    size_t i;
    add_report(reports, value, "", NULL, false);
    json_array_foreach(value, i, member)
    {
        const json_t *subject = json_object_get(member, "subject");
        add_report(reports, member,
                   word(subject != NULL ? subject : member, subject != NULL ? "file" : "where"),
                   NULL, errors);
    }
    json_array_foreach(columns, i, member)
    {
        const json_t *report = json_object_get(member, "report");
        add_report(reports, report != NULL ? report : member, word(member, "python"),
                   word(member, "python"), errors);
    }
    return reports;
}

/* Leaves where it cannot be opened.  A pipe that somebody has given us, as a shell does for <(...),
 * has somebody who writes to it; one with a name, that nobody may ever open, is not waited for. */
static FILE *open_file(const char *file)
{
    struct statfs system;
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (stream == NULL || fstat(fd, &status) != 0 || fstatfs(fd, &system) != 0)
        leave_with(EXIT_USAGE, "%s: %s", text_safe(file), strerror(errno));
    if (S_ISFIFO(status.st_mode) && system.f_type != PIPEFS_MAGIC)
        leave_with(EXIT_USAGE, "%s: is no regular file", text_safe(file));
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return stream;
}

/* What jansson says of what is no JSON, in words that are not about its own options, nor about a
 * grammar where there is none of it. */
static const char *error_in_words(const json_error_t *error)
{
    if (strstr(error->text, "JSON_ALLOW_NUL") != NULL)
        return "a NUL in a string";
    if (strncmp(error->text, "'[' or '{' expected", strlen("'[' or '{' expected")) == 0)
        return "is no JSON; say a report that --json of this program writes";
    return error->text;
}

json_t *reports_load(const char *file)
{
    json_error_t error;
    bool is_stdin = strcmp(file, "-") == 0;
    FILE *stream = is_stdin ? stdin : open_file(file);
    json_t *root = json_loadf(stream, JSON_REJECT_DUPLICATES, &error);
    int broken = ferror(stream) != 0 ? errno : 0; /* a folder, say */
    if (!is_stdin)
        fclose(stream);
    if (broken != 0)
        leave_with(EXIT_USAGE, "%s: %s", file, strerror(broken));
    if (root == NULL)
        leave_with(EXIT_USAGE, "%s:%d:%d: %s", text_safe(file), error.line, error.column,
                   text_safe(error_in_words(&error)));
    return root;
}

json_t *reports_of_file(json_t *root, const char *file, bool errors)
{
    const char *wrong = reports_wrong(root);
    if (wrong != NULL)
        leave_with(EXIT_USAGE, "%s: %s", file, wrong);
    json_t *reports = reports_in(root, errors);
    if (json_array_size(reports) == 0)
        leave_with(EXIT_USAGE, "%s: has no report", file);
    json_decref(root);
    return reports;
}

json_t *reports_read(const char *file, bool errors)
{
    return reports_of_file(reports_load(file), file, errors);
}
