/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A worker: a process that starts Python once and runs its share of the properties, each in a
 * process forked off it.
 */
#ifndef CONFORM_WORKER_H
#define CONFORM_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/limits.h"
#include "model/options.h"
#include "model/property.h"
#include "model/record.h"
#include "subject/subject.h"

/* What to run, made by the coordinator and the same in all rounds; what differs between rounds is
 * in the shared results.  Indices are those of `properties` and of its records; number 0 is the
 * first property, which runs alone. */
struct plan {
    const struct options *options;
    const struct property *const *properties;
    size_t count;
    size_t *fresh, *python; /* the two queues, as indices, in the shared results */
    size_t fresh_count, python_count;
    struct shared_results *shared;
    const struct subject_place *places; /* of the handlers */
    const char *python_path;            /* the interpreter's executable */
    const char *memcheck_folder;        /* or NULL */
    char scratch[SCRATCH_NAME];         /* see scratch_name() */
    bool data_races;                    /* ThreadSanitizer looks for them */
    bool without_python;                /* --quick: no interpreter is started */
    bool shows_progress;
};

#define LEFT_OUT SIZE_MAX /* in a queue, in the place of an index */

/* Between a worker and the coordinator, besides the shared results. */
struct call_log;
struct worker_pipes {
    int wakeup;   /* open as long as the worker lives; a byte when it waits for a round, and after
                   * each   property if progress is shown */
    int commands; /* a byte begins the next round; closed, it ends the worker */
};

void worker_close_pipes(const struct worker_pipes *pipes);

/* Runs its queue until that is empty, round after round, as worker `number`.  If `forked_workers`
 * is not NULL, first forks the workers that have pipes there, which share its start of Python,
 * become the coordinator's children and wait.  A `fresh` worker takes the properties that need no
 * interpreter, starts none, and ends after the round; its first property runs while another worker
 * starts Python for the property that all wait for. */
_Noreturn void worker_run(const struct plan *plan, size_t number, bool fresh,
                          struct worker_pipes pipes, const struct worker_pipes *forked_workers);

/* Runs one property in this process (--no-fork); `at_end` is called at its end and does not
 * return. */
_Noreturn void worker_run_here(const struct plan *plan, size_t index, void (*at_end)(void));

/* Runs one property in this process, with its calls written to `log`. */
_Noreturn void worker_run_logged(const struct plan *plan, size_t index, struct record *record,
                                 struct call_log *log);

/* True once the first property has passed. */
bool worker_subject_lives(struct shared_results *shared);

/* Returns the time limit of a property in seconds.  It shrinks after timeouts, to a tenth and then
 * to a multiple of the slowest property with that fixture, so that a handler that hangs in many
 * places does not take long; and grows on a busy machine, up to --timeout. */
double worker_time_limit(const struct plan *plan, const struct property *property);

/* True if what began at `begin` took longer than --max-time, or than that and more on a busy
 * machine if it is not given. */
bool is_past_max_time(const struct options *options, uint64_t begin);

/* ---- exit_status.c: how the process of a property ended ------------------------------------- */

/* Fills in expected and seen for a process that did not reach its end. */
void ending_describe(struct record *record, const char *how);

/* The same from the output of a sanitizer that ended the process without a signal; false if none
 * did. */
bool ending_by_sanitizer(struct record *record);

/* Forgets suspects of a process that went on for a moment after what ended it. */
void ending_forget_cause(struct record *record);

/* Terminates the texts and checks the verdict of a process that reached its end: a handler can
 * overwrite them. */
void record_terminate(struct record *record);

#endif
