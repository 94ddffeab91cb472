/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the files are that belong to this program: what is installed is looked for beside it first,
 * so that it works before it is where configure was told that it would be, and after it was moved.
 */
#include "base/install_path.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef BINDIR
#error "BINDIR is where make install puts conform"
#endif

static const char *program; /* where it is not what the system says */

void place_program_is(const char *path)
{
    program = path;
}

bool place_program(char path[PATH_MAX])
{
    if (program != NULL)
        return snprintf(path, PATH_MAX, "%s", program) < PATH_MAX;
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    path[length > 0 ? length : 0] = '\0';
    return length > 0;
}

bool place_of_program(char folder[PATH_MAX])
{
    if (!place_program(folder))
        return false;
    char *slash = strrchr(folder, '/');
    if (slash == NULL || slash == folder)
        return false;
    *slash = '\0';
    return true;
}

/* How much of two paths is the same, in whole parts. */
static size_t common_parts(const char *a, const char *b)
{
    size_t common = 0;
    for (size_t i = 0;; i++) {
        if ((a[i] == '/' || a[i] == '\0') && (b[i] == '/' || b[i] == '\0'))
            common = i;
        if (a[i] != b[i] || a[i] == '\0')
            return common;
    }
}

bool relocated_path(const char *folder, const char *bindir, const char *configured,
                    char path[PATH_MAX])
{
    size_t common = common_parts(bindir, configured);
    const char *down = bindir + common, *up = configured + common;
    size_t kept = strlen(folder) - strlen(down);
    if (strlen(down) > strlen(folder) || strcmp(folder + kept, down) != 0)
        return false;
    return snprintf(path, PATH_MAX, "%.*s%s", (int)kept, folder, up) < PATH_MAX;
}

bool installed_path(const char *configured, char path[PATH_MAX])
{
    char folder[PATH_MAX];
    return place_of_program(folder) && relocated_path(folder, BINDIR, configured, path) &&
           access(path, R_OK) == 0;
}

bool place_find(const char *source, const char *configured, char path[PATH_MAX])
{
    if (installed_path(configured, path))
        return true;
    snprintf(path, PATH_MAX, "%s", source);
    if (access(path, R_OK) == 0)
        return true;
    snprintf(path, PATH_MAX, "%s", configured);
    return access(path, R_OK) == 0;
}
