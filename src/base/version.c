/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranges of versions.
 */
#include "base/version.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NUMBERS = 8, MOST_DIGITS = 9 };

/* What is not said is 0. */
struct release {
    unsigned long number[MOST_NUMBERS];
    size_t count;
};

static const char digits[] = "0123456789", blanks[] = " \t";

/* Behind the numbers that it begins with, which may be none. */
static const char *read_release(const char *from, struct release *release)
{
    *release = (struct release){.count = 0};
    while (release->count < MOST_NUMBERS) {
        const char *number = release->count > 0 && *from == '.' ? from + 1 : from;
        size_t length = strspn(number, digits);
        if (length == 0 || length > MOST_DIGITS || (release->count > 0 && number == from))
            break;
        release->number[release->count++] = strtoul(number, NULL, 10);
        from = number + length;
    }
    return from;
}

/* Less than, equal to or greater than 0, by the first `count` numbers. */
static int compare(const struct release *one, const struct release *other, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (one->number[i] != other->number[i])
            return one->number[i] < other->number[i] ? -1 : 1;
    }
    return 0;
}

enum relation { AT_LEAST, AT_MOST, EQUAL, NOT_EQUAL, COMPATIBLE, GREATER, LESS };

struct clause {
    enum relation relation;
    struct release release;
    bool any_behind; /* ".*" */
};

/* Behind the clause and its comma, or at the end; NULL where it is no clause. */
static const char *read_clause(const char *from, struct clause *clause)
{
    /* those of two letters first, of which some begin as one of one */
    static const char *const relations[] = {
        [AT_LEAST] = ">=",   [AT_MOST] = "<=", [EQUAL] = "==", [NOT_EQUAL] = "!=",
        [COMPATIBLE] = "~=", [GREATER] = ">",  [LESS] = "<"};
    enum { RELATIONS = sizeof relations / sizeof *relations };
    int i = 0;
    from += strspn(from, blanks);
    while (i < RELATIONS && strncmp(from, relations[i], strlen(relations[i])) != 0)
        i++;
    if (i == RELATIONS)
        return NULL;
    clause->relation = (enum relation)i;
    from += strlen(relations[i]);
    from = read_release(from + strspn(from, blanks), &clause->release);
    clause->any_behind = strncmp(from, ".*", 2) == 0;
    from += clause->any_behind ? 2 : 0;
    from += strspn(from, blanks);
    bool may_have_any = clause->relation == EQUAL || clause->relation == NOT_EQUAL;
    size_t least = clause->relation == COMPATIBLE ? 2 : 1;
    if (clause->release.count < least || (clause->any_behind && !may_have_any))
        return NULL;
    if (*from == ',')
        return from[1 + strspn(from + 1, blanks)] != '\0' ? from + 1 : NULL;
    return *from == '\0' ? from : NULL;
}

bool version_range_is_sound(const char *range)
{
    struct clause clause;
    do
        range = read_clause(range, &clause);
    while (range != NULL && *range != '\0');
    return range != NULL;
}

static bool holds(const struct clause *clause, const struct release *version)
{
    size_t count = clause->any_behind ? clause->release.count : MOST_NUMBERS;
    int order = compare(version, &clause->release, count);
    switch (clause->relation) {
    case AT_LEAST:
        return order >= 0;
    case AT_MOST:
        return order <= 0;
    case EQUAL:
        return order == 0;
    case NOT_EQUAL:
        return order != 0;
    case COMPATIBLE:
        return order >= 0 && compare(version, &clause->release, clause->release.count - 1) == 0;
    case GREATER:
        return order > 0;
    case LESS:
        break;
    }
    return order < 0;
}

bool version_is_in(const char *version, const char *range)
{
    struct release release;
    struct clause clause;
    read_release(version, &release);
    bool is_in = release.count > 0;
    while (is_in && (range = read_clause(range, &clause)) != NULL) {
        is_in = holds(&clause, &release);
        if (*range == '\0')
            break;
    }
    return is_in && range != NULL;
}
