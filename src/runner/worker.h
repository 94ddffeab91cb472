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
#include "model/property.h"
#include "model/record.h"
#include "subject/subject.h"

/* What there is to do: made by the coordinator, the same for all workers and in all rounds; what
 * differs from one to the next is on the board.  Indices are those of `properties` and of the
 * board's records; number 0 is the first one, run alone. */
struct plan {
    const struct property *const *properties;
    size_t count;
    size_t *fresh, *python; /* the two queues, as indices, on the board */
    size_t fresh_count, python_count;
    struct board *board;
    const struct subject_place *places; /* of the handlers */
    const char *python_path;            /* the interpreter's executable */
    double timeout;         /* seconds in which a call has to come back, and a property to get on */
    double max_time;        /* seconds for the whole round; 0: no bound */
    bool max_time_is_given; /* by --max-time: likewise not to be stretched */
    bool timeout_is_given;  /* by --timeout: not to be stretched on a busy machine */
    uint64_t seed, daily_seed;   /* the latter of the properties that are `daily` */
    const char *memcheck_folder; /* or NULL */
    char scratch[SCRATCH_NAME];  /* see scratch_name() */
    bool data_races;             /* ThreadSanitizer looks for them */
    bool without_python;         /* of --quick: no interpreter is started */
    bool shows_progress;         /* somebody looks on */
};

/* What a worker and the coordinator tell each other, beside the board. */
struct call_log;
struct worker_pipes {
    int wakeup;   /* held open as long as the worker lives; a byte where it rests, and where
                   * progress is shown after each property */
    int commands; /* a byte begins the next round; closed, it ends the worker */
};

void worker_close_pipes(const struct worker_pipes *pipes);

/* Runs what is left in its queue until that is empty, round after round.  `number` is the worker's.
 * Where `twins` is not NULL, it first forks the workers that have pipes there, at their numbers:
 * they share its start of Python, and are the coordinator's children and at rest.
 * One that is `fresh` takes the properties that want no interpreter, starts none, and ends with the
 * round: the first of them while another worker starts Python for the one that all wait for.  Where
 * that shows a dead subject, the other is as if it had not been run, as battery.c sees to. */
_Noreturn void worker_run(const struct plan *plan, size_t number, bool fresh,
                          struct worker_pipes pipes, const struct worker_pipes *twins);

/* Runs one property in this process (--no-fork); `at_end` is called when it has ended and
 * does not return. */
_Noreturn void worker_run_here(const struct plan *plan, size_t index, void (*at_end)(void));

/* Runs one property in this process, as a worker's process does, with its calls written to `log`;
 * what comes of it goes to `record`. */
_Noreturn void worker_run_logged(const struct plan *plan, size_t index, struct record *record,
                                 struct call_log *log);

/* True once the first property has shown that the subject is alive. */
bool worker_subject_lives(struct board *board);

/* Seconds that a call of a property may take now, or the property without one.  It is less once
 * some have run out of time, so that a handler that hangs in many places is done with soon: a tenth
 * is still far more than any takes, and then some times what the slowest of its fixture has taken
 * that came to its end.  It is more where the machine has more to run than it has cores, though
 * never more than --timeout says. */
double worker_time_limit(const struct plan *plan, const struct property *property);

#endif
