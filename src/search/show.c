/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks have letters as long as there are any, and no step is about a row of them.
 */
#include "search/show.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "repro/call_log.h"
#include "trace/trace.h"

/* ---- to be read ---------------------------------------------------------------------------- */

static bool have_letters(const struct call_list *list)
{
    enum { LETTERS = 'z' - 'p' + 1 };
    for (size_t i = 0; i < list->count; i++) {
        if (list->at[i].kind < STEP_FREE_NULL && list->at[i].times > 1 &&
            !step_is_pair(&list->at[i]))
            return false;
    }
    return call_list_blocks(list) <= LETTERS;
}

static const char *name_of(uint32_t block, uint32_t times, bool letters)
{
    if (times > 1)
        return fmt("p[%" PRIu32 "..%" PRIu32 "]", block, block + times - 1);
    return letters ? fmt("%c", (int)('p' + block)) : fmt("p[%" PRIu32 "]", block);
}

static const char *size_of(uint64_t size)
{
    if (size > UINT64_MAX - (1 << 20))
        return size == UINT64_MAX ? "SIZE_MAX" : fmt("SIZE_MAX - %" PRIu64, UINT64_MAX - size);
    return fmt("%" PRIu64, size);
}

const char *show_step(const struct step *step)
{
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
    case STEP_MALLOC_FREE:
        return fmt("malloc(%s)", size_of(step->first));
    case STEP_CALLOC:
    case STEP_CALLOC_FREE:
        return fmt("calloc(%s, %s)", size_of(step->first), size_of(step->second));
    case STEP_REALLOC:
        return fmt("realloc(..., %s)", size_of(step->first));
    case STEP_FREE:
        return "free(...)";
    case STEP_FREE_NULL:
        return fmt("free(NULL, %s)", size_of(step->first));
    case STEP_LIMIT:
        return step->first == 0 ? "memory is there again"
                                : fmt("no more than %" PRIu64 " bytes can be mapped", step->first);
    case STEP_PAUSE:
        return fmt("%" PRIu64 " ms pass", step->first);
    case STEP_STOP:
        return "its next call is stopped";
    case STEP_FORK:
        return "fork(), and both go on";
    case STEP_FILL:
        return step->second == 0
                   ? fmt("a block is filled with %#" PRIx64, step->first)
                   : fmt("a block is filled with what is %" PRIu64 " words before the newest one",
                         step->second);
    case STEP_ASK_GETTER:
        return "the getter is asked again";
    case STEP_LOCK:
        return "the pages of a block are locked into memory";
    case STEP_REFUSE:
        return step->first == 0 ? "no request is refused"
               : step->second == REFUSE_ADVICE
                   ? "the handler's calls of madvise fail"
                   : fmt("request %" PRIu64 " of the handler for memory is refused%s", step->first,
                         step->second == REFUSE_ALL_AFTER ? ", and all after it" : "");
    case STEP_LOOK_AT_STRUCT:
        return "the struct";
    case OUTSIDE:
        break;
    }
    return "?";
}

const char *show_found(const struct call_list *list, const struct found *found)
{
    bool is_end = found->at >= list->count;
    const char *call = is_end ? "the end" : show_step(&list->at[found->at]);
    return found->kind == FOUND_WRONG && found->rule != HEAP_RETURNS
               ? fmt("%s: call %" PRIu64 ", %s: %s", heap_rule_name(found->rule), found->calls,
                     call, found->seen)
               : fmt("%s: call %" PRIu64 ", %s", found->seen, found->calls, call);
}

/* Which blocks are live behind the step. */
static void follow(bool *live, const struct step *step)
{
    bool makes = step_makes(step);
    for (uint32_t k = 0; k < step->times && (makes || step->kind == STEP_FREE); k++)
        live[step->block + k] = makes;
}

static void show_one(FILE *file, const struct step *step, const bool *live, bool letters)
{
    const char *name = name_of(step->block, step->times, letters);
    const char *times = step->times > 1 ? fmt(", %" PRIu32 " times", step->times) : "";
    switch ((enum step_kind)step->kind) {
    case STEP_REALLOC:
        fprintf(file, "%s = realloc(%s, %s)", name, live[step->block] ? name : "NULL",
                size_of(step->first));
        break;
    case STEP_FREE:
        fprintf(file, "free(%s, %s)", name, size_of(step->first));
        break;
    case STEP_MALLOC:
    case STEP_CALLOC:
        fprintf(file, "%s = %s", name, show_step(step));
        break;
    case STEP_MALLOC_FREE:
    case STEP_CALLOC_FREE:
        fprintf(file, "%s = %s, and free it%s", name_of(step->block, 1, letters), show_step(step),
                times);
        break;
    default:
        fprintf(file, "%s%s", show_step(step), times);
    }
}

/* `before`: whose steps stand before it. */
static const char *name_of_thread(unsigned thread, unsigned before)
{
    if (thread == 0)
        return "the first thread:";
    if (thread == STEP_AT_EXIT)
        return "while the process exits:";
    if ((thread & STEP_IN_DESTRUCTOR) == 0)
        return "a new thread, which then ends:";
    return thread == (before | STEP_IN_DESTRUCTOR)
               ? "and while its variables are destroyed:"
               : "a new thread, which ends, and while its variables are destroyed:";
}

/* How a step begins whose thread is one of several that live as long as the list. */
static void show_thread(FILE *file, const struct call_list *list, size_t i)
{
    fprintf(file, "thread %" PRIu32 "%s: ", list->at[i].thread + 1,
            list->in_turns ? "" : ", at once");
}

/* Where its thread was to be stopped. */
static void show_stop(FILE *file, const struct call_list *list, size_t i)
{
    size_t last = i;
    while (last > 0 && list->at[--last].thread != list->at[i].thread)
        continue;
    if (last < i && list->at[last].kind == STEP_STOP && list->at[last].thread == list->at[i].thread)
        fprintf(file,
                list->at[last].second == STOP_AT
                    ? ", stopped at +%#" PRIx64 " of its object; meanwhile"
                    : ", stopped behind %" PRIu64 " instructions; meanwhile",
                list->at[last].first);
}

/* ---- the list ---- */

enum { SHOWN = 40 }; /* steps or more, half of them from the beginning and half from the end */

static bool are_same(const struct step *a, const struct step *b)
{
    return a->kind == b->kind && a->thread == b->thread && a->block == b->block &&
           a->times == b->times && a->first == b->first && a->second == b->second;
}

/* How many of the steps from i on are those before it, `period` of them, again and again. */
static size_t repeated(const struct call_list *list, size_t i, size_t period)
{
    size_t end = i;
    while (i >= period && end < list->count && are_same(&list->at[end], &list->at[end - period]))
        end++;
    return (end - i) / period * period;
}

/* The same of one step or two, where they are so many that they are worth a line; or 0. */
static size_t repetition(FILE *file, int indent, const struct call_list *list, size_t i)
{
    enum { LEAST = 4 };
    for (size_t period = 1; period <= 2 && !list->at_once; period++) {
        size_t count = repeated(list, i, period);
        if (count < LEAST * period)
            continue;
        fprintf(file, "%*s(%s, %zu times more)\n", indent, "",
                period == 1 ? "the same" : "these two", count / period);
        return count;
    }
    return 0;
}

static void show_at(FILE *file, int indent, const struct call_list *list, size_t i,
                    const bool *live, bool letters)
{
    const struct step *step = &list->at[i];
    unsigned before = i > 0 ? list->at[i - 1].thread : 0;
    if (step->thread != before && !list->at_once)
        fprintf(file, "%*s%s\n", indent, "", name_of_thread(step->thread, before));
    if (step->kind == STEP_STOP)
        return;
    fprintf(file, "%*s", indent, "");
    if (list->at_once)
        show_thread(file, list, i);
    show_one(file, step, live, letters);
    if (list->in_turns)
        show_stop(file, list, i);
    putc('\n', file);
}

void show_calls(FILE *file, int indent, const struct call_list *list)
{
    bool *live = calloc(call_list_blocks(list) + 1, sizeof *live), letters = have_letters(list);
    size_t shown = 0;
    for (size_t i = 0; live != NULL && i < list->count; i++) {
        size_t left = list->count - i;
        size_t again =
            shown < SHOWN / 2 || left <= SHOWN / 2 ? repetition(file, indent, list, i) : 0;
        if (again > 0) {
            i += again - 1; /* and what is live stays so: a block that is resized again */
            continue;
        }
        if (shown == SHOWN / 2 && left > SHOWN / 2)
            fprintf(file, "%*s(%zu more)\n", indent, "", left - SHOWN / 2);
        if (shown < SHOWN / 2 || left <= SHOWN / 2)
            show_at(file, indent, list, i, live, letters);
        shown++;
        follow(live, &list->at[i]);
    }
    free(live);
}

void show_steps(FILE *file, const struct call_list *list,
                void (*before)(FILE *file, const struct step *step), const char *end)
{
    bool *live = calloc(call_list_blocks(list) + 1, sizeof *live), letters = have_letters(list);
    for (size_t i = 0; live != NULL && i < list->count; i++) {
        before(file, &list->at[i]);
        show_one(file, &list->at[i], live, letters);
        fputs(end, file);
        follow(live, &list->at[i]);
    }
    free(live);
}

/* ---- as a trace ------------------------------------------------------------------------------ */

/* An address for each block, at which no other is. */
static const void *address_of(uint32_t block)
{
    return (const void *)(((uintptr_t)block + 1) << (sizeof(uintptr_t) * 4));
}

static void write_once(struct trace_writer *writer, const struct step *step, uint32_t block,
                       bool *live)
{
    struct trace_caller caller = {.thread = step->thread, .gil = true};
    const void *p = address_of(block);
    size_t size = (size_t)step->first;
    struct trace_given given = trace_give(writer, live[block] ? p : NULL);
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
        trace_malloc(writer, &caller, size, p);
        break;
    case STEP_CALLOC:
        trace_calloc(writer, &caller, size, (size_t)step->second, p);
        break;
    case STEP_REALLOC:
        trace_realloc(writer, &caller, given, size, p);
        break;
    case STEP_FREE:
    case STEP_FREE_NULL:
        trace_free(writer, &caller, given, size);
        break;
    default:
        return;
    }
    live[block] = step->kind < STEP_FREE;
}

static void write_step(struct trace_writer *writer, const struct step *step, bool *live)
{
    bool pair = step_is_pair(step);
    struct step make = *step, end = *step;
    make.kind = (uint8_t)step_called(step);
    end.kind = STEP_FREE;
    if (pair)
        end.first = step_size(step);
    for (uint32_t i = 0; i < step->times; i++) {
        write_once(writer, pair ? &make : step, pair ? step->block : step->block + i, live);
        if (pair)
            write_once(writer, &end, step->block, live);
    }
}

bool show_as_trace(const char *path, const struct call_list *list, char *why, size_t room)
{
    struct trace_writer *writer = trace_create(path, false, why, room);
    bool *live = calloc(call_list_blocks(list) + 1, sizeof *live);
    for (size_t i = 0; writer != NULL && live != NULL && i < list->count; i++)
        write_step(writer, &list->at[i], live);
    if (writer != NULL && live == NULL)
        snprintf(why, room, "out of memory");
    free(live);
    return writer != NULL && trace_close(writer, why, room) && live != NULL;
}
