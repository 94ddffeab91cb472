/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The shared results: a header, one load report, and a record per property,
 * each on whole pages so that a process can be left with its own alone.
 */
#include "model/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"

const struct verdict_facts verdict_facts[VERDICT_COUNT] = {
    [VERDICT_NONE] = {"NONE", "", "", 0, false, false},
    [PASS] = {"PASS", "passed", "\033[32m", 0, false, false},
    [FAIL] = {"FAIL", "failed", "\033[1;31m", 5, true, true},
    [WARN] = {"WARN", "warned", "\033[33m", 2, true, false},
    [SKIP] = {"SKIP", "skipped", "\033[36m", 1, false, false},
    [CRASH] = {"CRASH", "crashed", "\033[1;31m", 7, true, true},
    [TIMEOUT] = {"TIMEOUT", "timed out", "\033[1;31m", 6, true, true},
    [BROK] = {"BROK", "not judged", "\033[1;35m", 4, false, false},
    [INCOMPLETE] = {"INCOMPLETE", "incomplete", "\033[1;35m", 3, false, false},
};

const char *verdict_name(enum verdict verdict)
{
    return verdict_facts[verdict].name;
}

struct outcome outcome_of(const struct record *record)
{
    enum verdict verdict = record->verdict;
    struct outcome outcome = {.verdict = verdict,
                              .in_control =
                                  verdict_facts[verdict].against && record->control[0] != '\0',
                              .not_run = verdict == INCOMPLETE && record->not_run != 0};
    if (verdict == FAIL && record->memcheck[0] != '\0')
        outcome.expected = "no error under memcheck";
    if (verdict == FAIL || verdict == SKIP)
        snprintf(outcome.note, sizeof outcome.note, "%.511s", record->memcheck);
    return outcome;
}

const char *call_in_words(const struct step *call)
{
    switch (call->kind) {
    case STEP_MALLOC:
        return fmt("malloc(%" PRIu64 ")", call->first);
    case STEP_CALLOC:
        return fmt("calloc(%" PRIu64 ", %" PRIu64 ")", call->first, call->second);
    case STEP_REALLOC:
    case STEP_FREE:
        return fmt("%s(%p, %" PRIu64 ")", step_function(call->kind), call->pointer, call->first);
    default:
        return NULL;
    }
}

static size_t whole_pages(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (size + page - 1) / page * page;
}

struct shared_results *results_create(size_t count)
{
    size_t header = whole_pages(sizeof(struct shared_results) + count * sizeof(size_t));
    size_t load = whole_pages(sizeof(struct load));
    size_t record = whole_pages(sizeof(struct record));
    void *memory = mmap(NULL, header + load + count * record, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    struct shared_results *shared = memory;
    shared->count = count;
    shared->header_size = header;
    shared->record_size = record;
    return shared;
}

struct load *results_load(struct shared_results *shared)
{
    return (struct load *)((char *)shared + shared->header_size);
}

static char *first_record(struct shared_results *shared)
{
    return (char *)results_load(shared) + whole_pages(sizeof(struct load));
}

struct record *results_record(struct shared_results *shared, size_t index)
{
    return (struct record *)(first_record(shared) + index * shared->record_size);
}

void results_clear(struct shared_results *shared)
{
    size_t begin = offsetof(struct shared_results, handler),
           end = offsetof(struct shared_results, queue);
    memset((char *)shared + begin, 0, end - begin);
    memset(results_load(shared), 0, sizeof(struct load));
    memset(first_record(shared), 0, shared->count * shared->record_size);
}

static void take_away(char *begin, char *end)
{
    if (begin < end)
        munmap(begin, (size_t)(end - begin));
}

void record_enter_control(struct record *record, const char *without)
{
    snprintf(record->control, sizeof record->control, "%s", without);
    record->control_sum = random_for(0, record->control).state;
}

void record_attribute(struct record *record, enum topic topic)
{
    const char *id = property_about(topic);
    size_t length = strlen(id);
    if (length < sizeof record->attribute_to)
        memcpy(record->attribute_to, id, length + 1);
}

void record_check_control(struct record *record)
{
    record->control[sizeof record->control - 1] = '\0';
    if (record->control_sum != random_for(0, record->control).state)
        record->control[0] = '\0';
}

void load_make_sound(struct load *load)
{
    load->why[sizeof load->why - 1] = '\0';
    load->claims[sizeof load->claims - 1] = '\0';
    load->how[sizeof load->how - 1] = '\0';
}

void results_isolate(struct shared_results *shared, size_t index, bool keep_load)
{
    char *load = (char *)results_load(shared);
    char *first = first_record(shared);
    char *own = (char *)results_record(shared, index);
    char *behind = own + shared->record_size;
    char *end = first + shared->count * shared->record_size;
    if (keep_load) {
        take_away((char *)shared, load);
        take_away(first, own);
    } else {
        take_away((char *)shared, own);
    }
    take_away(behind, end);
}
