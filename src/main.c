/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform: a conformance suite for NumPy data-memory handlers (NEP 49).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static void explain(const char *id)
{
    const struct property *property = property_find(id);
    if (property == NULL)
        die(EXIT_USAGE, "--explain=%s: there is no such property%s; see conform --list", escape(id),
            property_meant(id));
    report_explain(property);
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
        report_list(properties, count);
        break;
    case COMMAND_CLAUSES:
        properties = options_properties(&options, &count);
        report_clauses(properties, count);
        break;
    case COMMAND_LIST_HANDLERS:
        count = 0;
        subject_each_reference(print_name, &count);
        if (count == 0)
            die(EXIT_CANNOT_LOAD,
                "there are no reference handlers, neither beside this program nor in " PKGLIBDIR);
        break;
    case COMMAND_EXPLAIN:
        explain(options.explain);
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
    case COMMAND_INIT:
        code = init_run(options.init);
        break;
    case COMMAND_COMPARE:
    case COMMAND_FROM:
    case COMMAND_VERIFY:
        code = saved_reports_run(&options);
        break;
    case COMMAND_RUN:
    case COMMAND_NO_FORK:
        code = battery_run(&options, argv);
        break;
    }
    free(properties);
    options_end_output();
    return code;
}
