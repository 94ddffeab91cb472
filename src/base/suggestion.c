/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The distance is Damerau's, without edits between letters that were swapped.
 */
#include "base/suggestion.h"

#include <stdint.h>
#include <string.h>

#include "base/text.h"

struct suggestion suggestion_for(const char *word, size_t length)
{
    return (struct suggestion){.word = word, .length = length, .distance = SIZE_MAX};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Row by row of the table of prefixes; the last three rows are kept. */
static size_t distance_between(const char *from, size_t from_length, const char *to,
                               size_t to_length)
{
    size_t rows[3][SUGGESTION_LONGEST + 1];
    for (size_t k = 0; k <= to_length; k++)
        rows[0][k] = k;
    for (size_t i = 1; i <= from_length; i++) {
        size_t *row = rows[i % 3], *above = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t k = 1; k <= to_length; k++) {
            row[k] =
                least(above[k - 1] + (from[i - 1] != to[k - 1]), least(above[k], row[k - 1]) + 1);
            if (i > 1 && k > 1 && from[i - 1] == to[k - 2] && from[i - 2] == to[k - 1])
                row[k] = least(row[k], before[k - 2] + 1);
        }
    }
    return rows[from_length % 3][to_length];
}

void suggestion_consider(struct suggestion *suggestion, const char *known)
{
    size_t length = strlen(known);
    if (suggestion->length > SUGGESTION_LONGEST || length > SUGGESTION_LONGEST)
        return;
    size_t distance = distance_between(suggestion->word, suggestion->length, known, length);
    if (distance < suggestion->distance) {
        suggestion->distance = distance;
        memcpy(suggestion->nearest, known, length + 1);
    }
}

const char *suggestion_words(const struct suggestion *suggestion, const char *prefix)
{
    enum { LETTERS_AN_EDIT = 6 };
    if (suggestion->distance > 1 + suggestion->length / LETTERS_AN_EDIT)
        return "";
    return text(" (did you mean %s%s?)", prefix, suggestion->nearest);
}
