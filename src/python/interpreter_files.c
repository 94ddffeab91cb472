/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CPython as it is mostly installed, BIN/python3 with lib beside BIN, or an environment of such a
 * one.  The executable calls Py_BytesMain of the libpython in lib, and nothing else of Python's: a
 * program that embeds Python calls more.  All else is for probe.py.
 */
#include "python/interpreter.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/object_file.h"
#include "base/text.h"

/* What the names in an executable have shown. */
struct seen {
    char folder[PATH_MAX]; /* where its libpython is looked for */
    char library[64];      /* the name of that, or "" */
    bool is_sought_there, has_main, has_more;
};

/* No variable is set that may make the interpreter another, or let it not start. */
static bool is_left_alone(void)
{
    static const char *const harmless[] = {
        "PYTHON=", "PYTHONDONTWRITEBYTECODE=", "PYTHONUNBUFFERED="};
    for (char **each = environ; *each != NULL; each++) {
        bool matters = begins_with(*each, "PYTHON") || begins_with(*each, "LD_LIBRARY_PATH=");
        for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
            matters = matters && !begins_with(*each, harmless[i]);
        if (matters)
            return false;
    }
    return true;
}

/* The folder above, in its place.  False where there is none. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL || slash == path)
        return false;
    *slash = '\0';
    return true;
}

static bool exists(const char *folder, const char *below, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s%s", folder, below, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

static void see(const char *name, void *data)
{
    struct seen *seen = data;
    if (begins_with(name, "libpython"))
        snprintf(seen->library, sizeof seen->library, "%s", name);
    else if (strcmp(name, "Py_BytesMain") == 0)
        seen->has_main = true;
    else if (begins_with(name, "Py") || begins_with(name, "_Py"))
        seen->has_more = true;
    else if (strcmp(name, seen->folder) == 0 || strcmp(name, "$ORIGIN/../lib") == 0)
        seen->is_sought_there = true;
}

/* The name of the folder in lib that is for the version in the name of that libpython; false where
 * it is not one that conform is for. */
static bool name_packages(const char *library, char name[64])
{
    unsigned minor;
    int end = 0;
    if (sscanf(library, "libpython3.%u%n", &minor, &end) != 1 || minor < 9)
        return false;
    const char *flags = library + end;
    snprintf(name, 64, "lib/python3.%u%s/", minor, *flags == 't' ? "t" : "");
    flags += *flags == 't';
    flags += *flags == 'd';
    return strcmp(flags, ".so.1.0") == 0;
}

/* Whether the executable is in an environment, whose root that is.  Python looks in both places. */
static bool find_environment(const char *path, char root[PATH_MAX], bool *is_one)
{
    snprintf(root, PATH_MAX, "%s", path);
    if (!go_up(root) || exists(root, "pyvenv.cfg", "") || !go_up(root))
        return false;
    *is_one = exists(root, "pyvenv.cfg", "");
    return true;
}

bool interpreter_by_files(const char *path, struct interpreter *interpreter)
{
    char program[PATH_MAX], prefix[PATH_MAX], root[PATH_MAX], packages[64];
    struct seen seen = {.library = ""};
    bool is_environment = false;
    if (*path != '/' || strstr(path, "//") != NULL || strstr(path, "/./") != NULL ||
        strstr(path, "/../") != NULL || !is_left_alone() || realpath(path, program) == NULL ||
        !find_environment(path, root, &is_environment))
        return false;
    snprintf(prefix, sizeof prefix, "%s", program);
    if (!go_up(prefix) || !go_up(prefix) ||
        snprintf(seen.folder, sizeof seen.folder, "%s/lib", prefix) >= (int)sizeof seen.folder)
        return false;
    object_file_each_name(program, see, &seen);
    if (!seen.has_main || seen.has_more || !seen.is_sought_there ||
        !name_packages(seen.library, packages) || !exists(seen.folder, "", seen.library) ||
        !exists(prefix, packages, "os.py") || !exists(prefix, packages, "encodings/__init__.py") ||
        !exists(is_environment ? root : prefix, packages, "site-packages/numpy/__init__.py"))
        return false;
    char *library = NULL;
    *interpreter = (struct interpreter){
        .executable = strdup(path), .program = strdup(program), .has_numpy = true};
    if (asprintf(&library, "%s/%s", seen.folder, seen.library) >= 0)
        interpreter->library = library;
    return interpreter->executable != NULL && interpreter->program != NULL && library != NULL;
}
