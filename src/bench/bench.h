/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast handlers are, beside the one that NumPy comes with: what is measured, and what came of
 * it.
 */
#ifndef CONFORM_BENCH_H
#define CONFORM_BENCH_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "subject/subject.h"

/* NumPy's default handler, libc, and those that were given. */
enum { BENCH_DEFAULT, BENCH_LIBC, BENCH_GIVEN, MOST_BENCHED = BENCH_GIVEN + 6 };

/* What is done.  By the four functions, on one thread: */
enum work {
    WORK_MALLOC, /* malloc, the first and the last byte written, free */
    WORK_CALLOC, /* likewise, and read */
    WORK_REALLOC,
    WORK_REPLAY,  /* a recorded program, that of `figure`: see profiles/ */
    WORK_LATENCY, /* of one call of malloc or free, among many sizes that live and go */
    WORK_FOOTPRINT,
    WORK_LONG_REPLAY, /* the recorded programs in turn, for what stays resident */
    /* By NumPy: */
    WORK_ADD,
    WORK_ZEROS,
    WORK_RESIZE,
    WORK_THREADS, /* a + a on several threads */
    WORK_HANDOVER,
};

/* One figure of each handler. */
struct cell {
    const char *group, *title; /* what it is one of, in JSON and to be read */
    const char *unit;          /* "s": seconds for one time; else it is no time */
    enum work work;
    size_t size;      /* bytes of a block or an array; 0: many */
    unsigned threads; /* 1, and where it is about threads their number */
    unsigned figure;  /* of those that one work gives; of WORK_REPLAY, the program */
};

/* In memory that is shared: what a process that has a handler is to do, and what came of it. */
enum { FIGURES = 4, MOST_ROUNDS = 25 };
struct task {
    enum work work;
    size_t size;
    unsigned threads, figure;
    uint64_t times; /* 0: the process is to end */
};
struct answer {
    double wall, processor;  /* seconds */
    uint64_t faults;         /* pages that were had for the first time, without reading any */
    double figures[FIGURES]; /* of what is no time */
    bool refused;            /* a request, or NumPy raised an exception */
};

struct figure {
    bool is_known;
    double value;            /* the median, in the cell's unit */
    double ratio, low, high; /* to the default handler's of the same round: the median, and what
                                an eighth of the rounds lies below and above */
    double processor_ratio;
    double faults; /* for one time, in the median */
};

/* When a cell is measured: first what has no sizes and every fourth size of the others, then the
 * sizes between these, then those between.  So there is something of each kind where the time is
 * over. */
enum { BENCH_TURNS = 3 };

struct bench_cell {
    struct cell cell;
    unsigned turn;
    struct figure of[MOST_BENCHED];
    size_t rounds;
    bool is_noisy; /* the middle half of the default's own rounds is wider than a tenth */
};

/* How the process of a subject was lost. */
enum bench_loss { BENCH_ENDED, BENCH_HUNG, BENCH_REFUSED };

enum { MOST_CELLS = 128 };
struct bench {
    size_t subjects;
    const char *labels[MOST_BENCHED];
    char python[160];  /* "Python 3.13.5, NumPy 2.4.6" */
    char machine[160]; /* its processor, cores and load */
    struct bench_cell cells[MOST_CELLS];
    size_t count;
    size_t noisy;
    size_t left_out;       /* cells, for which there was no time */
    double seconds;        /* that it took */
    size_t lost;           /* the subject that ended, hung or refused something */
    enum bench_loss loss;  /* which of them */
    char why[256];         /* in words */
    enum load_state state; /* of that one, as far as it came */
};

struct bench_options {
    const struct subject_place *places[MOST_BENCHED];
    const char *python;
    double seconds;        /* to be taken in all; three rounds are made of each cell */
    double limit;          /* seconds, after which cells are left out; 0: none */
    double hangs;          /* seconds for one cell of a handler */
    bool is_quick;         /* fewer sizes */
    bool (*is_over)(void); /* asked now and then */
};

/* Measures all of it; `bench` has the labels and their number.  False where a process cannot be had
 * or has no handler: why is then in it, and the first of those that were lost. */
bool bench_run(const struct bench_options *options, struct bench *bench);

/* The cells, of sizes of which the machine has memory. */
size_t bench_cells(struct bench_cell *cells, bool is_quick);

/* What it says first. */
struct hello {
    enum load_state state;
    char wrong[256]; /* or "" */
    char python[160];
};

/* The process of a handler: reads tasks from `from`, writes answers to `to`, until it is to end. */
_Noreturn void bench_serve(const struct subject_place *place, const char *python, int from, int to);

/* One task, with the handler and the GIL.  NumPy's part is bench.py. */
void bench_do(const struct task *task, PyDataMem_Handler *handler, struct answer *answer);

/* "64 KiB" */
const char *bench_size(size_t size);
/* "12.5 us"; of what is no time, the number. */
const char *bench_value(const struct cell *cell, double value);

void bench_print(const struct bench *bench);
/* As --json writes it. */
json_t *bench_report(const struct bench *bench);

#endif
