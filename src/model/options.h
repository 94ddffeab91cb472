/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The command line.
 */
#ifndef CONFORM_OPTIONS_H
#define CONFORM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/property.h"

enum exit_code {
    EXIT_CONFORMANT = 0,
    EXIT_NOT_CONFORMANT = 1,
    EXIT_USAGE = 2,
    EXIT_CANNOT_LOAD = 3,
    EXIT_HARNESS_BROKE = 4,
    EXIT_INCOMPLETE = 5,
    EXIT_CANNOT_WORK_HERE = 77,
};

/* The commands, and the variants of a command that an option selects: NO_FORK of RUN, which is the
 * test suite, RECORD and FAIL_EACH of EXEC, PRINT of REPLAY. */
#define COMMAND_LIST(COMMAND)                                                                      \
    COMMAND(RUN)                                                                                   \
    COMMAND(NO_FORK)                                                                               \
    COMMAND(EXEC)                                                                                  \
    COMMAND(RECORD)                                                                                \
    COMMAND(FAIL_EACH)                                                                             \
    COMMAND(REPLAY)                                                                                \
    COMMAND(PRINT)                                                                                 \
    COMMAND(SEARCH)                                                                                \
    COMMAND(BENCH)                                                                                 \
    COMMAND(LIST)                                                                                  \
    COMMAND(EXPLAIN)                                                                               \
    COMMAND(CLAUSES)                                                                               \
    COMMAND(HANDLERS)                                                                              \
    COMMAND(REPORT)                                                                                \
    COMMAND(COMPARE)                                                                               \
    COMMAND(VERIFY)                                                                                \
    COMMAND(INIT)                                                                                  \
    COMMAND(DEBUG)

#define COMMAND_NUMBER(symbol) COMMAND_##symbol,
enum command { COMMAND_LIST(COMMAND_NUMBER) };
#undef COMMAND_NUMBER
#define COMMANDS (COMMAND_DEBUG + 1)

/* The formats of reports, a line each: what --NAME=FILE writes and report_NAME() in report/ is the
 * writer of, and which commands take it (option_table.c).  Some tell of a run, and others of what
 * --json writes, which may be of several runs. */
#define RUN_FORMATS(FORMAT)                                                                        \
    FORMAT(tap, "TAP 13", BATTERY)                                                                 \
    FORMAT(junit, "JUnit XML", BATTERY)                                                            \
    FORMAT(bundle, "an archive for verify", BATTERY)
#define VALUE_FORMATS(FORMAT)                                                                      \
    FORMAT(json, "JSON", BATTERY | BENCH)                                                          \
    FORMAT(html, "an HTML page", BATTERY | BENCH | REPORT)                                         \
    FORMAT(badge, "an SVG badge", BATTERY | REPORT)                                                \
    FORMAT(markdown, "Markdown", BATTERY | REPORT)
#define FILE_FORMATS(FORMAT) RUN_FORMATS(FORMAT) VALUE_FORMATS(FORMAT)
#define REPORT_FORMATS(FORMAT) FILE_FORMATS(FORMAT) FORMAT(github, "annotations", )

#define REPORT_FORMAT_NUMBER(name, words, takers) REPORT_##name,
enum report_format { REPORT_FORMATS(REPORT_FORMAT_NUMBER) REPORT_FORMAT_COUNT };
#undef REPORT_FORMAT_NUMBER
#define PLUS_ONE(name, words, takers) +1
enum { RUN_FORMAT_COUNT = 0 RUN_FORMATS(PLUS_ONE) }; /* the first of them */
#undef PLUS_ONE

enum { OPTIONS_SEED = 49 }; /* the default */

enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* A pattern of --run or --skip, or one that is an operand. */
struct filter {
    bool take;
    const char *glob;
    const char *option; /* "run" or "skip"; NULL: an operand */
};

struct options {
    const char *program; /* as it was called */
    enum command command;
    const char *handler;   /* or NULL */
    const char **handlers; /* all that were given, of which that is the last */
    size_t handler_count;
    char **operands;        /* what follows the options, with a NULL at the end */
    const char *record;     /* name of a trace, or NULL */
    const char *baseline;   /* name of an earlier report, or NULL */
    const char *repro;      /* name of a folder for reproducers, or NULL */
    const char *expect;     /* name of a list of waivers, or NULL */
    bool fail_on_new;       /* what counts is what was not so there */
    const char *claims;     /* the words of all --claim, with blanks in between; or NULL */
    struct filter *filters; /* in the order in which they were given */
    size_t filter_count;
    const char *reports[REPORT_FORMAT_COUNT]; /* file names, "-" for stdout, or NULL */
    size_t jobs;                              /* 0: as many as there are cores */
    double timeout, max_time;                 /* seconds */
    bool timeout_is_given, max_time_is_given; /* they are not the default */
    uint64_t seed;
    size_t repeat;      /* rounds; 0 with until_fail: no end but a failure */
    const char *python; /* or NULL for the first of PATH that has NumPy */
    enum color color;
    bool numpy; /* also what is about NumPy itself */
    bool memcheck, tsan, strict, quick, quiet, verbose, until_fail;
    bool with_subject; /* of --bundle */
    bool unchecked;    /* of replay and search */
    double search;     /* seconds */
    size_t memory;     /* of search, in MiB */
    const char *trace; /* of search: name of a trace to write, or NULL */
    bool stacks;       /* of exec */
    bool keep_failing; /* of --fail-each */
    size_t most_runs;  /* of --fail-each */
    size_t refuse;     /* of --fail-each: the only request to refuse; 0: each */
    bool untimed;      /* of --record */
};

/* Reads the command line, as the tables in option_table.c say.  Prints --help and --version and
 * exits.  If the command line is wrong, or has an option that the command does not take, prints
 * one line and exits with EXIT_USAGE. */
void options_read(int argc, char **argv, struct options *options);

/* Considers the names of all commands. */
struct suggestion;
void command_suggest(struct suggestion *suggestion);

/* Leaves with EXIT_USAGE where a report or a trace is to go to the file `path`, which is there and
 * is `what`. */
void check_not_overwriting(const struct options *options, const char *path, const char *what);

/* Prints "conform: " and the line to stderr and leaves with that code. */
_Noreturn void die(enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* calloc(), except that it prints one line and leaves if there is no memory. */
void *allocate(size_t count, size_t size);

/* What is left in stdout's buffer is written; leaves with EXIT_HARNESS_BROKE, and why, where that
 * or an earlier part of it could not be. */
void options_end_output(void);

/* True where the filters take a property of that id: the last one that matches it decides; where
 * none does, it is taken unless there is a --run; of those
 * --quick takes few.  A property about NumPy itself is taken only with
 * --numpy, or by a --run pattern that names its group, such as 'runtime.*'. */
bool options_take(const struct options *options, const char *id);

/* Returns the properties for which that is true, the caller's to free.  Exits with EXIT_USAGE if
 * there is none, or if a pattern matches no property. */
const struct property **options_properties(const struct options *options, size_t *count);

#endif
