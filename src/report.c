/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all report formats share: counting, concluding, wording, and the files.
 */
#include "report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "text.h"

/* ---- the conclusion ------------------------------------------------------------------------------ */

struct tally run_tally(const struct run *run, enum judge judge)
{
    struct tally tally = {{0}};
    for (size_t i = 0; i < run->count; i++) {
        if (run->properties[i]->judge == judge)
            tally.of[run->records[i]->verdict]++;
    }
    return tally;
}

bool verdict_is_bad(enum verdict verdict)
{
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT || verdict == BROK;
}

static size_t against(const struct run *run, const struct tally *tally)
{
    return tally->of[FAIL] + tally->of[CRASH] + tally->of[TIMEOUT] +
           (run->options->strict ? tally->of[WARN] : 0);
}

enum exit_code run_exit_code(const struct run *run)
{
    struct tally handler = run_tally(run, JUDGE_HANDLER), runtime = run_tally(run, JUDGE_RUNTIME);
    if (against(run, &handler) > 0)
        return EXIT_NOT_CONFORMANT;
    return handler.of[BROK] + runtime.of[BROK] > 0 ? EXIT_HARNESS_BROKE : EXIT_CONFORMANT;
}

static bool is_whole(const struct run *run)
{
    size_t all;
    property_all(&all);
    return run->count == all;
}

const char *run_conclusion(const struct run *run)
{
    struct tally tally = run_tally(run, JUDGE_HANDLER);
    size_t bad = against(run, &tally);
    switch (run_exit_code(run)) {
    case EXIT_CONFORMANT:
        return is_whole(run) ? "CONFORMANT"
                             : "conformant in the properties that were run, which are not all";
    case EXIT_HARNESS_BROKE:
        return "NO VERDICT: the harness could not do its part";
    default:
        return text("NOT CONFORMANT: %zu of %zu properties speak against it", bad, run->count);
    }
}

/* ---- words ------------------------------------------------------------------------------------------ */

const char *record_message(const struct record *record)
{
    if (record->verdict == PASS)
        return "";
    if (record->expected[0] == '\0')
        return text_safe(record->seen);
    return text("expected %s; seen %s", text_safe(record->expected), text_safe(record->seen));
}

const char *run_handler_name(const struct run *run)
{
    static char name[4 * sizeof run->load->name + 1];
    if (!run->load->has_name)
        return "";
    return text_clean(name, sizeof name, run->load->name,
                      strnlen(run->load->name, sizeof run->load->name), 0);
}

const char *run_again(const struct run *run, const struct property *property)
{
    return text("%s%s --handler=%s%s%s --run=%s --seed=%llu %s",
                run->options->memcheck ? "" : "gdb --args ", text_shell(run->options->program), text_shell(run->place->argument),
                run->options->python != NULL ? " --python=" : "",
                run->options->python != NULL ? text_shell(run->options->python) : "",
                property->id, (unsigned long long)run->options->seed,
                run->options->memcheck ? "--memcheck" : "--no-fork");
}

const char *libc_name(void)
{
#ifdef __GLIBC__
    return text("glibc %s", gnu_get_libc_version());
#else
    return "unknown";
#endif
}

const char *kernel_name(void)
{
    struct utsname name;
    if (uname(&name) != 0)
        return "unknown";
    return text("%s %s %s", name.sysname, name.release, name.machine);
}

/* ---- files -------------------------------------------------------------------------------------------- */

struct report_file {
    const char *option, *path; /* as given */
    char *target, *temporary;  /* NULL for stdout */
    FILE *file;
    int (*write)(FILE *file, const struct run *run);
};

enum { FORMATS = 3 };
struct report_files {
    struct report_file of[FORMATS];
};

bool report_files_take_stdout(const struct options *options)
{
    const char *const paths[FORMATS] = {options->tap, options->junit, options->json};
    for (int i = 0; i < FORMATS; i++) {
        if (paths[i] != NULL && strcmp(paths[i], "-") == 0)
            return true;
    }
    return false;
}

static _Noreturn void cannot_write(struct report_files *files, const struct report_file *file,
                                   const char *why)
{
    report_files_discard(files);
    leave_with(EXIT_USAGE, "%s=%s: cannot be written: %s", file->option, text_safe(file->path),
               why);
}

/* A device or a pipe is written to directly; anything else is written beside and renamed. */
static void open_one(struct report_files *files, struct report_file *file)
{
    struct stat status;
    if (strcmp(file->path, "-") == 0) {
        file->file = stdout;
        return;
    }
    bool exists = stat(file->path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        cannot_write(files, file, "it is a directory");
    if (exists && !S_ISREG(status.st_mode)) {
        file->file = fopen(file->path, "we");
        if (file->file == NULL)
            cannot_write(files, file, strerror(errno));
        return;
    }
    if (exists && access(file->path, W_OK) != 0)
        cannot_write(files, file, strerror(errno));
    file->target = exists ? realpath(file->path, NULL) : strdup(file->path);
    if (file->target == NULL || asprintf(&file->temporary, "%s.XXXXXX", file->target) < 0)
        cannot_write(files, file, "out of memory");
    int descriptor = mkstemp(file->temporary);
    if (descriptor < 0) {
        free(file->temporary);
        file->temporary = NULL;
        cannot_write(files, file, strerror(errno));
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, exists ? status.st_mode & 0777 : 0666 & ~mask);
    file->file = fdopen(descriptor, "w");
}

struct report_files *report_files_open(const struct options *options)
{
    static struct report_files files;
    files = (struct report_files){{
        {.option = "--tap", .path = options->tap, .write = report_tap},
        {.option = "--junit", .path = options->junit, .write = report_junit},
        {.option = "--json", .path = options->json, .write = report_json},
    }};
    for (int i = 0; i < FORMATS; i++) {
        if (files.of[i].path != NULL)
            open_one(&files, &files.of[i]);
    }
    return &files;
}

static int write_one(struct report_file *file, const struct run *run)
{
    if (file->write(file->file, run) != 0 || fflush(file->file) != 0 || ferror(file->file))
        return -1;
    if (file->file == stdout)
        return 0;
    FILE *stream = file->file;
    file->file = NULL;
    if (fclose(stream) != 0)
        return -1;
    if (file->temporary != NULL && rename(file->temporary, file->target) != 0)
        return -1;
    free(file->temporary);
    file->temporary = NULL;
    return 0;
}

void report_files_write(struct report_files *files, const struct run *run)
{
    for (int i = 0; i < FORMATS; i++) {
        struct report_file *file = &files->of[i];
        if (file->file == NULL || write_one(file, run) == 0)
            continue;
        int error = errno;
        report_files_discard(files);
        leave_with(EXIT_HARNESS_BROKE, "%s=%s: cannot be written: %s", file->option,
                   text_safe(file->path), strerror(error));
    }
}

void report_files_discard(struct report_files *files)
{
    for (int i = 0; i < FORMATS; i++) {
        struct report_file *file = &files->of[i];
        if (file->temporary != NULL)
            unlink(file->temporary);
        file->temporary = NULL;
    }
}
