/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How all report formats word what came of the run, and where.
 */
#include "report/report.h"

#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/instrumented.h"
#include "base/text.h"

/* Four bytes for each one hold what has to be escaped. */
enum { ESCAPED = 4 };

const char *record_expected(const struct record *record)
{
    static char clean[ESCAPED * sizeof record->expected + 1];
    return text_clean(clean, sizeof clean, record->expected,
                      strnlen(record->expected, sizeof record->expected), 0);
}

const char *record_seen(const struct record *record)
{
    static char clean[ESCAPED * sizeof record->seen + 1];
    return text_clean(clean, sizeof clean, record->seen, strnlen(record->seen, sizeof record->seen),
                      0);
}

const char *record_output(const struct record *record, int keep_lines)
{
    static char clean[ESCAPED * sizeof record->output + 1];
    size_t length = __atomic_load_n(&record->output_length, __ATOMIC_RELAXED); /* once */
    return text_clean(clean, sizeof clean, record->output, MIN(length, sizeof record->output),
                      keep_lines);
}

const char *record_message(const struct record *record)
{
    static char message[ESCAPED * (sizeof record->expected + sizeof record->seen) + 32];
    if (record->verdict == PASS)
        return "";
    if (record->expected[0] == '\0')
        return record_seen(record);
    snprintf(message, sizeof message, "expected %s; seen %s", record_expected(record),
             record_seen(record));
    return message;
}

const char *record_hint(const struct record *record, const struct property *property)
{
    const struct property *about = property_find(record->attribute_to);
    if (record->by_checker == FOUND_UNDEFINED)
        return "look at the line that was printed: C says nothing of what comes of it, so that the "
               "next compiler may make something else of it";
    if (record->by_checker == FOUND_ERROR)
        return "build the handler with -g, and look at the line that is named: the memory there is "
               "not the handler's, or not yet, or no longer";
    if (record->control[0] != '\0')
        return "it comes without what the clause is about: ordinary use goes wrong, so look at the "
               "call and the sizes that are named";
    if (about == NULL && record->verdict == CRASH && !property->ends_process &&
        call_in_words(&record->suspects[ENDED_IN]) != NULL)
        return text("it ended inside the handler, which may have another reason than what is tried "
                    "here: look at the call and the block that are named, under a debugger by the "
                    "command that reproduces it; and if it is that, %s",
                    property->hint);
    return about != NULL ? about->hint : property->hint;
}

const char *run_file(const struct run *run)
{
    static char clean[ESCAPED * PATH_MAX + 1];
    return text_clean(clean, sizeof clean, run->place->path, strlen(run->place->path), 0);
}

const char *run_handler_name(const struct run *run)
{
    static char clean[ESCAPED * sizeof run->load->name + 1];
    if (run->load->has_name == 0)
        return "";
    return text_clean(clean, sizeof clean, run->load->name,
                      strnlen(run->load->name, sizeof run->load->name), 0);
}

bool run_has_gil(const struct run *run)
{
    return run->environment->gil || run->load->has_gil != 0;
}

const char *run_gil(const struct run *run)
{
    if (!run->environment->free_threaded)
        return "";
    if (run->environment->gil)
        return " with the GIL";
    return run_has_gil(run) ? " with the GIL, which loading the handler turned on"
                            : " without the GIL";
}

const char *run_claims(const struct run *run)
{
    static char clean[ESCAPED * sizeof run->load->claims + 1];
    return text_clean(clean, sizeof clean, run->load->claims,
                      strnlen(run->load->claims, sizeof run->load->claims), 0);
}

const char *group_name(const struct property *property)
{
    const struct group *group = property_group(property);
    return group != NULL ? group->name
                         : text("%.*s", (int)strcspn(property->id, "."), property->id);
}

static const char *libc_name(void)
{
#ifdef __GLIBC__
    return text("glibc %s", gnu_get_libc_version());
#else
    return "unknown";
#endif
}

static const char *kernel_name(void)
{
    struct utsname name;
    if (uname(&name) != 0)
        return "unknown";
    return text("%s %s %s", name.sysname, name.release, name.machine);
}

struct machine machine_here(void)
{
    static char libc[64], kernel[256];
    snprintf(libc, sizeof libc, "%s", libc_name());
    snprintf(kernel, sizeof kernel, "%s", text_safe(kernel_name()));
    return (struct machine){
        .libc = libc,
        .kernel = kernel,
        .page_size = sysconf(_SC_PAGESIZE),
        .checker = memcheck_is_running()    ? "memcheck"
                   : sanitizer_is_running() ? "a sanitizer"
                   : emulator_is_running()  ? "an emulator"
                                            : NULL,
    };
}
