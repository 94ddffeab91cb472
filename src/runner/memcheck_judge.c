/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Telling the errors of the handler from those of the interpreter and NumPy.
 */
#include "runner/memcheck_judge.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "runner/memcheck_report.h"

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
