/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --verify: nothing of the bundle is written anywhere but for --rerun, into a folder of its own
 * that goes again, under names that are not the bundle's.
 */
#include "commands/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/program_version.h"
#include "base/text.h"
#include "report/bundle.h"
#include "report/comparison.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/summary.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

/* As large as no bundle is. */
enum { LARGEST = 512 << 20 };

static const json_t *member(const struct bundle *bundle, const char *name)
{
    return json_object_get(bundle->report, name);
}

/* All that is in the file, the caller's to free; NULL with *wrong in words. */
static char *contents_of(const char *file, size_t *length, const char **wrong)
{
    struct stat status;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO may have nobody who writes */
    FILE *stream = fd >= 0 ? fdopen(fd, "rb") : NULL;
    char *bytes = NULL;
    *wrong = NULL;
    if (stream == NULL || fstat(fd, &status) != 0)
        *wrong = strerror(errno);
    else if (!S_ISREG(status.st_mode))
        *wrong = "is no regular file";
    else if (status.st_size > LARGEST)
        *wrong = "is larger than any bundle";
    else if ((bytes = malloc((size_t)status.st_size + 1)) == NULL)
        *wrong = "there is no memory for it";
    if (*wrong == NULL)
        *length = fread(bytes, 1, (size_t)status.st_size, stream);
    if (*wrong == NULL && ferror(stream))
        *wrong = strerror(errno);
    if (stream != NULL)
        fclose(stream);
    return bytes;
}

/* ---- what it says -------------------------------------------------------------------------- */

static void print_claims(const char *name, const json_t *claims)
{
    const json_t *claim;
    size_t i;
    json_array_foreach(claims, i, claim)
    {
        const char *words = json_string_value(claim);
        printf("%s %s", i == 0 ? name : "", words != NULL ? text_safe(words) : "?");
    }
}

static void print_what_it_says(const struct bundle *bundle)
{
    const json_t *subject = member(bundle, "subject"), *in = member(bundle, "environment");
    const char *hash = word(subject, "sha256");
    printf("        conform %s says of %s\n", text_safe(word(bundle->report, "conform")),
           text_safe(word(subject, "file")));
    if (*hash != '\0')
        printf("        with the SHA-256 %s%s\n", text_safe(hash),
               bundle->of[BUNDLE_HANDLER].bytes != NULL ? ", which is in it" : "");
    printf("        on Python %s, NumPy %s, ", text_safe(word(in, "python")),
           text_safe(word(in, "numpy")));
    printf("%s, %s; seed %s", text_safe(word(in, "libc")), text_safe(word(in, "kernel")),
           text_safe(word(bundle->report, "seed")));
    print_claims("; claims", json_object_get(subject, "claims"));
    print_claims("; held to", json_object_get(subject, "claimed_for_it"));
    printf("\n        %s\n", text_safe(word(bundle->report, "conclusion")));
    puts("        It is not signed: whoever wrote the file vouches for that; --rerun finds out.");
}

static enum exit_code tell(const struct bundle *bundle, const char *file, bool quiet)
{
    bool unsure = false;
    const char *incomplete = bundle_incomplete(bundle, &unsure);
    size_t count = json_array_size(member(bundle, "properties"));
    size_t waived = (size_t)json_integer_value(member(bundle, "waivers"));
    if (incomplete != NULL)
        printf("%s: untouched, but a part: %s\n", text_safe(file), incomplete);
    else if (unsure)
        printf(
            "%s: untouched, and complete by its own list of %zu; conform %s, which wrote it, knows "
            "whether that is all, and this is %s\n",
            text_safe(file), count, text_safe(word(bundle->report, "conform")), program_version);
    else
        printf("%s: untouched and complete: each of %zu properties once, %s\n", text_safe(file),
               count,
               waived > 0 ? text("and %s, which the summary says", text_count(waived, "waiver"))
                          : "none waived");
    if (!quiet)
        print_what_it_says(bundle);
    enum exit_code code = summary_code(bundle->report);
    return incomplete != NULL ? exit_code_worse(EXIT_INCOMPLETE, code) : code;
}

/* ---- --rerun ------------------------------------------------------------------------------- */

struct rerun {
    const struct options *options;
    const struct bundle *bundle;
    const char *file;
    char folder[32]; /* for what is in it, or "" */
    char *handler;
    char **words; /* the command line */
    size_t count;
};

static void add_word(struct rerun *r, const char *option, const char *value)
{
    char **longer = realloc(r->words, (r->count + 2) * sizeof *longer);
    if (longer == NULL || asprintf(&longer[r->count], "%s%s", option, value) < 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    r->words = longer;
    r->words[++r->count] = NULL;
}

/* Puts the member there, and returns where; the caller's to free. */
static char *unpack(struct rerun *r, enum bundle_member which, const char *name)
{
    const struct member *from = &r->bundle->of[which];
    char *path;
    if (r->folder[0] == '\0') {
        strcpy(r->folder, "/tmp/conform-rerun-XXXXXX");
        if (mkdtemp(r->folder) == NULL)
            leave_with(EXIT_HARNESS_BROKE, "no folder in /tmp: %s", strerror(errno));
    }
    if (asprintf(&path, "%s/%s", r->folder, name) < 0)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    FILE *file = fopen(path, "wbe");
    bool written = file != NULL && fwrite(from->bytes, 1, from->length, file) == from->length;
    if ((file != NULL && fclose(file) != 0) || !written)
        leave_with(EXIT_HARNESS_BROKE, "%s: cannot be written: %s", path, strerror(errno));
    return path;
}

static void clean_up(struct rerun *r)
{
    static const char *const all[] = {"handler.so", "waivers.toml"};
    for (size_t i = 0; r->folder[0] != '\0' && i < sizeof all / sizeof *all; i++)
        unlink(text("%s/%s", r->folder, all[i]));
    if (r->folder[0] != '\0')
        rmdir(r->folder);
}

/* The handler that --handler names, which has to be the one of the bundle. */
static void check_handler(const struct rerun *r, const char *argument)
{
    struct subject_place place;
    char hex[SHA256_HEX] = "";
    const char *hash = word(member(r->bundle, "subject"), "sha256");
    const char *wrong = subject_find(argument, &place);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s: --rerun: %s", text_safe(r->file), wrong);
    if (place.module == NULL && object_file_sha256(place.path, hex) != 0)
        leave_with(EXIT_CANNOT_LOAD, "%s: --rerun: %s: %s", text_safe(r->file), text_safe(argument),
                   strerror(errno));
    if (strcmp(hex, hash) != 0)
        leave_with(EXIT_USAGE,
                   "%s: --rerun: %s is not the handler of the bundle: its SHA-256 is %s, there %s",
                   text_safe(r->file), text_safe(argument), *hex != '\0' ? hex : "none",
                   *hash != '\0' ? text_safe(hash) : "none");
    subject_place_free(&place);
}

static void choose_handler(struct rerun *r)
{
    const char *symbol = word(member(r->bundle, "subject"), "symbol");
    if (r->options->handler != NULL) {
        check_handler(r, r->options->handler);
        add_word(r, "--handler=", r->options->handler);
        return;
    }
    if (r->bundle->of[BUNDLE_HANDLER].bytes == NULL)
        leave_with(EXIT_USAGE, "%s: --rerun: there is no handler in it; give it by --handler",
                   text_safe(r->file));
    r->handler = unpack(r, BUNDLE_HANDLER, "handler.so");
    add_word(r, "--handler=", *symbol != '\0' ? text("%s:%s", r->handler, symbol) : r->handler);
}

/* As it was run then. */
static void make_command(struct rerun *r)
{
    const json_t *claim, *property, *report = r->bundle->report;
    const char *checker = word(json_object_get(report, "environment"), "checker");
    size_t i;
    add_word(r, r->options->program, "");
    choose_handler(r);
    json_array_foreach(json_object_get(json_object_get(report, "subject"), "claimed_for_it"), i,
                       claim)
    {
        add_word(r, "--claim=", json_is_string(claim) ? json_string_value(claim) : "");
    }
    add_word(r, "--seed=", word(report, "seed"));
    if (json_object_get(report, "daily_seed") != NULL) /* one of 0.1 has none */
        add_word(r, "--daily-seed=", word(report, "daily_seed"));
    if (!json_is_true(json_object_get(report, "whole"))) {
        json_array_foreach(json_object_get(report, "properties"), i, property)
        {
            add_word(r, "--run=", word(property, "id"));
        }
    }
    if (json_is_true(json_object_get(report, "strict")))
        add_word(r, "--strict", "");
    if (strcmp(checker, "memcheck") == 0)
        add_word(r, "--", checker);
    if (r->bundle->of[BUNDLE_WAIVERS].bytes != NULL) {
        char *path = unpack(r, BUNDLE_WAIVERS, "waivers.toml");
        add_word(r, "--expect=", path);
        free(path);
    }
    if (r->options->python != NULL)
        add_word(r, "--python=", r->options->python);
    add_word(r, "--json=-", "");
}

static bool pass_interrupt_on(void *pid)
{
    int number = interrupt_to_pass_on();
    if (number != 0)
        kill(*(pid_t *)pid, number);
    return false;
}

/* The report of it, or NULL: then it has said why. */
static json_t *run_again(struct rerun *r, int *status)
{
    int output = memfd_create("report", MFD_CLOEXEC);
    pid_t pid = output >= 0 ? child_fork(false) : -1;
    if (pid == 0) {
        dup2(output, STDOUT_FILENO);
        execv("/proc/self/exe", r->words);
        _exit(EXIT_HARNESS_BROKE);
    }
    if (pid < 0 || child_wait(pid, pass_interrupt_on, &pid, status) != 0 ||
        lseek(output, 0, SEEK_SET) != 0)
        leave_with(EXIT_HARNESS_BROKE, "no process to run it again: %s", strerror(errno));
    json_t *report = json_loadfd(output, JSON_REJECT_DUPLICATES, NULL);
    close(output);
    return report;
}

/* Of a list of differences those that are about the handler. */
static size_t counted(const json_t *rows)
{
    size_t count = 0, i;
    const json_t *row;
    json_array_foreach(rows, i, row)
    {
        const char *target = json_string_value(json_object_get(row, "target"));
        count += target == NULL || strcmp(target, "runtime") != 0;
    }
    return count;
}

static enum exit_code compare_again(const struct rerun *r, const json_t *report, const char *file)
{
    json_t *before = reports_in(r->bundle->report, false);
    json_t *after = reports_in(report, false);
    struct comparison c = comparison_of(before, after, false);
    size_t count = c.not_run + c.broken + c.incomplete + c.left_out + json_array_size(c.unknown);
    size_t told = 0;
    for (int difference = 0; difference < DIFFERENCES; difference++) {
        count += counted(c.told[difference]);
        told += json_array_size(c.told[difference]);
    }
    if (count > 0 || told > 0 || !r->options->quiet)
        comparison_print(stdout, &c, file, r->options);
    printf("%s: run again: %s\n", text_safe(file),
           count == 0 ? "the same verdicts" : "not the same verdicts");
    comparison_free(&c);
    json_decref(before);
    json_decref(after);
    return count == 0 ? EXIT_CONFORMANT : EXIT_NOT_CONFORMANT;
}

static enum exit_code rerun(const struct options *options, const struct bundle *bundle,
                            const char *file)
{
    struct rerun r = {.options = options, .bundle = bundle, .file = file};
    int status = 0;
    child_prepare();
    interrupt_catch();
    make_command(&r);
    fflush(stdout);
    json_t *report = run_again(&r, &status);
    clean_up(&r);
    if (interrupt_came() != 0)
        interrupt_die();
    if (report == NULL || report_wrong(report) != NULL)
        leave_with(WIFEXITED(status) && WEXITSTATUS(status) != 0
                       ? (enum exit_code)WEXITSTATUS(status)
                       : EXIT_HARNESS_BROKE,
                   "%s: could not be run again", text_safe(file));
    return compare_again(&r, report, file);
}

/* ---- each file ------------------------------------------------------------------------------ */

static enum exit_code verify(const struct options *options, const char *file)
{
    struct bundle bundle = {.report = NULL};
    size_t length = 0;
    const char *wrong;
    enum exit_code code = EXIT_USAGE;
    char *bytes = contents_of(file, &length, &wrong);
    if (wrong == NULL)
        wrong = bundle_read(bytes, length, &bundle);
    if (wrong != NULL)
        fprintf(stderr, "conform: %s: %s\n", text_safe(file), wrong);
    else
        code = tell(&bundle, file, options->quiet);
    if (wrong == NULL && options->rerun)
        code = exit_code_worse(code, rerun(options, &bundle, file));
    bundle_free(&bundle);
    free(bytes);
    return code;
}

enum exit_code verify_run(const struct options *options)
{
    enum exit_code worst = EXIT_CONFORMANT;
    for (char **file = options->operands; *file != NULL; file++) {
        enum exit_code code = verify(options, *file);
        if (code == EXIT_USAGE || worst == EXIT_USAGE)
            worst = EXIT_USAGE;
        else
            worst = exit_code_worse(worst, code);
    }
    return worst;
}
