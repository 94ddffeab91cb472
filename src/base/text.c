/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formatting into rotating buffers, and cleaning of untrusted bytes.
 */
#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 16, BUFFER_SIZE = 512 };

static char *next_buffer(void)
{
    static _Thread_local char buffers[BUFFERS][BUFFER_SIZE];
    static _Thread_local unsigned next;
    return buffers[next++ % BUFFERS];
}

/* How much of the `length` bytes is left when a letter that was cut at the end goes. */
static size_t without_half_a_letter(const char *words, size_t length)
{
    size_t begin = length;
    while (begin > 0 && length - begin < 3 && ((unsigned char)words[begin - 1] & 0xc0) == 0x80)
        begin--;
    if (begin == 0)
        return length;
    unsigned char lead = (unsigned char)words[begin - 1];
    size_t whole = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    return whole > length - begin + 1 && lead < 0xf8 ? begin - 1 : length;
}

const char *fmt(const char *format, ...)
{
    char *buffer = next_buffer();
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(buffer, BUFFER_SIZE, format, arguments);
    va_end(arguments);
    if (length >= BUFFER_SIZE)
        buffer[without_half_a_letter(buffer, BUFFER_SIZE - 1)] = '\0';
    return buffer;
}

const char *plural(size_t count, const char *thing)
{
    return fmt("%zu %s%s", count, thing, count == 1 ? "" : "s");
}

/* The length of the valid, printable UTF-8 sequence at `p`, or 0.  Overlong forms,
 * surrogates, values past U+10FFFF and the C1 controls are not valid here, nor are the
 * marks that turn the direction of a line and the separators that XML or a terminal
 * could take for line ends. */
static size_t printable_sequence(const unsigned char *p, size_t left)
{
    if (p[0] >= 0x20 && p[0] < 0x7f)
        return 1;
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 0;
    if (length == 0 || p[0] > 0xf4 || length > left)
        return 0;
    unsigned long value = p[0] & (0xff >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        value = value << 6 | (p[i] & 0x3f);
    }
    static const unsigned long least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
        return 0;
    if (value < 0xa0 || (value >= 0x200b && value <= 0x200f) ||
        (value >= 0x2028 && value <= 0x202e) || (value >= 0x2066 && value <= 0x2069) ||
        value == 0xfeff || (value & 0xfffe) == 0xfffe || (value >= 0xfdd0 && value <= 0xfdef))
        return 0;
    return length;
}

char *sanitize(char *to, size_t room, const char *from, size_t length, int keep_lines)
{
    static const char cut[] = "...";
    size_t used = 0, room_for_cut = 0; /* the latest place at which `cut` fits */
    for (size_t i = 0; i < length;) {
        const unsigned char *p = (const unsigned char *)from + i;
        size_t whole = *p == '\n' && keep_lines ? 1 : printable_sequence(p, length - i);
        size_t needed = whole != 0 ? whole : 4;
        if (used + needed >= room) {
            used = room_for_cut;
            if (room >= sizeof cut)
                used += (size_t)snprintf(to + used, sizeof cut, "%s", cut);
            break;
        }
        if (whole != 0)
            memcpy(to + used, p, whole);
        else
            snprintf(to + used, 5, "\\x%02x", *p);
        used += needed;
        i += whole != 0 ? whole : 1;
        if (used + sizeof cut <= room)
            room_for_cut = used;
    }
    if (room > 0)
        to[used] = '\0';
    return to;
}

const char *escape(const char *from)
{
    return sanitize(next_buffer(), BUFFER_SIZE, from, strlen(from), 0);
}

/* In '...', in which only ' is special, or in $'...'. */
static void quote(char *to, const char *word, bool plainly)
{
    to = stpcpy(to, plainly ? "'" : "$'");
    while (*word != '\0') {
        size_t length = printable_sequence((const unsigned char *)word, strlen(word));
        if (length == 0)
            to += sprintf(to, "\\%03o", (unsigned char)*word);
        else if (*word == '\'' && plainly)
            to = stpcpy(to, "'\\''");
        else if ((*word == '\'' || *word == '\\') && !plainly)
            to += sprintf(to, "\\%c", *word);
        else
            to = mempcpy(to, word, length);
        word += length != 0 ? length : 1;
    }
    strcpy(to, "'");
}

const char *shell_quote(const char *word)
{
    static const char unquoted[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789@%+=:,./-_";
    static _Thread_local char *buffers[4];
    static _Thread_local unsigned next;
    size_t length = strlen(word);
    if (length > 0 && strspn(word, unquoted) == length)
        return word;
    char **buffer = &buffers[next++ % 4];
    free(*buffer);
    *buffer = malloc(4 * length + 4);
    if (*buffer == NULL)
        return "?";
    bool plainly = true;
    for (size_t at = 0, step; at < length; at += step) {
        step = printable_sequence((const unsigned char *)word + at, length - at);
        plainly = plainly && step != 0;
        step += step == 0;
    }
    quote(*buffer, word, plainly);
    return *buffer;
}

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
    return fmt(" (did you mean %s%s?)", prefix, suggestion->nearest);
}
