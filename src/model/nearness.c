/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What can come of what.  A block that is too short or is given out twice breaks those beside it;
 * whatever writes there breaks what realloc keeps and what calloc zeroes; all of that breaks NumPy.
 * It is never the other way about: a realloc that loses contents leaves malloc's blocks apart.  So
 * the finding that uses the least of the handler, and looks at the place where it goes wrong, is
 * the nearest one.
 *
 * A crash is further off than a check that fails: memory that was overwritten ends any process, at
 * any call.  It tells something where the property itself writes into blocks up to their ends, or
 * makes the call that crashes for its own sake, and nothing where it only watches.
 */
#include "model/nearness.h"

#include <fnmatch.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/param.h>

#include "model/attribution.h"

enum {
    BY_ITSELF,    /* one call, or the struct: nothing else can break it */
    PLACE,        /* where a block is, and how long */
    BESIDE,       /* what was written into other blocks */
    FRESH,        /* what a new block is like, and a part of one */
    RESIZED,      /* what realloc keeps */
    ONE_FUNCTION, /* the rest about one function */
    IN_USE,       /* threads, processes, NumPy */
    AT_LENGTH,    /* everything together */
    RECORDED,     /* programs, in which anything shows */
};

/* The first that matches the id; of two that are as near, the one that is further up. */
static const struct row {
    const char *glob;
    int fails, crashes;
} rows[] = {
    {"abi.ctx-passed", AT_LENGTH, AT_LENGTH},
    {"abi.*", BY_ITSELF, AT_LENGTH},
    {"env.never-exits", IN_USE, AT_LENGTH},
    {"env.*", BY_ITSELF, AT_LENGTH},
    {"free.keeps-*", BY_ITSELF, AT_LENGTH},
    {"free.null*", BY_ITSELF, AT_LENGTH},
    {"*.zero", BY_ITSELF, AT_LENGTH},
    {"calloc.zero-arguments", BY_ITSELF, AT_LENGTH},
    {"malloc.disjoint", PLACE, FRESH},
    {"malloc.one-byte", PLACE, FRESH},
    {"malloc.extent", PLACE, BESIDE},
    {"calloc.product", PLACE, BESIDE},
    {"calloc.disjoint", PLACE, FRESH},
    {"malloc.neighbours", BESIDE, FRESH},
    {"free.poison-stays-inside", BESIDE, BESIDE},
    {"free.leaves-recycled-alone", BESIDE, IN_USE},
    {"free.any-order", FRESH, RESIZED},
    {"calloc.neighbours", BESIDE, FRESH},
    {"calloc.overflow", FRESH, AT_LENGTH},
    {"*.alignment", FRESH, AT_LENGTH},
    {"calloc.zeroed", FRESH, RESIZED},
    {"realloc.long-run", AT_LENGTH, AT_LENGTH},
    {"malloc.lasts", AT_LENGTH, AT_LENGTH},
    {"malloc.recovers", ONE_FUNCTION, IN_USE},
    {"realloc.keeps-contents", RESIZED, RESIZED},
    {"realloc.same-size", RESIZED, RESIZED},
    {"realloc.neighbours", RESIZED, RESIZED},
    {"realloc.failure-keeps-block", RESIZED, RESIZED},
    {"realloc.grown-part-usable", FRESH, RESIZED},
    {"free.in-another-thread", ONE_FUNCTION, IN_USE},
    {"realloc.in-another-thread", IN_USE, IN_USE},
    {"realloc.without-gil", IN_USE, IN_USE},
    {"realloc.retry-after-failure", ONE_FUNCTION, ONE_FUNCTION},
    {"realloc.*", RESIZED, ONE_FUNCTION},
    {"malloc.*", ONE_FUNCTION, IN_USE},
    {"calloc.*", ONE_FUNCTION, IN_USE},
    {"free.*", ONE_FUNCTION, IN_USE},
    {"threads.*", IN_USE, IN_USE},
    {"process.*", IN_USE, AT_LENGTH},
    {"exhaustion.*", IN_USE, AT_LENGTH},
    {"numpy.*", IN_USE, AT_LENGTH},
    {"owndata.*", AT_LENGTH, AT_LENGTH},
    {"resources.*", AT_LENGTH, AT_LENGTH},
    {"*", RECORDED, RECORDED},
};

/* Whether it ended in a call of the kind that it is about. */
static bool ended_in_its_own(const char *id, const struct record *record)
{
    const struct attribution *kind = attribution_for(&record->suspects[ENDED_IN]);
    return kind != NULL && (strcmp(kind->owner, id) == 0 ||
                            (kind->second != NULL && strcmp(kind->second, id) == 0));
}

/* Whether bytes were not what was written, or there was no block, and no control says that this is
 * so only with what the property is about. */
static bool came_of_memory(const struct record *record)
{
    const struct call *wrong = &record->suspects[RETURNED_WRONG];
    return record->controlled == 0 && (record->overwritten != 0 || (wrong->function != OUTSIDE &&
                                                                    !attribution_is_absurd(wrong)));
}

/* Whether the property is of that group. */
static bool is_of(const char *group, const char *id)
{
    size_t length = strlen(group);
    return strncmp(id, group, length) == 0 && id[length] == '.';
}

static int level_of_failure(const struct row *row, const char *id, const struct record *record)
{
    if (row->fails == BY_ITSELF && came_of_memory(record))
        return AT_LENGTH; /* which nothing is by itself */
    if (is_of("malloc", id) && row->fails <= ONE_FUNCTION && record->overwritten == 0 &&
        !came_of_memory(record))
        return MIN(row->fails, BESIDE); /* what it returned is wrong, before anybody uses it */
    return row->fails;
}

/* Whether it ended inside the function that it is about, and a control says that this is so only
 * with what it is about. */
static bool ended_behind_its_control(const char *id, const struct record *record)
{
    static const char *const groups[] = {"", "malloc", "calloc", "realloc", "free"};
    enum function in = record->suspects[ENDED_IN].function;
    return record->controlled != 0 && in != OUTSIDE && is_of(groups[in], id);
}

static int level_of_end(const struct row *row, const char *id, const struct record *record)
{
    if (record->signal_elsewhere != 0 && !is_of("threads", id))
        return AT_LENGTH; /* the first thread does the same, and it is no matter */
    if (row->fails == BY_ITSELF && ended_in_its_own(id, record))
        return BY_ITSELF;
    if (row->fails <= BESIDE && ended_behind_its_control(id, record))
        return BESIDE;
    if (row->crashes > BY_ITSELF && record->suspects[ENDED_IN].function == OUTSIDE)
        return row->crashes - 1; /* it wrote into a block, which is not all there */
    return row->crashes;
}

int nearness(const char *id, const struct record *record)
{
    enum { ROWS = sizeof rows / sizeof *rows };
    bool fails = record->verdict == FAIL || record->verdict == WARN;
    size_t i = 0;
    while (i < ROWS - 1 && fnmatch(rows[i].glob, id, 0) != 0)
        i++;
    int level = fails ? level_of_failure(&rows[i], id, record) : level_of_end(&rows[i], id, record);
    return (2 * level + !fails) * ROWS + (int)i;
}
