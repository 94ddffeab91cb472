/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a property ends.
 */
#include "harness/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/sanitizer_detect.h"
#include "harness/code_place.h"
#include "harness/data_races.h"
#include "harness/test_process.h"
#include "shims/recorder.h"

/* Formats the variable arguments after `format` into an array. */
#define FORMAT_INTO(array, format)                                                                 \
    do {                                                                                           \
        va_list arguments_;                                                                        \
        va_start(arguments_, format);                                                              \
        vsnprintf(array, sizeof(array), format, arguments_);                                       \
        va_end(arguments_);                                                                        \
    } while (0)

/* The process ends by _exit(): destructors and the end of Python are up to the properties about
 * them. */
void enter_exit_path(void)
{
    if (atomic_exchange(&test_process.ended, 1) != 0) {
        for (;;)
            pause();
    }
}

void count_memcheck_errors(void)
{
    test_process.setup.record->memcheck_errors +=
        memcheck_error_count() - test_process.memcheck_errors_before;
}

__attribute__((noinline)) void conform_fail(const char *expected, const char *seen,
                                            const char *latest, void (*code)(void))
{
    __asm__ volatile("" : : "r"(expected), "r"(seen), "r"(latest), "r"(code));
}

static void show_to_debugger(const struct record *record)
{
    const struct latest *latest = own_latest();
    const char *words = call_in_words(&latest->call);
    conform_fail(record->expected, record->seen, words != NULL ? words : "none", latest->code);
}

_Noreturn void leave(enum verdict verdict)
{
    struct record *record = test_process.setup.record;
    if (test_process.is_trial)
        _exit(verdict == PASS || verdict == SKIP ? SURVIVED : 0);
    fflush(stdout);
    bool is_about_them = (test_process.setup.property->answers_for & ABOUT(DATA_RACE)) != 0;
    if ((verdict != FAIL || is_about_them) && verdict != BROK && data_races_tell(record)) {
        record_attribute(record, TOPIC_DATA_RACE);
        verdict = FAIL;
    }
    if (verdict == PASS && record->short_in_child == INCOMPLETE_IN_CHILD)
        mark_incomplete("a process that it forked stopped at a limit");
    if (verdict == PASS && test_process.incomplete_because[0] != '\0') {
        snprintf(record->seen, sizeof record->seen, "%s", test_process.incomplete_because);
        record->expected[0] = '\0';
        verdict = INCOMPLETE;
    }
    if (verdict == FAIL || verdict == WARN)
        show_to_debugger(record);
    record->reached = verdict;
    record->suspects[MADE_EMPTY] = *own_making();
    count_memcheck_errors();
    atomic_store(&record->state, RECORD_ENDED);
    if (test_process.setup.at_end != NULL && !test_process.is_child)
        test_process.setup.at_end();
    _exit(0);
}

/* What is in NumPy's hands twice breaks whatever uses it. */
void note_overlap(struct record *record)
{
    if (record->attribute_to[0] == '\0' && recorder_saw_overlap())
        record_attribute(record, TOPIC_BLOCKS_OVERLAP);
}

/* Between control_begin and control_end, and in a child that is forked there. */
bool in_control(void)
{
    return test_process.setup.record->control[0] != '\0';
}

void (*function_of(enum step_kind kind))(void)
{
    const PyDataMemAllocator *a = &test_process.as_loaded.allocator;
    switch (kind) {
    case STEP_MALLOC:
        return (void (*)(void))a->malloc;
    case STEP_CALLOC:
        return (void (*)(void))a->calloc;
    case STEP_REALLOC:
        return (void (*)(void))a->realloc;
    case STEP_FREE:
        return (void (*)(void))a->free;
    default:
        return NULL;
    }
}

/* Only a property about one function fails directly after the call that is wrong. */
static void note_latest_call(struct record *record)
{
    const struct group *group = property_group(test_process.setup.property);
    const struct step *call = &own_latest()->call;
    if (group == NULL || group->function == OUTSIDE || group->function != call->kind)
        return;
    code_place_find((uintptr_t)function_of(call->kind), &record->place);
}

_Noreturn void fail_at(int line, const char *expected, const char *seen, ...)
{
    enter_exit_path();
    struct record *record = test_process.setup.record;
    snprintf(record->expected, sizeof record->expected, "%s", expected);
    FORMAT_INTO(record->seen, seen);
    record->line = line;
    note_latest_call(record);
    note_overlap(record);
    if (record->signal != 0) /* of a process that Python forked */
        record->suspects[ENDED_IN] = record->signal_call;
    /* what a control does is ordinary use, and whatever goes wrong there breaks a MUST */
    leave(test_process.setup.property->level == MUST || in_control() ? FAIL : WARN);
}

void attribute_to(const char *id, const struct step *call)
{
    test_process.setup.record->suspects[ENDED_IN] =
        call != NULL ? *call : (struct step){.kind = OUTSIDE};
    snprintf(test_process.setup.record->attribute_to,
             sizeof test_process.setup.record->attribute_to, "%s", id);
}

_Noreturn void fail_for(const struct property *property, const struct finding *finding,
                        const char *seen, ...)
{
    enter_exit_path();
    struct record *record = test_process.setup.record;
    attribute_to(property->id, finding->call);
    record->is_finding = 1;
    record->is_definite = finding->is_definite;
    FORMAT_INTO(record->seen, seen);
    snprintf(record->expected, sizeof record->expected, "%s", finding->expected);
    snprintf(record->call, sizeof record->call, "%s", finding->words);
    snprintf(record->past, sizeof record->past, "%s", finding->past);
    snprintf(record->situation, sizeof record->situation, "%s", finding->situation);
    if (finding->call != NULL)
        code_place_find((uintptr_t)function_of(finding->call->kind), &record->place);
    leave(property->level == MUST ? FAIL : WARN);
}

/* The first warning, apart from the record, which is that of what follows. */
static struct {
    const struct property *property; /* or NULL */
    bool has_call;
    struct step call;
    struct record record;
} warning;

void warn_for(const struct property *property, const struct finding *finding, const char *seen)
{
    if (warning.property != NULL)
        return;
    warning.property = property;
    warning.has_call = finding->call != NULL;
    if (warning.has_call)
        warning.call = *finding->call;
    snprintf(warning.record.call, sizeof warning.record.call, "%s", finding->words);
    snprintf(warning.record.expected, sizeof warning.record.expected, "%s", finding->expected);
    snprintf(warning.record.past, sizeof warning.record.past, "%s", finding->past);
    snprintf(warning.record.situation, sizeof warning.record.situation, "%s", finding->situation);
    snprintf(warning.record.seen, sizeof warning.record.seen, "%s", seen);
}

static _Noreturn void end_with_warning(void)
{
    const struct finding finding = {
        .call = warning.has_call ? &warning.call : NULL,
        .words = warning.record.call,
        .expected = warning.record.expected,
        .past = warning.record.past,
        .situation = warning.record.situation,
    };
    test_process.setup.record->is_complete = 1;
    fail_for(warning.property, &finding, "%s", warning.record.seen);
}

_Noreturn void end_child(void)
{
    struct record *record = test_process.setup.record;
    if (data_races_tell(record))
        leave(PASS); /* which tells them, and ends the property */
    fflush(stdout);
    count_memcheck_errors();
    atomic_fetch_add(&record->children_done, 1);
    _exit(0);
}

_Noreturn void skip(const char *reason, ...)
{
    enter_exit_path();
    if (test_process.is_child && in_control())
        end_child(); /* nothing is wrong there, and the property comes to it by itself */
    FORMAT_INTO(test_process.setup.record->seen, reason);
    leave(SKIP);
}

_Noreturn void skip_unclaimed(void)
{
    test_process.setup.record->unclaimed = 1;
    skip("it makes no such claim");
}

_Noreturn void harness_broke(const char *what, ...)
{
    enter_exit_path();
    FORMAT_INTO(test_process.setup.record->seen, what);
    leave(BROK);
}

/* Kept where no subject can write over it. */
void mark_incomplete(const char *reason, ...)
{
    if (test_process.is_child)
        test_process.setup.record->short_in_child = INCOMPLETE_IN_CHILD;
    if (test_process.incomplete_because[0] != '\0')
        return;
    FORMAT_INTO(test_process.incomplete_because, reason);
}

void record_rows(const struct coverage_counts *counts, const void *found_row, size_t size)
{
    struct record *record = test_process.setup.record;
    record->coverage = *counts;
    if (found_row != NULL && size <= sizeof record->found_row)
        memcpy(record->found_row, found_row, size);
}

_Noreturn void pass(void)
{
    if (!test_process.is_child)
        expect_struct_as_loaded();
    if (warning.property != NULL && !test_process.is_child)
        end_with_warning();
    enter_exit_path();
    if (test_process.is_child)
        end_child();
    leave(PASS);
}

void step(const char *format, ...)
{
    FORMAT_INTO(test_process.setup.record->step, format);
}

void program_part(const char *format, ...)
{
    FORMAT_INTO(test_process.setup.record->part, format);
}

void control_begin(const char *when)
{
    record_enter_control(test_process.setup.record, when);
}

void control_end(void)
{
    record_enter_control(test_process.setup.record, "");
    test_process.setup.record->controlled = 1;
}
