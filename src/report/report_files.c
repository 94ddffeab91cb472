/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Each report is written beside its place and renamed, or into the device or pipe that is there.
 */
#include "report/report_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "report/present.h"
#include "report/report.h"
#include "supervise/interrupt.h"

struct report_file {
    const char *option, *path; /* as given */
    char *target, *temporary;  /* NULL for stdout */
    FILE *file;
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
    leave_with(code, "%s=%s: cannot be written: %s; name another file", file->option,
               text_safe(file->path), strerror(error));
}

/* Where the file is, or will be: behind links, also where they lead to nothing yet.  The caller's,
 * or NULL with errno set. */
static char *place_of(const char *path)
{
    char link[PATH_MAX], *behind;
    char *place = realpath(path, NULL);
    if (place != NULL || errno != ENOENT)
        return place;
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return strdup(path);
    link[length] = '\0';
    const char *slash = link[0] != '/' ? strrchr(path, '/') : NULL;
    int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    if (asprintf(&behind, "%.*s%s", folder, path, link) < 0)
        return NULL;
    place = place_of(behind);
    free(behind);
    return place;
}

/* Begins a file beside the target, under the access rights that the target has or would get. */
static int open_beside(struct report_file *file)
{
    struct stat status;
    bool exists = stat(file->path, &status) == 0;
    if (exists && access(file->path, W_OK) != 0)
        return -1;
    file->target = place_of(file->path);
    const char *slash = file->target != NULL ? strrchr(file->target, '/') : NULL;
    int folder = slash != NULL ? (int)(slash - file->target) + 1 : 0;
    if (file->target == NULL ||
        asprintf(&file->temporary, "%.*s.conform-XXXXXX", folder, file->target) < 0) {
        file->temporary = NULL;
        return -1;
    }
    int descriptor = mkostemp(file->temporary, O_CLOEXEC);
    if (descriptor < 0) {
        int error = errno;
        free(file->temporary);
        file->temporary = NULL;
        errno = error;
        return -1;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, exists ? status.st_mode & 0777 : 0666 & ~mask);
    file->file = fdopen(descriptor, "w");
    return file->file != NULL ? 0 : -1;
}

/* Takes away what was begun. */
static void discard(struct report_file *file)
{
    if (file->file != NULL && file->file != stdout)
        fclose(file->file);
    if (file->temporary != NULL)
        unlink(file->temporary);
    free(file->temporary);
    free(file->target);
    file->file = NULL;
    file->temporary = file->target = NULL;
}

/* A device or a pipe is opened now and written to directly; with anything else this is a trial. */
static void open_one(struct report_file *file)
{
    struct stat status;
    if (strcmp(file->path, "-") == 0) {
        file->file = stdout;
        return;
    }
    bool exists = stat(file->path, &status) == 0;
    if (exists && S_ISDIR(status.st_mode))
        cannot_write(file, EXIT_USAGE, EISDIR);
    if (exists && !S_ISREG(status.st_mode)) {
        file->file = fopen(file->path, "we");
        if (file->file == NULL)
            cannot_write(file, EXIT_USAGE, errno);
        return;
    }
    int error = open_beside(file) == 0 ? 0 : errno;
    discard(file);
    if (error != 0)
        cannot_write(file, EXIT_USAGE, error);
}

struct report_files *report_files_open(const struct options *options)
{
#define REPORT_FILE(name, words, takers) {.option = "--" #name},
    static struct report_files files = {{REPORT_FORMATS(REPORT_FILE)}};
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        files.of[i].path = options->reports[i];
        if (files.of[i].path != NULL)
            open_one(&files.of[i]);
    }
    return &files;
}

static int write_one(struct report_file *file, const char *contents, size_t length)
{
    if (file->file == NULL && open_beside(file) != 0)
        return -1;
    errno = EIO; /* where a library fails without saying why */
    if (fwrite(contents, 1, length, file->file) != length || fflush(file->file) != 0)
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

void report_files_pass_on(struct report_files *files)
{
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        FILE *file = files->of[i].file;
        if (file != NULL && file != stdout)
            fcntl(fileno(file), F_SETFD, 0);
    }
}

static void write_or_leave(struct report_file *file, const char *contents, size_t length)
{
    int error = write_one(file, contents, length) == 0 ? 0 : errno;
    discard(file);
    if (error != 0)
        cannot_write(file, EXIT_HARNESS_BROKE, error);
}

static void write_json(struct report_file *file, const json_t *value)
{
    char *contents = json_dumps(value, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    size_t length = contents != NULL ? strlen(contents) : 0;
    if (contents == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    contents[length] = '\n'; /* in the place of the NUL */
    write_or_leave(file, contents, length + 1);
    free(contents);
}

void report_files_write(struct report_files *files, const json_t *value,
                        const char *const *arguments)
{
    struct present_file made[REPORT_FORMAT_COUNT];
    size_t operands = 0, count = 0, length;
    while (arguments[operands] != NULL)
        operands++;
    const char **words = calloc(REPORT_FORMAT_COUNT + operands + 1, sizeof *words);
    if (words == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    if (files->of[REPORT_json].path != NULL)
        write_json(&files->of[REPORT_json], value);
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (i == REPORT_json || files->of[i].path == NULL)
            continue;
        made[i] = present_file_open();
        words[count++] = strdup(text("%s=%s", files->of[i].option, made[i].name));
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
        char *contents = present_file_take(&made[i], &length);
        write_or_leave(&files->of[i], contents, length);
        free(contents);
    }
}
