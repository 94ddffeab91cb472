/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line and LD_PRELOAD of a program that replaces itself.
 */
#include "base/reexec.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/text.h"

#define PRELOADED "LD_PRELOAD"

/* No other program on the way has this word at this place: valgrind's launcher, a shell script,
 * begins with words of its own. */
static const char otherwise[] =
    "import sys; sys.stderr.write('conform: %s has no libpython, the shared library, and does not "
    "let %s be preloaded; name another by --python\\n' % tuple(sys.argv[1:3])); sys.exit(2)";

static const char *words_of_this_process[REEXEC_WORDS];

bool reexec_is_meant(int argc, char **argv)
{
    return argc > REEXEC_WORDS && strcmp(argv[REEXEC_OPTION], "-c") == 0 &&
           strcmp(argv[REEXEC_OTHERWISE], otherwise) == 0;
}

const char *reexec_word(enum reexec_word word)
{
    return words_of_this_process[word] != NULL ? words_of_this_process[word] : "";
}

const char *reexec_host(void)
{
    return *reexec_word(REEXEC_ENGINE) != '\0' ? reexec_word(REEXEC_PYTHON) : NULL;
}

bool static_tls_was_short(const char *why)
{
    return strstr(why, "static TLS") != NULL;
}

bool static_tls_is_wide(void)
{
    return *reexec_word(REEXEC_STATIC_TLS) != '\0';
}

void reexec_preload(const char *libraries)
{
    const char *others = getenv(PRELOADED);
    char *all;
    if (others == NULL || *others == '\0')
        setenv(PRELOADED, libraries, 1);
    else if (asprintf(&all, "%s:%s", libraries, others) >= 0) {
        setenv(PRELOADED, all, 1);
        free(all);
    }
}

/* The path of the engine for LD_PRELOAD, in `engine`.  NULL, or what is wrong. */
static const char *find_engine(char engine[PATH_MAX])
{
    if (!place_find(BUILT_ENGINE, INSTALLED_ENGINE, engine))
        return fmt("and %s, which would do without, is not there", escape(engine));
    if (strpbrk(engine, " :") != NULL) { /* LD_PRELOAD has no way to quote a separator */
        int fd = open(engine, O_RDONLY);
        snprintf(engine, PATH_MAX, "/proc/%ld/fd/%d", (long)getpid(), fd);
    }
    return NULL;
}

/* Restores LD_PRELOAD. */
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

void reexec_consume_argv(int *argc, char ***argv)
{
    if (!reexec_is_meant(*argc, *argv))
        return;
    memcpy(words_of_this_process, *argv, sizeof words_of_this_process);
    place_program_is(reexec_word(REEXEC_PROGRAM));
    if (reexec_host() != NULL)
        take_out(reexec_word(REEXEC_ENGINE));
    *argc -= REEXEC_WORDS;
    *argv += REEXEC_WORDS;
}

const char *reexec(const char *const *launcher, const char *words[REEXEC_WORDS], char **argv)
{
    char program[PATH_MAX], engine[PATH_MAX];
    bool is_guest = *words[REEXEC_ENGINE] != '\0';
    const char *wrong = is_guest ? find_engine(engine) : NULL;
    size_t count = 0, n = 0;
    errno = 0;
    if (wrong != NULL)
        return wrong;
    while (argv[count] != NULL)
        count++;
    while (launcher[n] != NULL)
        n++;
    const char **command = calloc(n + REEXEC_WORDS + count + 1, sizeof *command);
    if (command == NULL || !place_program(program))
        return "out of memory";
    words[REEXEC_OPTION] = "-c";
    words[REEXEC_OTHERWISE] = otherwise;
    words[REEXEC_PROGRAM] = program;
    if (is_guest) {
        words[REEXEC_ENGINE] = engine;
        reexec_preload(engine);
    } else {
        words[REEXEC_EXECUTABLE] = program;
    }
    memcpy(command, launcher, n * sizeof *command);
    memcpy(command + n, words, REEXEC_WORDS * sizeof *command);
    memcpy(command + n + REEXEC_WORDS, argv, (count + 1) * sizeof *command); /* with the NULL */
    fflush(NULL);
    execvp(command[0], (char *const *)command);
    wrong = fmt("%s: %s", escape(command[0]), strerror(errno));
    free(command);
    return wrong;
}
