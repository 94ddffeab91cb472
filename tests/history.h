/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Made-up histories of calls, for the tests of traces and for timing their replay.
 */
#ifndef CONFORM_TESTS_HISTORY_H
#define CONFORM_TESTS_HISTORY_H

#include "base/random.h"
#include "trace/trace.h"

enum history_kind {
    HISTORY_ARRAYS,   /* a program that computes with arrays of all lengths */
    HISTORY_ANYTHING, /* everything that a trace can hold, often at its limits */
};
enum { HISTORY_CELLS = 4096 };

struct history_block {
    const char *p; /* NULL: none */
    size_t size;
};

/* No memory is behind the addresses: each block has a cell of the address space to itself. */
struct history {
    enum history_kind kind;
    struct random random;
    struct history_block block[HISTORY_CELLS];
    unsigned live[HISTORY_CELLS], live_count; /* cells with a block */
    unsigned temporary; /* a cell of which the block goes at once, or HISTORY_CELLS */
    uint64_t calls, time;
};

/* One call, as a shim would see it. */
struct history_call {
    enum step_kind kind;
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

/* A file for the trace of a test, made before each one and removed after it. */
extern char history_path[256];
void history_path_make(void);
void history_path_remove(void);

#endif
