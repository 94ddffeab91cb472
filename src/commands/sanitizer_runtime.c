/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The runtimes of the sanitizers that handlers were built with: without its runtime in the program,
 * such an object does not load, or ends the process when it is loaded.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/utsname.h>

#include "base/install_path.h"
#include "base/object_file.h"
#include "base/reexec.h"
#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "commands/launch.h"
#include "python/python_sources.h"

#define PRELOADED "LD_PRELOAD"

/* ---- where a runtime is ------------------------------------------------------------------ */

/* All that the command prints, up to `room`; false where it fails. */
static bool read_command(const char *command, char *said, size_t room)
{
    FILE *pipe = popen(command, "re");
    if (pipe == NULL)
        return false;
    size_t length = fread(said, 1, room - 1, pipe);
    said[length] = '\0';
    return pclose(pipe) == 0;
}

/* Whether this program can be started with them: the loader finds them, and they bear with where
 * the kernel maps. */
static bool can_be_preloaded(const char *libraries)
{
    char program[PATH_MAX], said[2], *command;
    if (!place_program(program) || asprintf(&command, PRELOADED "=%s %s --version 2>&1 >/dev/null",
                                            shell_quote(libraries), shell_quote(program)) < 0)
        return false;
    bool can = read_command(command, said, sizeof said) && *said == '\0';
    free(command);
    return can;
}

/* Has the compiler tell where the library is, into `path`, which else stays. */
static bool ask_compiler(const char *compiler, const char *library, char path[PATH_MAX])
{
    char said[PATH_MAX];
    const char *command = fmt("%s -print-file-name=%s 2>/dev/null", compiler, shell_quote(library));
    if (!read_command(command, said, sizeof said) || *said != '/')
        return false;
    said[strcspn(said, "\n")] = '\0';
    strcpy(path, said);
    return strpbrk(path, " :") == NULL && can_be_preloaded(path);
}

/* The library that the object names, or else that of its compiler: as compilers have it, and the
 * loader.  False where nobody has it; `path` is then "", or that of one which cannot be preloaded.
 */
static bool find_library(const struct object_sanitizer *object, char path[PATH_MAX])
{
    const struct sanitizer *sanitizer = object->sanitizer;
    const char *compilers[] = {object->clang ? fmt("clang-%d", object->clang) : "gcc",
                               object->clang ? "clang" : "cc"};
    const char *names[2] = {object->library, object->library};
    struct utsname system;
    *path = '\0';
    if (*object->library == '\0' && object->clang && uname(&system) == 0 && sanitizer->clang) {
        names[0] = fmt("%s-%s.so", sanitizer->clang, system.machine);
        names[1] = fmt("%s.so", sanitizer->clang);
    } else if (*object->library == '\0' && sanitizer->gcc != NULL) {
        names[0] = names[1] = sanitizer->gcc;
    }
    for (size_t i = 0; i < 4; i++) {
        if (*names[i / 2] != '\0' && ask_compiler(compilers[i % 2], names[i / 2], path))
            return true;
    }
    if (*path != '\0' || *object->library == '\0' || !can_be_preloaded(object->library))
        return false;
    strcpy(path, object->library);
    return true;
}

/* ---- what is built with one --------------------------------------------------------------- */

/* The first of the shared objects that the module consists of which is. */
static bool find_in_module(const char *python, const char *module, struct object_sanitizer *object)
{
    static char said[1 << 16];
    char *command;
    if (python == NULL)
        return false;
    if (asprintf(&command, "%s - %s 2>/dev/null <<'END'\n%sEND\n", shell_quote(python),
                 shell_quote(module), python_source_find("module_files")->text) < 0)
        die(EXIT_HARNESS_BROKE, "out of memory");
    bool found = false;
    read_command(command, said, sizeof said);
    for (char *rest = said, *path; !found && (path = strsep(&rest, "\n")) != NULL;)
        found = *path != '\0' && object_file_sanitizer(path, object);
    free(command);
    return found;
}

/* ---- whether it can work ----------------------------------------------------------------- */

static bool is_here(const struct sanitizer *sanitizer)
{
    return dlsym(RTLD_DEFAULT, sanitizer->has) != NULL;
}

/* All but one have an allocator of their own. */
static bool takes_memory(const struct sanitizer *sanitizer)
{
    return strcmp(sanitizer->flag, "undefined") != 0;
}

static void check_tsan(const struct subject_place *place)
{
    struct object_sanitizer object;
    const char *name = escape(place->argument);
    if (place->module != NULL)
        die(EXIT_USAGE, "--tsan: %s is in a Python module; name a shared object", name);
    if (!object_file_sanitizer(place->path, &object) ||
        strcmp(object.sanitizer->flag, "thread") != 0)
        die(EXIT_USAGE,
            "--tsan: %s is not compiled for ThreadSanitizer; build another one, with: cc "
            "-g -fsanitize=thread -shared -fPIC",
            name);
}

static void check_alone(const struct options *options, const char *name,
                        const struct sanitizer *sanitizer)
{
    const char *valgrind = options->memcheck ? "--memcheck: " : memcheck_is_running() ? "" : NULL;
    if (sanitizer->gcc == NULL)
        die(EXIT_CANNOT_LOAD,
            "%s: is built with -fsanitize=%s, which works only where Python is built so "
            "too; build it with -fsanitize=address",
            name, sanitizer->flag);
    if (valgrind != NULL && takes_memory(sanitizer))
        die(EXIT_USAGE,
            "%s%s is built with -fsanitize=%s, which does not go together with valgrind; "
            "build it without",
            valgrind, name, sanitizer->flag);
    if (sanitizer_is_running() && takes_memory(sanitizer) && !is_here(sanitizer))
        die(EXIT_CANNOT_LOAD, "%s: is built with -fsanitize=%s, and %s; %s", name, sanitizer->flag,
            CONFORM_SANITIZED ? "this conform with another sanitizer"
                              : "another sanitizer is preloaded",
            CONFORM_SANITIZED ? "take a conform that is built without"
                              : "take that out of " PRELOADED);
}

/* ---- starting again ---------------------------------------------------------------------- */

/* What is to be preloaded. */
struct runtimes {
    char *libraries;                /* with colons in between, or NULL */
    const struct sanitizer *memory; /* the one of them that has an allocator, or NULL */
};

static _Noreturn void no_library(const char *name, const struct object_sanitizer *object,
                                 const char *broken)
{
    const struct sanitizer *sanitizer = object->sanitizer;
    if (*broken != '\0')
        die(EXIT_CANNOT_LOAD,
            "%s: is built with -fsanitize=%s, and no program starts here with its runtime, "
            "%s; build it with a newer compiler",
            name, sanitizer->flag, escape(broken));
    die(EXIT_CANNOT_LOAD,
        "%s: is built with -fsanitize=%s, and the runtime of %s%s%s is not found; install "
        "it%s, or begin the command with " PRELOADED "=FILE",
        name, sanitizer->flag, sanitizer->name, *object->library != '\0' ? ", " : "",
        escape(object->library),
        object->clang != 0 ? fmt(" (Debian: libclang-rt-%d-dev)", object->clang) : "");
}

static void add(struct runtimes *runtimes, const char *name, const struct object_sanitizer *object)
{
    char path[PATH_MAX], *libraries;
    const struct sanitizer *sanitizer = object->sanitizer;
    bool takes = takes_memory(sanitizer);
    if (takes && runtimes->memory != NULL && runtimes->memory != sanitizer)
        die(EXIT_USAGE,
            "%s: is built with -fsanitize=%s, and another handler with -fsanitize=%s; test "
            "them one at a time",
            name, sanitizer->flag, runtimes->memory->flag);
    if (!find_library(object, path))
        no_library(name, object, path);
    if (runtimes->libraries != NULL && strstr(runtimes->libraries, path) != NULL)
        return;
    bool first = runtimes->libraries == NULL;
    if (asprintf(&libraries, "%s%s%s", first ? "" : runtimes->libraries, first ? "" : ":", path) <
        0)
        die(EXIT_HARNESS_BROKE, "out of memory");
    free(runtimes->libraries);
    runtimes->libraries = libraries;
    if (takes)
        runtimes->memory = sanitizer;
}

char *sanitizer_runtimes(const struct options *options, const struct subject_place *places,
                         size_t count, const char *python)
{
    struct runtimes runtimes = {NULL, NULL};
    for (size_t i = 0; i < count; i++) {
        struct object_sanitizer object;
        const char *name = escape(places[i].argument);
        if (options->tsan)
            check_tsan(&places[i]);
        bool is_found =
            !places[i].is_default &&
            (places[i].module != NULL ? find_in_module(python, places[i].module, &object)
                                      : object_file_sanitizer(places[i].path, &object));
        if (!is_found)
            continue;
        check_alone(options, name, object.sanitizer);
        if (is_here(object.sanitizer))
            continue;
        if (*reexec_word(REEXEC_PROGRAM) != '\0')
            die(EXIT_CANNOT_LOAD, "%s: the runtime of %s was preloaded, and did not come", name,
                object.sanitizer->name);
        /* a runtime needs fixed ranges of addresses, which randomization may give to others */
        int persona = personality(0xffffffff);
        if (persona != -1)
            personality((unsigned long)persona | ADDR_NO_RANDOMIZE);
        add(&runtimes, name, &object);
    }
    return runtimes.libraries;
}
