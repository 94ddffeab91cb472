/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small help with text: formatting without ownership, and making what came from a
 * subject safe to show.
 */
#ifndef CONFORM_TEXT_H
#define CONFORM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Formats into one of sixteen buffers of this thread, used in turn: good until fifteen
 * more calls.  Cut at 511 bytes, between two letters. */
const char *text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True if `word` begins with `beginning`. */
static inline bool text_begins(const char *word, const char *beginning)
{
    return strncmp(word, beginning, strlen(beginning)) == 0;
}

/* "1 block", "2 blocks". */
const char *text_count(size_t count, const char *thing);

/* Copies `length` bytes of untrusted text so that any terminal, file format or log
 * takes them: valid UTF-8 stays, control characters and broken bytes become \xHH, and the
 * result is cut to `room` with a closing "..." where it did not fit.  Line feeds stay only
 * where `keep_lines` is not 0.  Returns `to`. */
char *text_clean(char *to, size_t room, const char *from, size_t length, int keep_lines);

/* text_clean of a string into one of text()'s buffers. */
const char *text_safe(const char *from);

/* `word` as a shell reads it back, printable and in one line: as it is where it needs no quotes,
 * else in '...' and, where it holds control characters or broken UTF-8, in $'...' (bash, zsh,
 * ksh, and POSIX since 2024).  Good until three more calls. */
const char *text_shell(const char *word);

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
