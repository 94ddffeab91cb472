/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short histories, each of which ends with nothing live, so that the next begins with what those
 * before it left in the handler.
 */
#include "search/here.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "search/behaviours.h"

enum { LONGEST = 1024, MOST_BYTES = 32 << 20, MOST_WAITING = 4 };

struct here {
    const struct here_options *options;
    PyDataMem_Handler *handler;
    uint64_t until;
    struct writer *writer;
    struct palette palette;
    struct executions *executions;
    struct step steps[LONGEST];
};

/* The frees of what it leaves are a part of it. */
static size_t write_history(struct here *here, uint64_t number)
{
    struct writer *writer = here->writer;
    const struct behaviour_options may = {.threads = here->options->threads, .is_brief = true};
    writer_begin(writer, here->steps, LONGEST - 1);
    writer->random = random_for(random_mix(here->options->seed) + number, "here");
    behaviours_write(writer, &may);
    writer->room = LONGEST;
    if (writer->live_count > 0)
        write_free_crowd(writer, 0, writer->slots);
    return writer->count;
}

static enum execution_state try_history(struct here *here, size_t count, struct here_result *result)
{
    struct history history = {.steps = here->steps, .count = count};
    struct execute_options options = {
        .rules = {.alignment = here->options->alignment, .watched = here->handler},
        .may_refuse = true, /* what other histories left counts */
        .until = here->until,
        .slots = here->writer->slots,
        .most_bytes = MOST_BYTES};
    struct execution *execution = &here->executions->side[0];
    memset(execution, 0, sizeof *execution);
    execute(&history, here->handler, &options, here->executions);
    result->histories++;
    result->calls += execution->calls;
    result->violation = execution->violation;
    if (execution->at < count)
        result->step = here->steps[execution->at];
    return (enum execution_state)execution->state;
}

static bool begin(struct here *here)
{
    here->writer = writer_new();
    here->executions = calloc(1, sizeof *here->executions);
    if (here->writer == NULL || here->executions == NULL)
        return false;
    palette_learn(&here->palette, here->handler, false, here->until);
    here->writer->palette = &here->palette;
    here->writer->most_bytes = MOST_BYTES;
    return true;
}

/* Of processor time: how far it comes does not depend on what else the machine does. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void here_search(PyDataMem_Handler *handler, const struct here_options *options,
                 struct here_result *result)
{
    struct here *here = calloc(1, sizeof *here);
    size_t steps = 0;
    double until = seconds_used() + options->seconds;
    *result = (struct here_result){.state = EXECUTION_NO_MEMORY};
    if (here != NULL) {
        here->options = options;
        here->handler = handler;
        here->until = clock_now() + (uint64_t)(MOST_WAITING * options->seconds * 1e9);
        result->state = begin(here) ? EXECUTION_PASSED : EXECUTION_NO_MEMORY;
    }
    for (uint64_t i = 0; result->state == EXECUTION_PASSED && steps < options->most_steps &&
                         clock_now() < here->until && seconds_used() < until;
         i++) {
        size_t count = write_history(here, i);
        steps += count;
        result->state = try_history(here, count, result);
    }
    if (here != NULL) {
        free(here->writer);
        free(here->executions);
    }
    free(here);
}
