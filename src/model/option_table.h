/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of options: all that is known of each is in its row, and the parser and --help use it.
 */
#ifndef CONFORM_OPTION_TABLE_H
#define CONFORM_OPTION_TABLE_H

#include "model/options.h"

struct option_row {
    const char *heading; /* alone in its row: begins a section of --help */
    const char *name;
    char letter;          /* or 0 */
    const char *argument; /* what its value is called; NULL where it has none */
    bool may_lack_it;     /* the value, which then is NULL */
    const char *operands; /* the words behind the options, "-- " before them where one is needed;
                             NULL where there are none */
    unsigned takers;      /* the commands that take it, a bit each; 0: it ends all by itself */
    enum command command; /* the command that it chooses, or COMMAND_RUN */

    /* Takes its value; NULL where it does nothing but choose.  What these need is below. */
    void (*take)(const struct option_row *row, const char *value, struct options *options);
    size_t field; /* offset in struct options */
    double least, most;

    /* The default, as a user would give it, or NULL.  --help prints it. */
    const char *usual;
    const char *usual_words; /* in place of it, if options_read() or the command computes it */
    const char *usual_memcheck, *usual_bench; /* under valgrind, with --bench; NULL: the same */

    const char *help; /* lines for --help; of a heading, what is said behind it */
};

extern const struct option_row option_rows[];
extern const size_t option_row_count;
enum { MOST_OPTION_ROWS = 80 };

/* A command: what it is called where an option is refused. */
struct command_row {
    const char *name;
    enum command of; /* the one in whose place it is chosen */
};
extern const struct command_row command_rows[COMMANDS];

/* For `take`.  Each exits with EXIT_USAGE if the value is invalid. */
typedef void option_take(const struct option_row *row, const char *value, struct options *options);
option_take take_flag, take_text, take_count, take_seconds, take_seed, take_bench, take_color,
    take_handler, take_python, take_claim, take_fail_on, take_run, take_skip;

/* Each prints, and exits with status 0. */
option_take take_help, take_version;

#endif
