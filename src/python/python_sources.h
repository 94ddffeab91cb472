/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Python files that are compiled into the program, which needs no file of its own at run time.
 * src/python/embed.sh writes the table during the build.
 */
#ifndef PYTHON_SOURCES_H
#define PYTHON_SOURCES_H

#include <string.h>

struct python_source {
    const char *name;     /* the file's name without .py: "context" */
    const char *path;     /* of the file, in the sources: "conformance/context.py" */
    const char *needs[8]; /* names of those that it imports, then NULL: no two need each other */
    const char *text;     /* all of it, UTF-8, NUL-terminated */
};

/* The last one has NULL for its name and its text. */
extern const struct python_source python_sources[];

/* The one of that name, or the last. */
static inline const struct python_source *python_source_find(const char *name)
{
    const struct python_source *source = python_sources;
    while (source->name != NULL && strcmp(source->name, name) != 0)
        source++;
    return source;
}

#endif
