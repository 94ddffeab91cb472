/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Formatting into rotating buffers, and cleaning of untrusted bytes.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BUFFERS = 16, BUFFER_SIZE = 512 };

static char *next_buffer(void)
{
    static _Thread_local char buffers[BUFFERS][BUFFER_SIZE];
    static _Thread_local unsigned next;
    return buffers[next++ % BUFFERS];
}

const char *text(const char *format, ...)
{
    char *buffer = next_buffer();
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer, BUFFER_SIZE, format, arguments);
    va_end(arguments);
    return buffer;
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

char *text_clean(char *to, size_t room, const char *from, size_t length, int keep_lines)
{
    size_t used = 0;
    for (size_t i = 0; i < length;) {
        const unsigned char *p = (const unsigned char *)from + i;
        size_t whole = *p == '\n' && keep_lines ? 1 : printable_sequence(p, length - i);
        size_t needed = whole != 0 ? whole : 4;
        if (used + needed + 4 > room) {
            if (room >= 4)
                memcpy(to + used, "...", 3);
            used += room >= 4 ? 3 : 0;
            break;
        }
        if (whole != 0)
            memcpy(to + used, p, whole);
        else
            snprintf(to + used, 5, "\\x%02x", *p);
        used += needed;
        i += whole != 0 ? whole : 1;
    }
    if (room > 0)
        to[used] = '\0';
    return to;
}

const char *text_safe(const char *from)
{
    return text_clean(next_buffer(), BUFFER_SIZE, from, strlen(from), 0);
}

const char *text_shell(const char *word)
{
    if (word[0] != '\0' && strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                        "0123456789@%+=:,./-_") == strlen(word))
        return word;
    char *buffer = next_buffer();
    size_t used = 0;
    buffer[used++] = '\'';
    for (; *word != '\0' && used + 6 < BUFFER_SIZE; word++) {
        if (*word == '\'') {
            memcpy(buffer + used, "'\\''", 4);
            used += 4;
        } else {
            buffer[used++] = *word;
        }
    }
    buffer[used++] = '\'';
    buffer[used] = '\0';
    return buffer;
}
