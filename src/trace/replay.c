/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying a trace on a handler.  Every step ends the replay where a property fails;
 * nothing is judged that could follow from it.
 */
#include "trace/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "heap/heap.h"

struct replay {
    struct trace_reader *reader;
    PyDataMem_Handler *handler;
    const struct replay_options *options;
    struct replay_result *result;
    struct heap heap;
    bool has_gil;
};

/* ---- what does not hold ---------------------------------------------------------------------- */

static void tell(const struct replay *replay, struct replay_violation *violation,
                 const struct heap_violation *seen)
{
    const struct trace_call *call = &replay->result->under_way;
    violation->rule = seen->rule;
    snprintf(violation->part, sizeof violation->part, "%s", replay->result->part);
    violation->call = call->number;
    violation->offset = call->offset;
    snprintf(violation->text, sizeof violation->text, "%s: %s", trace_call_text(call), seen->seen);
    snprintf(violation->history, sizeof violation->history, "%s", seen->history);
}

/* Always false: the replay ends. */
static bool ends(struct replay *replay)
{
    replay->result->outcome = REPLAY_NO_MEMORY;
    if (replay->heap.no_memory)
        return false;
    tell(replay, &replay->result->violation, &replay->heap.violation);
    replay->result->outcome = REPLAY_VIOLATED;
    return false;
}

/* ---- malloc and calloc ---------------------------------------------------------------------- */

/* The handler returned NULL. */
static bool refused(struct replay *replay, size_t size, bool recorded)
{
    if (size == 0 || recorded)
        return true;
    replay->result->refused++;
    return heap_refused(&replay->heap, size) || ends(replay);
}

/* What malloc and calloc have in common, and realloc where it is given no block. */
static bool made(struct replay *replay, const struct trace_call *call, enum step_kind by, void *p,
                 size_t size)
{
    if (p == NULL)
        return refused(replay, size, call->refused);
    if (call->refused) { /* the recorded program has no block, and will not free this one */
        if (!heap_made_for_nobody(&replay->heap, by, p, size))
            return ends(replay);
        replay->handler->allocator.free(replay->handler->allocator.ctx, p, size);
        return true;
    }
    return heap_made(&replay->heap, call->step.block, call->block, by, p, size) || ends(replay);
}

static bool reserve(struct replay *replay, const struct trace_call *call)
{
    return call->refused || heap_reserve(&replay->heap, call->step.block) || ends(replay);
}

/* What a machine with longer addresses was asked for is more than there can be here. */
static size_t size_here(uint64_t size)
{
    return size < SIZE_MAX ? (size_t)size : SIZE_MAX;
}

static bool replay_malloc(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t size = size_here(call->step.first);
    return reserve(replay, call) && made(replay, call, STEP_MALLOC, a->malloc(a->ctx, size), size);
}

static bool replay_calloc(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t nelem = size_here(call->step.first), elsize = size_here(call->step.second);
    size_t size = heap_product(nelem, elsize);
    if (!reserve(replay, call))
        return false;
    void *p = a->calloc(a->ctx, nelem, elsize);
    if (size == SIZE_MAX && !heap_overflowed(&replay->heap, p))
        return ends(replay);
    return made(replay, call, STEP_CALLOC, p, size);
}

/* ---- realloc -------------------------------------------------------------------------------- */

static bool realloc_block(struct replay *replay, const struct trace_call *call, size_t size)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    struct heap *heap = &replay->heap;
    if (!heap_will_resize(heap, call->step.block, size))
        return ends(replay);
    void *p = a->realloc(a->ctx, heap->block[call->step.block].p, size);
    if (p != NULL)
        return heap_resized(heap, call->step.block, p, size) || ends(replay);
    if (!heap_kept(heap, call->step.block, size))
        return ends(replay);
    return refused(replay, size, call->refused);
}

/* Where it was refused and is granted now, the program never knew the new size, and the block goes
 * back to the old one. */
static bool replay_realloc(struct replay *replay, const struct trace_call *call)
{
    const struct heap_block *block = &replay->heap.block[call->step.block];
    size_t before = block->size;
    if (!realloc_block(replay, call, size_here(call->step.first)))
        return false;
    if (!call->refused || block->p == NULL || block->size == before)
        return true;
    return realloc_block(replay, call, before);
}

/* ---- free ----------------------------------------------------------------------------------- */

static bool freed(struct replay *replay)
{
    bool holds = heap_freed(&replay->heap);
    if (__builtin_expect(replay->heap.warning.rule != HEAP_NO_RULE, 0) &&
        replay->result->warning.rule == HEAP_NO_RULE)
        tell(replay, &replay->result->warning, &replay->heap.warning);
    return holds || ends(replay);
}

static bool free_block(struct replay *replay, uint32_t slot, size_t size)
{
    unsigned char *p = replay->heap.block[slot].p;
    if (!heap_will_free(&replay->heap, slot))
        return ends(replay);
    replay->handler->allocator.free(replay->handler->allocator.ctx, p, size);
    return freed(replay);
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* A call that names no block.  What foreign pointers were cannot be known: free of one is left
 * out, and realloc of one becomes a malloc. */
static bool replay_without_block(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t size = size_here(call->step.first);
    if (call->pointer == TRACE_FOREIGN)
        replay->result->left_out++;
    if (call->step.kind == STEP_FREE && call->pointer == TRACE_FOREIGN)
        return true;
    if (call->step.kind == STEP_FREE) {
        heap_set_error(&replay->heap);
        a->free(a->ctx, NULL, size);
        return freed(replay);
    }
    if (call->pointer == TRACE_FOREIGN)
        return replay_malloc(replay, call);
    return reserve(replay, call) &&
           made(replay, call, STEP_REALLOC, a->realloc(a->ctx, NULL, size), size);
}

static bool asks_too_much(const struct replay *replay, const struct trace_call *call)
{
    size_t most = replay->options->most_bytes;
    uint64_t size = step_size(&call->step);
    return most != 0 && call->step.kind != STEP_FREE && size <= PTRDIFF_MAX &&
           replay->heap.live_bytes + size > most;
}

static bool replay_call(struct replay *replay, const struct trace_call *call)
{
    if (asks_too_much(replay, call)) {
        replay->result->left_out++;
        return call->pointer == TRACE_BLOCK || reserve(replay, call);
    }
    switch (call->step.kind) {
    case STEP_MALLOC:
        return replay_malloc(replay, call);
    case STEP_CALLOC:
        return replay_calloc(replay, call);
    default:
        break;
    }
    if (call->pointer != TRACE_BLOCK)
        return replay_without_block(replay, call);
    if (replay->heap.block[call->step.block].p == NULL) {
        replay->result->left_out++;
        return true;
    }
    if (call->step.kind == STEP_REALLOC)
        return replay_realloc(replay, call);
    /* NumPy gives free the size of the last realloc, which this handler may have refused */
    size_t size = call->step.first == call->old_size ? replay->heap.block[call->step.block].size
                                                     : size_here(call->step.first);
    return free_block(replay, call->step.block, size);
}

/* What is live at the end goes as well: contents are checked once more, and the handler is left as
 * it was found. */
static bool free_live(struct replay *replay)
{
    for (uint32_t slot = 0; slot < replay->heap.room; slot++) {
        const struct heap_block *block = &replay->heap.block[slot];
        if (block->p == NULL)
            continue;
        replay->result->live++;
        replay->result->under_way =
            (struct trace_call){.step = {.kind = STEP_FREE, .first = block->size},
                                .pointer = TRACE_BLOCK,
                                .block = block->number,
                                .old_size = block->size};
        replay->heap.call = 0;
        if (!free_block(replay, slot, block->size))
            return false;
    }
    return true;
}

static void follow_gil(struct replay *replay, bool gil)
{
    const struct replay_options *options = replay->options;
    if (gil == replay->has_gil || options->take_gil == NULL)
        return;
    (gil ? options->take_gil : options->release_gil)();
    replay->has_gil = gil;
}

static void run(struct replay *replay)
{
    const struct replay_options *options = replay->options;
    struct replay_result *result = replay->result;
    struct trace_call *call = &result->under_way;
    enum trace_state state;
    trace_tell_parts(replay->reader);
    while ((state = trace_next(replay->reader, call)) == TRACE_CALL || state == TRACE_PART) {
        if (state == TRACE_PART) {
            snprintf(result->part, sizeof result->part, "%s", trace_part(replay->reader));
            if (options->part_begins != NULL)
                options->part_begins(result->part, options->data);
            continue;
        }
        follow_gil(replay, call->gil);
        replay->heap.call = call->number;
        if (!replay_call(replay, call))
            return;
        result->calls++;
    }
    follow_gil(replay, true); /* which a program holds when it deletes an array */
    result->live_bytes = replay->heap.live_bytes;
    if (options->calls_end != NULL)
        options->calls_end(options->data);
    if (!free_live(replay))
        return;
    if (!heap_state_holds(&replay->heap)) {
        ends(replay);
        return;
    }
    result->cut = state == TRACE_CUT;
    result->outcome = state == TRACE_WRONG ? REPLAY_TRACE_WRONG : REPLAY_PASSED;
    snprintf(result->wrong, sizeof result->wrong, "%s", trace_wrong(replay->reader));
}

enum replay_outcome replay_run(struct trace_reader *reader, PyDataMem_Handler *handler,
                               const struct replay_options *options, struct replay_result *result)
{
    struct heap_rules rules = {
        .alignment = options->alignment,
        .fill = options->fill,
        .watched = options->watched != NULL ? options->watched : handler,
        .unjudged = options->unchecked,
    };
    struct replay replay = {
        .reader = reader, .handler = handler, .options = options, .result = result};
    memset(result, 0, sizeof *result);
    uint64_t begin = clock_now();
    if (heap_begin(&replay.heap, &rules))
        run(&replay);
    else
        ends(&replay);
    follow_gil(&replay, false);
    result->seconds = clock_since(begin);
    result->peak_bytes = replay.heap.peak_bytes;
    heap_end(&replay.heap);
    return result->outcome;
}
