/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The files of --json and the other formats.
 */
#include "report/report_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "report/atomic_file.h"
#include "report/present.h"
#include "supervise/interrupt.h"

struct report_file {
    const char *option, *path; /* as given */
    struct atomic_file to;     /* open before the report is made if it is written to directly */
};

struct report_files {
    struct report_file of[REPORT_FORMAT_COUNT];
};

bool report_files_take_stdout(const struct options *options)
{
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (options->reports[i] != NULL && strcmp(options->reports[i], "-") == 0)
            return true;
    }
    return false;
}

static _Noreturn void cannot_write(const struct report_file *file, enum exit_code code, int error)
{
    if (error == EINTR && interrupt_came() != 0)
        interrupt_die(); /* a pipe that nobody reads */
    die(code, "%s=%s: cannot be written: %s; name another file", file->option, escape(file->path),
        strerror(error));
}

struct report_files *report_files_open(const struct options *options)
{
#define REPORT_FILE(name, words, takers) {.option = "--" #name},
    static struct report_files files = {{REPORT_FORMATS(REPORT_FILE)}};
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        struct report_file *file = &files.of[i];
        file->path = options->reports[i];
        if (file->path != NULL && atomic_file_open(&file->to, file->path) != 0)
            cannot_write(file, EXIT_USAGE, errno);
        if (file->to.temporary != NULL) /* this was a trial */
            atomic_file_close(&file->to, false);
    }
    return &files;
}

void report_files_pass_on(struct report_files *files)
{
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        FILE *file = files->of[i].to.file;
        if (file != NULL && file != stdout)
            fcntl(fileno(file), F_SETFD, 0);
    }
}

static void write_or_leave(struct report_file *file, const char *contents, size_t length)
{
    if (file->to.file == NULL && atomic_file_open(&file->to, file->path) != 0)
        cannot_write(file, EXIT_HARNESS_BROKE, errno);
    fwrite(contents, 1, length, file->to.file);
    if (atomic_file_close(&file->to, true) != 0)
        cannot_write(file, EXIT_HARNESS_BROKE, errno);
}

static void write_json(struct report_file *file, const json_t *value)
{
    char *contents = json_dumps(value, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    size_t length = contents != NULL ? strlen(contents) : 0;
    if (contents == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    contents[length] = '\n'; /* in the place of the NUL */
    write_or_leave(file, contents, length + 1);
    free(contents);
}

void report_files_write(struct report_files *files, const json_t *value,
                        const char *const *arguments)
{
    int made[REPORT_FORMAT_COUNT];
    size_t operands = 0, count = 0, length;
    while (arguments[operands] != NULL)
        operands++;
    const char **words = allocate(REPORT_FORMAT_COUNT + operands + 1, sizeof *words);
    if (files->of[REPORT_json].path != NULL)
        write_json(&files->of[REPORT_json], value);
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (i == REPORT_json || files->of[i].path == NULL)
            continue;
        made[i] = present_memory();
        words[count++] = strdup(fmt("%s=/dev/fd/%d", files->of[i].option, made[i]));
    }
    if (count == 0)
        return;
    memcpy(words + count, arguments, operands * sizeof *words);
    int status = present(words, value, false);
    free(words);
    if (status != 0)
        exit(value != NULL ? EXIT_HARNESS_BROKE : status);
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (i == REPORT_json || files->of[i].path == NULL)
            continue;
        char *contents = present_read(made[i], &length);
        write_or_leave(&files->of[i], contents, length);
        free(contents);
    }
}
