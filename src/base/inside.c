/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line and the environment of an interpreter that this program is preloaded into.
 */
#include "base/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"

#define PRELOADED "LD_PRELOAD"

/* The interpreter obeys these words where the loader did not let us in.  Nobody else on the way
 * there has them at this place: valgrind's launcher, which is a script of the shell's, begins with
 * its own. */
static const char otherwise[] =
    "import sys; sys.stderr.write('conform: %s has no libpython, the shared library, and does not "
    "let %s be preloaded; name another by --python\\n' % tuple(sys.argv[1:3])); sys.exit(2)";
enum { EXECUTABLE, OPTION, OTHERWISE, PYTHON, ENGINE, PROGRAM, WORDS };

static const char *executable, *python;

bool inside_is_meant(int argc, char **argv)
{
    return argc > WORDS && strcmp(argv[OPTION], "-c") == 0 &&
           strcmp(argv[OTHERWISE], otherwise) == 0;
}

const char *inside_python(void)
{
    return python;
}

/* Before what others want to be preloaded, as a program is before them.  NULL, or what is wrong. */
static const char *preload_engine(char engine[PATH_MAX])
{
    const char *others = getenv(PRELOADED);
    if (!place_find(BUILT_ENGINE, INSTALLED_ENGINE, engine))
        return text("and %s, which would do without, is not there", text_safe(engine));
    if (strpbrk(engine, " :") != NULL) { /* the loader would take it for two */
        int fd = open(engine, O_RDONLY);
        snprintf(engine, PATH_MAX, "/proc/%ld/fd/%d", (long)getpid(), fd);
    }
    const char *all = others != NULL ? text("%s:%s", engine, others) : engine;
    return setenv(PRELOADED, all, 1) == 0 ? NULL : strerror(errno);
}

/* Leaves LD_PRELOAD as it was. */
static void take_out(const char *engine)
{
    char *objects = getenv(PRELOADED), *found = objects != NULL ? strstr(objects, engine) : NULL;
    size_t length = strlen(engine);
    int fd;
    if (sscanf(engine, "/proc/%*d/fd/%d", &fd) == 1)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (found == NULL)
        return;
    if (found[length] == ':')
        memmove(found, found + length + 1, strlen(found + length)); /* with the NUL */
    else if (found > objects)
        found[-1] = '\0'; /* valgrind's come first */
    else
        unsetenv(PRELOADED);
}

void inside_arrive(int *argc, char ***argv)
{
    if (!inside_is_meant(*argc, *argv))
        return;
    take_out((*argv)[ENGINE]);
    executable = (*argv)[EXECUTABLE];
    python = (*argv)[PYTHON];
    place_program_is((*argv)[PROGRAM]);
    *argc -= WORDS;
    *argv += WORDS;
}

const char *inside_start_again(const char *const *launcher, char **argv)
{
    char program[PATH_MAX], engine[PATH_MAX];
    size_t count = 0, n = 0;
    const char *wrong = python != NULL ? preload_engine(engine) : NULL;
    errno = 0;
    if (wrong != NULL)
        return wrong;
    while (argv[count] != NULL)
        count++;
    while (launcher[n] != NULL)
        n++;
    const char **command = calloc(n + WORDS + count + 1, sizeof *command);
    if (command == NULL || !place_program(program))
        return "out of memory";
    memcpy(command, launcher, n * sizeof *command);
    if (python != NULL) {
        command[n + EXECUTABLE] = executable;
        command[n + OPTION] = "-c";
        command[n + OTHERWISE] = otherwise;
        command[n + PYTHON] = python;
        command[n + ENGINE] = engine;
        command[n + PROGRAM] = program;
        n += WORDS;
    }
    memcpy(command + n, argv, (count + 1) * sizeof *command); /* with the closing NULL */
    if (python == NULL)
        command[n] = program;
    fflush(NULL);
    execvp(command[0], (char *const *)command);
    wrong = text("%s: %s", text_safe(command[0]), strerror(errno));
    free(command);
    return wrong;
}

const char *inside_start(const char *its_executable, const char *its_name, char **argv)
{
    static const char *const nobody[] = {NULL};
    executable = its_executable;
    python = its_name;
    return inside_start_again(nobody, argv);
}
