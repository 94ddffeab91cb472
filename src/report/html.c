/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A page for people, from what --json writes, in the frame that page.html is.
 */
#include <nettle/base64.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/program_version.h"
#include "base/text.h"
#include "python/python_sources.h"
#include "report/bench_page.h"
#include "report/markup.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/report.h"
#include "report/standing.h"

struct page {
    FILE *file;
    json_t *reports; /* as reports_in() returns them */
    json_t *places;  /* of each: where in its "properties" an id is */
    json_t *groups;  /* arrays: a name, and the ids of its properties in any report */
    double longest;  /* seconds of a property */
};

/* ---- words --------------------------------------------------------------------------------- */

/* Lines end between its words, and not behind the hyphens of an option. */
static void put_command(FILE *file, const char *words)
{
    fputs("<dt>Reproduce</dt><dd><pre>", file);
    while (*words != '\0') {
        size_t length = strcspn(words, " "), blanks = strspn(words + length, " ");
        char *each = strndup(words, length);
        markup_say(file, "<span>%</span>", each != NULL ? each : "");
        fprintf(file, "%.*s", (int)blanks, words + length);
        free(each);
        words += length + blanks;
    }
    fputs("</pre></dd>\n", file);
}

static const char *class_of(const char *verdict)
{
    static const char *const classes[VERDICT_COUNT] = {
        [PASS] = "good", [FAIL] = "bad",  [CRASH] = "bad",      [TIMEOUT] = "bad",
        [WARN] = "warn", [BROK] = "warn", [INCOMPLETE] = "warn"};
    for (int i = PASS; i < VERDICT_COUNT; i++) {
        if (strcmp(verdict, verdict_name((enum verdict)i)) == 0 && classes[i] != NULL)
            return classes[i];
    }
    return "none";
}

static bool is_good(const char *verdict)
{
    return strcmp(verdict, "PASS") == 0 || strcmp(verdict, "SKIP") == 0;
}

/* ---- what is there ------------------------------------------------------------------------- */

static json_t *group_of(struct page *page, const char *id)
{
    const char *name = text("%.*s", (int)strcspn(id, "."), id);
    json_t *group;
    size_t i;
    json_array_foreach(page->groups, i, group)
    {
        if (strcmp(json_string_value(json_array_get(group, 0)), name) == 0)
            return group;
    }
    group = json_pack("[s]", name);
    json_array_append_new(page->groups, group);
    return group;
}

static void look_over(struct page *page)
{
    json_t *report, *property, *seen = json_object();
    size_t i, k;
    page->places = json_array();
    page->groups = json_array();
    json_array_foreach(page->reports, i, report)
    {
        json_t *places = json_object();
        json_array_append_new(page->places, places);
        json_array_foreach(json_object_get(report, "properties"), k, property)
        {
            const char *id = word(property, "id");
            json_object_set_new(places, id, json_integer((json_int_t)k));
            page->longest =
                MAX(page->longest, json_number_value(json_object_get(property, "seconds")));
            if (json_object_get(seen, id) == NULL)
                json_array_append_new(group_of(page, id), json_string(id));
            json_object_set_new(seen, id, json_true());
        }
    }
    json_decref(seen);
}

/* What the report says of it, and where in it, or NULL. */
static const json_t *property_in(const struct page *page, size_t report, const char *id, size_t *at)
{
    const json_t *place = json_object_get(json_array_get(page->places, report), id);
    if (place == NULL)
        return NULL;
    *at = (size_t)json_integer_value(place);
    return json_array_get(json_object_get(json_array_get(page->reports, report), "properties"),
                          *at);
}

/* ---- a report ------------------------------------------------------------------------------ */

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static const char *name_of(const json_t *report)
{
    const json_t *subject = json_object_get(report, "subject");
    if (*word(subject, "name") != '\0')
        return word(subject, "name");
    return *word(subject, "file") != '\0' ? base_name(word(subject, "file"))
                                          : word(report, "where");
}

static bool are_of_one_numpy(const json_t *reports)
{
    const json_t *first = json_object_get(json_array_get(reports, 0), "environment"), *report;
    size_t i;
    json_array_foreach(reports, i, report)
    {
        const json_t *environment = json_object_get(report, "environment");
        if (strcmp(word(environment, "numpy"), word(first, "numpy")) != 0 ||
            strcmp(word(environment, "python"), word(first, "python")) != 0)
            return false;
    }
    return true;
}

/* In which interpreter, and in which file. */
static void put_surroundings(FILE *file, const json_t *report, bool with_numpy)
{
    const json_t *environment = json_object_get(report, "environment");
    if (with_numpy && *word(environment, "numpy") != '\0')
        markup_say(file, " <small>Python %, NumPy %</small>", word(environment, "python"),
                   word(environment, "numpy"));
    if (*word(report, "from") != '\0')
        markup_say(file, " <small>%</small>", word(report, "from"));
}

static void put_standing(FILE *file, const json_t *report)
{
    const struct standing *standing = standing_of(report);
    const char *why = word(report, *word(report, "error") != '\0' ? "error" : "conclusion");
    markup_say(file, "<strong class=\"v % standing\">%</strong> %", standing->class,
               standing->words, strcasecmp(why, standing->words) != 0 ? why : "");
}

static void put_field(FILE *file, const char *name, const char *words)
{
    if (*words != '\0')
        markup_say(file, "<dt>%</dt><dd>%</dd>\n", name, words);
}

static void put_facts(FILE *file, const json_t *report)
{
    static const struct {
        const char *name, *object, *member;
    } facts[] = {{"File", "subject", "file"},
                 {"SHA-256", "subject", "sha256"},
                 {"Python", "environment", "python"},
                 {"Interpreter", "environment", "executable"},
                 {"NumPy", "environment", "numpy"},
                 {"C library", "environment", "libc"},
                 {"Kernel", "environment", "kernel"},
                 {"Beside it", "environment", "checker"},
                 {"Allocator", "environment", "allocator"},
                 {"Seed", NULL, "seed"},
                 {"conform", NULL, "conform"},
                 {"Begin with", NULL, "start_with"},
                 {"Report", NULL, "from"}};
    fputs("<dl class=\"facts\">\n", file);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        const json_t *object =
            facts[i].object != NULL ? json_object_get(report, facts[i].object) : report;
        put_field(file, facts[i].name, word(object, facts[i].member));
    }
    put_field(file, "Time", text("%.1f s", json_number_value(json_object_get(report, "seconds"))));
    fputs("</dl>\n<ul class=\"tally\">\n", file);
    const json_t *verdicts = json_object_get(json_object_get(report, "verdicts"), "handler");
    for (int i = PASS; i < VERDICT_COUNT; i++) {
        const char *name = verdict_name((enum verdict)i);
        json_int_t count = json_integer_value(json_object_get(verdicts, name));
        if (count > 0)
            markup_say(file, "<li>% <span class=\"v %\">%</span></li>\n",
                       text("%" JSON_INTEGER_FORMAT, count), class_of(name), name);
    }
    fputs("</ul>\n", file);
}

/* CONFORM_DOCS says where the site of the docs is, in which each property has its page. */
static void put_docs(FILE *file, const char *id)
{
    const char *docs = getenv("CONFORM_DOCS");
    if (docs != NULL && *docs != '\0')
        markup_say(file, "<dt>Docs</dt><dd><a href=\"%/properties/%.html#%\">%</a></dd>\n", docs,
                   id, id, id);
}

static void put_finding(FILE *file, const json_t *property, size_t report, size_t at)
{
    const char *verdict = word(property, "verdict"), *class = class_of(verdict);
    const json_t *waived = json_object_get(property, "waived");
    bool is_told = strcmp(verdict, "BROK") != 0 && strcmp(verdict, "INCOMPLETE") != 0;
    markup_say(file,
               "<article class=\"%\" id=\"%\" data-verdicts=\"%\">\n"
               "<h3><span class=\"v %\">%</span> %</h3>\n<dl>\n",
               class, text("r%zup%zu", report + 1, at), verdict, class, verdict,
               word(property, "id"));
    put_field(file, "Level", word(property, "level"));
    put_field(file, "Clause", word(property, "clause"));
    put_field(file, "Source", word(property, "source"));
    put_field(file, "Expected", word(property, "expected"));
    put_field(file, "Seen", word(property, *word(property, "seen") != '\0' ? "seen" : "message"));
    put_field(file, "Hint", is_told ? word(property, "hint") : "");
    put_field(file, "Waived", word(waived, "reason"));
    put_field(file, "See", word(waived, "url"));
    put_docs(file, word(property, "id"));
    if (*word(property, "reproduce") != '\0')
        put_command(file, word(property, "reproduce"));
    if (*word(property, "repro") != '\0')
        markup_say(file, "<dt>%</dt><dd><pre>%</pre></dd>\n",
                   text("In %s", reproducer_language(word(property, "repro"))),
                   word(property, "repro"));
    if (*word(property, "output") != '\0')
        markup_say(file, "<dt>Printed</dt><dd><pre>%</pre></dd>\n", word(property, "output"));
    fputs("</dl>\n</article>\n", file);
}

/* What did not pass: of the handler, or folded, of NumPy.  What was skipped is folded as well. */
enum part { OF_HANDLER, OF_NUMPY, SKIPPED };

static enum part part_of(const json_t *property)
{
    return strcmp(word(property, "verdict"), "SKIP") == 0     ? SKIPPED
           : strcmp(word(property, "target"), "runtime") == 0 ? OF_NUMPY
                                                              : OF_HANDLER;
}

static void put_part(const struct page *page, size_t number, enum part part)
{
    const json_t *report = json_array_get(page->reports, number), *property;
    size_t i, count = 0;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        if (strcmp(word(property, "verdict"), "PASS") == 0 || part_of(property) != part)
            continue;
        if (count++ == 0 && part != OF_HANDLER)
            markup_say(page->file, "<details>\n<summary><h3>%</h3></summary>\n",
                       part == SKIPPED ? "Skipped" : "About NumPy itself, and not counted");
        if (part != SKIPPED)
            put_finding(page->file, property, number, i);
        else
            markup_say(page->file, "<p data-verdicts=\"SKIP\">% <span class=\"dim\">%</span></p>\n",
                       word(property, "id"), word(property, "message"));
    }
    if (count > 0 && part != OF_HANDLER)
        fputs("</details>\n", page->file);
}

/* What --baseline found to be different. */
static void put_differences(FILE *file, const json_t *baseline)
{
    static const char *const kinds[][2] = {
        {"new", "NEW"}, {"fixed", "FIXED"}, {"changed", "CHANGED"}, {"gone", "GONE"}};
    const json_t *one;
    size_t i, count = 0;
    if (baseline == NULL)
        return;
    markup_say(file, "<h3>Since %</h3>\n<ul class=\"differences\">\n", word(baseline, "file"));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        json_array_foreach(json_object_get(baseline, kinds[k][0]), i, one)
        {
            const char *before = word(one, "before"), *after = word(one, "after");
            markup_say(file, "<li><strong>%</strong> % <span class=\"v %\">%</span>", kinds[k][1],
                       word(one, "id"), class_of(before), before);
            if (*after != '\0')
                markup_say(file, " to <span class=\"v %\">%</span>", class_of(after), after);
            fputs("</li>\n", file);
            count++;
        }
    }
    json_array_foreach(json_object_get(baseline, "surroundings"), i, one)
    {
        markup_say(file, "<li>%</li>\n", json_string_value(one));
    }
    fputs(count == 0 ? "<li>no verdict is different</li>\n</ul>\n" : "</ul>\n", file);
}

static void put_report(const struct page *page, size_t number)
{
    const json_t *report = json_array_get(page->reports, number);
    markup_say(page->file, "<section aria-labelledby=\"%\">\n<h2 id=\"%\">%",
               text("r%zu", number + 1), text("r%zu", number + 1), name_of(report));
    if (json_array_size(page->reports) > 1) /* which tell it from another one of that name */
        put_surroundings(page->file, report, true);
    fputs("</h2>\n<p>", page->file);
    put_standing(page->file, report);
    fputs("</p>\n", page->file);
    put_facts(page->file, report);
    put_differences(page->file, json_object_get(report, "baseline"));
    for (enum part part = OF_HANDLER; part <= SKIPPED; part++)
        put_part(page, number, part);
    const json_t *bench = json_object_get(report, "bench");
    if (bench != NULL && bench_wrong(bench) == NULL) {
        fputs("<section class=\"bench\">\n<h3>How fast</h3>\n", page->file);
        bench_put(page->file, bench, 4);
        fputs("</section>\n", page->file);
    }
    fputs("</section>\n", page->file);
}

/* ---- properties by reports ----------------------------------------------------------------- */

static void put_cell(const struct page *page, size_t report, const char *id)
{
    size_t at;
    const json_t *property = property_in(page, report, id, &at);
    const char *verdict = property != NULL ? word(property, "verdict") : "not run";
    markup_say(page->file, "<td class=\"v %\">", class_of(verdict));
    if (property != NULL && !is_good(verdict))
        markup_say(page->file, "<a href=\"#%\">%</a></td>", text("r%zup%zu", report + 1, at),
                   verdict);
    else
        markup_say(page->file, "%</td>", verdict);
}

static void put_row(const struct page *page, const char *id)
{
    double seconds = 0;
    size_t at;
    fputs("<tr data-verdicts=\"", page->file);
    for (size_t k = 0; k < json_array_size(page->reports); k++) {
        const json_t *property = property_in(page, k, id, &at);
        seconds = MAX(seconds, json_number_value(json_object_get(property, "seconds")));
        if (property != NULL)
            markup_say(page->file, k > 0 ? " %" : "%", word(property, "verdict"));
    }
    markup_say(page->file, "\"><th scope=\"row\">%</th>", id);
    for (size_t k = 0; k < json_array_size(page->reports); k++)
        put_cell(page, k, id);
    markup_say(page->file,
               "<td class=\"time\">%<svg viewBox=\"0 0 100 1\" preserveAspectRatio=\"none\" "
               "aria-hidden=\"true\"><rect width=\"%\" height=\"1\"/></svg></td></tr>\n",
               text("%.3f s", seconds),
               text("%.1f", page->longest > 0 ? 100 * seconds / page->longest : 0));
}

static void put_head(const struct page *page)
{
    const json_t *report;
    size_t i, count = json_array_size(page->reports);
    bool of_one_numpy = are_of_one_numpy(page->reports);
    fputs("<thead><tr><th scope=\"col\">Property</th>", page->file);
    json_array_foreach(page->reports, i, report)
    {
        markup_say(page->file, "<th scope=\"col\">%", count > 1 ? name_of(report) : "Verdict");
        if (count > 1)
            put_surroundings(page->file, report, !of_one_numpy);
        fputs("</th>", page->file);
    }
    markup_say(page->file, "<th scope=\"col\">%</th></tr></thead>\n",
               count > 1 ? "Longest time" : "Time");
}

/* What is bad is open. */
static void put_group(const struct page *page, const json_t *group)
{
    size_t count = json_array_size(page->reports), bad = 0, i, at;
    const char *name = json_string_value(json_array_get(group, 0));
    for (i = 1; i < json_array_size(group); i++) {
        const char *id = json_string_value(json_array_get(group, i));
        bool is_bad = false;
        for (size_t k = 0; k < count; k++) {
            const json_t *property = property_in(page, k, id, &at);
            is_bad = is_bad || (property != NULL && !is_good(word(property, "verdict")));
        }
        bad += is_bad;
    }
    markup_say(page->file, bad > 0 ? "<details open>\n" : "<details>\n");
    markup_say(page->file, "<summary><h3>%</h3><small>% %%</small></summary>\n", name,
               text("%zu", json_array_size(group) - 1),
               json_array_size(group) == 2 ? "property" : "properties",
               bad > 0 ? text(", %zu did not pass", bad) : "");
    if (count > 1)
        markup_say(page->file,
                   "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"%\">", name);
    fputs("<table>\n", page->file);
    put_head(page);
    fputs("<tbody>\n", page->file);
    for (i = 1; i < json_array_size(group); i++)
        put_row(page, json_string_value(json_array_get(group, i)));
    fputs(count > 1 ? "</tbody></table></div>\n</details>\n" : "</tbody></table>\n</details>\n",
          page->file);
}

static void put_properties(const struct page *page)
{
    const json_t *group;
    size_t i;
    fputs("<section aria-labelledby=\"all\">\n<h2 id=\"all\">All properties</h2>\n"
          "<form id=\"filter\" role=\"search\" hidden>\n"
          "<label>Search <input type=\"search\" id=\"query\"></label>\n"
          "<fieldset><legend>Verdicts</legend>\n",
          page->file);
    for (int k = PASS; k < VERDICT_COUNT; k++)
        markup_say(page->file, "<label><input type=\"checkbox\" value=\"%\" checked> %</label>\n",
                   verdict_name((enum verdict)k), verdict_name((enum verdict)k));
    fputs("</fieldset>\n<p role=\"status\" id=\"shown\"></p>\n</form>\n", page->file);
    json_array_foreach(page->groups, i, group)
    {
        put_group(page, group);
    }
    fputs("</section>\n", page->file);
}

/* ---- the page ------------------------------------------------------------------------------ */

static void put_body(const struct page *page)
{
    size_t count = json_array_size(page->reports), i;
    const json_t *report;
    fputs("<header>\n<h1>Conformance to NEP 49</h1>\n", page->file);
    if (count > 1)
        fputs("<ol>\n", page->file);
    json_array_foreach(page->reports, i, report)
    {
        if (count == 1)
            break;
        markup_say(page->file, "<li><a href=\"#%\">%</a> ", text("r%zu", i + 1), name_of(report));
        put_surroundings(page->file, report, true);
        fputs("<br>", page->file);
        put_standing(page->file, report);
        fputs("</li>\n", page->file);
    }
    fputs(count > 1 ? "</ol>\n</header>\n<main>\n" : "</header>\n<main>\n", page->file);
    if (count > 1)
        put_properties(page);
    for (i = 0; i < count; i++)
        put_report(page, i);
    if (count == 1)
        put_properties(page);
    markup_say(page->file, "</main>\n<footer><small>Written by conform %</small></footer>\n",
               program_version);
}

/* What the frame has between the tags, as the policy names it: nothing else is run or styles. */
static void put_hash(FILE *file, const char *frame, const char *begin, const char *end)
{
    const char *from = strstr(frame, begin) + strlen(begin);
    uint8_t digest[SHA256_DIGEST_SIZE];
    char words[BASE64_ENCODE_RAW_LENGTH(SHA256_DIGEST_SIZE) + 1] = "";
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, (size_t)(strstr(from, end) - from), (const uint8_t *)from);
    sha256_digest(&context, sizeof digest, digest);
    base64_encode_raw(words, sizeof digest, digest);
    fprintf(file, "'sha256-%s'", words);
}

static void put_place(const struct page *page, const char *frame, const char *place)
{
    size_t count = json_array_size(page->reports);
    const json_t *report = json_array_get(page->reports, 0);
    if (strncmp(place, "body", 4) == 0) {
        put_body(page);
    } else if (strncmp(place, "title", 5) == 0) {
        if (count == 1)
            markup_say(page->file, "%: %", name_of(report), standing_of(report)->words);
        else
            markup_say(page->file, "NEP 49: % reports", text("%zu", count));
    } else {
        fputs("default-src 'none'; base-uri 'none'; form-action 'none'; style-src ", page->file);
        put_hash(page->file, frame, "<style>", "</style>");
        fputs("; script-src ", page->file);
        put_hash(page->file, frame, "<script>", "</script>");
    }
}

int report_html(FILE *file, const json_t *value)
{
    if (is_bench(value))
        return bench_page(file, value);
    struct page page = {.file = file, .reports = reports_in(value, true)};
    const char *frame = python_source_find("page.html")->text, *rest = frame;
    look_over(&page);
    for (const char *place; (place = strstr(rest, "{{")) != NULL;) {
        fwrite(rest, 1, (size_t)(place - rest), file);
        put_place(&page, frame, place + 2);
        rest = strstr(place, "}}") + 2;
    }
    fputs(rest, file);
    json_decref(page.reports);
    json_decref(page.places);
    json_decref(page.groups);
    return ferror(file) ? -1 : 0;
}
