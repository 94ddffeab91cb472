/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shared results: memory that the coordinator, its workers and the processes of the
 * properties share.  Each property has a record on pages of its own, the only ones
 * that its process can still write once the subject is loaded, so a subject that
 * runs wild cannot touch another property's verdict.
 */
#ifndef CONFORM_RECORD_H
#define CONFORM_RECORD_H

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/property.h"

enum verdict {
    VERDICT_NONE, /* not yet: never in a report */
    PASS,
    FAIL,       /* a MUST failed */
    WARN,       /* a SHOULD failed */
    SKIP,       /* with a reason */
    CRASH,      /* the process died, by a signal or by an exit of its own */
    TIMEOUT,    /* it did not end in time */
    BROK,       /* the harness could not do its part */
    INCOMPLETE, /* it stopped at a limit of its own, and nothing was wrong up to there */
};
enum { VERDICT_COUNT = INCOMPLETE + 1 };

/* What the rest of the program has to know of a verdict. */
struct verdict_facts {
    const char *name;   /* as in reports */
    const char *counts; /* "failed", as in "2 failed" */
    const char *color;  /* ANSI */
    int severity;       /* of the rounds of --repeat, the most severe verdict is reported */
    bool against;       /* it is evidence against the handler */
    bool decides;       /* and makes it non-conformant, whatever the level and the options */
};
extern const struct verdict_facts verdict_facts[VERDICT_COUNT];

const char *verdict_name(enum verdict verdict);

/* What a call of the subject was up against. */
enum trouble {
    NO_TROUBLE,
    FUNCTION_IS_MISSING, /* it is a NULL pointer */
    REFUSED_BELOW,       /* the runner refused it memory, in the place of libc or the kernel */
    NOT_ALIGNED,         /* the block is not, as its size demands */
    NOT_ZERO,            /* what calloc returned is not, and NumPy was given it */
    WRONG_SIZE,          /* free was told another size than the block was asked for with */
    REFUSED_LITTLE,      /* it asked for little, of which most handlers have some, and got NULL */
};

/* "malloc(5)", good until the next calls of fmt(); NULL if no call is under way. */
const char *call_in_words(const struct step *call);

/* The worker sends it to each thread of a process that hangs, to record where it is. */
#define SIGNAL_OF_HANG SIGXCPU

enum { CALL_SLOTS = 128 }; /* threads that are told apart, of those that live at once */

enum record_state {
    RECORD_WAITING,
    RECORD_RUNNING,
    RECORD_ENDED, /* the property reached its end, and its verdict is here */
};

/* The calls by which a property may have failed, whatever it was about. */
enum suspect {
    ENDED_IN,       /* where a process was when it ended */
    RETURNED_WRONG, /* the first that returned NULL or a block and may not, or what is not zero */
    MADE_EMPTY,     /* that of the block in hand at the end, where it is one of no bytes */
};
enum { SUSPECTS = MADE_EMPTY + 1 };

enum { MEMCHECK_CHILDREN = 64 }; /* of a property's process: more are not looked at */

/* What made a verdict beside the property. */
enum checker { NO_CHECKER, FOUND_ERROR, FOUND_UNDEFINED };

enum { INCOMPLETE_IN_CHILD = 0x5a017 }; /* nothing that is written over it by chance */

/* What the rows of a property contained, see coverage.h. */
struct coverage_counts {
    uint64_t calls;           /* that were checked */
    uint32_t rows;            /* of scenarios */
    uint32_t pairs, possible; /* of levels: run, and those that its rows can have */
    uint32_t triples;         /* of levels that were run */
};

/* Where an instruction is. */
struct code_place {
    char object[256]; /* path of the file, or "" */
    char symbol[64];  /* exported, or "" */
    uint64_t offset;  /* in the file as loaded, as addr2line takes it */
    char callee[64];  /* what it had called, of the handler's frame of a crash; or "" */
    int is_elsewhere; /* 1 if it is outside the handler's file; no bool */
};

struct record {
    /* Written by the worker. */
    _Atomic(enum verdict) verdict; /* VERDICT_NONE until the worker has judged */
    double seconds;
    char output[512];     /* what the property's process printed, its beginning */
    size_t output_length; /* how much it printed in all, as far as that was kept */
    int not_run;          /* 1 where the end of the run left it over; no bool */
    int by_checker;       /* enum checker */
    char memcheck[512];   /* its errors, or why a failure is excused under valgrind; or "" */

    /* Written by the property's process. */
    _Atomic int state; /* enum record_state */
    enum verdict reached;
    pid_t pid;
    struct coverage_counts coverage;
    _Alignas(8) char found_row[1024]; /* struct found_row of rows.h; or zeros */
    char expected[512];
    char call[192];            /* that showed the failure, or "" */
    char seen[1024];           /* or the reason of a SKIP, or what broke in the harness */
    char past[320];            /* what happened to the block before, or "" */
    char situation[768];       /* the row of a scenario, or "" */
    struct code_place place;   /* in the handler, of the failure */
    char step[256];            /* what it was about, in words */
    unsigned short_in_child;   /* INCOMPLETE_IN_CHILD where a process of in_child mark_incomplete */
    char part[384];            /* of a program whose calls it makes, in words, or "" */
    int overwritten;           /* 1 where a byte of a block is not what was written; no bool */
    int growing;               /* 1 where memory grows, which is what failed; likewise */
    int unclaimed;             /* 1 with a SKIP as the handler claims no such thing; likewise */
    int is_finding;            /* 1 where fail_for() attributed it; likewise */
    int is_complete;           /* 1 where it found a SHOULD of another's, and nothing else */
    int is_definite;           /* 1 where the call is wrong whatever was called before; likewise */
    int line;                  /* of the check that failed, in the property's file */
    _Atomic int python_starts; /* 1 while it does, in the property's process */
    unsigned made[CALL_SLOTS]; /* calls of each thread so far: what makes none does not get on */
    int signal;
    int signal_is_noted;     /* 1 if the process did so: a signal may be blocked */
    struct step signal_call; /* of the thread that the signal hit */
    uintptr_t signal_address;
    int signal_has_address; /* no bool, of which few values can be read */
    int signal_elsewhere;   /* likewise: in another thread than the first */
    struct step suspects[SUSPECTS];
    char attribute_to[64];    /* id of the property that is about what was found, or "" */
    char control[96];         /* where it is in its control: without what, in words; else "" */
    int controlled;           /* 1 behind a control in which nothing was wrong; no bool */
    uint64_t control_sum;     /* of it: a subject can write there */
    uint64_t memcheck_errors; /* counted where a process ended as it should */
    _Atomic size_t children;  /* that it forked under memcheck, and theirs */
    pid_t child[MEMCHECK_CHILDREN];
    _Atomic int children_done; /* processes of in_child that reached their end */
    struct step calls[CALL_SLOTS];
    struct step makings[CALL_SLOTS]; /* of the block in hand of each, where it is one of no bytes */
};

struct expectation; /* an entry of --expect, see report.h */

/* The conclusion from the record of a property, which the coordinator draws and which leaves the
 * record as it is. */
struct outcome {
    enum verdict verdict;
    const struct property *cause; /* the property that answers for it, which is a SKIP; or NULL */
    const struct property *found_by; /* whose record this is about: a violation is reported by the
                                      * property that states the requirement; NULL: its own */
    const char *expected;            /* in place of what the record has; or NULL */
    char note[512];  /* why `cause` answers for it, or else what is reported in place of what
                      * the record has; or "" */
    bool in_control; /* it failed in its control, and no other property answers for it */
    bool not_run;    /* INCOMPLETE because the run ended first */
    const struct expectation *waiver;        /* by which it does not decide; or NULL */
    const struct expectation *unused_waiver; /* that expects another verdict; or NULL */
    size_t runs, failed_runs; /* of the property, if its failure was repeated; else 0 */
    size_t bad_rounds;        /* of --repeat, with a verdict other than PASS and SKIP */
    size_t skipped_rounds;    /* of --repeat, with a SKIP */
};

/* The outcome of a record that nothing else explains. */
struct outcome outcome_of(const struct record *record);

/* What a worker finds out about what it runs in. */
struct environment {
    char python[64];
    char python_executable[256];
    bool free_threaded, gil; /* the latter: in use once NumPy is imported */
    char numpy[64];
};

/* How loading the subject ended, told by the first property (abi.loads). */
enum load_state {
    LOAD_UNKNOWN, /* it did not come back from it */
    LOAD_DONE,
    LOAD_FAILED,       /* no handler came of it: `why` says why */
    LOAD_UNFIT,        /* the subject says that it cannot work here: `why` is its reason */
    LOAD_CONTRADICTED, /* its claims and those made for it cannot both hold: `why` says which */
};
struct load {
    _Atomic int state; /* enum load_state */
    char why[512];
    char name[127]; /* raw, as in the struct, not terminated */
    uint8_t version;
    int has_name; /* likewise */
    int has_gil;  /* likewise: one is in use behind it */
    char claims[256];
    char how[96]; /* of a Python subject, what kind of object it was */
};

enum { MOST_WORKERS = 64, WORKER_SLOTS = MOST_WORKERS + 1 /* see scheduler.h */ };

struct shared_results {
    size_t count;
    size_t record_size; /* rounded up to pages */
    size_t header_size; /* likewise */
    _Atomic int environment_known;
    struct environment environment;
    _Atomic int rests[WORKER_SLOTS]; /* 1: the worker has ended its part of the round */
    _Atomic int
        forked_workers[WORKER_SLOTS]; /* the processes of those that the first worker has forked */

    /* Of a round: from here on results_clear forgets it. */
    _Atomic size_t handler;                 /* which of the plan's it is about */
    _Atomic uint64_t begin;                 /* of the round, on the monotonic clock */
    _Atomic size_t next_fresh, next_python; /* how far workers are in the two queues */
    _Atomic size_t finished;
    _Atomic int abandoned;              /* 1: a worker cannot be replaced; nobody waits for it */
    _Atomic int timeouts;               /* so far: the next ones are cut shorter */
    _Atomic uint64_t slowest[FIXTURES]; /* nanoseconds, of what has passed with each fixture */
    struct {
        _Atomic size_t property; /* 1 + index of what it runs now; 0: nothing */
        _Atomic uint64_t since;  /* on the monotonic clock, nanoseconds */
        _Atomic uint64_t until;  /* likewise: when the worker has to have ended it, unless it gets
                                  * on */
    } workers[WORKER_SLOTS];
    char python_error[512]; /* why the interpreter did not start, if it did not */

    size_t queue[]; /* room for `count` indices, which is not cleared */
};

/* Shared results of `count` records, all zero, and one page of its own for the load report.
 * NULL with errno set where there is no memory. */
struct shared_results *results_create(size_t count);

struct record *results_record(struct shared_results *shared, size_t index);
struct load *results_load(struct shared_results *shared);

/* Makes the shared results as new, for another round; what is known of the environment and of
 * the workers stays. */
void results_clear(struct shared_results *shared);

/* The property enters its control, which is without that; with "" it leaves it. */
void record_enter_control(struct record *record, const char *without);

/* Attributes the failure to the property that is about the topic.  Async-signal-safe. */
void record_attribute(struct record *record, enum topic topic);

/* Takes for no control what was not written by record_enter_control, and puts an end to the text.
 */
void record_check_control(struct record *record);

/* Puts an end to each text of the load report, which the subject's process could write. */
void load_make_sound(struct load *load);

/* In the process of a property: takes away every page of the shared results but the record of
 * `index` and, where `keep_load` is set, the load report. */
void results_isolate(struct shared_results *shared, size_t index, bool keep_load);

#endif
