/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast the search makes calls: histories of small blocks on libc's malloc, judged and unjudged,
 * beside a bare loop that does the same with malloc and free alone.
 *
 * All three take turns, and the processor time of each history is the least of a few: what counts
 * are the ratios.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/param.h>
#include <time.h>

#include "search/execute.h"
#include "search/generators.h"
#include "search/scenario.h"
#include "subject/subject.h"

enum { HISTORIES = 24, STEPS = 1 << 14, TURNS = 7, MOST_BYTES = 64 << 20 };

enum way { BARE, UNJUDGED, JUDGED, WAYS };
static const char *const names[WAYS] = {"malloc and free alone", "unjudged", "judged"};

static struct step steps[STEPS];
static struct executions executions;
static struct size_dict size_dict;
static void *blocks[MOST_SLOTS];

/* Of the processor. */
static double seconds_used(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *make(const struct step *step, void *before)
{
    if (step->kind == STEP_CALLOC || step->kind == STEP_CALLOC_FREE)
        return calloc(step->first, step->second);
    if (step->kind == STEP_REALLOC)
        return realloc(before, step->first);
    return before == NULL ? malloc(step->first) : before;
}

static uint64_t do_bare(size_t count, uint32_t slots)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        bool is_pair = step->kind == STEP_MALLOC_FREE || step->kind == STEP_CALLOC_FREE;
        for (uint32_t k = 0; k < step->times; k++) {
            void **block = &blocks[step->block + (is_pair ? 0 : k)];
            if (step->kind <= STEP_CALLOC_FREE && step->kind != STEP_FREE) {
                *block = make(step, *block);
                calls++;
            }
            if ((step->kind == STEP_FREE || is_pair) && *block != NULL) {
                free(*block);
                *block = NULL;
                calls++;
            }
        }
    }
    for (uint32_t i = 0; i < slots; i++) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return calls;
}

/* What is left of one is freed in the same way each time. */
static uint64_t do_history(enum way way, size_t count, uint32_t slots)
{
    if (way == BARE)
        return do_bare(count, slots);
    PyDataMem_Handler *handler = plain_handler(NULL);
    struct call_list list = {.at = steps, .count = count};
    struct execute_options options = {.rules = {.watched = handler, .unjudged = way == UNJUDGED},
                                      .slots = slots,
                                      .most_bytes = MOST_BYTES,
                                      .until = UINT64_MAX};
    executions = (struct executions){0};
    execute(&list, handler, &options, &executions);
    return executions.side[0].calls;
}

/* Calls of each way in a second of processor time. */
static bool measure(double *rates)
{
    static const size_t sizes[] = {8, 16, 24, 32, 40, 48, 64, 80, 96, 100, 128};
    const struct scenario_limits limits = {.most_bytes = MOST_BYTES, .most_steps = STEPS};
    double seconds[WAYS] = {0}, calls[WAYS] = {0};
    struct writer *writer = writer_new();
    if (writer == NULL)
        return false;
    writer->size_dict = &size_dict;
    writer->most_bytes = MOST_BYTES;
    for (unsigned i = 0; i < HISTORIES; i++) {
        double least[WAYS];
        writer_begin(writer, steps, STEPS - 1);
        writer->random = random_for(i, "bench");
        writer->sizes = sizes;
        writer->size_count = sizeof sizes / sizeof *sizes;
        scenarios_write(&limits, writer);
        writer->room = STEPS;
        write_free_batch(writer, 0, writer->slots);
        for (int turn = 0; turn < TURNS; turn++) {
            for (enum way way = BARE; way < WAYS; way++) {
                double begun = seconds_used();
                uint64_t made = do_history(way, writer->count, writer->slots);
                double took = seconds_used() - begun;
                least[way] = turn == 0 ? took : MIN(least[way], took);
                calls[way] += turn == 0 ? (double)made : 0;
            }
        }
        for (enum way way = BARE; way < WAYS; way++)
            seconds[way] += least[way];
    }
    free(writer);
    for (enum way way = BARE; way < WAYS; way++)
        rates[way] = calls[way] / seconds[way];
    return true;
}

int main(void)
{
    double rates[WAYS];
    if (!measure(rates))
        return EXIT_FAILURE;
    for (enum way way = BARE; way < WAYS; way++)
        printf("%-24s %5.2f million calls a second, %.2f of the first\n", names[way],
               rates[way] / 1e6, rates[way] / rates[BARE]);
    return EXIT_SUCCESS;
}
