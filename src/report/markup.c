/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is no control character, and none of markup's own.
 */
#include "report/markup.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "model/options.h"

void markup_put(FILE *file, const char *words)
{
    size_t room = 4 * strlen(words) + 1;
    char *clean = malloc(room);
    if (clean == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    text_clean(clean, room, words, strlen(words), 1);
    for (const char *c = clean; *c != '\0'; c++) {
        if (strchr("&<>\"'", *c) != NULL)
            fprintf(file, "&#%d;", *c);
        else
            fputc(*c, file);
    }
    free(clean);
}

void markup_say(FILE *file, const char *frame, ...)
{
    va_list words;
    va_start(words, frame);
    for (; *frame != '\0'; frame++) {
        if (*frame == '%')
            markup_put(file, va_arg(words, const char *));
        else
            fputc(*frame, file);
    }
    va_end(words);
}
