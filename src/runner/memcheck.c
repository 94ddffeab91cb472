/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running under valgrind's memcheck, and whether it has let the program begin.
 */
#include "runner/memcheck.h"

#include <ctype.h>
#include <dirent.h>
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

/* The file in the folder of reports that says that the program has begun; the others are numbers.
 */
#define BEGUN "begun"

int memcheck_make_folder(char *folder, size_t room)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, room, "%s/conform-memcheck-XXXXXX",
             temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

void memcheck_remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0); /* but for . and .., which are folders */
    if (entries != NULL)
        closedir(entries);
    rmdir(folder);
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
    char *words = fgets(buffer, sizeof buffer, file) != NULL ? memcheck_words(buffer) : NULL;
    fclose(file);
    return words != NULL ? words : "";
}

/* The addresses of code by which memcheck tells errors from each other. */
enum { ADDRESSES = 4 };

enum { TOLD = 300, MOST_ERRORS = 4096 };

/* One error as it is read: the text of its lines, as far as it is needed. */
struct reading {
    struct memcheck_errors *errors; /* where it goes */
    char what[256];                 /* "" until its first line has come */
    char told[2 * TOLD];
    char *places; /* the innermost frames */
    char where_in_block[256];
    size_t addresses, frames;
    unsigned long last_address;
    bool told_all, behind_stack, is_of_handler;
};

char *memcheck_words(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *equals = strncmp(line, "==", 2) == 0 ? strstr(line + 2, "==") : NULL;
    if (equals == NULL || (equals[2] != ' ' && equals[2] != '\0'))
        return NULL;
    return equals[2] == ' ' ? equals + 3 : equals + 2;
}

/* `from` with a # in the place of each number that begins with 0x, or of any. */
static void without_numbers(char *to, size_t room, const char *from, bool of_any)
{
    size_t used = 0;
    while (*from != '\0' && used + 1 < room) {
        bool hexadecimal = strncmp(from, "0x", 2) == 0;
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

static void tell(struct reading *error, const char *before, const char *words)
{
    size_t used = strlen(error->told);
    if (!error->told_all)
        snprintf(error->told + used, sizeof error->told - used, "%s%s", before, words);
    error->told_all = error->told_all || strlen(error->told) > TOLD;
}

/* Of the functions through which the harness makes all of its calls. */
static bool is_call_of_handler(const char *place)
{
    static const char *const functions[] = {"handler_malloc (", "handler_calloc (",
                                            "handler_realloc (", "handler_free ("};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strncmp(place, functions[i], strlen(functions[i])) == 0)
            return true;
    }
    return false;
}

/* "0x4C2BBEF: free (vg_replace_malloc.c:538)"; functions that were inlined share an address. */
static void read_frame(struct reading *error, const char *words)
{
    char *end;
    unsigned long address = strtoul(words, &end, 16);
    const char *place = strncmp(end, ": ", 2) == 0 ? end + 2 : end;
    if (error->behind_stack) {
        error->is_of_handler = error->is_of_handler || is_call_of_handler(place);
        return;
    }
    if (is_call_of_handler(place))
        error->told_all = true; /* from here on it is the harness */
    tell(error, error->frames == 0 ? " at " : ", from ", place);
    error->addresses += error->frames == 0 || address != error->last_address;
    error->last_address = address;
    error->frames++;
    if (error->addresses > ADDRESSES)
        return;
    append(&error->places, " < ");
    append(&error->places, place);
    if (strncmp(place, "???", 3) == 0) { /* without a name: where in its page, wherever that is */
        char in_page[16];
        snprintf(in_page, sizeof in_page, " +%03lx", address & 0xfff);
        append(&error->places, in_page);
    }
}

static void read_line(struct reading *error, const char *words)
{
    words += strspn(words, " ");
    bool is_frame = strncmp(words, "at 0x", 5) == 0 || strncmp(words, "by 0x", 5) == 0;
    if (is_frame) {
        if (error->what[0] != '\0')
            read_frame(error, words + strlen("at "));
    } else if (error->what[0] == '\0') {
        if (strncmp(words, "Thread ", 7) == 0)
            return;
        without_numbers(error->what, sizeof error->what, words, false);
        tell(error, "", words);
    } else if (error->frames > 0) {
        error->behind_stack = true;
        if (error->where_in_block[0] == '\0')
            without_numbers(error->where_in_block, sizeof error->where_in_block, words, true);
    }
}

/* What has a stack is an error, unless valgrind says in that way how the process ends, or warns. */
static bool is_error(const struct reading *error)
{
    return error->places != NULL && strncmp(error->what, "Process terminating", 19) != 0 &&
           strncmp(error->what, "Warning:", 8) != 0;
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
            memcheck_add(error->errors, sameness, error->told);
        free(sameness);
    }
    free(error->places);
    *error = (struct reading){.errors = error->errors};
}

void memcheck_read_lines(const char *folder, pid_t pid, void (*take)(void *, const char *words),
                         void *data)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return;
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        const char *words = memcheck_words(line);
        if (words != NULL)
            take(data, words);
    }
    free(line);
    fclose(file);
}

static void take_line(void *data, const char *words)
{
    struct reading *error = data;
    if (*words != '\0')
        read_line(error, words);
    else
        end_error(error);
}

void memcheck_read_log(struct memcheck_errors *errors, const char *folder, pid_t pid)
{
    struct reading error = {.errors = errors};
    memcheck_read_lines(folder, pid, take_line, &error);
    end_error(&error);
}

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
    free(error->told);
}

void memcheck_add(struct memcheck_errors *errors, const char *sameness, const char *told)
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
    struct memcheck_error error = {strdup(sameness), strdup(told != NULL ? told : "")};
    if (error.sameness != NULL && error.told != NULL)
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

/* Adds the errors of the processes that the property forked, which came to their end first, and of
 * its own. */
static void read_logs(struct memcheck_errors *errors, const char *folder,
                      const struct record *record)
{
    size_t children = atomic_load(&record->children);
    for (size_t i = 0; i < children && i < MEMCHECK_CHILDREN; i++)
        memcheck_read_log(errors, folder, record->child[i]);
    memcheck_read_log(errors, folder, record->pid);
}

/* Takes out what shows on libc's allocator as well.  Where that has errors at all, chance may have
 * a hand in them, and a second look is taken. */
static void take_out_others(struct memcheck_errors *errors, const struct memcheck_case *property)
{
    enum { CONTROLS = 2 };
    struct memcheck_errors known = {0};
    for (int i = 0; i < CONTROLS && errors->count > 0 && (i == 0 || known.count > 0); i++) {
        const struct record *control = property->run_control(property->data);
        if (control != NULL)
            read_logs(&known, property->folder, control);
        memcheck_subtract(errors, &known);
    }
    memcheck_errors_free(&known);
}

/* Whether both ended in the same call, by the same signal, or failed in the same check. */
static bool is_same_end(const struct record *one, const struct record *other)
{
    const struct call *in = &one->suspects[ENDED_IN], *also = &other->suspects[ENDED_IN];
    return one->signal == other->signal && in->function == also->function &&
           in->first == also->first && in->second == also->second && one->line == other->line &&
           strcmp(one->expected, other->expected) == 0;
}

/* A failure that libc's allocator has in its place as well is valgrind's own, or the interpreter's:
 * valgrind 3.19 ends the process in calloc(SIZE_MAX / 2, 2). */
static enum verdict excuse(const struct memcheck_case *property, struct record *record,
                           enum verdict verdict)
{
    const struct record *control = property->run_control(property->data);
    if (control == NULL || control->verdict != verdict || !is_same_end(record, control))
        return verdict;
    record->expected[0] = record->attribute_to[0] = record->control[0] = '\0';
    snprintf(record->seen, sizeof record->seen,
             "under valgrind libc's allocator comes to the same end here: %.200s", control->seen);
    return SKIP;
}

enum verdict memcheck_judge(const struct memcheck_case *property, struct record *record,
                            enum verdict verdict)
{
    struct memcheck_errors errors = {0};
    if (verdict == FAIL || verdict == CRASH)
        verdict = excuse(property, record, verdict);
    if (verdict == FAIL)
        return verdict;
    bool ended = verdict == PASS || verdict == WARN || verdict == SKIP || verdict == INCOMPLETE;
    read_logs(&errors, property->folder, record);
    bool unread = errors.count == 0 && record->memcheck_errors > 0;
    if (errors.count > 0)
        take_out_others(&errors, property);
    if (ended && (errors.count > 0 || unread)) {
        snprintf(record->expected, sizeof record->expected, "no error under memcheck");
        snprintf(record->seen, sizeof record->seen, "%zu, the first: %s",
                 unread ? (size_t)record->memcheck_errors : errors.count,
                 unread ? "without a report" : errors.all[0].told);
        record->by_checker = FOUND_ERROR;
        verdict = FAIL;
    } else if (errors.count > 0) {
        size_t used = strlen(record->seen);
        snprintf(record->seen + used, sizeof record->seen - used, "; memcheck: %s",
                 errors.all[0].told);
    }
    memcheck_errors_free(&errors);
    return verdict;
}
