/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a property ends.  It runs alone in its process and ends at the first failure, so nothing here
 * returns errors.  All functions may be called from any thread.
 */
#ifndef CONFORM_VERDICT_H
#define CONFORM_VERDICT_H

#include "base/text.h"
#include "model/record.h"

/* The clause does not hold: FAIL for a MUST, WARN for a SHOULD.  Both texts are one line: what was
 * expected (fmt() helps), and what was seen. */
#define fail(expected, ...) fail_at(__LINE__, expected, __VA_ARGS__)
_Noreturn void fail_at(int line, const char *expected, const char *seen, ...)
    __attribute__((format(printf, 3, 4)));

/* fail() unless `condition` holds. */
#define expect(condition, expected, ...)                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            fail_at(__LINE__, expected, __VA_ARGS__);                                              \
    } while (0)

/* A failure from now on is about the property `id` and due to `call`, or to none if that is NULL:
 * this property is a SKIP if that one, or one about such calls, fails as well. */
void attribute_to(const char *id, const struct step *call);

/* What a violation in a generated situation consists of, besides what was seen. */
struct finding {
    const struct step *call; /* that showed it, or NULL */
    const char *words;       /* what was done, "malloc(745)"; or "" */
    const char *expected;    /* or "" */
    const char *past;        /* what happened to the block before, or "" */
    const char *situation;   /* the row, or "" */
    bool is_definite;        /* the call is wrong whatever was called before */
};

/* Ends like fail(), or with a warning if a SHOULD does not hold, for another property: the one that
 * states the requirement, which then reports it. */
_Noreturn void fail_for(const struct property *property, const struct finding *finding,
                        const char *seen, ...) __attribute__((format(printf, 3, 4)));

/* The same for a SHOULD, except that the property goes on: what comes later may break a MUST.  Only
 * the first is kept. */
void warn_for(const struct property *property, const struct finding *finding, const char *seen);

/* It cannot be tested with this handler or on this machine. */
_Noreturn void skip(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* It is about a claim that the handler does not make. */
_Noreturn void skip_unclaimed(void);

/* An internal error: never the handler's fault. */
_Noreturn void harness_broke(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* The property goes on, but is INCOMPLETE if nothing fails. */
void mark_incomplete(const char *reason, ...) __attribute__((format(printf, 1, 2)));

/* Reports what the rows of the property contained so far, and the row of a violation or NULL. */
void record_rows(const struct coverage_counts *counts, const void *found_row, size_t size);

/* A debugger stops here when a property fails.  `latest` is the latest call of this thread, and
 * `code` the handler's function. */
void conform_fail(const char *expected, const char *seen, const char *latest, void (*code)(void));

/* It passes, as at the end of its function. */
_Noreturn void pass(void);

/* Describes what comes next, for the report of a crash or hang outside the handler. */
void step(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Names the part of a program that makes the next calls, for the report of a crash or hang. */
void program_part(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Around a control: see control_run() in process.h. */
void control_begin(const char *when);
void control_end(void);

#endif
