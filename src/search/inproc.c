/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Short histories, each of which ends with nothing live, so that the next begins with what those
 * before it left in the handler.
 */
#include "search/inproc.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "search/generators.h"

enum { LONGEST = 1024, MOST_BYTES = 32 << 20, MOST_WAITING = 4 };

struct inproc {
    const struct inproc_options *options;
    PyDataMem_Handler *handler;
    uint64_t until;
    struct writer *writer;
    struct size_dict size_dict;
    struct executions *executions;
    struct step steps[LONGEST];
};

/* The frees of what it leaves are a part of it. */
static size_t write_history(struct inproc *inproc, uint64_t number)
{
    struct writer *writer = inproc->writer;
    const struct behaviour_options may = {.threads = inproc->options->threads, .is_brief = true};
    writer_begin(writer, inproc->steps, LONGEST - 1);
    writer->random = random_for(random_mix(inproc->options->seed) + number, "here");
    behaviours_write(writer, &may);
    writer->room = LONGEST;
    if (writer->live_count > 0)
        write_free_batch(writer, 0, writer->slots);
    return writer->count;
}

static enum execution_state try_history(struct inproc *inproc, size_t count,
                                        struct inproc_result *result)
{
    struct call_list list = {.at = inproc->steps, .count = count};
    struct execute_options options = {
        .rules = {.alignment = inproc->options->alignment, .watched = inproc->handler},
        .may_refuse = true, /* what other histories left counts */
        .until = inproc->until,
        .slots = inproc->writer->slots,
        .most_bytes = MOST_BYTES};
    struct execution *execution = &inproc->executions->side[0];
    memset(execution, 0, sizeof *execution);
    execute(&list, inproc->handler, &options, inproc->executions);
    result->histories++;
    result->calls += execution->calls;
    result->violation = execution->violation;
    if (execution->at < count)
        result->step = inproc->steps[execution->at];
    return (enum execution_state)execution->state;
}

static bool begin(struct inproc *inproc)
{
    inproc->writer = writer_new();
    inproc->executions = calloc(1, sizeof *inproc->executions);
    if (inproc->writer == NULL || inproc->executions == NULL)
        return false;
    size_dict_learn(&inproc->size_dict, inproc->handler, false, inproc->until);
    inproc->writer->size_dict = &inproc->size_dict;
    inproc->writer->most_bytes = MOST_BYTES;
    return true;
}

/* Of processor time: how far it comes does not depend on what else the machine does. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void inproc_search(PyDataMem_Handler *handler, const struct inproc_options *options,
                   struct inproc_result *result)
{
    struct inproc *inproc = calloc(1, sizeof *inproc);
    size_t steps = 0;
    double until = seconds_used() + options->seconds;
    *result = (struct inproc_result){.state = EXECUTION_NO_MEMORY};
    if (inproc != NULL) {
        inproc->options = options;
        inproc->handler = handler;
        inproc->until = clock_now() + (uint64_t)(MOST_WAITING * options->seconds * 1e9);
        result->state = begin(inproc) ? EXECUTION_PASSED : EXECUTION_NO_MEMORY;
    }
    for (uint64_t i = 0; result->state == EXECUTION_PASSED && steps < options->most_steps &&
                         clock_now() < inproc->until && seconds_used() < until;
         i++) {
        size_t count = write_history(inproc, i);
        steps += count;
        result->state = try_history(inproc, count, result);
    }
    if (inproc != NULL) {
        free(inproc->writer);
        free(inproc->executions);
    }
    free(inproc);
}
