/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command that shows a finding again, from any folder, under a debugger.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reexec.h"
#include "base/text.h"
#include "report/report.h"

/* No link is followed: that of a virtual environment is what makes it one.  A name is looked for on
 * PATH, and what was found there is what ran. */
static void print_python(FILE *file, const char *python, const struct environment *environment)
{
    char here[PATH_MAX], path[2 * PATH_MAX];
    bool is_name = strchr(python, '/') == NULL;
    if (is_name && environment != NULL && environment->python_executable[0] != '\0')
        python = environment->python_executable;
    bool below = !is_name && *python != '/' && getcwd(here, sizeof here) != NULL;
    snprintf(path, sizeof path, "%s%s%s", below ? here : "", below ? "/" : "", python);
    fprintf(file, " --python=%s", shell_quote(path));
}

static void print_handler(FILE *file, const struct subject_place *place)
{
    char path[PATH_MAX];
    bool is_file = place->module == NULL &&
                   (strchr(place->argument, '/') != NULL ||
                    (realpath(place->label, path) != NULL && strcmp(path, place->path) == 0));
    if (!is_file) /* a reference handler, or a module of Python's */
        fprintf(file, " --handler=%s", shell_quote(place->argument));
    else if (place->symbol == NULL)
        fprintf(file, " --handler=%s", shell_quote(place->path));
    else
        fprintf(file, " --handler=%s:%s", shell_quote(place->path), place->symbol);
}

/* A module is looked for in the working directory, and in what PYTHONPATH says from there. */
static void print_python_path(FILE *file)
{
    char here[PATH_MAX], path[2 * PATH_MAX];
    const char *rest = getenv("PYTHONPATH");
    if (getcwd(here, sizeof here) == NULL)
        return;
    size_t used = (size_t)snprintf(path, sizeof path, "%s", here);
    while (rest != NULL && used < sizeof path) {
        int length = (int)strcspn(rest, ":");
        bool below = *rest != '/' && length > 0;
        used += (size_t)snprintf(path + used, sizeof path - used, ":%s%s%.*s", below ? here : "",
                                 below ? "/" : "", length, rest);
        rest = rest[length] == ':' ? rest + length + 1 : NULL;
    }
    if (used < sizeof path)
        fprintf(file, "PYTHONPATH=%s ", shell_quote(path));
}

/* Prints what the user has preloaded; a debugger gets it for the program, not for itself.
 * Valgrind's own objects come first in LD_PRELOAD, and are left out. */
static void print_preloaded(FILE *file, bool debugger)
{
    static const char valgrinds[] = "/vgpreload_";
    const char *objects = getenv("LD_PRELOAD");
    while (objects != NULL &&
           memmem(objects, strcspn(objects, ":"), valgrinds, strlen(valgrinds)) != NULL) {
        const char *colon = strchr(objects, ':');
        objects = colon != NULL ? colon + 1 : NULL;
    }
    if (objects == NULL || *objects == '\0')
        return;
    if (debugger)
        fprintf(file, "-ex %s ", shell_quote(fmt("set environment LD_PRELOAD %s", objects)));
    else
        fprintf(file, "LD_PRELOAD=%s ", shell_quote(objects));
}

/* gdb gives a function of this program's up when that becomes an interpreter's executable, and
 * waits for one that only the engine has.  It stops where the verdict is made, or by the signal;
 * one that calls exit() has to be caught. */
static void print_debugger(FILE *file, const struct record *record)
{
    bool exits = record->signal == 0 && (record->verdict == CRASH || record->by_checker != 0);
    static const char pending[] = "-ex 'set breakpoint pending on' -ex 'break conform_fail_inside'";
    bool is_unknown = record->verdict == VERDICT_NONE; /* conform debug: neither is started yet */
    fprintf(file, "gdb %s%s%s %s", is_unknown || reexec_host() != NULL ? pending : "",
            is_unknown ? " " : "",
            is_unknown || reexec_host() == NULL ? "-ex 'break conform_fail'" : "",
            exits ? "-ex 'catch syscall exit_group' " : "");
    print_preloaded(file, true);
    fputs("-ex run --args ", file);
}

static void print_property(FILE *file, const struct run *run, size_t i)
{
    const struct property *found_by = run->outcomes[i].found_by;
    fputs(found_by != NULL ? found_by->id : run->properties[i]->id, file);
}

/* Returns a stream to a string that replaces the one before, or NULL. */
static FILE *open_string(char **string)
{
    static size_t size;
    free(*string);
    *string = NULL;
    return open_memstream(string, &size);
}

const char *run_debug(const struct run *run, size_t i)
{
    static char *command;
    const struct options *options = run->options;
    FILE *file = open_string(&command);
    if (file == NULL)
        return "";
    fprintf(file, "%s debug ", shell_quote(options->program));
    print_property(file, run, i);
    fprintf(file, " -H %s", shell_quote(run->place->argument));
    if (options->claims != NULL)
        fprintf(file, " --claim=%s", shell_quote(options->claims));
    if (options->python != NULL)
        fprintf(file, " --python=%s", shell_quote(options->python));
    if (options->seed != OPTIONS_SEED)
        fprintf(file, " --seed=%llu", (unsigned long long)options->seed);
    return fclose(file) == 0 && command != NULL ? command : "";
}

const char *run_reproduce(const struct run *run, size_t i)
{
    static char *command;
    char path[PATH_MAX];
    const struct options *options = run->options;
    FILE *file = open_string(&command);
    if (file == NULL)
        return "";
    if (run->place->module != NULL)
        print_python_path(file);
    const char *how = options->memcheck ? "--memcheck" : options->tsan ? "--tsan" : NULL;
    if (options->memcheck)
        print_preloaded(file, false);
    else if (how == NULL)
        print_debugger(file, run->records[i]);
    /* it can be named from any folder; without a slash it is looked up in PATH */
    bool is_file =
        strchr(options->program, '/') != NULL && realpath(options->program, path) != NULL;
    fputs(shell_quote(is_file ? path : options->program), file);
    print_handler(file, run->place);
    if (options->claims != NULL)
        fprintf(file, " --claim=%s", shell_quote(options->claims));
    if (options->python != NULL)
        print_python(file, options->python, run->environment);
    fputs(" --run=", file);
    print_property(file, run, i);
    fprintf(file, " --seed=%llu %s", (unsigned long long)options->seed,
            how != NULL ? how : "--no-fork");
    return fclose(file) == 0 && command != NULL ? command : "";
}
