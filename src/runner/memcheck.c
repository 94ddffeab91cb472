/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memcheck's logs are text: its XML goes to one file for all forked processes (valgrind 3.19),
 * where they write over each other.
 *
 *     ==7== Invalid read of size 1
 *     ==7==    at 0x10947C: use (errs.c:8)
 *     ==7==    by 0x10949F: f (errs.c:47)
 *     ==7==  Address 0x4a77045 is 5 bytes inside a block of size 10 free'd
 *     ==7==    at 0x484417B: free (in .../vgpreload_memcheck-amd64-linux.so)
 *     ==7==
 */
#include "runner/memcheck.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/text.h"

/* The file that shows that the program has begun; the logs have numbers. */
#define BEGUN "begun"

int memcheck_make_folder(char *folder, size_t room)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, room, "%s/conform-memcheck-XXXXXX",
             temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

const char *memcheck_command(const char *command[MEMCHECK_WORDS], const char *folder)
{
    static char supp[PATH_MAX + 32], log[PATH_MAX + 32];
    char found[PATH_MAX];
#ifndef HAVE_VALGRIND_MEMCHECK_H
    return "this conform was built without it; install valgrind with its header, and configure "
           "again";
#endif
    if (!place_find(SOURCE_SUPPRESSIONS, INSTALLED_SUPPRESSIONS, found))
        return "the suppressions file memcheck.supp is not installed";
    snprintf(supp, sizeof supp, "--suppressions=%s", found);
    snprintf(log, sizeof log, "--log-file=%s/%%p", folder);
    const char *const words[MEMCHECK_WORDS] = {
        "valgrind",
        "--quiet",
        "--error-limit=no",
        "--leak-check=no",
        "--num-callers=25",
        "--trace-children=no",
        "--vgdb=no",
        supp,
        log,
        NULL,
    };
    memcpy(command, words, sizeof words);
    return NULL;
}

void memcheck_note_begun(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" BEGUN, folder);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

/* Returns the text of a line of a log after "==PID== ", or NULL. */
static char *log_text(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *equals = begins_with(line, "==") ? strstr(line + 2, "==") : NULL;
    if (equals == NULL || (equals[2] != ' ' && equals[2] != '\0'))
        return NULL;
    return equals[2] == ' ' ? equals + 3 : equals + 2;
}

const char *memcheck_refusal(const char *folder, pid_t pid)
{
    static char buffer[512];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" BEGUN, folder);
    if (access(path, F_OK) == 0)
        return NULL;
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return "";
    char *words = fgets(buffer, sizeof buffer, file) != NULL ? log_text(buffer) : NULL;
    fclose(file);
    return words != NULL ? words : "";
}

/* ---- errors ------------------------------------------------------------------------------- */

/* The addresses of code by which memcheck tells errors from each other. */
enum { ADDRESSES = 4 };

enum { LONGEST = 300, MOST_ERRORS = 4096 };

/* One error while its lines are read. */
struct reading {
    struct memcheck_errors *errors; /* where it goes */
    char what[256];                 /* "" until its first line has come */
    char message[2 * LONGEST];
    char *places; /* the innermost frames */
    char where_in_block[256];
    size_t addresses, frames;
    unsigned long last_address;
    bool is_whole, behind_stack, is_of_handler;
};

static bool has(const struct memcheck_errors *errors, const char *sameness)
{
    for (size_t i = 0; i < errors->count; i++) {
        if (strcmp(errors->all[i].sameness, sameness) == 0)
            return true;
    }
    return false;
}

static void free_error(struct memcheck_error *error)
{
    free(error->sameness);
    free(error->message);
}

/* Adds copies of both, unless the error is known or there is no memory. */
static void add_error(struct memcheck_errors *errors, const char *sameness, const char *message)
{
    if (errors->count >= MOST_ERRORS || has(errors, sameness))
        return;
    if (errors->count == errors->room) {
        size_t room = errors->room != 0 ? 2 * errors->room : 16;
        void *all = realloc(errors->all, room * sizeof *errors->all);
        if (all == NULL)
            return;
        errors->all = all;
        errors->room = room;
    }
    struct memcheck_error error = {strdup(sameness), strdup(message)};
    if (error.sameness != NULL && error.message != NULL)
        errors->all[errors->count++] = error;
    else
        free_error(&error);
}

void memcheck_subtract(struct memcheck_errors *errors, const struct memcheck_errors *known)
{
    size_t left = 0;
    for (size_t i = 0; i < errors->count; i++) {
        if (has(known, errors->all[i].sameness))
            free_error(&errors->all[i]);
        else
            errors->all[left++] = errors->all[i];
    }
    errors->count = left;
}

void memcheck_errors_free(struct memcheck_errors *errors)
{
    for (size_t i = 0; i < errors->count; i++)
        free_error(&errors->all[i]);
    free(errors->all);
    *errors = (struct memcheck_errors){0};
}

/* ---- reading a log ------------------------------------------------------------------------ */

/* `from` with a # in the place of each number that begins with 0x, or of any. */
static void without_numbers(char *to, size_t room, const char *from, bool of_any)
{
    size_t used = 0;
    while (*from != '\0' && used + 1 < room) {
        bool hexadecimal = begins_with(from, "0x");
        if (!hexadecimal && !(of_any && isdigit((unsigned char)*from))) {
            to[used++] = *from++;
            continue;
        }
        from += hexadecimal ? 2 : 0;
        from += strspn(from, hexadecimal ? "0123456789abcdefABCDEF" : "0123456789");
        to[used++] = '#';
    }
    to[used] = '\0';
}

static void append(char **text, const char *more)
{
    size_t used = *text != NULL ? strlen(*text) : 0;
    char *longer = realloc(*text, used + strlen(more) + 1);
    if (longer == NULL)
        return;
    strcpy(longer + used, more);
    *text = longer;
}

static void append_message(struct reading *error, const char *before, const char *words)
{
    size_t used = strlen(error->message);
    if (!error->is_whole)
        snprintf(error->message + used, sizeof error->message - used, "%s%s", before, words);
    error->is_whole = error->is_whole || strlen(error->message) > LONGEST;
}

/* True if the place is one of the functions through which the harness makes all of its calls. */
static bool is_call_of_handler(const char *place)
{
    static const char *const functions[] = {"handler_malloc (", "handler_calloc (",
                                            "handler_realloc (", "handler_free ("};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (begins_with(place, functions[i]))
            return true;
    }
    return false;
}

/* "0x4C2BBEF: free (vg_replace_malloc.c:538)"; functions that were inlined share an address. */
static void read_frame(struct reading *error, const char *words)
{
    char *end;
    unsigned long address = strtoul(words, &end, 16);
    const char *place = begins_with(end, ": ") ? end + 2 : end;
    if (error->behind_stack) {
        error->is_of_handler = error->is_of_handler || is_call_of_handler(place);
        return;
    }
    if (is_call_of_handler(place))
        error->is_whole = true; /* the rest is the harness */
    append_message(error, error->frames == 0 ? " at " : ", from ", place);
    error->addresses += error->frames == 0 || address != error->last_address;
    error->last_address = address;
    error->frames++;
    if (error->addresses > ADDRESSES)
        return;
    append(&error->places, " < ");
    append(&error->places, place);
    if (begins_with(place, "???")) { /* without a name: by the offset in its page */
        char in_page[16];
        snprintf(in_page, sizeof in_page, " +%03lx", address & 0xfff);
        append(&error->places, in_page);
    }
}

static void read_line(struct reading *error, const char *words)
{
    words += strspn(words, " ");
    bool is_frame = begins_with(words, "at 0x") || begins_with(words, "by 0x");
    if (is_frame) {
        if (error->what[0] != '\0')
            read_frame(error, words + strlen("at "));
    } else if (error->what[0] == '\0') {
        if (begins_with(words, "Thread "))
            return;
        without_numbers(error->what, sizeof error->what, words, false);
        append_message(error, "", words);
    } else if (error->frames > 0) {
        error->behind_stack = true;
        if (error->where_in_block[0] == '\0')
            without_numbers(error->where_in_block, sizeof error->where_in_block, words, true);
    }
}

/* An error has a stack; so have the end of the process and a warning. */
static bool is_error(const struct reading *error)
{
    return error->places != NULL && !begins_with(error->what, "Process terminating") &&
           !begins_with(error->what, "Warning:");
}

static void end_error(struct reading *error)
{
    if (is_error(error)) {
        char *sameness = NULL;
        append(&sameness, error->what);
        append(&sameness, error->places);
        append(&sameness, error->is_of_handler ? "; of the handler: " : "");
        append(&sameness, error->is_of_handler ? error->where_in_block : "");
        if (sameness != NULL)
            add_error(error->errors, sameness, error->message);
        free(sameness);
    }
    free(error->places);
    *error = (struct reading){.errors = error->errors};
}

void memcheck_read_log(struct memcheck_errors *errors, const char *folder, pid_t pid)
{
    struct reading error = {.errors = errors};
    char path[PATH_MAX], *line = NULL;
    size_t room = 0;
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    while (getline(&line, &room, file) > 0) {
        const char *words = log_text(line);
        if (words != NULL && *words != '\0')
            read_line(&error, words);
        else if (words != NULL)
            end_error(&error);
    }
    end_error(&error);
    free(line);
    fclose(file);
}

/* ---- whose they are ----------------------------------------------------------------------- */

/* Adds the errors of the processes that the property forked, which end first, and of its own. */
static void read_logs(struct memcheck_errors *errors, const char *folder,
                      const struct record *record)
{
    size_t children = atomic_load(&record->children);
    for (size_t i = 0; i < children && i < MEMCHECK_CHILDREN; i++)
        memcheck_read_log(errors, folder, record->child[i]);
    memcheck_read_log(errors, folder, record->pid);
}

/* True if both ended in the same call, by the same signal, or failed in the same check. */
static bool is_same_end(const struct record *one, const struct record *other)
{
    const struct step *in = &one->suspects[ENDED_IN], *also = &other->suspects[ENDED_IN];
    return one->signal == other->signal && in->kind == also->kind && in->first == also->first &&
           in->second == also->second && one->line == other->line &&
           strcmp(one->expected, other->expected) == 0;
}

enum verdict memcheck_judge(struct record *record, enum verdict verdict, const char *folder,
                            const struct record *run_control(const void *data), const void *data)
{
    enum { CONTROLS = 2 }; /* a control's errors may be there by chance: then run it once more */
    struct memcheck_errors errors = {0}, known = {0};
    if (verdict == FAIL || verdict == CRASH) {
        /* valgrind 3.19 ends the process in calloc(SIZE_MAX / 2, 2) */
        const struct record *control = run_control(data);
        if (control != NULL && control->verdict == verdict && is_same_end(record, control)) {
            snprintf(record->memcheck, sizeof record->memcheck,
                     "under valgrind libc's allocator comes to the same end here: %.200s",
                     control->seen);
            verdict = SKIP;
        }
    }
    if (verdict == FAIL)
        return verdict;
    read_logs(&errors, folder, record);
    bool unread = errors.count == 0 && record->memcheck_errors > 0;
    for (int i = 0; i < CONTROLS && errors.count > 0 && (i == 0 || known.count > 0); i++) {
        const struct record *control = run_control(data);
        if (control != NULL)
            read_logs(&known, folder, control);
        memcheck_subtract(&errors, &known);
    }
    bool ended = verdict == PASS || verdict == WARN || verdict == SKIP || verdict == INCOMPLETE;
    if (ended && (errors.count > 0 || unread)) {
        snprintf(record->memcheck, sizeof record->memcheck, "%zu, the first: %s",
                 unread ? (size_t)record->memcheck_errors : errors.count,
                 unread ? "without a report" : errors.all[0].message);
        record->by_checker = FOUND_ERROR;
        verdict = FAIL;
    } else if (errors.count > 0) {
        snprintf(record->memcheck, sizeof record->memcheck, "%s", errors.all[0].message);
    }
    memcheck_errors_free(&errors);
    memcheck_errors_free(&known);
    return verdict;
}
