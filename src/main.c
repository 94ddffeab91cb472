/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform: a conformance suite for NumPy data-memory handlers (NEP 49).
 */
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/reexec.h"
#include "base/text.h"
#include "commands/audited_process.h"
#include "commands/commands.h"
#include "model/options.h"
#include "model/property.h"
#include "report/report.h"
#include "subject/subject.h"

static void print_name(const char *name, void *count)
{
    ++*(size_t *)count;
    puts(name);
}

/* Explains the properties that each of the patterns matches. */
static void explain(char *const *patterns)
{
    size_t count, printed = 0;
    const struct property *const *all = property_all(&count);
    for (char *const *pattern = patterns; *pattern != NULL; pattern++) {
        bool matches = false;
        for (size_t i = 0; i < count && !matches; i++)
            matches = fnmatch(*pattern, all[i]->id, 0) == 0;
        if (!matches)
            die(EXIT_USAGE, "%s: no such property%s; see conform list", escape(*pattern),
                property_meant(*pattern));
    }
    for (char *const *pattern = patterns; *pattern != NULL; pattern++) {
        for (size_t i = 0; i < count; i++) {
            if (fnmatch(*pattern, all[i]->id, 0) != 0)
                continue;
            if (printed++ > 0)
                putchar('\n');
            report_explain(all[i]);
        }
    }
}

static void consider(const char *name, void *suggestion)
{
    suggestion_consider(suggestion, name);
}

/* An operand that is not a path and not the name of a handler may be a command that is misspelled.
 */
static void check_words(char *const *words)
{
    struct subject_place place;
    for (char *const *word = words; *word != NULL; word++) {
        struct suggestion suggestion = suggestion_for(*word, strlen(*word));
        bool is_word = **word != '\0' && strpbrk(*word, "/.:") == NULL;
        if (!is_word || access(*word, F_OK) == 0)
            continue;
        if (subject_find(*word, &place) == NULL) {
            subject_place_free(&place);
            continue;
        }
        command_suggest(&suggestion);
        subject_each_reference(consider, &suggestion);
        die(EXIT_USAGE,
            "%s: no command and no handler has that name%s; see conform --help and conform "
            "handlers",
            escape(*word), suggestion_words(&suggestion, ""));
    }
}

/* Where the shell has closed one of the first three, the next file that is opened would take its
 * place, and the text for it.  Reading or writing them goes on to fail. */
static void occupy_standard_descriptors(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd)
            exit(EXIT_HARNESS_BROKE);
    }
}

int main(int argc, char **argv)
{
    struct options options;
    size_t count;
    int code = EXIT_CONFORMANT;
    const struct property **properties = NULL;
    occupy_standard_descriptors();
    reexec_consume_argv(&argc, &argv);
    options_read(argc, argv, &options);
    switch (options.command) {
    case COMMAND_LIST:
        properties = options_properties(&options, &count);
        report_list(properties, count, options.verbose);
        break;
    case COMMAND_CLAUSES:
        properties = options_properties(&options, &count);
        report_clauses(properties, count);
        break;
    case COMMAND_HANDLERS:
        count = 0;
        subject_each_reference(print_name, &count);
        if (count == 0)
            die(EXIT_CANNOT_LOAD,
                "there are no reference handlers, neither beside this program nor in " PKGLIBDIR);
        break;
    case COMMAND_EXPLAIN:
        explain(options.operands);
        break;
    case COMMAND_EXEC:
    case COMMAND_RECORD:
        code = exec_run(&options, argv);
        break;
    case COMMAND_FAIL_EACH:
        code = fail_each_run(&options, argv);
        break;
    case COMMAND_REPLAY:
    case COMMAND_PRINT:
        code = replay_command(&options, argv);
        break;
    case COMMAND_SEARCH:
        code = search_command(&options, argv);
        break;
    case COMMAND_BENCH:
        code = bench_command(&options, argv);
        break;
    case COMMAND_DEBUG:
        code = debug_command(&options);
        break;
    case COMMAND_INIT:
        code = init_run(options.operands[0]);
        break;
    case COMMAND_COMPARE:
    case COMMAND_REPORT:
    case COMMAND_VERIFY:
        code = saved_reports_run(&options);
        break;
    case COMMAND_RUN:
    case COMMAND_NO_FORK:
        check_words(options.operands);
        code = battery_run(&options, argv);
        break;
    }
    free(properties);
    options_end_output();
    return code;
}
