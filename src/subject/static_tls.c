/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting again with more static TLS.
 */
#include "subject/static_tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/inside.h"
#include "base/text.h"

#define TUNABLES "GLIBC_TUNABLES"
#define DONE "CONFORM_STATIC_TLS" /* tells the process that is started that it was */

bool static_tls_was_short(const char *why)
{
    return strstr(why, "static TLS") != NULL;
}

bool static_tls_is_wide(void)
{
    static bool asked, wide;
    if (!asked)
        wide = getenv(DONE) != NULL;
    asked = true;
    unsetenv(DONE); /* what the subject starts is another matter */
    return wide;
}

void static_tls_pass_on(void)
{
    if (static_tls_is_wide())
        setenv(DONE, "1", 1);
}

void static_tls_start_again(char **argv, void (*start)(char **argv, void *data), void *data)
{
    const char *tunables = getenv(TUNABLES);
    char *wider;
    if (static_tls_is_wide() ||
        (tunables != NULL && strstr(tunables, "glibc.rtld.optional_static_tls") != NULL))
        return;
    bool others = tunables != NULL && *tunables != '\0';
    if (asprintf(&wider, "%s%s%s", others ? tunables : "", others ? ":" : "", STATIC_TLS_TUNABLE) <
        0)
        return;
    setenv(TUNABLES, wider, 1);
    setenv(DONE, "1", 1);
    free(wider);
    fflush(NULL);
    if (start != NULL)
        start(argv, data);
    else
        inside_start_again((const char *const[]){NULL}, argv);
}
