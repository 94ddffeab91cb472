/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading memcheck's logs.  They are its text: its XML goes to one file for all processes that
 * were forked (valgrind 3.19), where they write over each other.
 *
 *     ==7== Invalid read of size 1
 *     ==7==    at 0x10947C: use (errs.c:8)
 *     ==7==    by 0x10949F: f (errs.c:47)
 *     ==7==  Address 0x4a77045 is 5 bytes inside a block of size 10 free'd
 *     ==7==    at 0x484417B: free (in .../vgpreload_memcheck-amd64-linux.so)
 *     ==7==
 */
#include "runner/memcheck_report.h"

#include <ctype.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
