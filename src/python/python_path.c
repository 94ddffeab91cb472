/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asking an executable which Python it is.  An embedded interpreter that is told of another
 * version, or of no Python at all, starts none the less, with packages from somewhere else.
 */
#include "python/python_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

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

/* The first line that the interpreter at `path` prints for `code`, or "". */
static void ask_interpreter(const char *path, const char *code, char *line, int room)
{
    int output[2];
    pid_t pid;
    line[0] = '\0';
    if (pipe2(output, O_CLOEXEC) != 0)
        return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    const char *const command[] = {path, "-IS", "-c", code, NULL};
    bool started = posix_spawn(&pid, path, &actions, NULL, (char *const *)command, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(output[1]);
    FILE *file = fdopen(output[0], "r");
    if (file == NULL || fgets(line, room, file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    if (started && line[0] == '\0')
        kill(pid, SIGKILL); /* this was interrupted, or it has nothing to say */
    if (started)
        waitpid(pid, NULL, 0);
}

const char *python_path_check(const char *path, char **absolute)
{
    char line[64], series[32];
    if (access(path, X_OK) != 0 || (*absolute = make_absolute(path)) == NULL)
        return text("%s; give the path of an interpreter", strerror(errno));
    ask_interpreter(*absolute, "import sys; print('Python %d.%d' % sys.version_info[:2])", line,
                    sizeof line);
    bool is_python = sscanf(line, "Python %31[0-9.]", series) == 1;
    if (is_python && strcmp(series, PYTHON_SERIES) == 0)
        return NULL;
    free(*absolute);
    if (!is_python)
        return "is not a Python interpreter; give the path of one";
    return text("is Python %s, and this conform embeds %s; configure again with PYTHON=%s", series,
                PYTHON_SERIES, text_safe(path));
}

const char *python_path_advice(void)
{
    static const char *const names[] = {"PYTHONHOME", "PYTHONPATH"};
    const char *advice = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            advice = text("%s%s%s=%.200s", advice, *advice == '\0' ? "; try without " : " and ",
                          names[i], text_safe(value));
    }
    return advice;
}
