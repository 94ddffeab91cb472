/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line, the exit statuses, and how the program complains.
 */
#ifndef EMBED_DEMO_ARGUMENTS_H
#define EMBED_DEMO_ARGUMENTS_H

#include <stdbool.h>

/* Where the script ran, its own status is passed on, and is then any of these and others.  1 is
 * that of a script that raised, and of a claim that did not hold. */
enum status {
    STATUS_USAGE = 2,
    STATUS_CANNOT_LOAD = 3,
    STATUS_BROKE = 4,
    STATUS_CANNOT_WORK_HERE = 77,
    STATUS_FLUSH_FAILED = 120, /* what python says when sys.stdout cannot be written at the end */
    STATUS_INTERRUPTED = 130,
};

struct arguments {
    const char *handler;
    const char *python; /* the interpreter's executable, absolute */
    bool isolated;
    bool traceback;  /* of an exception that ends the script */
    int script_argc; /* what is left of the command line: the script, if any, and its arguments */
    char **script_argv;
};

/* Reads the command line.  Prints --help and --version and leaves; where the command line is wrong,
 * prints one line and leaves with STATUS_USAGE. */
void arguments_read(int argc, char **argv, struct arguments *arguments);

/* Prints "embed_demo: " and the line to stderr.  Returns `status`. */
int complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
