/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports: what a run has found, in one format a file under report/.
 */
#ifndef CONFORM_REPORT_H
#define CONFORM_REPORT_H

#include <jansson.h>
#include <stdio.h>

#include "base/object_file.h"
#include "model/options.h"
#include "model/property.h"
#include "model/record.h"
#include "report/expectations.h"
#include "subject/subject.h"

/* What it ran on. */
struct machine {
    const char *libc, *kernel; /* "glibc 2.36" and the like, "Linux 6.1.0 x86_64" */
    long page_size;
    const char *checker; /* what runs beside the handler, and is why less is tried: "memcheck",
                          * "a sanitizer", "an emulator"; or NULL */
};

/* This one.  Its words stay. */
struct machine machine_here(void);

/* What --repro made of a failure: the name of a file, or NULL and why there is none. */
struct run_reproducer {
    char *file;
    char why[512];
};

/* What --baseline found: a member of the JSON, the text, and the status with --fail-on new. */
struct comparison {
    json_t *baseline;
    const char *text;
    enum exit_code status;
};

/* A run that has ended: everything that a report says. */
struct run {
    const struct options *options;
    const struct subject_place *place;
    char sha256[SHA256_HEX];
    const struct load *load; /* name, version and claims, where loading came that far */
    const struct environment *environment;
    struct machine machine;
    const char *python;   /* the path that was asked for */
    const char *tunables; /* what was added to GLIBC_TUNABLES for it, or NULL */
    char allocator[512];  /* a line on one that was preloaded, or "" */
    const struct property *const *properties;
    const struct record **records;           /* one for each property */
    const struct outcome *outcomes;          /* and what is concluded from it */
    size_t count;                            /* of properties: the report has so many */
    size_t rounds;                           /* of --repeat: each record is the worst of them */
    double seconds;                          /* from start to end */
    const struct comparison *comparison;     /* with options->baseline; else NULL */
    const struct expectations *expectations; /* with options->expect; else NULL */
    struct run_reproducer *reproducers;      /* with options->repro, one a property; else NULL */
    bool interrupted;                        /* by a signal: the records are those of a part */
};

/* How many of the run's properties have each verdict; those of one target alone. */
struct tally {
    size_t of[VERDICT_COUNT];
};
struct tally run_tally(const struct run *run, enum target target);
size_t tally_sum(const struct tally *tally);

/* 0 conformant, 1 not, 3 and 77 where no handler came of loading the subject, 4 where the harness
 * broke and 5 where a property is INCOMPLETE, and nothing else is wrong. */
enum exit_code run_exit_code(const struct run *run);

/* What the program ends with: that, unless --fail-on says what counts. */
enum exit_code run_status(const struct run *run);

/* What several ends are said to be: the one of the two that says more against what was tested. */
enum exit_code exit_code_worse(enum exit_code one, enum exit_code other);

/* "CONFORMANT" or why not, in one line (good until the next calls of text()). */
const char *run_conclusion(const struct run *run);

/* All that this is made of.  Every count is of properties about the handler. */
struct figures {
    enum exit_code code;
    size_t count, against, waived, skipped, unfinished, stale, rounds;
    const char *checker; /* or NULL */
    bool interrupted, quick, whole;
};
const char *conclusion_of(const struct figures *figures);

/* The id of the property that most likely names the defect, where more than a few failed; else
 * NULL. */
const char *run_start_with(const struct run *run);

/* True if every property about the handler was run: --run and --skip left none of them out. */
bool run_is_whole(const struct run *run);

/* True where the verdict counts against the handler: what a report has to explain. */
bool verdict_is_bad(enum verdict verdict);

/* Whether such a verdict decides about the handler where nothing waives it. */
bool verdict_would_decide(enum verdict verdict, const struct property *property, bool strict);
bool run_would_decide(const struct run *run, size_t i);

/* The entry of --expect by which property i does not decide; and where there is none, and it is bad
 * or warns, one that expects another verdict of it.  Else NULL. */
const struct expectation *run_waiver(const struct run *run, size_t i);
const struct expectation *run_expected(const struct run *run, size_t i);

/* How many properties would decide but for a waiver. */
size_t run_waived(const struct run *run);

/* Whether entry k is for what passes now: all that it is about has run, some of it has passed, and
 * nothing was wrong with any.  How many are so; and that in words, good until the next calls of
 * text(). */
bool run_is_stale(const struct run *run, size_t k);
size_t run_stale(const struct run *run);
const char *run_stale_words(const struct run *run, size_t k);

/* Why it is waived: the reason, and what else there is.  Good until the next calls of text(). */
const char *expectation_words(const struct expectation *one);

/* Whether property i is INCOMPLETE in a way that leaves open whether the handler is conformant: a
 * MUST, or any where WARNs count. */
bool incompleteness_counts(const struct run *run, size_t i);

/* What came from the subject or from the command line, cleaned and in one line, at its full
 * length.  Each is good until the next call of the same function. */
/* What was seen, or why the property is a SKIP, with the coordinator's conclusion; and this with
 * what was expected, if that is known. */
const char *run_seen(const struct run *run, size_t i);
bool run_has_expected(const struct run *run, size_t i);
const char *run_expected_text(const struct run *run, size_t i);
const char *run_message(const struct run *run, size_t i);
/* True if properties i and k have the same verdict for the same reason. */
bool run_has_same_reason(const struct run *run, size_t i, size_t k);
/* What the property's process printed, its beginning; line feeds stay where they are wanted. */
const char *record_output(const struct record *record, int keep_lines);
/* What to do about it: the hint of the property that is about what was found; or where it ended in
 * its control or inside the handler, that it did.  Good until the next calls of text(). */
const char *record_hint(const struct record *record, const struct property *property);
const char *run_file(const struct run *run);
const char *run_handler_name(const struct run *run); /* the handler's own, or "" */
const char *run_claims(const struct run *run);

/* Whether Python's threads are held apart by a GIL, once the handler is loaded; and in words, ""
 * for a Python that always has one. */
bool run_has_gil(const struct run *run);
const char *run_gil(const struct run *run);

/* The command that reproduces one property, alone and in one process, from any folder.  Good until
 * the next call. */
const char *run_reproduce(const struct run *run, size_t i);

/* What a run has found, as --json writes it.  A new reference. */
json_t *report_value(const struct run *run);

/* Writes one whole report; 0, or -1 where writing failed (errno set). */
int report_text(FILE *file, const struct run *run, bool color);

/* A line that begins with the name, and the words beside it in as many lines as they take. */
void report_print_field(FILE *file, const char *name, const char *words);

/* --list, --explain and --clauses. */
void report_list(const struct property *const *properties, size_t count);
void report_explain(const struct property *property);
void report_clauses(const struct property *const *properties, size_t count);

#endif
