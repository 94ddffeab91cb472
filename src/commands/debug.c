/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conform debug ID: gdb on one property, which stops where it fails.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "commands/commands.h"
#include "report/report.h"
#include "subject/subject.h"

_Noreturn int debug_command(const struct options *options)
{
    static struct record record;
    static struct outcome outcome;
    struct subject_place place;
    const struct record *records[] = {&record};
    const char *id = options->operands[0];
    const struct property *property = property_find(id);
    if (property == NULL)
        die(EXIT_USAGE, "debug %s: there is no such property%s; see conform list", escape(id),
            property_meant(id));
    const char *wrong = subject_find(options->handler, &place);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
    const struct run run = {
        .options = options,
        .place = &place,
        .properties = &property,
        .records = records,
        .outcomes = &outcome,
        .count = 1,
    };
    static const char check[] = "command -v gdb >/dev/null || { "
                                "echo 'conform: debug: gdb is not installed; install it' >&2; "
                                "exit 2; }; ";
    execl("/bin/sh", "sh", "-c", fmt("%s%s", check, run_reproduce(&run, 0)), NULL);
    die(EXIT_HARNESS_BROKE, "/bin/sh cannot be started: %s", strerror(errno));
}
