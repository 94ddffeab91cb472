/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What all report formats share: counting, concluding, wording, and the files.
 */
#include "report/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "base/instrumented.h"
#include "base/text.h"
#include "report/comparison.h"
#include "supervise/interrupt.h"

/* ---- the conclusion ----------------------------------------------------------------------- */

struct tally run_tally(const struct run *run, enum target target)
{
    struct tally tally = {{0}};
    for (size_t i = 0; i < run->count; i++) {
        if (run->properties[i]->target == target)
            tally.of[run->records[i]->verdict]++;
    }
    return tally;
}

bool verdict_is_bad(enum verdict verdict)
{
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT || verdict == BROK ||
           verdict == INCOMPLETE;
}

bool verdict_would_decide(enum verdict verdict, const struct property *property, bool strict)
{
    if (property->target != TARGET_HANDLER)
        return false;
    return verdict == FAIL || verdict == CRASH || verdict == TIMEOUT ||
           (verdict == WARN && strict) ||
           (verdict == INCOMPLETE && (property->level == MUST || strict));
}

bool run_would_decide(const struct run *run, size_t i)
{
    return verdict_would_decide(run->records[i]->verdict, run->properties[i], run->options->strict);
}

bool incompleteness_counts(const struct run *run, size_t i)
{
    return run->records[i]->verdict == INCOMPLETE && run_would_decide(run, i);
}

/* Those that decide, INCOMPLETE or not. */
static size_t deciding(const struct run *run, bool is_incomplete)
{
    size_t count = 0;
    for (size_t i = 0; i < run->count; i++)
        count += run_would_decide(run, i) && run_waiver(run, i) == NULL &&
                 incompleteness_counts(run, i) == is_incomplete;
    return count;
}

static size_t against(const struct run *run)
{
    return deciding(run, false);
}

static size_t incomplete(const struct run *run)
{
    return deciding(run, true);
}

enum exit_code run_exit_code(const struct run *run)
{
    struct tally handler = run_tally(run, TARGET_HANDLER), runtime = run_tally(run, TARGET_RUNTIME);
    int load = atomic_load(&run->load->state);
    if (load == LOAD_FAILED)
        return EXIT_CANNOT_LOAD;
    if (load == LOAD_UNFIT)
        return EXIT_CANNOT_WORK_HERE;
    if (against(run) > 0 || run_stale(run) > 0)
        return EXIT_NOT_CONFORMANT;
    if (handler.of[BROK] + runtime.of[BROK] > 0)
        return EXIT_HARNESS_BROKE;
    if (run->options->quick && !run->interrupted)
        return EXIT_CONFORMANT;
    return incomplete(run) > 0 || run->interrupted ? EXIT_INCOMPLETE : EXIT_CONFORMANT;
}

enum exit_code run_status(const struct run *run)
{
    enum exit_code code = run_exit_code(run);
    if (run->comparison == NULL || !run->options->fail_on_new ||
        (code != EXIT_CONFORMANT && code != EXIT_NOT_CONFORMANT))
        return code;
    return run_stale(run) > 0 ? EXIT_NOT_CONFORMANT : run->comparison->status;
}

bool run_is_whole(const struct run *run)
{
    size_t all;
    property_all(&all);
    return run->count == all;
}

/* " with 2 waivers", or "". */
static const char *with_waivers(const struct run *run)
{
    size_t waived = run_waived(run);
    return waived > 0 ? text(" with %s", text_count(waived, "waiver")) : "";
}

const char *run_conclusion(const struct run *run)
{
    struct tally tally = run_tally(run, TARGET_HANDLER);
    size_t bad = against(run), stale = run_stale(run);
    if (run->interrupted && run->rounds > 1)
        return text("INTERRUPTED in round %zu of %zu %s, of which %zu failed so far", run->rounds,
                    run->count, run->count == 1 ? "property" : "properties", bad);
    if (run->interrupted)
        return text("INTERRUPTED: a part of %zu %s, of which %zu failed so far", run->count,
                    run->count == 1 ? "property" : "properties", bad);
    if (run->options->quick && bad > 0)
        return text("FAILED: %zu of %zu %s", bad, run->count,
                    run->count == 1 ? "property" : "properties");
    switch (run_exit_code(run)) {
    case EXIT_CONFORMANT:
        if (run->options->quick)
            return text("nothing failed%s in %zu %s, which proves nothing: --quick leaves most out",
                        with_waivers(run), run->count, run->count == 1 ? "property" : "properties");
        if (run->evidence != NULL)
            return text("conformant%s in shard %zu/%zu, which is a part", with_waivers(run),
                        run->options->shard, run->options->shards);
        if (!run_is_whole(run))
            return text("conformant%s in the properties that were run, which are not all",
                        with_waivers(run));
        return run->machine.checker == NULL
                   ? text("CONFORMANT%s", with_waivers(run))
                   : text("CONFORMANT%s as far as %s lets it be seen, with shorter loops and %zu "
                          "properties skipped",
                          with_waivers(run), run->machine.checker, tally.of[SKIP]);
    case EXIT_HARNESS_BROKE:
        return "NO VERDICT: the harness could not do its part";
    case EXIT_INCOMPLETE:
        return text("INCOMPLETE: %zu of %zu properties stopped at a limit, and none failed so "
                    "far",
                    incomplete(run), run->count);
    case EXIT_CANNOT_LOAD:
        return "NO VERDICT: no handler came of loading it";
    case EXIT_CANNOT_WORK_HERE:
        return "NO VERDICT: it says that it cannot work here";
    default:
        if (bad == 0)
            return text("STALE: nothing else failed%s, but %s for what passes now",
                        with_waivers(run),
                        stale == 1 ? "1 waiver is" : text("%zu waivers are", stale));
        return text("NOT CONFORMANT: %zu of %zu %s failed%s%s%s", bad, run->count,
                    run->count == 1 ? "property" : "properties",
                    run->evidence != NULL
                        ? text(" in shard %zu/%zu", run->options->shard, run->options->shards)
                        : "",
                    run_waived(run) > 0 ? text(", %zu more are waived", run_waived(run)) : "",
                    stale > 0 ? text(", and %s stale",
                                     stale == 1 ? "1 waiver is" : text("%zu waivers are", stale))
                              : "");
    }
}

enum exit_code exit_code_worse(enum exit_code one, enum exit_code other)
{
    static const enum exit_code severity[] = {
        EXIT_NOT_CONFORMANT,   EXIT_CANNOT_LOAD, EXIT_HARNESS_BROKE, EXIT_USAGE,
        EXIT_CANNOT_WORK_HERE, EXIT_INCOMPLETE,  EXIT_CONFORMANT};
    size_t i = 0;
    while (severity[i] != EXIT_CONFORMANT && severity[i] != one && severity[i] != other)
        i++;
    return severity[i];
}

/* ---- words -------------------------------------------------------------------------------- */

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

/* Whether a call into the handler ended the process, of a property whose failures look otherwise.
 */
static bool ended_inside_by_chance(const struct record *record, const struct property *property)
{
    static const char crash[] = "CRASH";
    bool is_usual =
        property->looks != NULL && strncmp(property->looks, crash, sizeof crash - 1) == 0;
    return record->verdict == CRASH && !is_usual &&
           call_in_words(&record->suspects[ENDED_IN]) != NULL;
}

const char *record_hint(const struct record *record, const struct property *property)
{
    const struct property *about = property_find(record->attribute_to);
    if (record->by_checker == SUSPECTS_RACE)
        return "where neither line uses atomics, hold one lock for both; where they do, helgrind "
               "cannot tell: compile the handler with -g -fsanitize=thread, and say --tsan in the "
               "place of --helgrind";
    if (record->by_checker == FOUND_UNDEFINED)
        return "look at the line that was printed: C says nothing of what comes of it, so that the "
               "next compiler may make something else of it";
    if (record->by_checker == FOUND_ERROR)
        return "build the handler with -g, and look at the line that is named: the memory there is "
               "not the handler's, or not yet, or no longer";
    if (record->control[0] != '\0')
        return "it comes without what the clause is about: ordinary use goes wrong, so look at the "
               "call and the sizes that are named";
    if (about == NULL && ended_inside_by_chance(record, property))
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
        .checker = helgrind_is_running()    ? "helgrind"
                   : memcheck_is_running()  ? "memcheck"
                   : sanitizer_is_running() ? "a sanitizer"
                   : emulator_is_running()  ? "an emulator"
                                            : NULL,
    };
}

/* ---- files -------------------------------------------------------------------------------- */

struct report_file {
    const char *option, *path; /* as given */
    char *target, *temporary;  /* NULL for stdout */
    FILE *file;
    int (*write)(FILE *file, const struct run *run); /* of RUN_FORMATS; else NULL, and */
    int (*write_value)(FILE *file, const json_t *value);
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
#define RUN_FILE(name, words, takers) {.option = "--" #name, .write = report_##name},
#define VALUE_FILE(name, words, takers) {.option = "--" #name, .write_value = report_##name},
    static struct report_files files = {{RUN_FORMATS(RUN_FILE) VALUE_FORMATS(VALUE_FILE)}};
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        files.of[i].path = options->reports[i];
        if (files.of[i].path != NULL)
            open_one(&files.of[i]);
    }
    return &files;
}

static int write_one(struct report_file *file, const struct run *run, const json_t *value)
{
    if (file->file == NULL && open_beside(file) != 0)
        return -1;
    errno = EIO; /* where a library fails without saying why */
    int failed =
        file->write != NULL ? file->write(file->file, run) : file->write_value(file->file, value);
    if (failed != 0 || fflush(file->file) != 0 || ferror(file->file))
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

static void write_or_leave(struct report_file *file, const struct run *run, const json_t *value)
{
    if (file->path == NULL)
        return;
    int error = write_one(file, run, value) == 0 ? 0 : errno;
    discard(file);
    if (error != 0)
        cannot_write(file, EXIT_HARNESS_BROKE, error);
}

void report_files_write(struct report_files *files, const struct run *run)
{
    json_t *value = NULL;
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        struct report_file *file = &files->of[i];
        if (file->path != NULL && file->write == NULL && value == NULL)
            value = report_value(run);
        write_or_leave(file, run, value);
    }
    json_decref(value);
}

void report_files_write_value(struct report_files *files, const json_t *value)
{
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (files->of[i].write_value != NULL)
            write_or_leave(&files->of[i], NULL, value);
    }
}
