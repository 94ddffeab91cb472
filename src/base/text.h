/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formatting into rotating buffers, escaping of untrusted text, and "did you mean".
 */
#ifndef CONFORM_TEXT_H
#define CONFORM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Formats into one of sixteen buffers of this thread, used in turn: valid until fifteen more calls.
 * Cut at 511 bytes, between two characters. */
const char *fmt(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* True if `word` begins with `beginning`. */
static inline bool begins_with(const char *word, const char *beginning)
{
    return strncmp(word, beginning, strlen(beginning)) == 0;
}

/* "1 block", "2 blocks". */
const char *plural(size_t count, const char *thing);

/* Copies `length` bytes of untrusted text for a terminal, file or log, and returns `to`.  Valid
 * UTF-8 stays, control characters and invalid bytes become \xHH, and "..." ends what was cut to
 * `room`. Line feeds stay if `keep_lines` is not 0. */
char *sanitize(char *to, size_t room, const char *from, size_t length, int keep_lines);

/* sanitize of a string into one of fmt()'s buffers. */
const char *escape(const char *from);

/* Quotes `word` for a shell in one printable line: as it is, in '...', or with control characters
 * or invalid UTF-8 in $'...' (bash, zsh, ksh, POSIX since 2024).  Valid until three more calls. */
const char *shell_quote(const char *word);

/* The longest word with suggestions, in bytes. */
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

/* Returns " (did you mean PREFIXnearest?)", or "" if no word is within one edit and one more for
 * each six bytes.  An edit inserts, deletes or replaces a letter or swaps two.  Valid as fmt()'s.
 */
const char *suggestion_words(const struct suggestion *suggestion, const char *prefix);

#endif
