/* SPDX-License-Identifier: BSD-3-Clause
 *
 * JUnit's XML, by libxml2's writer: a suite for each group, a case for each property.
 */
#include <libxml/xmlwriter.h>
#include <string.h>

#include "base/text.h"
#include "report/report.h"

/* What JUnit calls it. */
enum outcome { PASSED, FAILURE, ERROR, SKIPPED };

/* As pytest tells what was expected to fail: a failure that readers leave out of their count. */
static bool is_expected(const struct run *run, size_t i)
{
    return run_would_decide(run, i) && run_waiver(run, i) != NULL;
}

static enum outcome outcome_of(const struct run *run, size_t i)
{
    const struct record *record = run->records[i];
    if (record->verdict == SKIP || record_was_not_run(record) || is_expected(run, i))
        return SKIPPED;
    if (record->verdict == BROK)
        return ERROR;
    if (run->properties[i]->target == TARGET_RUNTIME)
        return PASSED;
    if (record->verdict == CRASH || record->verdict == TIMEOUT || incompleteness_counts(run, i))
        return ERROR;
    return record->verdict == FAIL || (record->verdict == WARN && run->options->strict) ? FAILURE
                                                                                        : PASSED;
}

static const xmlChar *x(const char *words)
{
    return (const xmlChar *)words;
}

static void attribute(xmlTextWriterPtr writer, const char *name, const char *value)
{
    xmlTextWriterWriteAttribute(writer, x(name), x(value));
}

/* What it printed, and before that the verdict where JUnit has no word for it. */
static void write_output(xmlTextWriterPtr writer, const struct record *record, bool verdict_too)
{
    if (!verdict_too && record->output_length == 0)
        return;
    xmlTextWriterStartElement(writer, x("system-out"));
    if (verdict_too)
        xmlTextWriterWriteFormatString(writer, "%s: %s\n", verdict_name(record->verdict),
                                       record_message(record));
    xmlTextWriterWriteString(writer, x(record_output(record, 1)));
    xmlTextWriterEndElement(writer);
}

static void write_case(xmlTextWriterPtr writer, const struct run *run, size_t i)
{
    const struct property *property = run->properties[i];
    const struct record *record = run->records[i];
    static const char *const elements[] = {
        [FAILURE] = "failure", [ERROR] = "error", [SKIPPED] = "skipped"};
    enum outcome outcome = outcome_of(run, i);
    xmlTextWriterStartElement(writer, x("testcase"));
    attribute(writer, "classname", group_name(property));
    attribute(writer, "name", property->id);
    attribute(writer, "time", text("%.6f", record->seconds));
    if (outcome != PASSED) {
        xmlTextWriterStartElement(writer, x(elements[outcome]));
        attribute(writer, "message",
                  is_expected(run, i) ? text("waived: %s", expectation_words(run_waiver(run, i)))
                                      : record_message(record));
        if (outcome != SKIPPED || is_expected(run, i)) {
            attribute(writer, "type", verdict_name(record->verdict));
            xmlTextWriterWriteFormatString(writer, "%s\n%s\n%s\nreproduce: %s\n", property->clause,
                                           property->source, record_hint(record, property),
                                           run_reproduce(run, i));
        }
        xmlTextWriterEndElement(writer);
    }
    write_output(writer, record,
                 (outcome == PASSED && record->verdict != PASS) || is_expected(run, i));
    xmlTextWriterEndElement(writer);
}

struct counts {
    size_t of[4];
    size_t all;
    double seconds;
};

static bool same_group(const struct property *a, const struct property *b)
{
    size_t length = strcspn(a->id, ".");
    return strcspn(b->id, ".") == length && memcmp(a->id, b->id, length) == 0;
}

/* Those of one group, or all where `member` is NULL, with what is stale. */
static struct counts count_cases(const struct run *run, const struct property *member)
{
    struct counts counts = {{0}, 0, 0};
    for (size_t i = 0; i < run->count; i++) {
        if (member != NULL && !same_group(run->properties[i], member))
            continue;
        counts.of[outcome_of(run, i)]++;
        counts.all++;
        counts.seconds += run->records[i]->seconds;
    }
    if (member == NULL) {
        counts.of[FAILURE] += run_stale(run);
        counts.all += run_stale(run);
    }
    return counts;
}

static void write_counts(xmlTextWriterPtr writer, const struct counts *counts, double seconds)
{
    attribute(writer, "tests", text("%zu", counts->all));
    attribute(writer, "failures", text("%zu", counts->of[FAILURE]));
    attribute(writer, "errors", text("%zu", counts->of[ERROR]));
    attribute(writer, "skipped", text("%zu", counts->of[SKIPPED]));
    attribute(writer, "time", text("%.6f", seconds));
}

static void write_named_value(xmlTextWriterPtr writer, const char *name, const char *value)
{
    xmlTextWriterStartElement(writer, x("property"));
    attribute(writer, "name", name);
    attribute(writer, "value", value);
    xmlTextWriterEndElement(writer);
}

static void write_facts(xmlTextWriterPtr writer, const struct run *run)
{
    xmlTextWriterStartElement(writer, x("properties"));
    write_named_value(writer, "file", run_file(run));
    write_named_value(writer, "sha256", run->sha256);
    write_named_value(writer, "python", run->environment->python);
    write_named_value(writer, "numpy", text_safe(run->environment->numpy));
    write_named_value(writer, "seed", text("%llu", (unsigned long long)run->options->seed));
    if (run->tunables != NULL)
        write_named_value(writer, "tunables", run->tunables);
    if (run->allocator[0] != '\0')
        write_named_value(writer, "allocator", run->allocator);
    xmlTextWriterEndElement(writer);
}

/* What passes against --expect: a suite of its own, with a failure for each entry. */
static void write_stale(xmlTextWriterPtr writer, const struct run *run)
{
    struct counts counts = {.of = {[FAILURE] = run_stale(run)}, .all = run_stale(run)};
    if (counts.all == 0)
        return;
    xmlTextWriterStartElement(writer, x("testsuite"));
    attribute(writer, "name", "waivers");
    write_counts(writer, &counts, 0);
    for (size_t k = 0; k < run->expectations->count; k++) {
        if (!run_is_stale(run, k))
            continue;
        xmlTextWriterStartElement(writer, x("testcase"));
        attribute(writer, "classname", "waivers");
        attribute(writer, "name", text_safe(run->expectations->of[k].id));
        attribute(writer, "time", "0");
        xmlTextWriterStartElement(writer, x("failure"));
        attribute(writer, "type", "STALE");
        attribute(writer, "message", run_stale_words(run, k));
        xmlTextWriterEndElement(writer);
        xmlTextWriterEndElement(writer);
    }
    xmlTextWriterEndElement(writer);
}

/* The properties of a group stand together. */
static void write_suites(xmlTextWriterPtr writer, const struct run *run)
{
    for (size_t i = 0; i < run->count; i++) {
        const struct property *property = run->properties[i];
        if (i == 0 || !same_group(run->properties[i - 1], property)) {
            if (i > 0)
                xmlTextWriterEndElement(writer);
            struct counts counts = count_cases(run, property);
            xmlTextWriterStartElement(writer, x("testsuite"));
            attribute(writer, "name", group_name(property));
            write_counts(writer, &counts, counts.seconds);
            write_facts(writer, run);
        }
        write_case(writer, run, i);
    }
}

int report_junit(FILE *file, const struct run *run)
{
    xmlBufferPtr buffer = xmlBufferCreate();
    xmlTextWriterPtr writer = buffer != NULL ? xmlNewTextWriterMemory(buffer, 0) : NULL;
    int failed = writer == NULL;
    if (writer != NULL) {
        struct counts counts = count_cases(run, NULL);
        xmlTextWriterSetIndent(writer, 1);
        xmlTextWriterStartDocument(writer, NULL, "UTF-8", NULL);
        xmlTextWriterStartElement(writer, x("testsuites"));
        attribute(writer, "name", text("conform %s", text_safe(run->place->label)));
        write_counts(writer, &counts, run->seconds);
        write_suites(writer, run);
        if (run->count > 0)
            xmlTextWriterEndElement(writer);
        write_stale(writer, run);
        failed = xmlTextWriterEndDocument(writer) < 0;
        xmlFreeTextWriter(writer);
        size_t length = (size_t)xmlBufferLength(buffer);
        failed = failed || fwrite(xmlBufferContent(buffer), 1, length, file) != length;
    }
    if (buffer != NULL)
        xmlBufferFree(buffer);
    return failed ? -1 : 0;
}
