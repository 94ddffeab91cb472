/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A trace as text.
 */
#include "trace/trace.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

static const char *pointer_text(const struct trace_call *call)
{
    switch (call->pointer) {
    case TRACE_BLOCK:
        return fmt("block %" PRIu64 " of %" PRIu64, call->block, call->old_size);
    case TRACE_NULL:
        return "NULL";
    case TRACE_FOREIGN:
        break;
    }
    return "foreign";
}

static const char *result_text(const struct trace_call *call)
{
    if (call->refused)
        return "NULL";
    if (call->step.kind == STEP_REALLOC && call->pointer == TRACE_BLOCK)
        return call->moved ? "moved" : "in place";
    return fmt("block %" PRIu64, call->block);
}

const char *trace_call_text(const struct trace_call *call)
{
    const struct step *step = &call->step;
    switch (step->kind) {
    case STEP_MALLOC:
        return fmt("malloc(%" PRIu64 ") = %s", step->first, result_text(call));
    case STEP_CALLOC:
        return fmt("calloc(%" PRIu64 ", %" PRIu64 ") = %s", step->first, step->second,
                   result_text(call));
    case STEP_REALLOC:
        return fmt("realloc(%s, %" PRIu64 ") = %s", pointer_text(call), step->first,
                   result_text(call));
    default:
        return fmt("free(%s, %" PRIu64 ")", pointer_text(call), step->first);
    }
}

static void print_head(FILE *out, const struct trace_reader *reader)
{
    const char *key, *value;
    for (size_t i = 0; trace_noted(reader, i, &key, &value); i++)
        fprintf(out, "# %s: %s\n", escape(key), escape(value));
    fprintf(out, "# %8s  %8s  %s%6s  call\n", "number", "offset",
            trace_totals(reader).timed ? "    seconds  " : "", "thread");
}

static void print_call(FILE *out, const struct trace_reader *reader, const struct trace_call *call)
{
    fprintf(out, "%10" PRIu64 "  %8" PRIu64 "  ", call->number, call->offset);
    if (trace_totals(reader).timed) /* times of other threads may be before the first call's */
        fprintf(out, "%11.6f  ", (double)(int64_t)call->time / 1e9);
    fprintf(out, "%6" PRIu32 "  %s%s\n", call->step.thread, trace_call_text(call),
            call->gil ? "" : ", without the GIL");
}

bool trace_print(FILE *out, const char *path, char *why, size_t room)
{
    struct trace_call call;
    enum trace_state state;
    struct trace_reader *reader = trace_open(path, why, room);
    if (reader == NULL)
        return false;
    print_head(out, reader);
    trace_tell_parts(reader);
    while (((state = trace_next(reader, &call)) == TRACE_CALL || state == TRACE_PART) &&
           !ferror(out)) {
        if (state == TRACE_PART)
            fprintf(out, "# part: %s\n", escape(trace_part(reader)));
        else
            print_call(out, reader, &call);
    }
    struct trace_totals totals = trace_totals(reader);
    if (state == TRACE_END || state == TRACE_CUT)
        fprintf(out, "# %" PRIu64 " call%s, %" PRIu64 " block%s live%s%s\n", totals.calls,
                totals.calls == 1 ? "" : "s", totals.live, totals.live == 1 ? "" : "s",
                state == TRACE_CUT ? "; " : "", state == TRACE_CUT ? trace_wrong(reader) : "");
    if (state == TRACE_WRONG)
        snprintf(why, room, "%s", trace_wrong(reader));
    trace_reader_close(reader);
    return state != TRACE_WRONG;
}
