/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --help, from the table, and --version.
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

static const char usage[] =
    "Usage: conform --handler HANDLER [OPTION]...\n"
    "       conform --handler HANDLER [OPTION]... --exec -- SCRIPT|-m MODULE|-c CODE "
    "[ARGUMENT]...\n"
    "Test whether a NumPy data-memory handler (NEP 49) keeps the contract.\n";

static const char closing[] =
    "\n"
    "Exit status: 0 conformant, 1 not conformant, 2 wrong usage, 3 the handler cannot be\n"
    "loaded, 4 the harness broke, 5 a limit was reached and nothing is wrong so far, 77 the\n"
    "handler says that it cannot work here.\n";

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

/* ---- --help ----------------------------------------------------------------------------- */

static void print_help_row(const struct option_row *row)
{
    static const int column = 31;
    char letter[] = "    ";
    if (row->letter != 0)
        snprintf(letter, sizeof letter, "-%c,", row->letter);
    int at = printf("  %-4s--%s", letter, row->name);
    if (row->argument != NULL)
        at += printf(row->may_lack_it ? "[=%s]" : "=%s", row->argument);
    if (row->operands != NULL)
        at += printf(" %s", row->operands);
    if (at >= column) {
        putchar('\n');
        at = 0;
    }
    const char *usual = row->usual != NULL ? row->usual : row->usual_words;
    for (const char *line = row->help; *line != '\0'; at = 0) {
        int length = (int)strcspn(line, "\n");
        printf("%*s%.*s", column - at, "", length, line);
        line += length + (line[length] == '\n');
        if (*line == '\0' && usual != NULL)
            printf("%s(default: %s)",
                   column + length + 12 + (int)strlen(usual) > 80 ? fmt("\n%*s", column, "") : " ",
                   usual);
        putchar('\n');
    }
}

void take_help(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value, (void)options;
    fputs(usage, stdout);
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].heading != NULL && option_rows[i].help != NULL)
            printf("\n%s (%s):\n", option_rows[i].heading, option_rows[i].help);
        else if (option_rows[i].heading != NULL)
            printf("\n%s:\n", option_rows[i].heading);
        else
            print_help_row(&option_rows[i]);
    }
    fputs(closing, stdout);
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
