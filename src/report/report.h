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

/* When the failures show, one for each property: see characterize.h. */
struct characterization;

/* An [[expect]] of --expect's file.  What is not in it is NULL. */
struct expectation {
    const char *id; /* or a glob of ids */
    enum verdict verdict;
    const char *reason, *url, *until;
    const char *numpy, *python; /* ranges of versions */
    const char *platform;       /* a glob such as linux-x86_64 */
    int line;
    bool is_stale; /* everything that it is about passes now */
};

struct expectations {
    const char *file;
    size_t count;
    struct expectation of[];
};

/* How many properties have each verdict. */
struct tally {
    size_t of[VERDICT_COUNT];
};

/* What the outcomes mean.  All counts except `runtime` are of properties about the handler. */
struct conclusion {
    struct tally handler, runtime; /* by target */
    size_t count;                  /* of properties */
    size_t against, undecided;     /* those that decide: undecided if INCOMPLETE */
    size_t waived;                 /* those that would decide without a waiver */
    size_t stale;                  /* of the waivers */
    size_t crash_places;           /* in the handler, or elsewhere, where processes crashed */
    bool whole;                    /* --run and --skip left no property out */
    bool conformant;               /* without waivers */
    enum exit_code code;           /* that the outcomes mean */
    enum exit_code status;         /* that the program ends with: differs with --fail-on */
    const char *start_with;        /* id of the property that likely names the defect, or NULL */
    char words[512];               /* "CONFORMANT" or why not, in one line */
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
    const struct record **records;      /* one for each property */
    const struct outcome *outcomes;     /* and what is concluded from it */
    size_t count;                       /* of properties: the report has so many */
    size_t rounds;                      /* of --repeat: each record is the worst of them */
    double seconds;                     /* from start to end */
    struct expectations *expectations;  /* with options->expect; else NULL */
    struct run_reproducer *reproducers; /* with options->repro, one a property; else NULL */
    bool interrupted;                   /* by a signal: the records are those of a part */
    json_t *baseline;                   /* with options->baseline: the member of the JSON, */
    const char *baseline_text;          /* and the lines of the text; else NULL */
    struct characterization *characterized;
    size_t *leads; /* index of the failure that likely has the same cause, or its own */
    char **places; /* function, file and line of the handler, one for each property; or NULL */
    struct conclusion conclusion;
};

/* Fills in run->conclusion and run->leads from the outcomes and the rest of the run. */
void run_conclude(struct run *run);

/* Fills in run->places, by libdw where it is installed. */
void run_symbolize(struct run *run);

/* Of two exit statuses, returns the one that says more against what was tested. */
enum exit_code exit_code_worse(enum exit_code one, enum exit_code other);

/* True if the verdict decides about the handler unless it is waived. */
bool outcome_would_decide(const struct outcome *outcome, const struct property *property,
                          bool strict);

/* Reads the file.  Exits with EXIT_USAGE and one line that names the place if it is not valid. */
struct expectations *expectations_read(const char *file);

/* Finds the entries that are about the outcome; `all` may be NULL. */
void expectations_apply(const struct expectations *all, const struct property *property,
                        const struct environment *environment, struct outcome *outcome);

/* Finds the entries that are stale. */
void expectations_find_stale(struct expectations *all, const struct run *run);

/* "FILE:LINE: ID is expected to FAIL ..."; good until the next calls of fmt(). */
const char *stale_words(const struct expectations *all, const struct expectation *one);

/* Why it is waived: the reason, and what else there is.  Good until the next calls of fmt(). */
const char *expectation_words(const struct expectation *one);

/* Returns at most `size` bytes that came from the subject or the command line, cleaned, at full
 * length; line feeds stay if `keep_lines` is not 0.  Good until eight more calls. */
const char *report_clean(const char *bytes, size_t size, int keep_lines);
#define CLEAN(array) report_clean(array, sizeof(array), 0)

/* What was expected, or ""; what was seen, or why the property is a SKIP, with the coordinator's
 * conclusion; that with the call, the block and the situation; and all of them.  Good until the
 * next call of the same function. */
const char *run_expected(const struct run *run, size_t i);
const char *run_actual(const struct run *run, size_t i);
const char *run_seen(const struct run *run, size_t i);
const char *run_message(const struct run *run, size_t i);

/* True if properties i and k have the same verdict for the same reason. */
bool run_has_same_reason(const struct run *run, size_t i, size_t k);

/* What the property's process printed, its beginning, with its lines. */
const char *record_output(const struct record *record);

/* What to do about it: the hint of the property that is about what was found; or where it ended in
 * its control or inside the handler, that it did.  Good until the next calls of fmt(). */
const char *record_hint(const struct record *record, const struct property *property);

/* True if a GIL is in use once the handler is loaded. */
bool run_has_gil(const struct run *run);

/* The command that reproduces one property, alone and in one process, from any folder.  Good until
 * the next call. */
const char *run_reproduce(const struct run *run, size_t i);

/* The same in a few words, from the working directory.  Good until the next call. */
const char *run_debug(const struct run *run, size_t i);

/* What a run has found, as --json writes it.  A new reference. */
json_t *report_value(const struct run *run);

/* Writes one whole report; 0, or -1 where writing failed (errno set). */
int report_text(FILE *file, const struct run *run, bool color);

/* Prints the words from `column`, where the line is now, to `right`, and wraps them there. */
void report_wrap(FILE *file, int column, int right, const char *words);

/* list, explain and clauses. */
void report_list(const struct property *const *properties, size_t count, bool verbose);
void report_explain(const struct property *property);
void report_clauses(const struct property *const *properties, size_t count);

#endif
