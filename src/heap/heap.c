/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What has to hold of each call.
 */
#include "heap/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/contents.h"
#include "base/float_state.h"
#include "base/live_table.h"
#include "base/page_marks.h"
#include "base/text.h"

enum {
    STATE_EVERY = 16, /* calls from one look at struct and floating-point state to the next */
    ERRNO_BEFORE_FREE = 4949,
};

/* ---- violations ----------------------------------------------------------------------------- */

static const char *const maker_names[] = {
    [HEAP_MALLOC] = "malloc", [HEAP_CALLOC] = "calloc", [HEAP_REALLOC] = "realloc"};

static const char *history_of(const struct heap *heap, const struct heap_block *block)
{
    const struct heap_past *past = &heap->past[block - heap->block];
    const char *resized =
        past->resized == 0
            ? ""
            : text(", and resized %" PRIu32 " time%s, in call %" PRIu64 " from %zu to %zu bytes",
                   past->resized, past->resized == 1 ? "" : "s", past->resized_in,
                   past->size_before, block->size);
    uint64_t thread = block->number >> 32; /* where several keep heaps, each counts from there */
    return text("block %" PRIu64 "%s, %zu bytes at %p, was made by %s in call %" PRIu64 "%s",
                block->number & UINT32_MAX, thread != 0 ? text(" of thread %" PRIu64, thread) : "",
                block->size, (void *)block->p, maker_names[past->made_by], past->made_in, resized);
}

static void describe(const struct heap *heap, struct heap_violation *violation,
                     const char *property, const struct heap_block *block, const char *format,
                     va_list arguments)
{
    vsnprintf(violation->seen, sizeof violation->seen, format, arguments);
    snprintf(violation->property, sizeof violation->property, "%s", property);
    snprintf(violation->history, sizeof violation->history, "%s",
             block != NULL ? history_of(heap, block) : "");
}

/* Always false. */
static bool fail(struct heap *heap, const char *property, const struct heap_block *block,
                 const char *format, ...) __attribute__((cold, format(printf, 4, 5)));
static bool fail(struct heap *heap, const char *property, const struct heap_block *block,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    describe(heap, &heap->violation, property, block, format, arguments);
    va_end(arguments);
    return false;
}

/* A SHOULD, told once. */
static void warn(struct heap *heap, const char *property, const char *format, ...)
    __attribute__((cold, format(printf, 3, 4)));
static void warn(struct heap *heap, const char *property, const char *format, ...)
{
    va_list arguments;
    if (heap->warning.property[0] != '\0')
        return;
    va_start(arguments, format);
    describe(heap, &heap->warning, property, NULL, format, arguments);
    va_end(arguments);
}

static bool out_of_memory(struct heap *heap)
{
    heap->no_memory = true;
    return false;
}

/* ---- the state around a call ---------------------------------------------------------------- */

const char *heap_struct_change(const PyDataMem_Handler *before, const PyDataMem_Handler *now)
{
    if (memcmp(now, before, sizeof *before) == 0)
        return NULL;
    if (memcmp(now->name, before->name, sizeof before->name) != 0)
        return "the name";
    return now->version != before->version ? "the version" : "ctx or one of the functions";
}

static bool check_struct(struct heap *heap)
{
    const char *change = heap_struct_change(&heap->as_it_was, heap->rules.watched);
    return change == NULL ||
           fail(heap, "abi.struct-constant", NULL,
                "%s is not what it was at first (looked at every %d calls)", change, STATE_EVERY);
}

static bool check_float_state(struct heap *heap)
{
    unsigned state = float_state();
    if (state == heap->float_state)
        return true;
    return fail(heap, "env.float-state", NULL,
                "the floating-point state was %#x at first and is %#x (looked at every %d calls)",
                heap->float_state, state, STATE_EVERY);
}

bool heap_state_holds(struct heap *heap)
{
    return heap->rules.unjudged || (check_struct(heap) && check_float_state(heap));
}

/* After a call of the handler. */
static inline bool check_state(struct heap *heap)
{
    return heap->call % STATE_EVERY != 0 || (check_struct(heap) && check_float_state(heap));
}

/* ---- where blocks are ----------------------------------------------------------------------- */

static uintptr_t last_byte(uintptr_t address, size_t size)
{
    return address + (size != 0 ? size - 1 : 0);
}

/* All places are looked at without a branch, here and in forget: most new blocks are temporaries,
 * and which place has one is anybody's guess. */
static inline unsigned nursery_overlapping(const struct heap_nursery *nursery, uintptr_t first,
                                           uintptr_t last)
{
    unsigned places = 0;
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        places |= (unsigned)((nursery->first[i] <= last) & (first <= nursery->last[i])) << i;
    return places;
}

static void nursery_empty(struct heap_nursery *nursery, unsigned place)
{
    nursery->first[place] = UINTPTR_MAX;
    nursery->last[place] = 0;
}

/* The block that was in the place goes into the map; nursery blocks do not overlap what is there.
 */
static bool nursery_put(struct heap *heap, uintptr_t address, size_t size, uint32_t slot)
{
    struct heap_nursery *nursery = &heap->nursery;
    unsigned place = nursery->next++ % HEAP_NURSERY;
    if (nursery->first[place] <= nursery->last[place]) {
        struct live_block old = {.address = nursery->first[place],
                                 .size = heap->block[nursery->slot[place]].size,
                                 .number = nursery->slot[place]};
        if (live_table_insert(heap->map, &old, NULL) != LIVE_TABLE_DONE)
            return out_of_memory(heap);
    }
    nursery->first[place] = address;
    nursery->last[place] = last_byte(address, size);
    nursery->slot[place] = slot;
    return true;
}

static bool overlaps(struct heap *heap, uintptr_t address, size_t size, uint64_t slot)
{
    return fail(heap, "malloc.disjoint", &heap->block[slot],
                "%zu bytes at %p, where another block is live", size, (void *)address);
}

static bool is_too_large(struct heap *heap, const void *p)
{
    return fail(heap, "malloc.too-large", NULL, "NULL was expected, and not %p", p);
}

static inline bool check_overlap(struct heap *heap, uintptr_t address, size_t size)
{
    struct live_block other;
    if (heap->rules.without_map)
        return true;
    unsigned places = nursery_overlapping(&heap->nursery, address, last_byte(address, size));
    if (places != 0)
        return overlaps(heap, address, size, heap->nursery.slot[__builtin_ctz(places)]);
    enum live_table_state state = live_table_check(heap->map, address, size, &other);
    if (state == LIVE_TABLE_OVERLAPS)
        return overlaps(heap, address, size, other.number);
    return state == LIVE_TABLE_DONE || is_too_large(heap, (void *)address);
}

/* Tracks a new block, if it overlaps no other. */
static bool remember(struct heap *heap, const void *p, size_t size, uint32_t slot)
{
    return check_overlap(heap, (uintptr_t)p, size) &&
           (heap->rules.without_map || nursery_put(heap, (uintptr_t)p, size, slot));
}

static void forget(struct heap *heap, const void *p)
{
    unsigned places = 0;
    if (heap->rules.without_map)
        return;
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        places |= (unsigned)((heap->nursery.first[i] == (uintptr_t)p) &
                             (heap->nursery.first[i] <= heap->nursery.last[i]))
                  << i;
    if (places != 0)
        nursery_empty(&heap->nursery, (unsigned)__builtin_ctz(places));
    else
        live_table_remove(heap->map, (uintptr_t)p, NULL);
}

/* ---- what is in blocks ----------------------------------------------------------------------- */

/* Smaller ones have a word in each page but one or two, as it is. */
static inline bool has_marks(const struct heap *heap, size_t size)
{
    enum { LEAST = 1 << 14 };
    return __builtin_expect(heap->rules.marks, 0) && size >= LEAST && size > heap->rules.whole;
}

static inline void fill(struct heap *heap, void *p, size_t size, uint64_t number)
{
    contents_write(p, size, heap->rules.whole, number);
    if (has_marks(heap, size))
        page_marks_write(p, size, number);
}

/* The offset of a byte that is not as it was filled, or the block's size. */
static inline size_t lost(const struct heap *heap, const struct heap_block *block)
{
    size_t at = contents_check(block->p, block->size, heap->rules.whole, block->number);
    return at == block->size && has_marks(heap, block->size)
               ? page_marks_check(block->p, block->size, block->number)
               : at;
}

/* ---- what a call returned ------------------------------------------------------------------- */

static bool check_possible(struct heap *heap, const void *p, size_t size)
{
    return !heap_is_impossible(size) || is_too_large(heap, p);
}

static bool check_alignment(struct heap *heap, enum heap_maker by, const void *p, size_t size)
{
    size_t missing = heap_missing_alignment(heap->rules.alignment, p, size);
    return missing == 0 ||
           fail(heap,
                heap->rules.alignment == missing ? "malloc.claimed-alignment"
                                                 : text("%s.alignment", maker_names[by]),
                NULL, "the block at %p is not aligned to %zu bytes", p, missing);
}

static bool check_zero(struct heap *heap, const unsigned char *p, size_t size, uint64_t number)
{
    size_t at = contents_check_zero(p, size, heap->rules.whole, number);
    if (at == size && has_marks(heap, size))
        at = page_marks_check_zero(p, size);
    return at == size ||
           fail(heap, "calloc.zeroed", NULL, "byte %zu of %zu is 0x%02x", at, size, p[at]);
}

bool heap_overflowed(struct heap *heap, const void *p)
{
    return p == NULL || heap->rules.unjudged ||
           fail(heap, "calloc.overflow", NULL, "NULL was expected, and not %p", p);
}

bool heap_refused(struct heap *heap, size_t size)
{
    if (heap->rules.unjudged || heap->is_limited ||
        heap_may_refuse(size, heap->live_bytes, heap->live_blocks))
        return true;
    return fail(heap, "malloc.lasts", NULL,
                "it was refused with %" PRIu64 " bytes live in %" PRIu64 " blocks",
                heap->live_bytes, heap->live_blocks);
}

static void count_bytes(struct heap *heap, size_t more, size_t less)
{
    heap->live_bytes = heap->live_bytes + more - less;
    if (heap->live_bytes > heap->peak_bytes)
        heap->peak_bytes = heap->live_bytes;
}

bool heap_made(struct heap *heap, uint32_t slot, uint64_t number, enum heap_maker by, void *p,
               size_t size)
{
    bool judged = !heap->rules.unjudged;
    if (judged && !(check_state(heap) && check_possible(heap, p, size) &&
                    check_alignment(heap, by, p, size) &&
                    (by != HEAP_CALLOC || check_zero(heap, p, size, number))))
        return false;
    heap->block[slot] = (struct heap_block){p, size, number};
    heap->past[slot] = (struct heap_past){.made_by = by, .made_in = heap->call};
    count_bytes(heap, size, 0);
    heap->live_blocks++;
    if (!judged)
        return true;
    if (!remember(heap, p, size, slot))
        return false;
    fill(heap, p, size, number);
    return true;
}

bool heap_made_for_nobody(struct heap *heap, enum heap_maker by, void *p, size_t size)
{
    return heap->rules.unjudged || (check_state(heap) && check_possible(heap, p, size) &&
                                    check_alignment(heap, by, p, size) &&
                                    (by != HEAP_CALLOC || check_zero(heap, p, size, 0)) &&
                                    check_overlap(heap, (uintptr_t)p, size));
}

/* ---- what was in blocks ---------------------------------------------------------------------- */

static bool contents_lost(struct heap *heap, const char *property, const struct heap_block *block,
                          const unsigned char *p, size_t at, const char *when)
{
    return fail(heap, property, block, "byte %zu is 0x%02x and not 0x%02x as it was written, %s",
                at, p[at], contents_byte(block->number, at), when);
}

static inline bool check_contents(struct heap *heap, const struct heap_block *block,
                                  const char *when)
{
    size_t at = lost(heap, block);
    return at == block->size || contents_lost(heap, "malloc.neighbours", block, block->p, at, when);
}

bool heap_look(struct heap *heap, uint32_t slot)
{
    return heap->rules.unjudged || heap->block[slot].p == NULL ||
           check_contents(heap, &heap->block[slot], "when it was looked at");
}

bool heap_look_at_all(struct heap *heap)
{
    for (uint32_t slot = 0; slot < heap->room; slot++) {
        if (!heap_look(heap, slot))
            return false;
    }
    return true;
}

/* ---- realloc -------------------------------------------------------------------------------- */

bool heap_will_resize(struct heap *heap, uint32_t slot, size_t size)
{
    const struct heap_block *block = &heap->block[slot];
    if (heap->rules.unjudged)
        return true;
    if (!check_contents(heap, block, "before the call"))
        return false;
    if (!contents_are_whole(block->size, heap->rules.whole))
        contents_write_last(block->p, block->size < size ? block->size : size, block->number);
    return true;
}

static void resize(struct heap *heap, uint32_t slot, void *p, size_t size)
{
    struct heap_block *block = &heap->block[slot];
    struct heap_past *past = &heap->past[slot];
    count_bytes(heap, size, block->size);
    past->size_before = block->size;
    past->resized_in = heap->call;
    past->resized++;
    block->p = p;
    block->size = size;
}

static bool check_moved(struct heap *heap, const struct heap_block *block, const unsigned char *p,
                        size_t size)
{
    size_t both = block->size < size ? block->size : size;
    size_t at = contents_check_kept(p, both, block->size, heap->rules.whole, block->number);
    if (at == both && has_marks(heap, block->size))
        at = page_marks_check_kept(p, both, (uintptr_t)block->p, block->size, block->number);
    return at == both || contents_lost(heap, "realloc.keeps-contents", block, p, at,
                                       text("of the %zu that had to be kept", both));
}

bool heap_resized(struct heap *heap, uint32_t slot, void *p, size_t size)
{
    struct heap_block *block = &heap->block[slot];
    if (!heap->rules.unjudged) {
        if (!check_state(heap) || !check_possible(heap, p, size) ||
            !check_alignment(heap, HEAP_REALLOC, p, size))
            return false;
        forget(heap, block->p);
        if (!remember(heap, p, size, slot) || !check_moved(heap, block, p, size))
            return false;
    }
    resize(heap, slot, p, size);
    if (!heap->rules.unjudged)
        fill(heap, p, size, block->number);
    return true;
}

static void empty(struct heap *heap, struct heap_block *block)
{
    if (!heap->rules.unjudged)
        forget(heap, block->p);
    count_bytes(heap, 0, block->size);
    heap->live_blocks--;
    block->p = NULL;
}

bool heap_kept(struct heap *heap, uint32_t slot, size_t size)
{
    struct heap_block *block = &heap->block[slot];
    if (!heap->rules.unjudged && !check_state(heap))
        return false;
    if (size == 0) {
        empty(heap, block);
        return true;
    }
    if (heap->rules.unjudged)
        return true;
    size_t at = lost(heap, block);
    return at == block->size || contents_lost(heap, "realloc.failure-keeps-block", block, block->p,
                                              at, "after the refusal");
}

/* ---- free ----------------------------------------------------------------------------------- */

bool heap_will_free(struct heap *heap, uint32_t slot)
{
    struct heap_block *block = &heap->block[slot];
    if (!heap->rules.unjudged && !check_contents(heap, block, "before the call"))
        return false;
    empty(heap, block);
    heap_set_error(heap);
    return true;
}

void heap_set_error(struct heap *heap)
{
    *heap->error = ERRNO_BEFORE_FREE;
}

bool heap_freed(struct heap *heap)
{
    if (heap->rules.unjudged)
        return true;
    if (*heap->error != ERRNO_BEFORE_FREE)
        warn(heap, "free.keeps-errno", "errno was %d before and is %d", ERRNO_BEFORE_FREE,
             *heap->error);
    return check_state(heap);
}

/* ---- the whole ------------------------------------------------------------------------------ */

bool heap_disjoint(struct heap *heap)
{
    struct live_table *map = live_table_new();
    struct live_block other;
    bool good = map != NULL || out_of_memory(heap);
    for (uint32_t slot = 0; good && slot < heap->room; slot++) {
        const struct heap_block *block = &heap->block[slot];
        struct live_block live = {
            .address = (uintptr_t)block->p, .size = block->size, .number = slot};
        enum live_table_state state =
            block->p != NULL ? live_table_insert(map, &live, &other) : LIVE_TABLE_DONE;
        if (state == LIVE_TABLE_NO_MEMORY)
            good = out_of_memory(heap);
        else if (state == LIVE_TABLE_OVERLAPS)
            good = overlaps(heap, live.address, live.size, other.number);
    }
    live_table_free(map);
    return good;
}

bool heap_reserve(struct heap *heap, uint32_t slot)
{
    uint32_t room = heap->room != 0 ? heap->room : 256;
    if (slot < heap->room)
        return true;
    while (room <= slot)
        room *= 2;
    struct heap_block *block = realloc(heap->block, room * sizeof *block);
    if (block == NULL)
        return out_of_memory(heap);
    heap->block = block;
    struct heap_past *past = realloc(heap->past, room * sizeof *past);
    if (past == NULL)
        return out_of_memory(heap);
    heap->past = past;
    memset(block + heap->room, 0, (room - heap->room) * sizeof *block);
    heap->room = room;
    return true;
}

bool heap_begin(struct heap *heap, const struct heap_rules *rules)
{
    *heap = (struct heap){
        .rules = *rules,
        .as_it_was = *rules->watched,
        .float_state = float_state(),
        .error = &errno,
        .map = live_table_new(),
    };
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        nursery_empty(&heap->nursery, i);
    return heap->map != NULL || out_of_memory(heap);
}

void heap_end(struct heap *heap)
{
    live_table_free(heap->map);
    free(heap->block);
    free(heap->past);
}
