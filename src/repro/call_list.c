/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What has addresses in the log has numbers in a list.
 */
#include "repro/call_log.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/interval_map.h"

/* ---- of a log ------------------------------------------------------------------------------ */

enum { ADDED = 8 }; /* room for steps that are put before it */

static void append(struct call_list *list, struct step step)
{
    list->at[list->count++] = step;
}

/* Appends a call with its block filled in, if that is known.  `live` has the number of the block
 * that is at an address. */
static void append_logged(struct call_list *list, struct interval_map *live,
                          const struct logged *call, uint32_t *blocks)
{
    struct step step = call->step;
    struct interval at = {.value = 0};
    uintptr_t given = (uintptr_t)step.pointer, result = (uintptr_t)call->result;
    step.pointer = NULL;
    bool is_new = given == 0 && step.kind != STEP_FREE && step.kind <= STEP_CALLOC_FREE;
    if (step.kind == STEP_FREE && given == 0)
        step.kind = STEP_FREE_NULL;
    if (given != 0 && !interval_map_find(live, given, &at))
        return;
    step.block = is_new ? (*blocks)++ : (uint32_t)at.value;
    if (given != 0 && call->has_word)
        append(list, (struct step){.kind = STEP_FILL,
                                   .thread = step.thread,
                                   .block = step.block,
                                   .times = 1,
                                   .first = call->word});
    append(list, step);
    if (given != 0 && (step.kind == STEP_FREE || result != 0))
        interval_map_remove(live, given, NULL);
    if (result == 0)
        return;
    interval_map_remove(live, result, NULL);
    interval_map_insert(live, (struct interval){result, 1, step.block}, NULL);
}

static pid_t last_process(const struct call_log *log, size_t count, enum list_of which)
{
    if (which == OF_FORKED_PROCESS) {
        while (count > 0 && log->calls[count - 1].process == log->process)
            count--;
    }
    return count > 0 && which != OF_FIRST_PROCESS ? log->calls[count - 1].process : log->process;
}

struct call_list call_list_of(const struct call_log *log, enum list_of which)
{
    size_t count = MIN(log->count, (size_t)MOST_STEPS);
    struct call_list list = {.at = calloc(2 * count + ADDED, sizeof *list.at)};
    struct interval_map *live = interval_map_new();
    uint32_t blocks = 0;
    if (list.at == NULL || live == NULL)
        count = 0;
    pid_t first = log->process;
    pid_t last = last_process(log, count, which);
    bool last_begun = false;
    for (size_t i = 0; i < count; i++) {
        pid_t process = log->calls[i].process;
        if (process == last && !last_begun && last != first && which == OF_FORKED_PROCESS)
            append(&list, (struct step){.kind = STEP_FORK, .times = 1, .first = 1});
        last_begun = last_begun || process == last;
        if ((process == last || (process == first && !last_begun)) && blocks < MOST_BLOCKS)
            append_logged(&list, live, &log->calls[i], &blocks);
    }
    interval_map_free(live);
    return list;
}

struct call_list call_list_copy(const struct call_list *list)
{
    struct call_list copy = *list;
    copy.at = calloc(2 * list->count + ADDED, sizeof *copy.at); /* call_list_close adds to it */
    copy.count = copy.at != NULL ? list->count : 0;
    if (copy.at != NULL)
        memcpy(copy.at, list->at, list->count * sizeof *copy.at);
    return copy;
}

void call_list_free(struct call_list *list)
{
    free(list->at);
    *list = (struct call_list){.at = NULL};
}

void call_list_cut(struct call_list *list, size_t from, size_t length)
{
    memmove(list->at + from, list->at + from + length,
            (list->count - from - length) * sizeof *list->at);
    list->count -= length;
}

bool step_change_size(struct step *step, uint64_t from, uint64_t to)
{
    bool first = step->kind <= STEP_FREE_NULL && step->first == from;
    bool second = step_called(step) == STEP_CALLOC && step->second == from;
    step->first = first ? to : step->first;
    step->second = second ? to : step->second;
    return first || second;
}

/* ---- what is live -------------------------------------------------------------------------- */

size_t call_list_blocks(const struct call_list *list)
{
    size_t blocks = 1;
    for (size_t i = 0; i < list->count; i++)
        blocks = MAX(blocks, list->at[i].block + (size_t)list->at[i].times);
    return blocks;
}

/* Whether the step wants the block to be there. */
static bool wants(const struct step *step)
{
    return step->kind == STEP_FREE || step->kind == STEP_FILL;
}

/* The size of each block that is live at the end and 1, which calloc'ed memory holds; NULL where
 * there is none.  Steps that want a block that is not live are made to be none. */
static size_t *follow(struct call_list *list)
{
    size_t *live = calloc(call_list_blocks(list), sizeof *live), kept = 0;
    for (size_t i = 0; live != NULL && i < list->count; i++) {
        const struct step *step = &list->at[i];
        if (wants(step) && live[step->block] == 0)
            continue;
        if (step_makes(step))
            live[step->block] = 1 + (size_t)step_size(step);
        else if (step->kind == STEP_FREE)
            live[step->block] = 0;
        list->at[kept++] = *step;
    }
    if (live != NULL)
        list->count = kept;
    return live;
}

void call_list_close(struct call_list *list)
{
    size_t blocks = call_list_blocks(list), *live = follow(list);
    for (size_t i = 0; live != NULL && i < blocks; i++) {
        if (live[i] > 1)
            append(list,
                   (struct step){
                       .kind = STEP_FREE, .block = (uint32_t)i, .times = 1, .first = live[i] - 1});
    }
    free(live);
}

/* ---- to be read ---------------------------------------------------------------------------- */

static void count_from_zero(struct call_list *list)
{
    uint32_t *number = calloc(call_list_blocks(list), sizeof *number), next = 0; /* and 1 */
    for (size_t i = 0; number != NULL && i < list->count; i++) {
        struct step *step = &list->at[i];
        if (!step_makes(step) && !wants(step) && !step_is_pair(step))
            continue;
        if (number[step->block] == 0)
            number[step->block] = ++next;
        step->block = number[step->block] - 1;
    }
    free(number);
}

static bool is_alike(const struct step *a, const struct step *b)
{
    return a->kind == b->kind && a->error == b->error && a->thread == b->thread &&
           a->first == b->first && a->second == b->second;
}

/* A block that is made, and freed at once with its size. */
static bool are_pair(const struct step *make, const struct step *end)
{
    return (make->kind == STEP_MALLOC || make->kind == STEP_CALLOC) && end->kind == STEP_FREE &&
           make->block == end->block && end->first == step_size(make) &&
           make->thread == end->thread && make->error == 0 && end->error == 0 && make->times == 1 &&
           end->times == 1;
}

static void join_pairs(struct call_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct step step = list->at[i];
        if (i + 1 < list->count && are_pair(&step, &list->at[i + 1])) {
            step.kind = step.kind == STEP_MALLOC ? STEP_MALLOC_FREE : STEP_CALLOC_FREE;
            i++;
        }
        struct step *last = kept > 0 ? &list->at[kept - 1] : NULL;
        if (step_is_pair(&step) && last != NULL && is_alike(last, &step))
            last->times += step.times;
        else
            list->at[kept++] = step;
    }
    list->count = kept;
}

/* Steps of one block after the other. */
static void join_rows(struct call_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct step step = list->at[i];
        struct step *last = kept > 0 ? &list->at[kept - 1] : NULL;
        bool is_of_block = step_makes(&step) || wants(&step);
        if (last != NULL && is_alike(last, &step) &&
            (step.kind == STEP_FREE_NULL ||
             (is_of_block && last->block + last->times == step.block)))
            last->times += step.times;
        else
            list->at[kept++] = step;
    }
    list->count = kept;
}

static bool is_of_several(const struct step *step)
{
    return step->times > 1 && (step_makes(step) || wants(step));
}

void call_list_take_apart(struct call_list *list)
{
    size_t count = 0, at = 0;
    for (size_t i = 0; i < list->count; i++)
        count += is_of_several(&list->at[i]) ? list->at[i].times : 1;
    if (count == list->count || count > MOST_STEPS)
        return;
    struct step *steps = calloc(2 * count + ADDED, sizeof *steps);
    for (size_t i = 0; steps != NULL && i < list->count; i++) {
        struct step step = list->at[i];
        uint32_t times = is_of_several(&step) ? step.times : 1;
        if (is_of_several(&step))
            step.times = 1;
        for (uint32_t k = 0; k < times; k++, step.block++)
            steps[at++] = step;
    }
    if (steps == NULL)
        return;
    free(list->at);
    list->at = steps;
    list->count = count;
}

void call_list_tidy(struct call_list *list)
{
    call_list_take_apart(list);
    free(follow(list));
    join_pairs(list);
    count_from_zero(list);
    join_rows(list);
}
