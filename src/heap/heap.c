/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The heap model.
 */
#include "heap/heap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/float_state.h"
#include "base/interval_map.h"

enum { ERRNO_BEFORE_FREE = 4949 };

/* ---- violations ----------------------------------------------------------------------------- */

const char *heap_rule_name(enum heap_rule rule)
{
    static const char *const names[HEAP_RULES] = {
        [HEAP_NO_RULE] = "nothing",
        [HEAP_MALLOC_ALIGNMENT] = "memory that is not aligned",
        [HEAP_CALLOC_ALIGNMENT] = "memory that is not aligned",
        [HEAP_REALLOC_ALIGNMENT] = "memory that is not aligned",
        [HEAP_CLAIMED_ALIGNMENT] = "memory that is not aligned as claimed",
        [HEAP_DISJOINT] = "memory that overlaps a live block",
        [HEAP_TOO_LARGE] = "more memory than there can be",
        [HEAP_ZEROED] = "memory from calloc that is not zero",
        [HEAP_OVERFLOW] = "memory for a product that overflows",
        [HEAP_LASTS] = "a small request that is refused",
        [HEAP_NEIGHBORS] = "a block that changed",
        [HEAP_KEEPS_CONTENTS] = "contents lost by realloc",
        [HEAP_FAILURE_KEEPS_BLOCK] = "contents lost by a refusal",
        [HEAP_KEEPS_ERRNO] = "errno changed by free",
        [HEAP_STRUCT_CONSTANT] = "a handler struct that changed",
        [HEAP_FLOAT_STATE] = "floating-point state changed",
        [HEAP_RECLAIMS] = "memory that grows",
        [HEAP_GETTER_STABLE] = "another handler from the getter",
        [HEAP_NAME_TERMINATED] = "a name without an end",
        [HEAP_NAME_UTF8] = "a name that is not UTF-8",
        [HEAP_VERSION] = "a version that is not 1",
        [HEAP_FUNCTIONS_PRESENT] = "a function that is missing",
        [HEAP_RETURNS] = "a call that does not return",
    };
    return names[rule];
}

const char *heap_rule_expected(enum heap_rule rule)
{
    static const char *const expected[HEAP_RULES] = {
        [HEAP_DISJOINT] = "a block apart from all live blocks",
        [HEAP_TOO_LARGE] = "NULL",
        [HEAP_ZEROED] = "all bytes are 0",
        [HEAP_OVERFLOW] = "NULL",
        [HEAP_LASTS] = "a block",
        [HEAP_NEIGHBORS] = "the bytes as written",
        [HEAP_KEEPS_CONTENTS] = "the bytes as written",
        [HEAP_KEEPS_ERRNO] = "errno as before the call",
    };
    return expected[rule] != NULL ? expected[rule] : "";
}

static void describe_history(const struct heap *heap, const struct heap_block *block, char *to,
                             size_t room)
{
    const struct heap_past *past = &heap->past[block - heap->block];
    char name[64] = "the block", resized[128] = "";
    uint32_t number = (uint32_t)block->number, thread = (uint32_t)(block->number >> 32);
    if (!heap->rules.observes) /* several threads that each have a model count from there */
        snprintf(name, sizeof name,
                 thread != 0 ? "block %" PRIu32 " of thread %" PRIu32 : "block %" PRIu32, number,
                 thread);
    if (past->resized != 0)
        snprintf(resized, sizeof resized,
                 ", and resized %" PRIu32 " time%s, in call %" PRIu64 " from %zu to %zu bytes",
                 past->resized, past->resized == 1 ? "" : "s", past->resized_in, past->size_before,
                 block->size);
    snprintf(to, room, "%s, %zu bytes at %p, was made by %s in call %" PRIu64 "%s", name,
             block->size, (void *)block->p, step_function(past->made_by), past->made_in, resized);
}

static void describe(const struct heap *heap, struct heap_violation *violation, enum heap_rule rule,
                     const struct heap_block *block, const char *format, va_list arguments)
{
    if (violation->rule != HEAP_NO_RULE)
        return; /* the first one counts */
    violation->rule = rule;
    vsnprintf(violation->seen, sizeof violation->seen, format, arguments);
    violation->history[0] = '\0';
    if (block != NULL)
        describe_history(heap, block, violation->history, sizeof violation->history);
}

/* Returns false, except for observers, which go on. */
static bool fail(struct heap *heap, enum heap_rule rule, const struct heap_block *block,
                 const char *format, ...) __attribute__((cold, format(printf, 4, 5)));
static bool fail(struct heap *heap, enum heap_rule rule, const struct heap_block *block,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    describe(heap, &heap->violation, rule, block, format, arguments);
    va_end(arguments);
    return heap->rules.observes;
}

bool heap_violated(struct heap *heap, enum heap_rule rule, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    describe(heap, &heap->violation, rule, NULL, format, arguments);
    va_end(arguments);
    return false;
}

static bool out_of_memory(struct heap *heap)
{
    heap->no_memory = true;
    return false;
}

/* ---- the state around a call ---------------------------------------------------------------- */

static bool check_struct(struct heap *heap)
{
    const PyDataMem_Handler *now = heap->rules.watched, *before = &heap->as_it_was;
    if (memcmp(now, before, sizeof *before) == 0)
        return true;
    const char *change = memcmp(now->name, before->name, sizeof before->name) != 0 ? "the name"
                         : now->version != before->version                         ? "the version"
                                                           : "ctx or one of the functions";
    if (heap->rules.observes)
        heap->as_it_was = *now;
    return fail(heap, HEAP_STRUCT_CONSTANT, NULL, "%s of the struct has changed", change);
}

static bool check_float_state(struct heap *heap)
{
    unsigned state = float_state();
    return state == heap->float_state ||
           fail(heap, HEAP_FLOAT_STATE, NULL, "the floating-point state was %#x and is %#x",
                heap->float_state, state);
}

bool heap_state_holds(struct heap *heap)
{
    return heap->rules.unjudged || (check_struct(heap) && check_float_state(heap));
}

/* After a call of the handler. */
static inline bool check_state(struct heap *heap)
{
    return (heap->call % HEAP_STATE_EVERY != 0 && !heap->rules.in_each_call) ||
           (check_struct(heap) && check_float_state(heap));
}

/* ---- where blocks are ----------------------------------------------------------------------- */

static uintptr_t last_byte(uintptr_t address, size_t size)
{
    return address + (size != 0 ? size - 1 : 0);
}

/* The places that overlap the range, as bits.  All places are compared without a branch, here and
 * in nursery_at: most new blocks are temporaries, and which place has one cannot be predicted. */
static inline unsigned nursery_overlapping(const struct heap_nursery *nursery, uintptr_t first,
                                           uintptr_t last)
{
    unsigned places = 0;
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        places |= (unsigned)((nursery->first[i] <= last) & (first <= nursery->last[i])) << i;
    return places;
}

static inline unsigned nursery_at(const struct heap_nursery *nursery, uintptr_t address)
{
    unsigned places = 0;
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        places |=
            (unsigned)((nursery->first[i] == address) & (nursery->first[i] <= nursery->last[i]))
            << i;
    return places;
}

static void nursery_empty(struct heap_nursery *nursery, unsigned place)
{
    nursery->first[place] = UINTPTR_MAX;
    nursery->last[place] = 0;
}

/* Moves the block that was in the place to the map; nursery blocks do not overlap those there. */
static bool nursery_put(struct heap *heap, uintptr_t address, size_t size, uint32_t slot)
{
    struct heap_nursery *nursery = &heap->nursery;
    unsigned place = nursery->next++ % HEAP_NURSERY;
    if (nursery->first[place] <= nursery->last[place]) {
        struct interval old = {.address = nursery->first[place],
                               .size = heap->block[nursery->slot[place]].size,
                               .value = nursery->slot[place]};
        if (interval_map_insert(heap->map, old, NULL) != INTERVAL_FREE)
            return out_of_memory(heap);
    }
    nursery->first[place] = address;
    nursery->last[place] = last_byte(address, size);
    nursery->slot[place] = slot;
    return true;
}

static bool is_too_large(struct heap *heap, enum step_kind by, const void *p)
{
    enum heap_rule rule = by == STEP_CALLOC    ? HEAP_OVERFLOW
                          : by == STEP_REALLOC ? HEAP_FAILURE_KEEPS_BLOCK
                                               : HEAP_TOO_LARGE;
    return fail(heap, rule, NULL, "it returned %p, not NULL", p);
}

/* Reports why a block cannot be there. */
static bool no_room(struct heap *heap, enum interval_state state, const void *p, size_t size,
                    uint64_t other)
{
    if (state == INTERVAL_OVERLAPS)
        return fail(heap, HEAP_DISJOINT, &heap->block[other],
                    "%zu bytes at %p, where another block is live", size, p);
    return is_too_large(heap, STEP_MALLOC, p);
}

static inline enum interval_state find_overlap(const struct heap *heap, uintptr_t address,
                                               size_t size, uint64_t *slot)
{
    struct interval other;
    if (heap->rules.without_map)
        return INTERVAL_FREE;
    unsigned places = nursery_overlapping(&heap->nursery, address, last_byte(address, size));
    if (places != 0) {
        *slot = heap->nursery.slot[__builtin_ctz(places)];
        return INTERVAL_OVERLAPS;
    }
    enum interval_state state = interval_map_check(heap->map, address, size, &other);
    *slot = state == INTERVAL_OVERLAPS ? other.value : 0;
    return state;
}

static inline bool check_overlap(struct heap *heap, const void *p, size_t size)
{
    uint64_t other;
    enum interval_state state = find_overlap(heap, (uintptr_t)p, size, &other);
    return state == INTERVAL_FREE || no_room(heap, state, p, size, other);
}

static inline bool remember(struct heap *heap, const void *p, size_t size, uint32_t slot)
{
    return heap->rules.without_map || nursery_put(heap, (uintptr_t)p, size, slot);
}

static void forget(struct heap *heap, const void *p)
{
    if (heap->rules.without_map)
        return;
    unsigned places = nursery_at(&heap->nursery, (uintptr_t)p);
    if (places != 0)
        nursery_empty(&heap->nursery, (unsigned)__builtin_ctz(places));
    else
        interval_map_remove(heap->map, (uintptr_t)p, NULL);
}

/* ---- what a call returned ------------------------------------------------------------------- */

static bool check_possible(struct heap *heap, enum step_kind by, const void *p, size_t size)
{
    return !heap_is_impossible(size) || is_too_large(heap, by, p);
}

static bool check_alignment(struct heap *heap, enum step_kind by, const void *p, size_t size)
{
    size_t missing = heap_missing_alignment(heap->rules.alignment, p, size);
    return missing == 0 ||
           fail(heap,
                heap->rules.alignment == missing
                    ? HEAP_CLAIMED_ALIGNMENT
                    : (enum heap_rule)(HEAP_MALLOC_ALIGNMENT + by - STEP_MALLOC),
                NULL, "the block of %zu bytes at %p is not aligned to %zu bytes", size, p, missing);
}

static bool check_zero(struct heap *heap, const unsigned char *p, size_t size, uint64_t number)
{
    enum { EDGE = 4096 }; /* an observer checks both ends of a block, however large */
    const struct fill_rules *rules = &heap->rules.fill;
    size_t part = heap->rules.observes && size > EDGE ? EDGE : size;
    size_t at = heap_is_impossible(size) ? size : fill_check_zero(p, part, rules, number);
    if (at == part && part < size)
        at = size - part + fill_check_zero(p + size - part, part, rules, number);
    return at == size ||
           fail(heap, HEAP_ZEROED, NULL, "byte %zu of %zu is 0x%02x", at, size, p[at]);
}

bool heap_overflowed(struct heap *heap, const void *p)
{
    return p == NULL || heap->rules.unjudged ||
           fail(heap, HEAP_OVERFLOW, NULL, "it returned %p, not NULL", p);
}

bool heap_refused(struct heap *heap, size_t size)
{
    if (heap->rules.unjudged || heap->is_limited ||
        heap_may_refuse(size, heap->live_bytes, heap->live_blocks))
        return true;
    return fail(heap, HEAP_LASTS, NULL,
                "it was refused with %" PRIu64 " bytes live in %" PRIu64 " blocks",
                heap->live_bytes, heap->live_blocks);
}

static void count_bytes(struct heap *heap, size_t more, size_t less)
{
    uint64_t left = heap->live_bytes > less ? heap->live_bytes - less : 0; /* made elsewhere */
    heap->live_bytes = left + more;
    if (heap->live_bytes > heap->peak_bytes)
        heap->peak_bytes = heap->live_bytes;
}

static inline bool check_made(struct heap *heap, enum step_kind by, void *p, size_t size,
                              uint64_t number)
{
    return check_state(heap) && check_possible(heap, by, p, size) &&
           check_alignment(heap, by, p, size) &&
           (by != STEP_CALLOC || check_zero(heap, p, size, number));
}

static void release(struct heap *heap, uint32_t slot)
{
    heap->block[slot].p = NULL;
    if (heap->rules.observes) {
        heap->block[slot].size = heap->free_slot;
        heap->free_slot = slot;
    }
}

bool heap_made(struct heap *heap, uint32_t slot, uint64_t number, enum step_kind by, void *p,
               size_t size)
{
    bool judged = !heap->rules.unjudged;
    if (judged && !check_made(heap, by, p, size, number))
        return false;
    uint64_t other;
    enum interval_state state =
        judged ? find_overlap(heap, (uintptr_t)p, size, &other) : INTERVAL_FREE;
    if (state != INTERVAL_FREE) { /* such a block is not tracked */
        release(heap, slot);
        return no_room(heap, state, p, size, other);
    }
    heap->block[slot] = (struct heap_block){p, size, number};
    heap->past[slot] = (struct heap_past){.made_by = by, .made_in = heap->call};
    count_bytes(heap, size, 0);
    heap->live_blocks++;
    if (!judged)
        return true;
    if (!remember(heap, p, size, slot))
        return false;
    if (!heap->rules.observes)
        fill_write(p, size, &heap->rules.fill, number);
    return true;
}

bool heap_made_for_nobody(struct heap *heap, enum step_kind by, void *p, size_t size)
{
    return heap->rules.unjudged ||
           (check_made(heap, by, p, size, 0) && check_overlap(heap, p, size));
}

/* ---- what was in blocks ---------------------------------------------------------------------- */

static bool contents_lost(struct heap *heap, enum heap_rule rule, const struct heap_block *block,
                          const unsigned char *p, size_t at, const char *when)
{
    return fail(heap, rule, block, "byte %zu is 0x%02x and not 0x%02x as it was written, %s", at,
                p[at], pattern_byte(block->number, at), when);
}

static inline bool check_contents(struct heap *heap, const struct heap_block *block,
                                  enum heap_rule rule, const char *when)
{
    if (heap->rules.observes || block->number == HEAP_ANY_CONTENTS)
        return true;
    size_t at = fill_check(block->p, block->size, &heap->rules.fill, block->number);
    return at == block->size || contents_lost(heap, rule, block, block->p, at, when);
}

bool heap_look(struct heap *heap, uint32_t slot)
{
    return heap->rules.unjudged || heap->block[slot].p == NULL ||
           check_contents(heap, &heap->block[slot], HEAP_NEIGHBORS, "when it was looked at");
}

bool heap_look_at_all(struct heap *heap)
{
    for (uint32_t slot = 0; slot < heap->room; slot++) {
        if (!heap_look(heap, slot))
            return false;
    }
    return true;
}

void heap_refill(struct heap *heap, uint32_t slot, uint64_t word)
{
    enum { EDGE = 1 << 12 }; /* of a larger block both ends are filled */
    struct heap_block *block = &heap->block[slot];
    for (size_t at = 0; at < block->size && block->p != NULL; at += sizeof word) {
        if (at == EDGE && block->size > 2 * (size_t)EDGE)
            at = (block->size - EDGE) / sizeof word * sizeof word;
        memcpy(block->p + at, &word,
               block->size - at < sizeof word ? block->size - at : sizeof word);
    }
    block->number = HEAP_ANY_CONTENTS;
}

/* ---- realloc -------------------------------------------------------------------------------- */

bool heap_will_resize(struct heap *heap, uint32_t slot, size_t size)
{
    const struct heap_block *block = &heap->block[slot];
    if (heap->rules.unjudged)
        return true;
    if (!check_contents(heap, block, HEAP_NEIGHBORS, "before the call"))
        return false;
    if (!fill_is_whole(block->size, &heap->rules.fill) && block->number != HEAP_ANY_CONTENTS)
        fill_last(block->p, block->size < size ? block->size : size, block->number);
    return true;
}

static bool check_moved(struct heap *heap, const struct heap_block *block, const unsigned char *p,
                        size_t size)
{
    if (block->number == HEAP_ANY_CONTENTS) /* what a caller never wrote may not be read either */
        return true;
    char when[64];
    size_t both = block->size < size ? block->size : size;
    size_t at = fill_check_kept(p, both, (uintptr_t)block->p, block->size, &heap->rules.fill,
                                block->number);
    if (at == both)
        return true;
    snprintf(when, sizeof when, "of the %zu that had to be kept", both);
    return contents_lost(heap, HEAP_KEEPS_CONTENTS, block, p, at, when);
}

bool heap_resized(struct heap *heap, uint32_t slot, void *p, size_t size)
{
    struct heap_block *block = &heap->block[slot];
    struct heap_past *past = &heap->past[slot];
    bool judged = !heap->rules.unjudged;
    if (judged) {
        if (!check_state(heap) || !check_possible(heap, STEP_REALLOC, p, size) ||
            !check_alignment(heap, STEP_REALLOC, p, size))
            return false;
        forget(heap, block->p);
        if (!check_overlap(heap, p, size) || !remember(heap, p, size, slot) ||
            !check_moved(heap, block, p, size))
            return false;
    }
    count_bytes(heap, size, block->size);
    past->size_before = block->size;
    past->resized_in = heap->call;
    past->resized++;
    block->p = p;
    block->size = size;
    if (judged && block->number != HEAP_ANY_CONTENTS)
        fill_write(p, size, &heap->rules.fill, block->number);
    return true;
}

static void empty(struct heap *heap, uint32_t slot)
{
    struct heap_block *block = &heap->block[slot];
    if (!heap->rules.unjudged)
        forget(heap, block->p);
    count_bytes(heap, 0, block->size);
    heap->live_blocks -= heap->live_blocks > 0;
    release(heap, slot);
}

bool heap_kept(struct heap *heap, uint32_t slot, size_t size)
{
    if (!heap->rules.unjudged && !check_state(heap))
        return false;
    if (size == 0) {
        empty(heap, slot);
        return true;
    }
    return heap->rules.unjudged ||
           check_contents(heap, &heap->block[slot], HEAP_FAILURE_KEEPS_BLOCK, "after the refusal");
}

/* ---- free ----------------------------------------------------------------------------------- */

bool heap_will_free(struct heap *heap, uint32_t slot)
{
    if (!heap->rules.unjudged &&
        !check_contents(heap, &heap->block[slot], HEAP_NEIGHBORS, "before the call"))
        return false;
    empty(heap, slot);
    if (!heap->rules.observes)
        heap_set_error(heap);
    return true;
}

void heap_set_error(struct heap *heap)
{
    *heap->error = heap->error_before = ERRNO_BEFORE_FREE;
}

static void note_error(struct heap *heap, struct heap_violation *to, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    describe(heap, to, HEAP_KEEPS_ERRNO, NULL, format, arguments);
    va_end(arguments);
}

bool heap_freed(struct heap *heap)
{
    if (heap->rules.unjudged)
        return true;
    bool strict = heap->rules.strict || heap->rules.observes;
    if (__builtin_expect(*heap->error != heap->error_before, 0)) {
        note_error(heap, strict ? &heap->violation : &heap->warning,
                   "errno was %d before and is %d", heap->error_before, *heap->error);
        if (strict && !heap->rules.observes)
            return false;
    }
    return check_state(heap);
}

/* ---- for observers -------------------------------------------------------------------------- */

bool heap_is_as_before(const struct heap *heap, unsigned float_before, bool same_error)
{
    return same_error && float_state() == float_before &&
           memcmp(heap->rules.watched, &heap->as_it_was, sizeof heap->as_it_was) == 0;
}

uint32_t heap_slot_at(const struct heap *heap, const void *p)
{
    struct interval block;
    unsigned places = nursery_at(&heap->nursery, (uintptr_t)p);
    if (places != 0)
        return heap->nursery.slot[__builtin_ctz(places)];
    return interval_map_find(heap->map, (uintptr_t)p, &block) ? (uint32_t)block.value
                                                              : HEAP_NO_SLOT;
}

uint32_t heap_new_slot(struct heap *heap)
{
    uint32_t slot = heap->free_slot;
    if (slot != HEAP_NO_SLOT)
        heap->free_slot = (uint32_t)heap->block[slot].size;
    else if (heap_reserve(heap, heap->used))
        slot = heap->used++;
    return slot;
}

void heap_note_edges(struct heap_edges *edges, const void *p, size_t kept)
{
    edges->kept = kept;
    edges->length = kept < sizeof edges->head ? kept : sizeof edges->head;
    memcpy(edges->head, p, edges->length);
    memcpy(edges->tail, (const unsigned char *)p + kept - edges->length, edges->length);
}

bool heap_check_edges(struct heap *heap, const struct heap_edges *edges, const void *p,
                      bool refused)
{
    const unsigned char *last = (const unsigned char *)p + edges->kept - edges->length;
    return (memcmp(edges->head, p, edges->length) == 0 &&
            memcmp(edges->tail, last, edges->length) == 0) ||
           fail(heap, refused ? HEAP_FAILURE_KEEPS_BLOCK : HEAP_KEEPS_CONTENTS, NULL,
                "realloc%s: the %zu bytes that had to be kept are others",
                refused ? " was refused" : "", edges->kept);
}

/* ---- the whole ------------------------------------------------------------------------------ */

bool heap_disjoint(struct heap *heap)
{
    struct interval_map *map = interval_map_new();
    struct interval other;
    bool good = map != NULL || out_of_memory(heap);
    for (uint32_t slot = 0; good && slot < heap->room; slot++) {
        const struct heap_block *block = &heap->block[slot];
        struct interval live = {.address = (uintptr_t)block->p, .size = block->size, .value = slot};
        enum interval_state state =
            block->p != NULL ? interval_map_insert(map, live, &other) : INTERVAL_FREE;
        if (state == INTERVAL_NO_MEMORY)
            good = out_of_memory(heap);
        else if (state == INTERVAL_OVERLAPS)
            good = no_room(heap, state, block->p, block->size, other.value);
    }
    interval_map_free(map);
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
        .map = interval_map_new(),
        .free_slot = HEAP_NO_SLOT,
    };
    for (unsigned i = 0; i < HEAP_NURSERY; i++)
        nursery_empty(&heap->nursery, i);
    return heap->map != NULL || out_of_memory(heap);
}

void heap_end(struct heap *heap)
{
    interval_map_free(heap->map);
    free(heap->block);
    free(heap->past);
}
