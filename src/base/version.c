/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/version.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { NUMBERS = 8, MOST_DIGITS = 9 };
static const char digits[] = "0123456789", blanks[] = " \t";

/* Reads numbers with dots in between, moves *from after them, and returns how many there are; the
 * rest of `numbers` is 0. */
static size_t read_numbers(const char **from, unsigned long numbers[NUMBERS])
{
    size_t count = 0;
    const char *at = *from;
    memset(numbers, 0, NUMBERS * sizeof *numbers);
    while (count < NUMBERS && isdigit((unsigned char)*at) && strspn(at, digits) <= MOST_DIGITS) {
        numbers[count++] = strtoul(at, NULL, 10);
        at += strspn(at, digits);
        *from = at;
        at += *at == '.';
    }
    return count;
}

static int compare(const unsigned long *one, const unsigned long *other, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (one[i] != other[i])
            return one[i] < other[i] ? -1 : 1;
    }
    return 0;
}

/* The orders of version and number for which an operator holds. */
static const struct operator
{
    const char *name;
    bool less, equal, greater;
}
operators[] = {
    {">=", false, true, true}, {"<=", true, true, false}, {"==", false, true, false},
    {"!=", true, false, true}, {"~=", false, true, true}, {">", false, false, true},
    {"<", true, false, false},
};

int version_in_range(const char *version, const char *range)
{
    unsigned long is[NUMBERS], bound[NUMBERS];
    bool holds = read_numbers(&version, is) > 0;
    for (;; range++) {
        const struct operator* op = operators, *end = op + sizeof operators / sizeof *op;
        range += strspn(range, blanks);
        while (op < end && !begins_with(range, op->name))
            op++;
        if (op == end)
            return -1;
        bool compatible = op->name[0] == '~', has_any = strchr("=!", op->name[0]) != NULL;
        range += strlen(op->name);
        range += strspn(range, blanks);
        size_t count = read_numbers(&range, bound);
        bool any = begins_with(range, ".*");
        range += any ? 2 : 0;
        range += strspn(range, blanks);
        if (count < (compatible ? 2 : 1) || (any && !has_any))
            return -1;
        int order = compare(is, bound, any ? count : NUMBERS);
        holds = holds &&
                (order < 0    ? op->less
                 : order == 0 ? op->equal
                              : op->greater) &&
                (!compatible || compare(is, bound, count - 1) == 0);
        if (*range != ',')
            return *range == '\0' ? holds : -1;
    }
}
