/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading helgrind's logs, which are its text as memcheck's are.
 *
 *     ==7== Possible data race during write of size 8 at 0x4A4D350 by thread #3
 *     ==7== Locks held: none
 *     ==7==    at 0x484512A: counted_malloc (mine.c:19)
 *     ==7==    by 0x12B4E0: handler_malloc (calls.c:205)
 *     ==7==
 *     ==7== This conflicts with a previous write of size 8 by thread #2
 *     ==7== Locks held: none
 *     ==7==    at 0x484512A: counted_malloc (mine.c:19)
 *     ==7==  Address 0x4a4d350 is 0 bytes inside data symbol "calls"
 *     ==7==
 *     ==7== ----------------------------------------------------------------
 *
 * The second stack is left out where that access was too long ago.
 */
#include "runner/helgrind_report.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { ACCESSES = 2, TOLD = 220 };

/* An access as it is read. */
struct access {
    char what[64]; /* "a write of 8 bytes" */
    char places[TOLD];
    enum { NOT_KNOWN, SUBJECTS, ANOTHERS } whose;
    bool told_all;
};

struct reading {
    struct memcheck_errors *races;
    const struct record *record;
    struct access accesses[ACCESSES];
    size_t count; /* of these; 0 outside a race */
    bool behind_stacks;
    bool is_shared; /* the memory: a variable, or allocated when the subject was loaded */
};

/* What stands behind the words, or NULL where the line does not begin with them. */
static const char *behind(const char *line, const char *words)
{
    size_t length = strlen(words);
    return strncmp(line, words, length) == 0 ? line + length : NULL;
}

static bool is_of_subject(const struct record *record, uintptr_t address)
{
    bool is = false;
    for (size_t i = 0; i < record->object_count && i < OBJECT_RANGES; i++)
        is = is || (record->objects[i].from <= address && address < record->objects[i].to);
    return is;
}

/* Functions of libc, or of valgrind in its place, that use memory for their caller; what others do
 * with libc's own is libc's matter. */
static bool is_for_caller(const char *function)
{
    function += strspn(function, "_");
    return behind(function, "mem") != NULL || behind(function, "str") != NULL;
}

/* "0x484512A: counted_malloc (mine.c:19)"; the stack is told as far as it is the subject's. */
static void take_frame(const struct record *record, struct access *access, const char *words)
{
    char *end;
    uintptr_t address = strtoul(words, &end, 16);
    const char *place = behind(end, ": ");
    bool is_subjects = is_of_subject(record, address);
    if (place == NULL)
        return;
    if (access->whose == NOT_KNOWN && !is_subjects && !is_for_caller(place))
        access->whose = ANOTHERS;
    access->told_all = access->told_all || (access->whose == SUBJECTS && !is_subjects);
    if (!is_subjects || access->told_all || access->whose == ANOTHERS)
        return;
    size_t used = strlen(access->places);
    snprintf(access->places + used, sizeof access->places - used, "%s%s",
             access->whose == SUBJECTS ? ", from " : " at ", place);
    access->whose = SUBJECTS;
}

static void end_race(struct reading *reading)
{
    const struct access *first = &reading->accesses[0], *second = &reading->accesses[1];
    if (reading->count == ACCESSES && reading->is_shared && first->whose == SUBJECTS &&
        second->whose == SUBJECTS) {
        bool in_order = strcmp(first->places, second->places) <= 0;
        memcheck_add(
            reading->races,
            text("%s and%s", (in_order ? first : second)->places,
                 (in_order ? second : first)->places),
            text("%s%s, and %s%s", first->what, first->places, second->what, second->places));
    }
    reading->count = 0;
}

/* "write of size 8 at 0x4A4D350 by thread #3", the address of the first alone. */
static void begin_access(struct reading *reading, const char *words)
{
    struct access *access = &reading->accesses[reading->count++];
    char kind[8];
    size_t size;
    uintptr_t address;
    int found = sscanf(words, "%7s of size %zu at 0x%" SCNxPTR, kind, &size, &address);
    *access = (struct access){.whose = NOT_KNOWN};
    if (found >= 2)
        snprintf(access->what, sizeof access->what, "a %s of %s", kind, text_count(size, "byte"));
    if (found == 3)
        reading->is_shared = is_of_subject(reading->record, address);
    reading->behind_stacks = false;
}

static void take_line(void *data, const char *words)
{
    struct reading *reading = data;
    words += strspn(words, " ");
    const char *race = behind(words, "Possible data race during ");
    const char *other = behind(words, "This conflicts with a previous ");
    bool is_frame = behind(words, "at 0x") != NULL || behind(words, "by 0x") != NULL;
    if (race != NULL || behind(words, "----") != NULL)
        end_race(reading);
    if (race != NULL)
        begin_access(reading, race);
    else if (other != NULL && reading->count == 1)
        begin_access(reading, other);
    else if (behind(words, "Address 0x") != NULL)
        reading->behind_stacks = true; /* that of who allocated it follows */
    else if (is_frame && reading->behind_stacks)
        reading->is_shared = reading->is_shared || strstr(words, ": drive_load_subject (") != NULL;
    else if (is_frame && reading->count > 0)
        take_frame(reading->record, &reading->accesses[reading->count - 1], words + strlen("at "));
}

void helgrind_read_log(struct memcheck_errors *races, const char *folder, pid_t pid,
                       const struct record *record)
{
    struct reading reading = {.races = races, .record = record};
    memcheck_read_lines(folder, pid, take_line, &reading);
    end_race(&reading);
}
