/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a user may have meant by a word that is not known.
 */
#ifndef CONFORM_SUGGESTION_H
#define CONFORM_SUGGESTION_H

#include <stddef.h>

/* In bytes, of a word that has suggestions and is one. */
enum { SUGGESTION_LONGEST = 63 };

/* The nearest of the words that were considered so far. */
struct suggestion {
    const char *word; /* as it was given, not owned */
    size_t length;    /* of it, in bytes */
    char nearest[SUGGESTION_LONGEST + 1];
    size_t distance; /* in edits; SIZE_MAX before any */
};

/* For the first `length` bytes of `word`. */
struct suggestion suggestion_for(const char *word, size_t length);

void suggestion_consider(struct suggestion *suggestion, const char *known);

/* " (did you mean PREFIXnearest?)", or "" where none is so near that it can be meant: one edit of
 * the word, and one more for each six of its letters.  An edit puts in a letter, leaves one out,
 * takes another, or swaps two neighbours.  Good as long as text()'s. */
const char *suggestion_words(const struct suggestion *suggestion, const char *prefix);

#endif
