/* SPDX-License-Identifier: BSD-3-Clause
 *
 * python_sources.h - the Python half of the battery, compiled into the program.
 *
 * src/python/embed.sh writes the table from the .py files of conformance/ during the
 * build, so that conform needs no file of its own at run time.
 */
#ifndef PYTHON_SOURCES_H
#define PYTHON_SOURCES_H

struct python_source {
    const char *name; /* the file's name without .py: "context" */
    const char *text; /* all of it, UTF-8, NUL-terminated */
};

/* The last one has NULL for both. */
extern const struct python_source python_sources[];

#endif
