/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_setting.h - reads settings of a handler from the environment, and refuses to work.
 *
 *     const char *text = getenv("MINE_FROM");
 *     size_t from = nep49_parse_bytes(text, 65536);
 *     if (from == 0)
 *         return nep49_refuse(why, "MINE_FROM='%.40s': only a number of bytes is accepted", text);
 *
 * Nothing to link.
 */
#ifndef NEP49_SETTING_H
#define NEP49_SETTING_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a number of bytes, which K, M or G may follow, or 0 if text is no such number.  If text
 * is NULL, returns usual. */
static inline size_t nep49_parse_bytes(const char *text, size_t usual)
{
    static const char units[] = "KMG";
    char *end;

    if (text == NULL)
        return usual;
    if (*text < '0' || *text > '9') /* strtoul accepts blanks and signs */
        return 0;
    errno = 0;
    size_t n = strtoul(text, &end, 10);
    const char *unit = *end != '\0' ? strchr(units, *end) : NULL;
    size_t factor = unit ? (size_t)1 << (10 * (unit - units + 1)) : 1;
    if (errno != 0 || (unit ? end[1] : *end) != '\0' || __builtin_mul_overflow(n, factor, &n))
        return 0;
    return n;
}

/* Sets *why to the text, on one line, and returns NULL. */
__attribute__((format(printf, 2, 3), unused)) static void *nep49_refuse(const char **why,
                                                                        const char *format, ...)
{
    static char reason[256];
    va_list values;

    va_start(values, format);
    vsnprintf(reason, sizeof(reason), format, values);
    va_end(values);
    for (char *c = reason; *c != '\0'; c++)
        *c = (unsigned char)*c < ' ' ? '?' : *c;
    *why = reason;
    return NULL;
}

#endif
