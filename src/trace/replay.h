/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying a trace: drives a handler with the calls of a recorded program, without Python, and
 * checks on every call what needs no Python to be checked (docs/replay.md).
 *
 * It runs on the calling thread, in the order in which the calls were recorded; which thread made
 * them is told, and does not matter otherwise.  Where there is a GIL, calls that were made with it
 * are made with it again.
 */
#ifndef CONFORM_REPLAY_H
#define CONFORM_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fill.h"
#include "base/heap_rule.h"
#include "nep49.h"
#include "trace/trace.h"

struct replay_options {
    bool unchecked;    /* make the calls and nothing else, to be timed */
    size_t alignment;  /* that the handler claims, or 0 */
    size_t most_bytes; /* live; requests for more are left out, if they are possible; 0: any */
    struct fill_rules fill;
    const PyDataMem_Handler
        *watched; /* the struct that must not change; NULL: that of the handler */
    void (*part_begins)(const char *part, void *data); /* or NULL */
    void (*calls_end)(void *data);                     /* before what is live is freed, or NULL */
    void *data;                                        /* of these two */
    void (*take_gil)(void), (*release_gil)(void);      /* NULL: nobody has a GIL */
};

/* What the handler broke. */
struct replay_violation {
    enum heap_rule rule;   /* HEAP_NO_RULE: nothing */
    char part[257];        /* of the recorded program, where it names any */
    uint64_t call, offset; /* of the record at which it was seen; 0: when what was left was freed */
    char text[320];        /* the call, what was expected and what was seen, in one line */
    char history[320];     /* what happened to the block before, in one line, or "" */
};

enum replay_outcome {
    REPLAY_UNDER_WAY, /* found in shared memory: the handler has ended the process */
    REPLAY_PASSED,
    REPLAY_VIOLATED,    /* `violation` says what; the replay stopped there, so that nothing follows
                         * from it, and what was live then stays so */
    REPLAY_TRACE_WRONG, /* `wrong` says what; the calls before were replayed, and all held */
    REPLAY_NO_MEMORY,   /* for the replay's own tables */
};

/* Holds no pointer, and is kept up to date all the time: in shared memory it tells a parent process
 * in which call a handler crashed or hangs. */
struct replay_result {
    enum replay_outcome outcome;
    struct trace_call under_way; /* the call that was made last, or is being made */
    char part[257];              /* of the recorded program, that it belongs to, or "" */
    uint64_t calls;              /* replayed */
    uint64_t refused;            /* by this handler, where the recorded one did not */
    uint64_t left_out;           /* calls for blocks that it had refused, for foreign ones, or for
                                  * more than most_bytes */
    uint64_t live;               /* blocks at the end of the trace; they were then freed */
    uint64_t live_bytes;         /* in them */
    uint64_t peak_bytes;
    double seconds;
    bool cut; /* the trace was never closed; `wrong` says so too */
    char wrong[192];
    struct replay_violation violation;
    struct replay_violation warning; /* the first SHOULD that failed; the replay went on */
};

/* Replays what the reader has. */
enum replay_outcome replay_run(struct trace_reader *reader, PyDataMem_Handler *handler,
                               const struct replay_options *options, struct replay_result *result);

#endif
