/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Made-up histories of calls, for the tests of traces and for timing their replay.
 */
#ifndef CONFORM_TESTS_HISTORY_H
#define CONFORM_TESTS_HISTORY_H

#include "base/random.h"
#include "trace/trace.h"

enum history_kind {
    HISTORY_LOOPS,    /* a program that computes with arrays in loops: one body many times over */
    HISTORY_ARRAYS,   /* one in which no array is as large as the one before */
    HISTORY_ANYTHING, /* everything that a trace can hold, often at its limits */
};
enum { HISTORY_CELLS = 4096, HISTORY_STEPS = 6 };

struct history_block {
    const char *p; /* NULL: none */
    size_t size;
};

/* What one line of a loop asks for, with the same sizes each time. */
enum history_line {
    LINE_TEMPORARY, /* made and dropped */
    LINE_NESTED,    /* a second is made before the first is dropped */
    LINE_REPLACE,   /* an array that stays is made, and another dropped */
    LINE_GROW,      /* an array is made, resized twice, and takes the place of another */
    LINES,
};
struct history_step {
    enum history_line line;
    size_t size[2];
    bool zeroed;
};

/* No memory is behind the addresses: each block has a cell of the address space to itself. */
struct history {
    enum history_kind kind;
    struct random random;
    struct history_block block[HISTORY_CELLS];
    unsigned live[HISTORY_CELLS], live_count; /* cells with a block */
    unsigned temporary; /* a cell of which the block goes at once, or HISTORY_CELLS */
    uint64_t calls, time;
    struct history_step step[HISTORY_STEPS]; /* the body of the loop */
    unsigned steps, at_step, at_call, rounds;
    const char *held[2]; /* the step's temporaries */
};

/* One call, as a shim would see it. */
struct history_call {
    enum trace_function function;
    struct trace_caller caller;
    const char *p; /* given to realloc and free */
    size_t size;   /* of malloc, realloc and free */
    size_t nelem, elsize;
    const char *result;
};

void history_begin(struct history *history, enum history_kind kind, uint64_t seed);
struct history_call history_next(struct history *history);

/* The cell of an address, or no less than HISTORY_CELLS where it is of none. */
uintptr_t history_cell(const char *p);

/* Hands a call to the writer as a shim would. */
void history_record(struct trace_writer *writer, const struct history_call *call);

/* Writes a trace with so many calls to the file.  False where that fails. */
bool history_write(const char *path, enum history_kind kind, uint64_t seed, uint64_t calls);

#endif
