/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cutting, joining and repeating histories.
 */
#include "search/generators.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "repro/call_log.h"

enum { LONGEST_KEPT = 20000 };

void corpus_add(struct corpus *corpus, const struct step *steps, size_t count,
                struct random *random)
{
    count = MIN(count, (size_t)LONGEST_KEPT);
    struct step *copy = malloc(count * sizeof *copy + 1);
    if (copy == NULL)
        return;
    memcpy(copy, steps, count * sizeof *copy);
    size_t at = corpus->count < MOST_KEPT ? corpus->count++ : random_below(random, MOST_KEPT);
    struct kept *kept = &corpus->kept[at];
    free(kept->steps);
    kept->steps = copy;
    kept->count = count;
}

/* ---- mutations ------------------------------------------------------------------------------- */

struct mutation {
    const struct corpus *corpus;
    const struct size_dict *size_dict;
    struct random *random;
    struct call_list list;
    size_t room;
};

static void append(struct mutation *m, const struct step *steps, size_t count, uint32_t by)
{
    count = MIN(count, m->room - m->list.count);
    for (size_t i = 0; i < count; i++) {
        struct step step = steps[i];
        if (m->list.count > 0 && (step.kind == STEP_PAUSE || step.kind == STEP_FORK))
            continue; /* they take their time, and one of them will do */
        if (step.block + by < MOST_SLOTS)
            step.block += by;
        m->list.at[m->list.count++] = step;
    }
}

/* What makes new blocks of those of a stretch, or 0 for the same ones. */
static uint32_t other_blocks(struct mutation *m)
{
    uint32_t most = 0;
    for (size_t i = 0; i < m->list.count; i++)
        most = MAX(most, m->list.at[i].block + 1);
    return random_below(m->random, 2) == 0 ? most : 0;
}

/* A stretch of what there is: where it begins, and how long it is, 1 and more. */
static size_t stretch(struct mutation *m, size_t *length)
{
    size_t from = random_below(m->random, m->list.count);
    size_t most = (size_t)1 << random_below(m->random, 14);
    *length = 1 + random_below(m->random, MIN(most, m->list.count - from));
    return from;
}

static void cut(struct mutation *m)
{
    size_t length, from = stretch(m, &length);
    if (length < m->list.count)
        call_list_cut(&m->list, from, length);
}

/* Again and again at the end, with the same blocks or with new ones. */
static void repeat(struct mutation *m)
{
    size_t length, from = stretch(m, &length);
    size_t times = (size_t)1 << random_below(m->random, 8);
    uint32_t by = other_blocks(m);
    for (size_t i = 1; i <= times && m->list.count + length <= m->room; i++)
        append(m, m->list.at + from, length, (uint32_t)i * by);
}

static void splice(struct mutation *m)
{
    const struct kept *other = &m->corpus->kept[random_below(m->random, m->corpus->count)];
    append(m, other->steps, other->count, other_blocks(m));
}

/* One size, everywhere. */
static void change_size(struct mutation *m)
{
    const struct step *step = &m->list.at[random_below(m->random, m->list.count)];
    if (!step_makes(step) || step->first > PTRDIFF_MAX / 4)
        return;
    uint64_t size = step->first;
    uint64_t other = size_dict_neighbour(m->size_dict, m->random, (size_t)size);
    for (size_t i = 0; i < m->list.count; i++)
        step_change_size(&m->list.at[i], size, other);
}

static void change_one(struct mutation *m)
{
    struct step *step = &m->list.at[random_below(m->random, m->list.count)];
    if (step_makes(step) && step->first <= PTRDIFF_MAX / 4)
        step->first = size_dict_neighbour(m->size_dict, m->random, (size_t)step->first);
    else if (step->kind == STEP_FREE)
        *step = (struct step){.kind = STEP_REALLOC,
                              .block = step->block,
                              .times = 1,
                              .first = 1 + step->block % 4096};
}

size_t corpus_mutate(const struct corpus *corpus, const struct size_dict *size_dict,
                     struct random *random, struct step *steps, size_t room)
{
    static void (*const mutations[])(struct mutation *) = {
        cut, cut, repeat, repeat, splice, change_size, change_one, change_one};
    struct mutation m = {corpus, size_dict, random, {.at = steps}, room};
    const struct kept *kept = &corpus->kept[random_below(random, corpus->count)];
    append(&m, kept->steps, kept->count, 0);
    for (size_t i = 0, times = 1 + random_below(random, 6); i < times && m.list.count > 0; i++)
        mutations[random_below(random, sizeof mutations / sizeof *mutations)](&m);
    return m.list.count;
}
