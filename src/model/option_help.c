/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --help, from the tables, and --version.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/install_path.h"
#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "model/option_table.h"

#ifdef HAVE_VALGRIND_MEMCHECK_H
enum { HAS_MEMCHECK = 1 };
#else
enum { HAS_MEMCHECK = 0 };
#endif

void options_end_output(void)
{
    if (fflush(stdout) != 0)
        die(EXIT_HARNESS_BROKE, "stdout cannot be written: %s", strerror(errno));
    if (ferror(stdout)) /* what filled the buffer had failed before */
        die(EXIT_HARNESS_BROKE, "stdout cannot be written");
}

static _Noreturn void leave_behind_output(void)
{
    options_end_output();
    exit(0);
}

/* ---- commands ---------------------------------------------------------------------------- */

static bool is_word(enum command command)
{
    return command != COMMAND_RUN && command_rows[command].of == command;
}

enum command command_named(const char *word, size_t length)
{
    for (enum command i = 0; i < COMMANDS; i++) {
        if (is_word(i) && strlen(command_rows[i].name) == length &&
            memcmp(command_rows[i].name, word, length) == 0)
            return i;
    }
    return COMMAND_RUN;
}

void command_suggest(struct suggestion *suggestion)
{
    for (enum command i = 0; i < COMMANDS; i++) {
        if (is_word(i))
            suggestion_consider(suggestion, command_rows[i].name);
    }
}

const char *command_usage(enum command command)
{
    const struct command_row *row = &command_rows[command_rows[command].of];
    return fmt("conform%s%s%s%s", row->of != COMMAND_RUN ? " " : "",
               row->of != COMMAND_RUN ? row->name : "", row->operands != NULL ? " " : "",
               row->operands != NULL ? row->operands : "");
}

/* ---- --help ------------------------------------------------------------------------------ */

enum { WIDTH = 80, HELP_COLUMN = 26, SUMMARY_COLUMN = 40 };

/* Breaks the lines between words, and indents each. */
static void print_wrapped(const char *words)
{
    for (int used = HELP_COLUMN; *words != '\0';) {
        int length = (int)strcspn(words, " ");
        if (used > HELP_COLUMN && used + 1 + length > WIDTH)
            used = printf("\n%*s", HELP_COLUMN, "") - 1;
        else if (used > HELP_COLUMN)
            used += printf(" ");
        used += printf("%.*s", length, words);
        words += length + (words[length] == ' ');
    }
    putchar('\n');
}

static void print_option(const struct option_row *row, enum command command)
{
    const char *usual = command == COMMAND_BENCH && row->usual_bench != NULL ? row->usual_bench
                        : row->usual != NULL                                 ? row->usual
                                                                             : row->usual_words;
    const char *letter = row->letter != 0 ? fmt("-%c,", row->letter) : "";
    const char *value = row->argument != NULL ? fmt("=%s", row->argument) : "";
    printf("%-*s", HELP_COLUMN, fmt("  %-4s--%s%s", letter, row->name, value));
    print_wrapped(usual != NULL ? fmt("%s (default: %s)", row->help, usual) : row->help);
}

/* The options of the command and of its variants. */
static void print_options(enum command command)
{
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        bool is_taken = false;
        for (enum command k = 0; k < COMMANDS; k++)
            is_taken = is_taken || (command_rows[k].of == command && (row->takers & 1u << k) != 0);
        if (row->heading != NULL && command == COMMAND_RUN)
            printf("%s%s:\n", i > 0 ? "\n" : "", row->heading);
        else if (is_taken)
            print_option(row, command);
    }
}

static void print_overview(void)
{
    printf("Usage: conform HANDLER [OPTION]...\n"
           "       conform COMMAND [OPTION]... [OPERAND]...\n"
           "%s.\n\n"
           "Commands (conform COMMAND --help prints the options of each):\n",
           command_rows[COMMAND_RUN].summary);
    for (enum command i = 0; i < COMMANDS; i++) {
        if (is_word(i))
            printf("  %-*s%s\n", SUMMARY_COLUMN - 2, command_usage(i) + strlen("conform "),
                   command_rows[i].summary);
    }
    puts("\nMost used options (conform --help-all prints all of them):");
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].common)
            print_option(&option_rows[i], COMMAND_RUN);
    }
    puts("\nExit status: 0 conformant, 1 not conformant, 2 wrong usage, 3 cannot load it,\n"
         "4 internal error, 5 stopped at a limit, 77 the handler cannot work here.");
}

static void print_command(enum command command)
{
    const struct command_row *row = &command_rows[command];
    printf("Usage: conform%s%s [OPTION]...%s%s\n%s.\n\n", command == COMMAND_RUN ? "" : " ",
           command == COMMAND_RUN ? "" : row->name, row->operands != NULL ? " " : "",
           row->operands != NULL ? row->operands : "", row->summary);
    print_options(command);
}

void command_help(enum command command)
{
    if (command == COMMAND_RUN)
        print_overview();
    else
        print_command(command);
    leave_behind_output();
}

void take_help(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value;
    command_help(options->command);
}

void take_help_all(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value, (void)options;
    for (enum command i = 0; i < COMMANDS; i++) {
        if (command_rows[i].of != i)
            continue;
        if (i > 0)
            putchar('\n');
        print_command(i);
    }
    leave_behind_output();
}

void take_version(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value, (void)options;
    printf("conform %s\n"
           "For any CPython from 3.9 on with NumPy 1.22 or newer, %s--memcheck%s.\n"
           "License BSD-3-Clause: free software, without any warranty.\n",
           program_version, HAS_MEMCHECK ? "with " : "without ",
           CONFORM_SANITIZED ? " and a sanitizer" : "");
    leave_behind_output();
}
