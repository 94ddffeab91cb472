/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --help, --version and the part of the man page that is about options, from the table.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/instrumented.h"
#include "base/program_version.h"
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
        leave_with(EXIT_HARNESS_BROKE, "stdout cannot be written: %s", strerror(errno));
    if (ferror(stdout)) /* what filled the buffer had failed before */
        leave_with(EXIT_HARNESS_BROKE, "stdout cannot be written");
}

_Noreturn void options_leave_behind_output(void)
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
    for (const char *line = row->help; *line != '\0'; at = 0) {
        int length = (int)strcspn(line, "\n");
        printf("%*s%.*s\n", column - at, "", length, line);
        line += length + (line[length] == '\n');
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
        else if (option_rows[i].help != NULL)
            print_help_row(&option_rows[i]);
    }
    fputs(closing, stdout);
    options_leave_behind_output();
}

void take_version(const struct option_row *row, const char *value, struct options *options)
{
    (void)row, (void)value, (void)options;
    printf("conform %s\n"
           "For any CPython from 3.9 on with NumPy 1.22 or newer, %s--memcheck%s.\n"
           "License BSD-3-Clause: free software, without any warranty.\n",
           program_version, HAS_MEMCHECK ? "with " : "without ",
           CONFORM_SANITIZED ? " and a sanitizer" : "");
    options_leave_behind_output();
}

/* ---- the man page ----------------------------------------------------------------------- */

/* Prose on its way into mdoc: a sentence begins a line, and lines are filled up to 80 columns. */
struct prose {
    const char *argument; /* of the option */
    int column;
};

static void end_line(struct prose *prose)
{
    if (prose->column > 0)
        putchar('\n');
    prose->column = 0;
}

static void print_plain_word(struct prose *prose, const char *word, int length)
{
    enum { WIDTH = 80 };
    if (prose->column + 1 + length > WIDTH)
        end_line(prose);
    prose->column += printf("%s%.*s", prose->column > 0 ? " " : "", length, word);
    if (word[length - 1] == '.')
        end_line(prose);
}

/* A word, with the punctuation behind it, in a line of its own, where it is an option or what an
 * option's value is called. */
static void print_word(struct prose *prose, const char *word, int length)
{
    int bare = length;
    while (bare > 1 && strchr(",.;:)", word[bare - 1]) != NULL)
        bare--;
    bool is_argument = prose->argument != NULL && (int)strlen(prose->argument) == bare &&
                       strncmp(word, prose->argument, (size_t)bare) == 0;
    if (!is_argument && strncmp(word, "--", 2) != 0) {
        print_plain_word(prose, word, length);
        return;
    }
    end_line(prose);
    if (is_argument)
        printf(".Ar %.*s", bare, word);
    else
        printf(".Fl %.*s", bare - 1, word + 1);
    for (; bare < length; bare++)
        printf(" %c", word[bare]);
    putchar('\n');
}

static void print_prose(const char *words, const char *argument)
{
    struct prose prose = {.argument = argument};
    bool begins_line = true;
    while (*words != '\0') {
        int length = (int)strcspn(words, " \n");
        if (begins_line && *words == '.') { /* mdoc */
            end_line(&prose);
            length = (int)strcspn(words, "\n");
            printf("%.*s\n", length, words);
        } else if (length > 0) {
            print_word(&prose, words, length);
        }
        begins_line = words[length] == '\n';
        words += length + (words[length] != '\0');
    }
    end_line(&prose);
}

/* What --help says, as a sentence. */
static void print_sentence(const struct option_row *row)
{
    char sentence[512];
    snprintf(sentence, sizeof sentence, "%s.", row->help);
    sentence[0] = (char)toupper((unsigned char)sentence[0]);
    print_prose(sentence, row->argument);
}

static void print_operands(const char *operands)
{
    bool is_behind = strncmp(operands, "-- ", 3) == 0;
    printf("%s Ar %s", is_behind ? " Fl -" : "", operands + (is_behind ? 3 : 0));
}

static void print_man_row(const struct option_row *row)
{
    fputs(".It", stdout);
    if (row->letter != 0 && row->argument != NULL)
        printf(" Fl %c Ar %s ,", row->letter, row->argument);
    else if (row->letter != 0)
        printf(" Fl %c ,", row->letter);
    printf(" Fl -%s", row->name);
    if (row->argument != NULL)
        printf(row->may_lack_it ? " Ns Op = Ns Ar %s" : " Ns = Ns Ar %s", row->argument);
    if (row->operands != NULL)
        print_operands(row->operands);
    putchar('\n');
    if (row->man != NULL)
        print_prose(row->man, row->argument);
    else
        print_sentence(row);
}

void take_mdoc(const struct option_row *unused, const char *value, struct options *options)
{
    (void)unused, (void)value, (void)options;
    bool is_open = false;
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        if (row->heading != NULL) {
            printf("%s.Ss %s\n", is_open ? ".El\n" : "", row->heading);
            if (row->man != NULL)
                print_prose(row->man, NULL);
            puts(".Bl -tag -width Ds");
            is_open = true;
        } else if (row->help != NULL) {
            print_man_row(row);
        }
    }
    puts(".El");
    options_leave_behind_output();
}
