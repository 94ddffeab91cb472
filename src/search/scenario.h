/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Scenarios: situations in which a handler is tested.  A scenario is one level of each factor, such
 * as "size: 1024 to 1535" and "memory before: rest of a shrink".  Rows are drawn at random with the
 * weights of the levels; what cannot be combined stands in a table of constraints.  A new kind of
 * situation is a new level or a new factor in scenario.c.
 */
#ifndef CONFORM_SCENARIO_H
#define CONFORM_SCENARIO_H

#include <stdio.h>

#include "search/writer.h"

enum factor {
    FACTOR_SIZE,
    FACTOR_SIZES,
    FACTOR_MADE_BY,
    FACTOR_MEMORY_BEFORE,
    FACTOR_LIVE_BLOCKS,
    FACTOR_FREE_ORDER,
    FACTOR_REPETITION,
    FACTOR_RESIZES,
    FACTOR_FREE_SIZE,
    FACTOR_CONTENTS,
    FACTOR_PRESSURE,
    FACTOR_THREADS,
    FACTOR_PROCESS,
    FACTOR_TIME,
    FACTORS
};

/* Levels of the size: those that begin with that number of bytes. */
enum { SIZE_17 = 6, SIZE_129 = 13, SIZE_4096 = 22 };
/* The levels of the factors whose levels are not numbers. */
enum {
    BY_MALLOC,
    BY_CALLOC_N_1,
    BY_CALLOC_1_N,
    BY_CALLOC_N_K,
    BY_REALLOC_NULL,
    GROWN,
    GROWN_STEPWISE,
    SHRUNK,
    SHRUNK_STEPWISE,
    RESIZED_AND_BACK,
    FROM_EMPTY
};
enum {
    FRESH,
    FREED_SAME,
    FREED_LARGER,
    FREED_SMALLER,
    REST_OF_SHRINK,
    MERGED_NEIGHBORS,
    AFTER_BURST,
    FREED_BY_OTHER,
    FREED_BY_ENDED
};
enum { LIFO, FIFO, RANDOM_ORDER, EVERY_OTHER, ALL_BUT_ONE, NO_FREE };
enum { AS_MADE, RESIZED_FEW, RESIZED_256, RESIZED_1000, RESIZED_65536 };
enum { ONE_SIZE, ANY_SIZE, EACH_IN_TURN };
enum { PATTERN, ZEROS, MARKS, POINTERS, HEADERS };
enum {
    NO_PRESSURE,
    ERRNO_SET,
    REFUSED_BEFORE,
    PAGES_LOCKED,
    REQUEST_REFUSED,
    ADDRESS_LIMIT,
    USED_UP
};
enum {
    SAME,
    FREED_THERE,
    MADE_THERE,
    CHAIN,
    ONE_AFTER_ANOTHER,
    IN_DESTRUCTOR,
    STOPPED_INSIDE, /* from here on all rows of a list have the same level */
    FEW_AT_ONCE,
    TEN_AT_ONCE,
    HUNDREDS_AT_ONCE
};
enum { ONE_PROCESS, FORK_IN_TURNS, FORK_AT_ONCE, AT_EXIT };

/* `low` to `high` is the range of a number, for factors whose levels are numbers. */
struct factor_level {
    const char *name;
    uint64_t low, high;
    unsigned weight; /* relative frequency within its factor; the sum over a factor is not fixed */
};

struct factor_levels {
    const char *name;
    const struct factor_level *level;
    unsigned count;
};
extern const struct factor_levels scenario_factors[FACTORS];

struct scenario {
    uint8_t level[FACTORS];
};

/* The level of that factor in the row. */
const struct factor_level *scenario_level(const struct scenario *scenario, enum factor factor);

/* Whether each block of the row is made and freed in one step, because there are so many. */
enum { SCENARIO_MANY = 2000 };
bool scenario_is_one_step(const struct scenario *scenario);

struct level_range {
    uint8_t first, count; /* count: 0 for all levels of the factor */
};
#define FROM_TO(low, high)                                                                         \
    {                                                                                              \
        low, high - low + 1                                                                        \
    }

/* What is drawn. */
struct scenario_limits {
    size_t least_size, most_size;                       /* most_size: 0 for any */
    size_t most_bytes;                                  /* of all blocks of a row together */
    size_t most_steps;                                  /* of a row, about; 0: any */
    bool threads, forks, exits, pauses, address_limits; /* there may be such rows */
    struct level_range level[FACTORS]; /* of threads: without a range none run at once */
};

/* Whether the constraints, and all limits, allow it. */
bool scenario_is_allowed(const struct scenario *scenario, const struct scenario_limits *limits);

/* Draws a scenario that the limits and the constraints allow. */
struct scenario scenario_draw(struct random *random, const struct scenario_limits *limits);

/* About how long it takes, in calls for small blocks: large blocks and threads take longer.  To
 * start threads that run at once is not counted. */
enum { THREAD_COST = 200 };
double scenario_cost(const struct scenario *scenario);

/* Appends the calls of the scenario, and returns the size of most blocks.  What it draws inside the
 * levels comes from writer->random. Blocks may stay live: the next row then runs beside them. */
size_t scenario_write(const struct scenario *scenario, struct writer *writer);

/* Writes calls of two threads for blocks of these sizes.  The first thread is stopped so many
 * times, if there is room. */
void interleaved_write(struct writer *writer, const size_t *sizes, size_t size_count, size_t stops);

/* Appends rows until there is no room, or now and then before. */
void scenarios_write(const struct scenario_limits *limits, struct writer *writer);

/* Writes "size 1024 to 1535, made by calloc(n, 1), ..." into the buffer: the levels that are not
 * the first of their factor, and the size.  Returns the buffer. */
const char *scenario_words(const struct scenario *scenario, char *buffer, size_t room);

#endif
