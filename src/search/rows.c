/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A list consists of a few rows, whose blocks are checked by one model.  At the end of a list all
 * blocks are freed, and the next list follows.
 */
#include "search/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "search/concurrent.h"

enum { MOST_ROWS = 16, ROW_STEPS = (1 << 17) + (1 << 12), LONG_LIST = 1 << 11 };

struct rows {
    const struct rows_options *options;
    PyDataMem_Handler *handler;
    struct random random;
    struct scenario_limits limits; /* of the rows of the list */
    unsigned threads;              /* that run the list */
    uint64_t until;                /* on the clock */
    double cost;                   /* of the rows so far, see scenario_cost() */
    double list_cost;
    bool is_short;     /* the list has short rows */
    double short_cost; /* of such lists so far */
    struct fill_rules fill;
    struct writer *writer;
    struct executions *executions;
    struct scenario scenario[MOST_ROWS];
    struct random row_random[MOST_ROWS]; /* of the writer, when a row began */
    size_t size[MOST_ROWS];              /* of most blocks of a row */
    bool has_pressure;            /* in some row of the list: memory may be refused to us, too */
    size_t end[MOST_ROWS], count; /* of the steps of each row; how many rows */
    size_t steps_count;           /* of all threads */
    uint32_t slots;
    struct step *steps;
};

/* Draws whether and by how many threads the list is run at once: all of its rows have that level.
 */
static void draw_threads(struct rows *rows)
{
    struct level_range *range = &rows->limits.level[FACTOR_THREADS];
    rows->limits = rows->options->limits;
    rows->threads = 1;
    if (range->first + range->count <= STOPPED_INSIDE)
        return;
    struct scenario scenario = scenario_draw(&rows->random, &rows->limits);
    const struct factor_level *level = scenario_level(&scenario, FACTOR_THREADS);
    if (scenario.level[FACTOR_THREADS] < STOPPED_INSIDE) {
        range->count = STOPPED_INSIDE - range->first;
        return;
    }
    *range = (struct level_range){scenario.level[FACTOR_THREADS], 1};
    rows->threads =
        (unsigned)(level->low + random_below(&rows->random, level->high - level->low + 1));
    rows->limits.most_bytes /= rows->threads;
}

static bool is_stopped(const struct rows *rows)
{
    return rows->limits.level[FACTOR_THREADS].first == STOPPED_INSIDE;
}

/* And about of a list, so that a slow handler comes to the end of one. */
static double most_of_row(const struct rows_options *options)
{
    return options->cost / 8;
}

/* From this part of the cost on, rows have pairs of levels that no row had before; but not if
 * threads run at once, as cheap rows meet fewer races. */
static const double filled_from = 0.75;

/* Returns a row that costs no more than most_of_row(), or else the cheapest of MOST_TRIES; in a
 * short list the cheapest of FEW_TRIES, as many short rows meet more situations than one long row.
 */
static struct scenario draw_cheap(struct rows *rows)
{
    double most = most_of_row(rows->options);
    enum { MOST_TRIES = 64, FEW_TRIES = 4 };
    if (rows->threads == 1 && rows->cost + rows->list_cost > filled_from * rows->options->cost)
        return coverage_draw(rows->options->coverage, &rows->random, &rows->limits, most);
    struct scenario cheapest = scenario_draw(&rows->random, &rows->limits);
    for (unsigned i = 1; i < MOST_TRIES; i++) {
        if (scenario_cost(&cheapest) <= most && (!rows->is_short || i >= FEW_TRIES))
            break;
        struct scenario other = scenario_draw(&rows->random, &rows->limits);
        if (scenario_cost(&other) < scenario_cost(&cheapest))
            cheapest = other;
    }
    return cheapest;
}

/* Blocks are filled and checked as a whole, or in part so that more of them can be checked. */
static struct fill_rules draw_fill(struct rows *rows)
{
    static const size_t whole[] = {0, 0, 0, 4096, 4096, 1 << 16, 1 << 16, 1 << 20};
    return (struct fill_rules){.whole =
                                   whole[random_below(&rows->random, sizeof whole / sizeof *whole)],
                               .marks = random_below(&rows->random, 4) == 0};
}

/* The last step frees what the rows left.  Each of several threads does the whole list, with slots
 * of its own. */
static void write_list(struct rows *rows)
{
    struct writer *writer = rows->writer;
    bool forks = false;
    draw_threads(rows);
    rows->fill = draw_fill(rows);
    rows->has_pressure = false;
    rows->list_cost = THREAD_COST * (rows->threads - 1);
    rows->is_short = rows->short_cost <= rows->cost / 2;
    size_t room = is_stopped(rows) ? ROW_STEPS : ROW_STEPS / rows->threads;
    writer->most_bytes = rows->limits.most_bytes;
    writer_begin(writer, rows->steps, room - 1);
    for (rows->count = 0; rows->count < MOST_ROWS && writer->count < LONG_LIST &&
                          writer->live_bytes < writer->most_bytes / 2 && !forks &&
                          (rows->count == 0 ||
                           ((rows->threads > 1 || rows->list_cost < most_of_row(rows->options)) &&
                            rows->cost + rows->list_cost < rows->options->cost));
         rows->count++) {
        struct scenario *scenario = &rows->scenario[rows->count];
        *scenario = draw_cheap(rows);
        writer->random = (struct random){random_next(&rows->random)};
        rows->row_random[rows->count] = writer->random;
        rows->list_cost += scenario_cost(scenario);
        rows->size[rows->count] = scenario_write(scenario, writer);
        rows->end[rows->count] = writer->count;
        forks = scenario->level[FACTOR_PROCESS] != 0;
        rows->has_pressure = rows->has_pressure || scenario->level[FACTOR_PRESSURE] != 0;
    }
    writer->room = room;
    if (writer->live_count > 0)
        write_free_batch(writer, 0, writer->slots);
    rows->slots = writer->slots;
    rows->steps_count = writer->count;
    rows->cost += rows->list_cost;
    rows->short_cost += rows->is_short ? rows->list_cost : 0;
    if (rows->threads > 1 && !is_stopped(rows)) {
        rows->steps_count =
            concurrent_multiply(rows->steps, writer->count, writer->slots, rows->threads, 1);
        rows->slots *= rows->threads;
    }
}

/* A forked process did not come to its end. */
static const struct execution *child_that_died(struct rows *rows, int number)
{
    struct execution *side = &rows->executions->side[number];
    int status = side->status;
    side->state = EXECUTION_VIOLATED;
    side->violation.rule = HEAP_RETURNS;
    snprintf(side->violation.seen, sizeof side->violation.seen, "in the forked process, %s",
             WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exits");
    return side;
}

static void execute_list(struct rows *rows, struct rows_result *result)
{
    struct call_list list = {.at = rows->steps,
                             .count = rows->steps_count,
                             .at_once = rows->threads > 1,
                             .in_turns = is_stopped(rows)};
    struct execute_options options = {
        .rules = {.alignment = rows->options->alignment,
                  .fill = rows->fill,
                  .watched = rows->options->watched},
        .until = rows->until,
        .most_resident = rows->options->most_resident,
        .refuse = rows->options->refuse,
        .jump = rows->options->jump,
        .slots = rows->slots,
        .most_bytes = rows->options->limits.most_bytes,
    };
    memset(rows->executions, 0, sizeof *rows->executions);
    execute(&list, rows->handler, &options, rows->executions);
    const struct execution *execution = &rows->executions->side[0];
    for (int i = 1; i <= MOST_FORKS && execution->state == EXECUTION_PASSED; i++) {
        const struct execution *side = &rows->executions->side[i];
        if (side->state == EXECUTION_VIOLATED)
            execution = side;
        else if (side->state == EXECUTION_UNDER_WAY)
            execution = child_that_died(rows, i);
    }
    size_t at = execution->at, row = 0, each = MAX(rows->writer->count, (size_t)1);
    while (row + 1 < rows->count && rows->end[row] <= (at < list.count ? at % each : at))
        row++;
    result->rows += row + 1;
    for (size_t i = 0; i <= row && clock_now() < rows->until; i++)
        coverage_add(rows->options->coverage, &rows->scenario[i]);
    result->calls += rows->executions->side[0].calls;
    result->state = (enum execution_state)execution->state;
    if (result->state == EXECUTION_NO_MEMORY &&
        (rows->has_pressure || steps_bytes(true) > rows->options->most_resident)) {
        result->state = EXECUTION_PASSED; /* ours is refused too, or the handler takes very much */
        rows->until = 0;
    }
    if (result->violation.rule == HEAP_NO_RULE || result->state != EXECUTION_PASSED) {
        result->violation =
            result->state == EXECUTION_PASSED ? execution->warning : execution->violation;
        result->found = (struct found_row){.rule = result->violation.rule,
                                           .scenario = rows->scenario[row],
                                           .size = rows->size[row],
                                           .alignment = rows->options->alignment,
                                           .most_bytes = rows->options->limits.most_bytes,
                                           .random = rows->row_random[row],
                                           .fill = rows->fill,
                                           .size_dict = *rows->writer->size_dict};
        result->at_end = at >= list.count;
        result->step = rows->steps[MIN(at, list.count - 1)];
    }
}

/* Large tables are made once in a process, and sizes learned once by some thousands of calls. */
static bool begin(struct rows *rows)
{
    static struct step steps[ROW_STEPS];
    static struct writer *writer;
    static struct size_dict size_dict;
    if (writer == NULL)
        writer = writer_new();
    rows->steps = steps;
    rows->writer = writer;
    rows->executions = mmap(NULL, sizeof *rows->executions, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rows->writer == NULL || rows->executions == MAP_FAILED)
        return false;
    if (size_dict.count == 0)
        size_dict_learn(&size_dict, rows->handler, false,
                        clock_now() + (uint64_t)(rows->options->seconds * 1e9));
    rows->writer->size_dict = &size_dict;
    return true;
}

/* Of processor time: how far it comes does not depend on what else the machine does. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void rows_run(PyDataMem_Handler *handler, const struct rows_options *options,
              struct rows_result *result)
{
    struct rows own = {.options = options, .handler = handler, .random = options->random};
    struct rows *rows = &own;
    *result = (struct rows_result){.state = EXECUTION_NO_MEMORY};
    coverage_allow(options->coverage, &options->limits, most_of_row(options));
    if (begin(rows))
        result->state = EXECUTION_PASSED;
    double begun = seconds_used();
    rows->until = clock_now() + (uint64_t)(options->longest * 1e9);
    while (result->state == EXECUTION_PASSED && rows->cost < options->cost &&
           (result->rows == 0 ||
            (clock_now() < rows->until &&
             (result->cost < options->least_cost || seconds_used() - begun < options->seconds)))) {
        write_list(rows);
        execute_list(rows, result);
        /* A list that is run at once is never cut off. */
        if (rows->threads > 1 || clock_now() < rows->until)
            result->cost = rows->cost;
    }
    options->coverage->counts.calls += result->calls;
    if (rows->executions != MAP_FAILED)
        munmap(rows->executions, sizeof *rows->executions);
}
