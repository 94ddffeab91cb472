/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tables of commands and options, which the parser and --help read.
 */
#ifndef CONFORM_OPTION_TABLE_H
#define CONFORM_OPTION_TABLE_H

#include "model/options.h"

struct option_row {
    const char *heading;  /* alone in its row: begins a section of --help-all */
    const char *name;     /* NULL: the row of a command's operands */
    char letter;          /* or 0 */
    bool common;          /* --help shows it */
    const char *argument; /* placeholder of its value; NULL if it has none */
    unsigned takers;      /* the commands that take it, a bit each */
    enum command command; /* the variant that it selects, or COMMAND_RUN */

    /* Takes its value; NULL if it only selects a variant.  The fields below are for these
     * functions. */
    void (*take)(const struct option_row *row, const char *value, struct options *options);
    size_t field; /* offset in struct options */
    double least, most;

    /* The default, as a user would give it, or NULL.  --help prints it. */
    const char *usual;
    const char *usual_words; /* in place of it, if options_read() or the command computes it */
    const char *usual_memcheck, *usual_bench; /* under valgrind, of bench; NULL: the same */

    const char *help; /* verb, object; --help adds the default, and breaks the lines */
};

extern const struct option_row option_rows[];
extern const size_t option_row_count;
enum { MOST_OPTION_ROWS = 80 };

struct command_row {
    const char *name;     /* the word that selects it; of a variant, how messages call it */
    enum command of;      /* the command itself, or that of which it is a variant */
    const char *was;      /* name of the option that it once was, if another; or NULL */
    const char *operands; /* what follows the name in its usage line, or NULL */
    const char *summary;  /* a sentence without the period */
    size_t least, most;   /* number of operands */
    const struct option_row *operand; /* takes each of them; NULL: the command reads them */
};
extern const struct command_row command_rows[COMMANDS];

/* Returns the command that the first `length` bytes of `word` name, or COMMAND_RUN. */
enum command command_named(const char *word, size_t length);

/* Returns "conform NAME OPERANDS".  Valid as fmt()'s. */
const char *command_usage(enum command command);

/* Prints the options of the command, or of COMMAND_RUN what `conform --help` shows; exits with
 * status 0. */
_Noreturn void command_help(enum command command);

/* For `take`.  Each exits with EXIT_USAGE if the value is invalid. */
typedef void option_take(const struct option_row *row, const char *value, struct options *options);
option_take take_flag, take_text, take_count, take_seconds, take_seed, take_color, take_handler,
    take_python, take_claim, take_fail_on, take_run, take_skip, take_github;

/* Each prints, and exits with status 0. */
option_take take_help, take_help_all, take_version;

#endif
