/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery in several interpreters.  Each is a run of this program of its own, whose report is
 * read as JSON: one that does not start, or takes all down with it, is a column like the others.
 */
#include "commands/commands.h"

#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/text.h"
#include "report/present.h"
#include "report/report.h"
#include "report/report_files.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* One interpreter. */
struct column {
    const char *python; /* as given */
    json_t *report;     /* NULL where none came */
    char *error;        /* why not, in one line; else NULL */
    int code;
};

struct matrix {
    struct column *columns;
    size_t count;
};

/* ---- running one ------------------------------------------------------------------------- */

/* The words of the command line for one of them: its --python and --json stand in the place of all
 * that were given. */
static char **command_for(const struct options *options, char **argv, const char *python)
{
    size_t count = 0, kept = 0;
    while (argv[count] != NULL)
        count++;
    char **command = calloc(count + 3, sizeof *command);
    for (size_t i = 0; command != NULL && i < count; i++) {
        const char *end = argv[i] + strlen(argv[i]);
        bool is_value = false, has_value = false;
        for (size_t k = 0; k <= options->python_count; k++) {
            const char *value =
                k < options->python_count ? options->pythons[k] : options->reports[REPORT_json];
            is_value = is_value || value == argv[i];
            has_value = has_value || (value > argv[i] && value <= end);
        }
        if (is_value)
            kept--; /* the word before is the option */
        else if (!has_value)
            command[kept++] = argv[i];
    }
    if (command == NULL || asprintf(&command[kept++], "--python=%s", python) < 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    command[kept++] = (char *)"--json=-";
    command[kept] = NULL;
    return command;
}

/* What it said last on stderr, or how it ended. */
static char *error_of(int errors, int status)
{
    size_t length;
    char *said = present_read(errors, &length), *end = said + strlen(said);
    while (end > said && end[-1] == '\n')
        *--end = '\0';
    char *line = strrchr(said, '\n');
    line = line != NULL ? line + 1 : said;
    if (strncmp(line, LEAVING, strlen(LEAVING)) == 0)
        line += strlen(LEAVING);
    if (*line == '\0')
        line =
            (char *)(interrupt_came() != 0 ? "interrupted"
                     : WIFSIGNALED(status) ? text("died of %s", child_signal_name(WTERMSIG(status)))
                                           : text("ended with status %d", WEXITSTATUS(status)));
    line = strdup(line);
    free(said);
    return line;
}

static void run_column(struct column *column, char **command)
{
    int output = memfd_create("report", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC);
    if (output < 0 || errors < 0)
        leave_with(EXIT_HARNESS_BROKE, "no memory for a report: %s", strerror(errno));
    int status = present_execute("/proc/self/exe", (const char *const *)command,
                                 (const int[]){-1, output, errors}, false, true);
    size_t length;
    char *report = present_read(output, &length);
    column->report = json_loads(report, 0, NULL);
    free(report);
    column->error = column->report == NULL ? error_of(errors, status) : NULL;
    column->code = WIFEXITED(status)       ? WEXITSTATUS(status)
                   : interrupt_came() != 0 ? EXIT_INCOMPLETE
                                           : EXIT_HARNESS_BROKE;
    if (column->report == NULL && column->code == EXIT_CONFORMANT)
        column->code = EXIT_HARNESS_BROKE;
    if (column->report != NULL)
        close(errors);
}

/* ---- what came of it --------------------------------------------------------------------- */

/* What the columns mean together. */
struct counts {
    size_t conformant, waived; /* waived: those that are conformant because of --expect */
    enum exit_code code;
};

static struct counts count_columns(const struct matrix *matrix)
{
    struct counts counts = {.code = EXIT_CONFORMANT};
    for (size_t k = 0; k < matrix->count; k++) {
        const struct column *column = &matrix->columns[k];
        bool is_conformant = column->code == EXIT_CONFORMANT;
        counts.conformant += is_conformant;
        counts.waived +=
            is_conformant && json_integer_value(json_object_get(column->report, "waivers")) > 0;
        counts.code = exit_code_worse(counts.code, (enum exit_code)column->code);
    }
    return counts;
}

/* ---- telling it -------------------------------------------------------------------------- */

static void print_column(const struct matrix *matrix, size_t k)
{
    const struct column *column = &matrix->columns[k];
    const char *python = text_safe(column->python);
    if (column->report == NULL) {
        printf("%2zu  %s: no report: %s\n", k + 1, python, column->error);
    } else {
        json_t *environment = json_object_get(column->report, "environment");
        const char *version = json_string_value(json_object_get(environment, "numpy"));
        printf("%2zu  %s: ", k + 1, python);
        if (version != NULL && *version != '\0') /* else it was stopped before */
            printf("Python %s, NumPy %s: ",
                   json_string_value(json_object_get(environment, "python")), version);
        puts(json_string_value(json_object_get(column->report, "conclusion")));
    }
    fflush(stdout);
}

static json_t *value_of(const struct matrix *matrix, const struct counts *counts)
{
    json_t *columns = json_array();
    for (size_t k = 0; k < matrix->count; k++) {
        const struct column *column = &matrix->columns[k];
        json_array_append_new(columns,
                              json_pack("{s:s, s:i, s:s*, s:O*}", "python",
                                        text_safe(column->python), "exit_code", column->code,
                                        "error", column->error, "report", column->report));
    }
    return json_pack(
        "{s:s, s:s, s:b, s:i, s:b, s:o}", "format", "conform-matrix-1", "conform", program_version,
        "conformant", counts->code == EXIT_CONFORMANT && counts->waived == 0, "exit_code",
        (int)counts->code, "interrupted", interrupt_came() != 0, "interpreters", columns);
}

enum exit_code matrix_run(const struct options *options, char **argv)
{
    struct matrix matrix = {.count = options->python_count};
    bool told = !report_files_take_stdout(options);
    size_t count;
    free(options_properties(options, &count)); /* so that a wrong pattern is reported once */
    matrix.columns = calloc(matrix.count, sizeof *matrix.columns);
    if (matrix.columns == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    child_prepare();
    interrupt_catch();
    if (options->expect != NULL)
        expectations_read(options->expect); /* so that what is wrong is said once */
    struct report_files *files = report_files_open(options);
    for (size_t k = 0; k < matrix.count; k++) {
        matrix.columns[k].python = options->pythons[k];
        if (interrupt_came() == 0)
            run_column(&matrix.columns[k], command_for(options, argv, options->pythons[k]));
        else
            matrix.columns[k] = (struct column){options->pythons[k], NULL,
                                                strdup("not run: interrupted"), EXIT_INCOMPLETE};
        if (told && !options->quiet)
            print_column(&matrix, k);
    }
    struct counts counts = count_columns(&matrix);
    json_t *value = value_of(&matrix, &counts);
    const char *const words[] = {"--run", "--matrix", options->verbose ? "--verbose" : NULL, NULL};
    json_t *answer = present_answer(words, value);
    json_object_set(value, "differ_or_bad", json_object_get(answer, "differ_or_bad"));
    report_files_write(files, value, (const char *const[]){"--run", NULL});
    json_decref(value);
    if (told && !options->quiet)
        fputs(json_string_value(json_object_get(answer, "text")), stdout);
    json_decref(answer);
    if (told)
        printf("%s%s: conformant in %zu of %zu interpreters%s\n", options->quiet ? "" : "\n",
               text_safe(options->handler), counts.conformant, matrix.count,
               counts.waived > 0 ? text(", in %zu of them with waivers", counts.waived) : "");
    fflush(stdout);
    if (interrupt_came() != 0)
        interrupt_die();
    return counts.code;
}
