/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asking an executable which Python it is.  An embedded interpreter that is told of another
 * version, or of no Python at all, starts none the less, with packages from somewhere else.
 */
#include "python_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

/* Not realpath: the link in a virtual environment is what tells Python of it. */
static char *make_absolute(const char *path)
{
    char here[PATH_MAX], *absolute;
    if (path[0] == '/')
        return strdup(path);
    if (getcwd(here, sizeof here) == NULL || asprintf(&absolute, "%s/%s", here, path) < 0)
        return NULL;
    return absolute;
}

/* "3.11", or "" where it does not say.  What it says itself is the only thing to go by. */
static void ask_series(const char *path, char *series, int room)
{
    char command[PATH_MAX + 128];
    snprintf(command, sizeof command,
             "%s -IS -c 'import sys; print(\"%%d.%%d\" %% sys.version_info[:2])' 2>/dev/null",
             text_shell(path));
    FILE *pipe = popen(command, "re");
    if (pipe == NULL || fgets(series, room, pipe) == NULL)
        series[0] = '\0';
    if (pipe != NULL)
        pclose(pipe);
    series[strcspn(series, "\n")] = '\0';
}

const char *python_path_check(const char *path, char **absolute)
{
    char series[64];
    if (access(path, X_OK) != 0 || (*absolute = make_absolute(path)) == NULL)
        return text("%s", strerror(errno));
    ask_series(*absolute, series, sizeof series);
    if (strcmp(series, PYTHON_SERIES) == 0)
        return NULL;
    free(*absolute);
    if (series[0] == '\0')
        return "is not a Python interpreter";
    return text("is Python %s, and this conform embeds %s; configure again with PYTHON=%s",
                text_safe(series), PYTHON_SERIES, text_safe(path));
}
