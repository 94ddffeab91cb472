/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting claims and printing them, on stdout.
 */
#include "tally.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int claims, failures, skips;
static char failed[256]; /* the parts that did not hold, with a blank before each */

bool tally(bool held, const char *part, const char *format, ...)
{
    va_list arguments;
    printf("%-8s%-9s", held ? "held" : "NOT SO", part);
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    claims++;
    failures += !held;
    if (!held && strlen(failed) + strlen(part) + 2 < sizeof failed)
        strcat(strcat(failed, " "), part);
    return held;
}

void tally_skip(const char *part, const char *why)
{
    printf("%-8s%-9s%s\n", "skipped", part, why);
    skips++;
}

int tally_count(void)
{
    return claims;
}

bool tally_held(void)
{
    return failures == 0;
}

void tally_end(int status)
{
    if (status != 0)
        printf("embed_demo: not everything held: the script ended with status %d\n", status);
    else if (failures > 0)
        printf("embed_demo: not everything held:%s (%d of %d claims)\n", failed, failures, claims);
    else
        printf("embed_demo: everything held (%d claims%s)\n", claims,
               skips > 0 ? ", some parts skipped" : "");
}
