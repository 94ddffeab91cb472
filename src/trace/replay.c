/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Replaying a trace on a handler.  Every step ends the replay where a property fails;
 * nothing is judged that could follow from it.
 */
#include "trace/replay.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/contents.h"
#include "base/float_state.h"
#include "base/live_table.h"
#include "base/text.h"

enum {
    NURSERY = 2,      /* temporaries come and go without going into the map */
    STATE_EVERY = 16, /* calls from one look at struct and floating-point state to the next */
    ERRNO_BEFORE_FREE = 4949,
};

/* With less than this live a small request has to be granted, as in the battery. */
enum { FAIR_SIZE = 1 << 20, FAIR_BYTES = 16 << 20, FAIR_BLOCKS = 16384 };

/* The block in a slot of the trace, as this handler has it. */
struct block {
    unsigned char *p; /* NULL: the handler refused it, or the slot is empty */
    size_t size;
    uint64_t number;
};

/* Its history, apart because it is read only when something has failed. */
struct past {
    enum trace_function made_by;
    uint32_t resized;             /* times */
    uint64_t made_in, resized_in; /* calls */
    uint64_t size_before;
};

/* The youngest blocks, each in some place.  A place without one has `first` above `last`. */
struct nursery {
    uintptr_t first[NURSERY], last[NURSERY]; /* bytes */
    uint32_t slot[NURSERY];
    unsigned next; /* the place that the next new block takes */
};

struct replay {
    struct trace_reader *reader;
    PyDataMem_Handler *handler;
    const PyDataMem_Handler *watched;
    PyDataMem_Handler snapshot;
    const struct replay_options *options;
    struct replay_result *result;
    size_t whole;
    struct live_table *map; /* of all live blocks but the youngest; number: the slot */
    struct nursery nursery;
    struct block *block; /* by slot */
    struct past *past;
    uint32_t room;
    uint64_t live_bytes, live_blocks;
    int *error; /* this thread's errno */
    unsigned float_state;
    bool has_gil;
};

/* ---- violations ----------------------------------------------------------------------------- */

static const char *history_of(const struct replay *replay, const struct block *block)
{
    static const char *const makers[] = {
        [TRACE_MALLOC] = "malloc", [TRACE_CALLOC] = "calloc", [TRACE_REALLOC] = "realloc"};
    const struct past *past = &replay->past[block - replay->block];
    const char *resized = past->resized == 0
                              ? ""
                              : text(", and resized %" PRIu32 " time%s, in call %" PRIu64
                                     " from %" PRIu64 " to %zu bytes",
                                     past->resized, past->resized == 1 ? "" : "s", past->resized_in,
                                     past->size_before, block->size);
    return text("block %" PRIu64 ", %zu bytes at %p, was made by %s in call %" PRIu64 "%s",
                block->number, block->size, (void *)block->p, makers[past->made_by], past->made_in,
                resized);
}

static void describe(struct replay *replay, struct replay_violation *violation,
                     const char *property, const struct block *block, const char *format,
                     va_list arguments)
{
    const struct trace_call *call = &replay->result->under_way;
    char seen[256];
    vsnprintf(seen, sizeof seen, format, arguments);
    snprintf(violation->property, sizeof violation->property, "%s", property);
    snprintf(violation->part, sizeof violation->part, "%s", replay->result->part);
    violation->call = call->number;
    violation->offset = call->offset;
    snprintf(violation->text, sizeof violation->text, "%s: %s", trace_call_text(call), seen);
    snprintf(violation->history, sizeof violation->history, "%s",
             block != NULL ? history_of(replay, block) : "");
}

/* Always false: the replay ends. */
static bool fail(struct replay *replay, const char *property, const struct block *block,
                 const char *format, ...) __attribute__((format(printf, 4, 5)));
static bool fail(struct replay *replay, const char *property, const struct block *block,
                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    describe(replay, &replay->result->violation, property, block, format, arguments);
    va_end(arguments);
    replay->result->outcome = REPLAY_VIOLATED;
    return false;
}

/* A SHOULD, told once. */
static void warn(struct replay *replay, const char *property, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void warn(struct replay *replay, const char *property, const char *format, ...)
{
    va_list arguments;
    if (replay->result->warning.property[0] != '\0')
        return;
    va_start(arguments, format);
    describe(replay, &replay->result->warning, property, NULL, format, arguments);
    va_end(arguments);
}

static bool out_of_memory(struct replay *replay)
{
    replay->result->outcome = REPLAY_NO_MEMORY;
    return false;
}

/* ---- the state around a call ---------------------------------------------------------------- */

static bool check_struct(struct replay *replay)
{
    const char *what = "ctx or one of the functions is";
    if (memcmp(replay->watched, &replay->snapshot, sizeof replay->snapshot) == 0)
        return true;
    if (memcmp(replay->watched->name, replay->snapshot.name, sizeof replay->snapshot.name) != 0)
        what = "the name is";
    else if (replay->watched->version != replay->snapshot.version)
        what = "the version is";
    return fail(replay, "abi.struct-constant", NULL,
                "%s not what it was at first (looked at every %d calls)", what, STATE_EVERY);
}

static bool check_float_state(struct replay *replay)
{
    unsigned state = float_state();
    if (state == replay->float_state)
        return true;
    return fail(replay, "env.float-state", NULL,
                "the floating-point state was %#x at first and is %#x (looked at every %d calls)",
                replay->float_state, state, STATE_EVERY);
}

/* After a call of the handler. */
static inline bool check_state(struct replay *replay)
{
    return replay->result->under_way.number % STATE_EVERY != 0 ||
           (check_struct(replay) && check_float_state(replay));
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* As C17 6.2.8 and 7.22.3 have it: for every type that fits. */
static size_t required_alignment(const struct replay *replay, size_t size)
{
    size_t natural = _Alignof(max_align_t);
    while (__builtin_expect(natural > size && natural > 1, 0))
        natural /= 2;
    return replay->options->alignment > natural ? replay->options->alignment : natural;
}

static const char *function_name(const struct replay *replay)
{
    static const char *const names[] = {[TRACE_MALLOC] = "malloc",
                                        [TRACE_CALLOC] = "calloc",
                                        [TRACE_REALLOC] = "realloc",
                                        [TRACE_FREE] = "free"};
    return names[replay->result->under_way.function];
}

static bool check_possible(struct replay *replay, const void *p, size_t size)
{
    return size <= PTRDIFF_MAX ||
           fail(replay, "malloc.too-large", NULL, "NULL was expected, and not %p", p);
}

static bool check_alignment(struct replay *replay, const void *p, size_t size)
{
    size_t alignment = required_alignment(replay, size);
    if (((uintptr_t)p & (alignment - 1)) == 0)
        return true;
    return fail(replay,
                replay->options->alignment == alignment
                    ? "malloc.claimed-alignment"
                    : text("%s.alignment", function_name(replay)),
                NULL, "the block at %p is not aligned to %zu bytes", p, alignment);
}

static uintptr_t last_byte(uintptr_t address, size_t size)
{
    return address + (size != 0 ? size - 1 : 0);
}

/* All places are looked at without a branch, here and in forget: most new blocks are temporaries,
 * and which place has one is anybody's guess. */
static inline unsigned nursery_overlapping(const struct nursery *nursery, uintptr_t first,
                                           uintptr_t last)
{
    unsigned places = 0;
    for (unsigned i = 0; i < NURSERY; i++)
        places |= (unsigned)((nursery->first[i] <= last) & (first <= nursery->last[i])) << i;
    return places;
}

static void nursery_empty(struct nursery *nursery, unsigned place)
{
    nursery->first[place] = UINTPTR_MAX;
    nursery->last[place] = 0;
}

/* The block that was in the place goes into the map; nursery blocks do not overlap what is there.
 */
static bool nursery_put(struct replay *replay, uintptr_t address, size_t size, uint32_t slot)
{
    struct nursery *nursery = &replay->nursery;
    unsigned place = nursery->next++ % NURSERY;
    if (nursery->first[place] <= nursery->last[place]) {
        struct live_block old = {.address = nursery->first[place],
                                 .size = replay->block[nursery->slot[place]].size,
                                 .number = nursery->slot[place]};
        if (live_table_insert(replay->map, &old, NULL) != LIVE_TABLE_DONE)
            return out_of_memory(replay);
    }
    nursery->first[place] = address;
    nursery->last[place] = last_byte(address, size);
    nursery->slot[place] = slot;
    return true;
}

static bool overlaps(struct replay *replay, uintptr_t address, size_t size, uint64_t slot)
{
    return fail(replay, "malloc.disjoint", &replay->block[slot],
                "%zu bytes at %p, where another block is live", size, (void *)address);
}

static inline bool check_overlap(struct replay *replay, uintptr_t address, size_t size)
{
    struct live_block other;
    unsigned places = nursery_overlapping(&replay->nursery, address, last_byte(address, size));
    if (places != 0)
        return overlaps(replay, address, size, replay->nursery.slot[__builtin_ctz(places)]);
    enum live_table_state state = live_table_check(replay->map, address, size, &other);
    if (state == LIVE_TABLE_OVERLAPS)
        return overlaps(replay, address, size, other.number);
    return state == LIVE_TABLE_DONE ||
           fail(replay, "malloc.too-large", NULL, "NULL was expected, and not %p", (void *)address);
}

/* Tracks a new block, if it overlaps no other. */
static bool remember(struct replay *replay, const void *p, size_t size, uint32_t slot)
{
    return check_overlap(replay, (uintptr_t)p, size) &&
           nursery_put(replay, (uintptr_t)p, size, slot);
}

static void forget(struct replay *replay, const void *p)
{
    unsigned places = 0;
    for (unsigned i = 0; i < NURSERY; i++)
        places |= (unsigned)((replay->nursery.first[i] == (uintptr_t)p) &
                             (replay->nursery.first[i] <= replay->nursery.last[i]))
                  << i;
    if (places != 0)
        nursery_empty(&replay->nursery, (unsigned)__builtin_ctz(places));
    else
        live_table_remove(replay->map, (uintptr_t)p, NULL);
}

static bool contents_lost(struct replay *replay, const char *property, const struct block *block,
                          const unsigned char *p, size_t at, const char *when)
{
    return fail(replay, property, block, "byte %zu is 0x%02x and not 0x%02x as it was written, %s",
                at, p[at], contents_byte(block->number, at), when);
}

/* Before a block goes: is in it what was written? */
static bool check_contents(struct replay *replay, const struct block *block)
{
    size_t at = contents_check(block->p, block->size, replay->whole, block->number);
    return at == block->size ||
           contents_lost(replay, "malloc.neighbours", block, block->p, at, "before the call");
}

static bool grow_slots(struct replay *replay, uint32_t slot)
{
    uint32_t room = replay->room != 0 ? replay->room : 256;
    while (room <= slot)
        room *= 2;
    struct block *block = realloc(replay->block, room * sizeof *block);
    if (block == NULL)
        return out_of_memory(replay);
    replay->block = block;
    struct past *past = realloc(replay->past, room * sizeof *past);
    if (past == NULL)
        return out_of_memory(replay);
    replay->past = past;
    memset(block + replay->room, 0, (room - replay->room) * sizeof *block);
    replay->room = room;
    return true;
}

static void count_bytes(struct replay *replay, size_t more, size_t less)
{
    replay->live_bytes = replay->live_bytes + more - less;
    if (replay->live_bytes > replay->result->peak_bytes)
        replay->result->peak_bytes = replay->live_bytes;
}

/* ---- malloc and calloc ---------------------------------------------------------------------- */

static void handler_free(struct replay *replay, void *p, size_t size)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    a->free(a->ctx, p, size);
}

/* The handler returned NULL. */
static bool refused(struct replay *replay, size_t size, bool recorded)
{
    if (size == 0 || recorded)
        return true;
    replay->result->refused++;
    if (replay->options->unchecked || size > FAIR_SIZE || replay->live_bytes > FAIR_BYTES ||
        replay->live_blocks > FAIR_BLOCKS)
        return true;
    return fail(replay, "malloc.lasts", NULL,
                "it was refused with %" PRIu64 " bytes live in %" PRIu64 " blocks",
                replay->live_bytes, replay->live_blocks);
}

static bool check_zero(struct replay *replay, const unsigned char *p, size_t size)
{
    size_t at = contents_check_zero(p, size, replay->whole, replay->result->under_way.block);
    return at == size ||
           fail(replay, "calloc.zeroed", NULL, "byte %zu of %zu is 0x%02x", at, size, p[at]);
}

/* A block that nobody will ask for: the recorded handler had refused it. */
static bool give_back(struct replay *replay, void *p, size_t size)
{
    if (!replay->options->unchecked && !check_overlap(replay, (uintptr_t)p, size))
        return false;
    handler_free(replay, p, size);
    return replay->options->unchecked || check_state(replay);
}

/* A new block at p, which is not NULL. */
static bool enter(struct replay *replay, const struct trace_call *call, void *p, size_t size)
{
    if (call->refused)
        return give_back(replay, p, size);
    replay->block[call->slot] = (struct block){p, size, call->block};
    replay->past[call->slot] = (struct past){.made_by = call->function, .made_in = call->number};
    count_bytes(replay, size, 0);
    replay->live_blocks++;
    if (replay->options->unchecked)
        return true;
    if (!remember(replay, p, size, call->slot))
        return false;
    contents_write(p, size, replay->whole, call->block);
    return true;
}

/* What malloc and calloc have in common, and realloc where it is given no block. */
static bool made(struct replay *replay, const struct trace_call *call, void *p, size_t size)
{
    bool checked = !replay->options->unchecked;
    if (checked && !check_state(replay))
        return false;
    if (!call->refused && call->slot >= replay->room && !grow_slots(replay, call->slot))
        return false;
    if (p == NULL) {
        if (!call->refused)
            replay->block[call->slot].p = NULL;
        return refused(replay, size, call->refused);
    }
    if (checked && (!check_possible(replay, p, size) || !check_alignment(replay, p, size)))
        return false;
    if (checked && call->function == TRACE_CALLOC && !check_zero(replay, p, size))
        return false;
    return enter(replay, call, p, size);
}

/* What a machine with longer addresses was asked for is more than there can be here. */
static size_t size_here(uint64_t size)
{
    return size < SIZE_MAX ? (size_t)size : SIZE_MAX;
}

static bool replay_malloc(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t size = size_here(call->size);
    return made(replay, call, a->malloc(a->ctx, size), size);
}

static bool replay_calloc(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t nelem = size_here(call->nelem), elsize = size_here(call->elsize), size;
    bool overflows = __builtin_mul_overflow(nelem, elsize, &size);
    void *p = a->calloc(a->ctx, nelem, elsize);
    if (overflows && p != NULL && !replay->options->unchecked)
        return fail(replay, "calloc.overflow", NULL, "NULL was expected, and not %p", p);
    if (overflows)
        size = SIZE_MAX;
    return made(replay, call, p, size);
}

/* ---- realloc -------------------------------------------------------------------------------- */

/* It was refused: the block is as it was.  With size 0, C17 7.22.3.5 leaves open whether it was
 * freed, so that nobody can use it any more. */
static bool kept(struct replay *replay, const struct trace_call *call, struct block *block,
                 size_t size)
{
    if (size == 0) {
        forget(replay, block->p);
        count_bytes(replay, 0, block->size);
        replay->live_blocks--;
        block->p = NULL;
        return true;
    }
    size_t at = block->size;
    if (!replay->options->unchecked)
        at = contents_check(block->p, block->size, replay->whole, block->number);
    if (at != block->size)
        return contents_lost(replay, "realloc.failure-keeps-block", block, block->p, at,
                             "after the refusal");
    return refused(replay, size, call->refused);
}

static bool check_moved(struct replay *replay, const struct block *block, const unsigned char *p,
                        size_t size)
{
    size_t both = block->size < size ? block->size : size;
    size_t at = contents_check_kept(p, both, block->size, replay->whole, block->number);
    return at == both || contents_lost(replay, "realloc.keeps-contents", block, p, at,
                                       text("of the %zu that had to be kept", both));
}

static void resize(struct replay *replay, const struct trace_call *call, struct block *block,
                   void *p, size_t size)
{
    struct past *past = &replay->past[call->slot];
    count_bytes(replay, size, block->size);
    past->size_before = block->size;
    past->resized_in = call->number;
    past->resized++;
    block->p = p;
    block->size = size;
}

static bool resize_checked(struct replay *replay, const struct trace_call *call,
                           struct block *block, unsigned char *p, size_t size)
{
    if (!check_possible(replay, p, size) || !check_alignment(replay, p, size))
        return false;
    forget(replay, block->p);
    if (!remember(replay, p, size, call->slot) || !check_moved(replay, block, p, size))
        return false;
    resize(replay, call, block, p, size);
    contents_write(p, size, replay->whole, block->number);
    return true;
}

static bool realloc_block(struct replay *replay, const struct trace_call *call, struct block *block,
                          size_t size)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    bool checked = !replay->options->unchecked;
    if (checked) {
        if (!check_contents(replay, block))
            return false;
        if (!contents_are_whole(block->size, replay->whole))
            contents_write_last(block->p, block->size < size ? block->size : size, block->number);
    }
    void *p = a->realloc(a->ctx, block->p, size);
    if (checked && !check_state(replay))
        return false;
    if (p == NULL)
        return kept(replay, call, block, size);
    if (checked)
        return resize_checked(replay, call, block, p, size);
    resize(replay, call, block, p, size);
    return true;
}

/* Where it was refused and is granted now, the program never knew the new size, and the block goes
 * back to the old one. */
static bool replay_realloc(struct replay *replay, const struct trace_call *call)
{
    struct block *block = &replay->block[call->slot];
    size_t before = block->size;
    if (!realloc_block(replay, call, block, size_here(call->size)))
        return false;
    if (!call->refused || block->p == NULL || block->size == before)
        return true;
    return realloc_block(replay, call, block, before);
}

/* ---- free ----------------------------------------------------------------------------------- */

static bool free_checked(struct replay *replay, void *p, size_t size)
{
    *replay->error = ERRNO_BEFORE_FREE;
    handler_free(replay, p, size);
    if (*replay->error != ERRNO_BEFORE_FREE)
        warn(replay, "free.keeps-errno", "errno was %d before and is %d", ERRNO_BEFORE_FREE,
             *replay->error);
    return check_state(replay);
}

/* What NumPy gives as the size of a block is mostly what it asked for; this handler may have
 * refused the last realloc of it, and then that is what it has. */
static bool replay_free(struct replay *replay, const struct trace_call *call)
{
    struct block *block = &replay->block[call->slot];
    unsigned char *p = block->p;
    size_t size = call->size == call->old_size ? block->size : size_here(call->size);
    bool checked = !replay->options->unchecked;
    if (checked && !check_contents(replay, block))
        return false;
    if (checked)
        forget(replay, p);
    count_bytes(replay, 0, block->size);
    replay->live_blocks--;
    block->p = NULL;
    if (checked)
        return free_checked(replay, p, size);
    handler_free(replay, p, size);
    return true;
}

static bool replay_free_of_null(struct replay *replay, const struct trace_call *call)
{
    if (!replay->options->unchecked)
        return free_checked(replay, NULL, size_here(call->size));
    handler_free(replay, NULL, size_here(call->size));
    return true;
}

/* ---- all of it ------------------------------------------------------------------------------ */

/* A call that names no block.  What foreign pointers were cannot be known: free of one is left
 * out, and realloc of one becomes a malloc. */
static bool replay_without_block(struct replay *replay, const struct trace_call *call)
{
    const PyDataMemAllocator *a = &replay->handler->allocator;
    size_t size = size_here(call->size);
    if (call->pointer == TRACE_FOREIGN)
        replay->result->left_out++;
    if (call->function == TRACE_FREE)
        return call->pointer == TRACE_FOREIGN || replay_free_of_null(replay, call);
    if (call->pointer == TRACE_FOREIGN)
        return replay_malloc(replay, call);
    return made(replay, call, a->realloc(a->ctx, NULL, size), size);
}

static bool replay_call(struct replay *replay, const struct trace_call *call)
{
    switch (call->function) {
    case TRACE_MALLOC:
        return replay_malloc(replay, call);
    case TRACE_CALLOC:
        return replay_calloc(replay, call);
    case TRACE_REALLOC:
    case TRACE_FREE:
        break;
    }
    if (call->pointer != TRACE_BLOCK)
        return replay_without_block(replay, call);
    if (replay->block[call->slot].p == NULL) {
        replay->result->left_out++;
        return true;
    }
    return call->function == TRACE_FREE ? replay_free(replay, call) : replay_realloc(replay, call);
}

/* What is live at the end goes as well: contents are checked once more, and the handler is left as
 * it was found. */
static bool free_live(struct replay *replay)
{
    for (uint32_t slot = 0; slot < replay->room; slot++) {
        struct block *block = &replay->block[slot];
        if (block->p == NULL)
            continue;
        replay->result->live++;
        replay->result->under_way = (struct trace_call){.function = TRACE_FREE,
                                                        .pointer = TRACE_BLOCK,
                                                        .block = block->number,
                                                        .size = block->size,
                                                        .old_size = block->size};
        if (replay->options->unchecked)
            handler_free(replay, block->p, block->size);
        else if (!check_contents(replay, block) || !free_checked(replay, block->p, block->size))
            return false;
        block->p = NULL;
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

static void begin_part(struct replay *replay)
{
    struct replay_result *result = replay->result;
    snprintf(result->part, sizeof result->part, "%s", trace_part(replay->reader));
    if (replay->options->part_begins != NULL)
        replay->options->part_begins(result->part, replay->options->data);
}

static void run(struct replay *replay)
{
    struct replay_result *result = replay->result;
    struct trace_call *call = &result->under_way;
    enum trace_state state;
    trace_tell_parts(replay->reader);
    while ((state = trace_next(replay->reader, call)) == TRACE_CALL || state == TRACE_PART) {
        if (state == TRACE_PART) {
            begin_part(replay);
            continue;
        }
        follow_gil(replay, call->gil);
        if (!replay_call(replay, call))
            return;
        result->calls++;
    }
    follow_gil(replay, true); /* as whoever deletes an array has it */
    if (!free_live(replay) || (!replay->options->unchecked && !check_state(replay)))
        return;
    result->cut = state == TRACE_CUT;
    result->outcome = state == TRACE_WRONG ? REPLAY_TRACE_WRONG : REPLAY_PASSED;
    snprintf(result->wrong, sizeof result->wrong, "%s", trace_wrong(replay->reader));
}

enum replay_outcome replay_run(struct trace_reader *reader, PyDataMem_Handler *handler,
                               const struct replay_options *options, struct replay_result *result)
{
    const PyDataMem_Handler *watched = options->watched != NULL ? options->watched : handler;
    struct replay replay = {
        .reader = reader,
        .handler = handler,
        .watched = watched,
        .snapshot = *watched,
        .options = options,
        .result = result,
        .whole = options->whole_up_to,
        .map = live_table_new(),
        .error = &errno,
        .float_state = float_state(),
    };
    memset(result, 0, sizeof *result);
    for (unsigned i = 0; i < NURSERY; i++)
        nursery_empty(&replay.nursery, i);
    uint64_t begin = clock_now();
    if (replay.map == NULL)
        out_of_memory(&replay);
    else
        run(&replay);
    follow_gil(&replay, false);
    result->seconds = clock_since(begin);
    live_table_free(replay.map);
    free(replay.block);
    free(replay.past);
    return result->outcome;
}
