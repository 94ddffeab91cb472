/* SPDX-License-Identifier: BSD-3-Clause
 *
 * JSON, by jansson.  docs/reports.md says what each member means.
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/text.h"
#include "report/report.h"
#include "search/characterize.h"

/* Claims, word by word. */
static json_t *claims_array(const char *claimed)
{
    json_t *claims = json_array();
    char *words = strdup(claimed), *rest = words;
    for (char *word; (word = strsep(&rest, " \t\n\v\f\r")) != NULL;) {
        if (*word != '\0')
            json_array_append_new(claims, json_string(escape(word)));
    }
    free(words);
    return claims;
}

static json_t *subject_object(const struct run *run)
{
    const struct subject_place *place = run->place;
    const struct load *load = run->load;
    return json_pack("{s:s, s:s, s:s*, s:s, s:o, s:i, s:o, s:o}", "argument",
                     escape(place->argument), "file", report_clean(place->path, SIZE_MAX, 0),
                     "symbol", place->symbol != NULL ? escape(place->symbol) : NULL, "sha256",
                     run->sha256, "name",
                     load->has_name ? json_string(CLEAN(load->name)) : json_null(), "version",
                     load->has_name ? load->version : 0, "claims", claims_array(load->claims),
                     "claimed_for_it", claims_array(place->claims != NULL ? place->claims : ""));
}

static json_t *environment_object(const struct run *run)
{
    const struct environment *environment = run->environment;
    return json_pack("{s:s, s:s, s:b, s:b, s:s, s:s, s:s, s:I, s:s*, s:s*, s:s*}", "python",
                     environment->python, "executable", escape(run->python), "free_threaded",
                     environment->free_threaded, "gil", run_has_gil(run), "numpy",
                     escape(environment->numpy), "libc", run->machine.libc, "kernel",
                     run->machine.kernel, "page_size", (json_int_t)run->machine.page_size,
                     "tunables", run->tunables, "checker", run->machine.checker, "allocator",
                     run->allocator[0] != '\0' ? run->allocator : NULL);
}

static json_t *stale_array(const struct expectations *all)
{
    json_t *stale = json_array();
    for (size_t k = 0; k < all->count; k++) {
        const struct expectation *one = &all->of[k];
        if (one->is_stale)
            json_array_append_new(
                stale, json_pack("{s:s, s:s, s:i, s:s, s:s}", "id", escape(one->id), "file",
                                 escape(all->file), "line", one->line, "verdict",
                                 verdict_name(one->verdict), "reason", escape(one->reason)));
    }
    return stale;
}

static json_t *coverage_object(const struct coverage_counts *counts)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "rows", (json_int_t)counts->rows, "calls",
                     (json_int_t)(counts->calls & INT64_MAX), "combinations",
                     (json_int_t)counts->pairs, "possible", (json_int_t)counts->possible, "triples",
                     (json_int_t)counts->triples, "full", counts->pairs >= counts->possible);
}

static json_t *property_object(const struct run *run, size_t i)
{
    const struct property *property = run->properties[i];
    const struct record *record = run->records[i];
    const struct outcome *outcome = &run->outcomes[i];
    const struct expectation *waiver = outcome->waiver; /* by which it does not decide */
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "id", property->id, "title", property->title,
        "level", level_name(property->level), "basis", basis_name(property->basis), "target",
        target_name(property->target), "verdict", verdict_name(outcome->verdict), "message",
        run_message(run, i), "seconds", record->seconds);
    if (outcome->verdict != PASS && outcome->verdict != SKIP) {
        if (*run_expected(run, i) != '\0')
            json_object_set_new(object, "expected", json_string(run_expected(run, i)));
        json_object_set_new(object, "seen", json_string(run_seen(run, i)));
        if (run->places[i] != NULL && !record->place.is_elsewhere)
            json_object_set_new(object, "handler", json_string(run->places[i]));
        json_object_set_new(object, "clause", json_string(property->clause));
        if (property->tests != NULL)
            json_object_set_new(object, "tests", json_string(property->tests));
        json_object_set_new(object, "source", json_string(property->source));
        json_object_set_new(object, "hint", json_string(record_hint(record, property)));
        json_object_set_new(object, "reproduce", json_string(run_reproduce(run, i)));
    }
    const struct characterization *shown = &run->characterized[i];
    if (shown->when.words[0] != '\0')
        json_object_set_new(object, "when", json_string(shown->when.words));
    if (shown->not_when.words[0] != '\0')
        json_object_set_new(object, "not_when", json_string(shown->not_when.words));
    if (run->reproducers != NULL && run->reproducers[i].file != NULL)
        json_object_set_new(object, "repro", json_string(escape(run->reproducers[i].file)));
    else if (run->reproducers != NULL && run->reproducers[i].why[0] != '\0')
        json_object_set_new(object, "no_repro", json_string(escape(run->reproducers[i].why)));
    if (waiver != NULL)
        json_object_set_new(object, "waived",
                            json_pack("{s:s, s:s*, s:s*}", "reason", escape(waiver->reason), "url",
                                      waiver->url != NULL ? escape(waiver->url) : NULL, "until",
                                      waiver->until));
    if (outcome->unused_waiver != NULL)
        json_object_set_new(object, "expected_verdict",
                            json_string(verdict_name(outcome->unused_waiver->verdict)));
    if (run->leads[i] != i)
        json_object_set_new(object, "same_as", json_string(run->properties[run->leads[i]]->id));
    if (outcome->cause != NULL)
        json_object_set_new(object, "caused_by", json_string(outcome->cause->id));
    else if (outcome->found_by != NULL)
        json_object_set_new(object, "found_by", json_string(outcome->found_by->id));
    else if (outcome->verdict == SKIP && record->unclaimed != 0)
        json_object_set_new(object, "unclaimed", json_true());
    if (record->coverage.rows > 0)
        json_object_set_new(object, "coverage", coverage_object(&record->coverage));
    if (outcome->runs > 1) {
        json_object_set_new(object, "runs", json_integer((json_int_t)outcome->runs));
        json_object_set_new(object, "failed_runs", json_integer((json_int_t)outcome->failed_runs));
    }
    if (run->rounds > 1)
        json_object_set_new(object, "bad_rounds", json_integer((json_int_t)outcome->bad_rounds));
    if (record->output_length > 0)
        json_object_set_new(object, "output", json_string(record_output(record)));
    return object;
}

static json_t *tally_object(const struct tally *tally)
{
    json_t *object = json_object();
    for (int verdict = PASS; verdict < VERDICT_COUNT; verdict++)
        json_object_set_new(object, verdict_name((enum verdict)verdict),
                            json_integer((json_int_t)tally->of[verdict]));
    return object;
}

json_t *report_value(const struct run *run)
{
    char seed[32]; /* as a string: not every reader keeps 64 bits of a number */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)run->options->seed);
    json_t *properties = json_array();
    for (size_t i = 0; i < run->count; i++) {
        if (json_array_append_new(properties, property_object(run, i)) != 0)
            die(EXIT_HARNESS_BROKE, "out of memory");
    }
    const struct conclusion *c = &run->conclusion;
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:o, s:s, s:I, s:I, s:b, s:b, s:b, s:{s:o, s:o}, s:s*, s:b, s:b, "
        "s:i, "
        "s:s, s:f, s:o}",
        "format", "conform-report-2", "conform", program_version, "subject", subject_object(run),
        "environment", environment_object(run), "seed", seed, "rounds", (json_int_t)run->rounds,
        "expected", (json_int_t)run->count, "whole", c->whole, "quick", run->options->quick,
        "interrupted", run->interrupted, "verdicts", "handler", tally_object(&c->handler),
        "runtime", tally_object(&c->runtime), "start_with", c->start_with, "conformant",
        c->conformant && !run->options->quick, "strict", run->options->strict, "exit_code",
        (int)c->status, "conclusion", c->words, "seconds", run->seconds, "properties", properties);
    if (root == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    if (run->expectations != NULL) {
        json_object_set_new(root, "waivers", json_integer((json_int_t)c->waived));
        json_object_set_new(root, "stale", stale_array(run->expectations));
    }
    json_object_set(root, "baseline", run->baseline); /* none if that is NULL */
    return root;
}
