/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Judging every call.  What runs on each call is kept to some tens of nanoseconds: one lock, one
 * look into the block map, and no system call.
 */
#include "shims/auditor.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/float_state.h"
#include "base/live_table.h"
#include "base/text.h"
#include "heap/heap.h"
#include "python/api.h"
#include "python/python.h"
#include "python/python_line.h"

enum { RECENT_LOG2 = 12, SAMPLE_EVERY = 64, EDGE = 64, ORIGINS = 1 << 14 };

/* A block made or freed lately.  A dead one stays in the map until its place, there or here, is
 * needed: a program that makes arrays in a loop mostly gets the same block again, for the same
 * size, and then nothing has changed in the map. */
struct recent {
    uintptr_t address;
    size_t size;
    uint32_t origin;
    enum { NOBODY, LIVE, DEAD, TOMBSTONE /* dead, and not in the map any more */ } state;
};

struct auditor {
    PyDataMem_Handler outer, *inner, snapshot;
    const PyDataMem_Handler *before;
    struct audit *audit;          /* where is counted */
    struct violation *violations; /* the creator's, also in forked children */
    struct audit of_child;
    struct auditor_options options;
    pthread_mutex_t lock;
    struct live_table *map;
    struct recent recent[1 << RECENT_LOG2]; /* by a hash of the address */
    char *origins[ORIGINS]; /* Python lines, by a hash; a block's data is its index and marks */
};

/* Where a block has been, beside its index.  NumPy has no GIL where it grows and cuts the block of
 * a text that it reads, and has it for every other realloc. */
enum {
    OF_TEXT = 1 << 16,
    RESIZED = 1 << 17,
    ARRAY_CHANGE = 1 << 18, /* and one for each enum array_change */
};

/* A fork must not leave the lock held in the child. */
static struct auditor *only;

static void lock_before_fork(void)
{
    pthread_mutex_lock(&only->lock);
}

static void unlock_after_fork(void)
{
    pthread_mutex_unlock(&only->lock);
}

/* What a child frees of its copies is not what the parent has live. */
static void count_apart_in_child(void)
{
    only->of_child = *only->audit;
    only->audit = &only->of_child;
    unlock_after_fork();
}

void auditor_share(struct auditor *auditor, struct audit *audit)
{
    auditor->audit = audit;
    auditor->violations = audit->violations;
}

/* ---- violations ------------------------------------------------------------------------- */

static const struct {
    enum party party;
    bool counts;
    const char *name;
} kinds[VIOLATION_KINDS] = {
    [GAVE_OVERLAPPING] = {BY_HANDLER, true, "memory that overlaps a live block"},
    [GAVE_MISALIGNED] = {BY_HANDLER, true, "memory that is not aligned"},
    [GAVE_DIRTY] = {BY_HANDLER, true, "memory from calloc that is not zero"},
    [LOST_CONTENTS] = {BY_HANDLER, true, "contents lost by realloc"},
    [CHANGED_STRUCT] = {BY_HANDLER, true, "a handler struct that changed"},
    [CHANGED_ERRNO] = {BY_HANDLER, true, "errno changed by free"},
    [CHANGED_FLOAT_STATE] = {BY_HANDLER, true, "floating-point state changed"},
    [LOST_EXCEPTION] = {BY_HANDLER, true, "a pending exception lost"},
    [SET_EXCEPTION] = {BY_HANDLER, true, "an exception set"},
    [FREED_TWICE] = {BY_NUMPY, true, "a block freed twice"},
    [RESIZED_DEAD] = {BY_NUMPY, true, "a dead block resized"},
    [SAID_WRONG_SIZE] = {BY_NUMPY, true, "a wrong size given to free"},
    [SAID_ONE_FOR_TEXT] = {BY_NUMPY, false, "size 1 for a text without a number"},
    [SAID_ONE_FOR_EMPTIED] = {BY_NUMPY, false,
                              "size 1 for an array that became empty, NumPy 1.22 to 2.3"},
    [SAID_ONE_FOR_DTYPE] = {BY_NUMPY, false, "size 1 for an array that a dtype emptied"},
    [SAID_ONE_FOR_EMPTY] = {BY_NUMPY, false, "size 1 for an array without elements, NumPy 1.22"},
    [SAID_AFTER_SETSTATE] = {BY_NUMPY, false,
                             "a size by the dtype that a failed __setstate__ left"},
    [SAID_FIRST_AFTER_REFUSAL] = {BY_NUMPY, false,
                                  "the first size of a text whose truncation was refused"},
    [SAID_SIZE_SO_FAR] = {BY_NUMPY, false, "the size so far of a fromiter that failed, NumPy 1.22"},
};

enum party violation_party(enum violation_kind kind)
{
    return kinds[kind].party;
}

bool violation_counts(enum violation_kind kind)
{
    return kinds[kind].counts;
}

const char *violation_name(enum violation_kind kind)
{
    return kinds[kind].name;
}

size_t audit_violations(const struct audit *audit, enum party party)
{
    size_t count = 0;
    for (int i = 0; i < VIOLATION_KINDS; i++)
        count += kinds[i].party == party && kinds[i].counts && audit->violations[i].times > 0;
    return count;
}

static void violated(struct auditor *a, enum violation_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void violated(struct auditor *a, enum violation_kind kind, const char *format, ...)
{
    struct violation *violation = &a->violations[kind];
    if (atomic_fetch_add(&violation->times, 1) > 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(violation->text, sizeof violation->text, format, arguments);
    va_end(arguments);
    python_line(violation->where, sizeof violation->where);
    violation->process = getpid();
}

/* ---- the state around a call ------------------------------------------------------------ */

struct around {
    PyObject *exception; /* borrowed: the type that was pending */
    bool has_gil;
    unsigned floating;
    int error;
    uint64_t begin; /* 0: this call is not timed */
};

static struct around begin(struct auditor *a)
{
    struct around around = {.has_gil = python_is_up() && PyGILState_Check(),
                            .floating = float_state()};
    if (around.has_gil)
        around.exception = PyErr_Occurred();
    else if (python_is_up())
        a->audit->without_gil++;
    static _Thread_local unsigned calls;
    if (calls++ % SAMPLE_EVERY == 0)
        around.begin = clock_now();
    around.error = errno;
    return around;
}

static void end(struct auditor *a, const struct around *around, const char *function)
{
    int error = errno;
    if (around->begin != 0)
        a->audit->nanoseconds_inside += SAMPLE_EVERY * (clock_now() - around->begin);
    if (float_state() != around->floating)
        violated(a, CHANGED_FLOAT_STATE, "%s left the floating-point state %#x, and it was %#x",
                 function, float_state(), around->floating);
    if (around->has_gil) {
        PyObject *exception = PyErr_Occurred();
        if (exception != around->exception && around->exception != NULL)
            violated(a, LOST_EXCEPTION, "%s was called with a pending exception, and it is gone",
                     function);
        else if (exception != around->exception)
            violated(a, SET_EXCEPTION, "%s returned with an exception that was not there before",
                     function);
    }
    const char *change = heap_struct_change(&a->snapshot, a->inner);
    if (change != NULL) {
        violated(a, CHANGED_STRUCT, "after %s %s of the struct is not what it was", function,
                 change);
        a->snapshot = *a->inner;
    }
    errno = error;
}

/* Adds to a number that only holders of the lock write: cheaper than an atomic addition. */
static void bump(_Atomic size_t *number, size_t by)
{
    atomic_store_explicit(number, atomic_load_explicit(number, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* ---- counting --------------------------------------------------------------------------- */

static void count_size(struct audit *audit, size_t size)
{
    unsigned class = size == 0 ? 0 : 64 - (unsigned)__builtin_clzll(size);
    bump(&audit->by_size[class < SIZE_CLASSES ? class : SIZE_CLASSES - 1], 1);
    if (size <= atomic_load_explicit(&audit->largest[LARGEST - 1], memory_order_relaxed))
        return;
    for (int i = 0; i < LARGEST; i++) { /* under the lock */
        if (size == audit->largest[i])
            return;
        if (size > audit->largest[i]) {
            size_t moved = audit->largest[i];
            audit->largest[i] = size;
            size = moved;
        }
    }
}

static void count_live(struct audit *audit, ptrdiff_t blocks, ptrdiff_t bytes)
{
    bump(&audit->live_blocks, (size_t)blocks);
    bump(&audit->live_bytes, (size_t)bytes);
    size_t live = atomic_load_explicit(&audit->live_bytes, memory_order_relaxed);
    if (live > atomic_load_explicit(&audit->peak_bytes, memory_order_relaxed))
        atomic_store_explicit(&audit->peak_bytes, live, memory_order_relaxed);
}

/* ---- the live table, under the lock ------------------------------------------------------ */

static struct recent *recent_of(struct auditor *a, uintptr_t address)
{
    return &a->recent[(address >> 4) * 0x9e3779b97f4a7c15u >> (64 - RECENT_LOG2)];
}

static void bury(struct auditor *a, struct recent *recent)
{
    if (recent->state == DEAD) {
        live_table_remove(a->map, recent->address, NULL);
        recent->state = TOMBSTONE;
    }
}

static bool lies_dead(const struct recent *recent, uintptr_t address)
{
    return recent->state == DEAD && recent->address == address;
}

/* False: no dead block is in the map there. */
static bool bury_at(struct auditor *a, uintptr_t address)
{
    struct recent *recent = recent_of(a, address);
    bool is_dead = lies_dead(recent, address);
    if (is_dead)
        bury(a, recent);
    return is_dead;
}

static enum live_table_state put(struct auditor *a, const struct live_block *block,
                                 struct live_block *other)
{
    struct recent *recent = recent_of(a, block->address);
    enum live_table_state state;
    if (lies_dead(recent, block->address) && recent->size == block->size &&
        recent->origin == block->data) {
        recent->state = LIVE;
        return LIVE_TABLE_DONE;
    }
    bury(a, recent);
    do {
        state = live_table_insert(a->map, block, other);
    } while (state == LIVE_TABLE_OVERLAPS && bury_at(a, other->address));
    if (state == LIVE_TABLE_DONE)
        *recent = (struct recent){block->address, block->size, block->data, LIVE};
    return state;
}

static bool take(struct auditor *a, uintptr_t address, struct live_block *block)
{
    struct recent *recent = recent_of(a, address);
    if (recent->address == address && recent->state == LIVE) {
        *block =
            (struct live_block){.address = address, .size = recent->size, .data = recent->origin};
        recent->state = DEAD;
        return true;
    }
    if (lies_dead(recent, address) || !live_table_remove(a->map, address, block))
        return false;
    bury(a, recent);
    *recent = (struct recent){.address = address, .state = TOMBSTONE};
    return true;
}

static bool was_freed(struct auditor *a, uintptr_t address)
{
    const struct recent *recent = recent_of(a, address);
    return recent->address == address && (recent->state == DEAD || recent->state == TOMBSTONE);
}

/* Somebody else has that address now. */
static void forget(struct auditor *a, uintptr_t address)
{
    struct recent *recent = recent_of(a, address);
    if (was_freed(a, address)) {
        bury(a, recent);
        recent->state = NOBODY;
    }
}

/* ---- blocks ----------------------------------------------------------------------------- */

static void check_aligned(struct auditor *a, const void *p, size_t size, const char *function)
{
    size_t missing = heap_missing_alignment(a->options.alignment, p, size);
    if (missing != 0)
        violated(a, GAVE_MISALIGNED, "%s gave %p for %zu bytes, which is not aligned to %zu",
                 function, p, size, missing);
}

/* The index of the Python line that runs, remembered once; 0 where lines are not wanted, or there
 * is no room for more of them. */
static uint32_t origin(struct auditor *a)
{
    char line[256];
    if (!a->options.stacks)
        return 0;
    python_line(line, sizeof line);
    if (line[0] == '\0')
        snprintf(line, sizeof line, "(outside Python, without the GIL)");
    uint32_t hash = 5381;
    for (const char *c = line; *c != '\0'; c++)
        hash = hash * 33 + (unsigned char)*c;
    pthread_mutex_lock(&a->lock);
    uint32_t at = hash % ORIGINS, found = 0;
    for (int tries = 0; tries < 64 && found == 0; tries++, at = (at + 1) % ORIGINS) {
        if (at != 0 && a->origins[at] == NULL)
            a->origins[at] = strdup(line);
        if (at != 0 && a->origins[at] != NULL && strcmp(a->origins[at], line) == 0)
            found = at;
    }
    pthread_mutex_unlock(&a->lock);
    return found;
}

/* Tracks a block that `function` returned, with those marks; NULL is a refusal. */
static void enter(struct auditor *a, void *p, size_t size, uint32_t marks, const char *function,
                  _Atomic size_t *calls)
{
    if (p == NULL) {
        pthread_mutex_lock(&a->lock);
        bump(calls, 1);
        bump(&a->audit->refused, size != 0);
        pthread_mutex_unlock(&a->lock);
        return;
    }
    struct live_block block = {.address = (uintptr_t)p, .size = size, .data = origin(a) | marks},
                      other;
    check_aligned(a, p, size, function);
    pthread_mutex_lock(&a->lock);
    bump(calls, 1);
    enum live_table_state state = put(a, &block, &other);
    if (state == LIVE_TABLE_DONE)
        count_live(a->audit, 1, (ptrdiff_t)size);
    bump(&a->audit->untracked, state == LIVE_TABLE_NO_MEMORY);
    count_size(a->audit, size);
    pthread_mutex_unlock(&a->lock);
    if (state == LIVE_TABLE_IMPOSSIBLE || heap_is_impossible(size))
        violated(a, GAVE_OVERLAPPING, "%s gave %p for %zu bytes, which are more than there are",
                 function, p, size);
    if (state == LIVE_TABLE_OVERLAPS)
        violated(a, GAVE_OVERLAPPING,
                 "%s gave %p for %zu bytes, and a block of %zu bytes at %p is live", function, p,
                 size, other.size, (void *)other.address);
}

enum whose { OURS, OLDER, FREED, UNBOOKED };

/* Untracks a block.  `others` are blocks that are older than the audit. */
static enum whose leave(struct auditor *a, void *p, struct live_block *block, _Atomic size_t *calls)
{
    pthread_mutex_lock(&a->lock);
    bump(calls, 1);
    bool live = take(a, (uintptr_t)p, block);
    bool dead = !live && was_freed(a, (uintptr_t)p);
    if (live)
        count_live(a->audit, -1, -(ptrdiff_t)block->size);
    pthread_mutex_unlock(&a->lock);
    if (!live && !dead && a->audit->untracked > 0)
        return UNBOOKED; /* whose it is cannot be told, and the handler's is likelier */
    return live ? OURS : dead ? FREED : OLDER;
}

/* ---- the four functions ----------------------------------------------------------------- */

static void *audited_malloc(void *ctx, size_t size)
{
    struct auditor *a = ctx;
    struct around around = begin(a);
    void *p = a->inner->allocator.malloc(a->inner->allocator.ctx, size);
    end(a, &around, "malloc");
    enter(a, p, size, 0, "malloc", &a->audit->malloc_calls);
    return p;
}

/* All of a small block, and both edges of a large one. */
static bool is_zero(const unsigned char *p, size_t size)
{
    size_t edge = size < 4096 ? size : 4096;
    return edge == 0 ||
           (p[0] == 0 && memcmp(p, p + 1, edge - 1) == 0 && memcmp(p, p + size - edge, edge) == 0);
}

static void *audited_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct auditor *a = ctx;
    struct around around = begin(a);
    void *p = a->inner->allocator.calloc(a->inner->allocator.ctx, nelem, elsize);
    end(a, &around, "calloc");
    size_t size = heap_product(nelem, elsize); /* to be refused, and else it overlaps */
    enter(a, p, size, 0, "calloc", &a->audit->calloc_calls);
    if (p != NULL && size != SIZE_MAX && !is_zero(p, size))
        violated(a, GAVE_DIRTY, "calloc(%zu, %zu) gave a block with bytes that are not 0", nelem,
                 elsize);
    return p;
}

/* What of a block is looked at around a realloc: both ends of what has to be kept. */
struct edges {
    unsigned char head[EDGE], tail[EDGE];
    size_t length, kept;
};

static void take_edges(struct edges *edges, const unsigned char *p, size_t kept)
{
    edges->kept = kept;
    edges->length = kept < EDGE ? kept : EDGE;
    memcpy(edges->head, p, edges->length);
    memcpy(edges->tail, p + kept - edges->length, edges->length);
}

static bool has_edges(const struct edges *edges, const unsigned char *p)
{
    return memcmp(edges->head, p, edges->length) == 0 &&
           memcmp(edges->tail, p + edges->kept - edges->length, edges->length) == 0;
}

/* Of a block that realloc gave. */
static uint32_t marks_of_realloc(void)
{
    return python_is_up() && !PyGILState_Check() ? OF_TEXT : RESIZED;
}

static void *forward_realloc(struct auditor *a, void *p, size_t size)
{
    struct around around = begin(a);
    void *moved = a->inner->allocator.realloc(a->inner->allocator.ctx, p, size);
    end(a, &around, "realloc");
    return moved;
}

static void *realloc_of_ours(struct auditor *a, void *p, size_t size, const struct live_block *old)
{
    struct edges edges;
    take_edges(&edges, p, old->size < size ? old->size : size);
    void *moved = forward_realloc(a, p, size);
    if (moved == NULL) { /* the old block is live, as it was */
        pthread_mutex_lock(&a->lock);
        struct live_block other;
        if (put(a, old, &other) == LIVE_TABLE_DONE)
            count_live(a->audit, 1, (ptrdiff_t)old->size);
        else
            bump(&a->audit->untracked, 1);
        pthread_mutex_unlock(&a->lock);
    }
    enter(a, moved, size, marks_of_realloc(), "realloc", &a->audit->realloc_calls);
    if (!has_edges(&edges, moved != NULL ? moved : p))
        violated(a, LOST_CONTENTS, "realloc from %zu to %zu bytes%s: the bytes are others",
                 old->size, size, moved == NULL ? " was refused" : "");
    return moved;
}

/* It may come to lie where a block of ours was. */
static void *realloc_of_older(struct auditor *a, void *p, size_t size)
{
    void *moved = a->before->allocator.realloc(a->before->allocator.ctx, p, size);
    pthread_mutex_lock(&a->lock);
    if (moved != NULL)
        forget(a, (uintptr_t)moved);
    pthread_mutex_unlock(&a->lock);
    return moved;
}

static void *audited_realloc(void *ctx, void *p, size_t size)
{
    struct auditor *a = ctx;
    struct live_block old;
    _Atomic size_t unused = 0; /* enter counts a realloc */
    if (p == NULL) {
        void *fresh = forward_realloc(a, NULL, size);
        enter(a, fresh, size, 0, "realloc(NULL)", &a->audit->realloc_calls);
        return fresh;
    }
    switch (leave(a, p, &old, &unused)) {
    case OURS:
        return realloc_of_ours(a, p, size, &old);
    case OLDER:
        return realloc_of_older(a, p, size);
    case UNBOOKED: {
        void *moved = forward_realloc(a, p, size);
        enter(a, moved, size, marks_of_realloc(), "realloc", &a->audit->realloc_calls);
        return moved;
    }
    case FREED:
        break;
    }
    violated(a, RESIZED_DEAD, "realloc(%p, %zu): that block was freed before", p, size);
    return NULL;
}

/* Text is read into room for so many items, and then for as many again and again. */
enum { ITEMS_OF_TEXT = 4096 };
enum { FEATURES_OF_1_22 = 0x0f, FEATURES_OF_2_3 = 0x14 };

static bool is_marked(const struct live_block *block, enum array_change change)
{
    return (block->data & ((uint32_t)ARRAY_CHANGE << change)) != 0;
}

static enum violation_kind kind_of_one(const struct auditor *a, const struct live_block *block)
{
    if ((block->data & OF_TEXT) != 0)
        return SAID_ONE_FOR_TEXT;
    if (is_marked(block, EMPTIED_BY_DTYPE))
        return SAID_ONE_FOR_DTYPE;
    if (((block->data & RESIZED) != 0 || is_marked(block, EMPTY_OF_FROMITER)) &&
        a->options.features <= FEATURES_OF_2_3)
        return SAID_ONE_FOR_EMPTIED;
    return a->options.features <= FEATURES_OF_1_22 ? SAID_ONE_FOR_EMPTY : SAID_WRONG_SIZE;
}

static void check_size(struct auditor *a, const struct live_block *block, size_t size,
                       bool exception)
{
    enum violation_kind kind = SAID_WRONG_SIZE;
    if (size == block->size)
        return;
    if (is_marked(block, LEFT_BY_SETSTATE))
        kind = SAID_AFTER_SETSTATE;
    else if (size == 1)
        kind = kind_of_one(a, block);
    else if ((block->data & OF_TEXT) != 0 && size != 0 && size % ITEMS_OF_TEXT == 0 &&
             block->size > size && block->size % size == 0 && a->audit->refused > 0)
        kind = SAID_FIRST_AFTER_REFUSAL;
    else if (a->options.features <= FEATURES_OF_1_22 && exception && size < block->size)
        kind = SAID_SIZE_SO_FAR;
    violated(a, kind, "free of %zu bytes with size %zu", block->size, size);
}

static void audited_free(void *ctx, void *p, size_t size)
{
    struct auditor *a = ctx;
    struct live_block block;
    enum whose whose = OURS;
    if (p != NULL) {
        whose = leave(a, p, &block, &a->audit->free_calls);
    } else {
        a->audit->free_calls++;
        a->audit->null_frees++;
    }
    if (whose == FREED) {
        violated(a, FREED_TWICE, "free(%p, %zu): that block was freed before", p, size);
        return;
    }
    if (whose == OLDER) {
        a->audit->blocks_before++;
        a->before->allocator.free(a->before->allocator.ctx, p, size);
        return;
    }
    struct around around = begin(a);
    if (p != NULL && whose == OURS)
        check_size(a, &block, size, around.exception != NULL);
    errno = around.error;
    a->inner->allocator.free(a->inner->allocator.ctx, p, size);
    if (errno != around.error)
        violated(a, CHANGED_ERRNO, "free left errno %d, and it was %d before", errno, around.error);
    end(a, &around, "free");
}

void auditor_note(struct auditor *a, const void *p, enum array_change change)
{
    struct live_block block, other;
    pthread_mutex_lock(&a->lock);
    if (take(a, (uintptr_t)p, &block)) {
        block.data |= (uint32_t)ARRAY_CHANGE << change;
        if (put(a, &block, &other) != LIVE_TABLE_DONE)
            bump(&a->audit->untracked, 1);
    }
    pthread_mutex_unlock(&a->lock);
}

/* ---- making one ------------------------------------------------------------------------- */

struct auditor *auditor_create(PyDataMem_Handler *inner, const PyDataMem_Handler *before,
                               struct audit *audit, const struct auditor_options *options)
{
    struct auditor *a = calloc(1, sizeof *a);
    if (a == NULL || (a->map = live_table_new()) == NULL) {
        free(a);
        return NULL;
    }
    a->inner = inner;
    a->snapshot = *inner;
    a->before = before;
    a->audit = audit;
    a->violations = audit->violations;
    a->options = *options;
    a->outer = *inner;
    a->outer.allocator =
        (PyDataMemAllocator){a, audited_malloc, audited_calloc, audited_realloc, audited_free};
    pthread_mutex_init(&a->lock, NULL);
    only = a;
    pthread_atfork(lock_before_fork, unlock_after_fork, count_apart_in_child);
    return a;
}

PyDataMem_Handler *auditor_handler(struct auditor *auditor)
{
    return &auditor->outer;
}

/* ---- what is live ----------------------------------------------------------------------- */

struct origin_sum {
    const char *line;
    size_t blocks, bytes;
};

struct origin_sums {
    struct auditor *auditor;
    struct origin_sum *of;
};

static bool add_live(const struct live_block *block, void *data)
{
    struct origin_sums *sums = data;
    struct origin_sum *sum = &sums->of[block->data % ORIGINS];
    sum->line = sums->auditor->origins[block->data % ORIGINS];
    sum->blocks++;
    sum->bytes += block->size;
    return true;
}

static int by_bytes(const void *left, const void *right)
{
    const struct origin_sum *a = left, *b = right;
    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

void auditor_print_live(struct auditor *auditor, FILE *file, size_t most)
{
    struct origin_sums sums = {auditor, calloc(ORIGINS, sizeof *sums.of)};
    if (sums.of == NULL)
        return;
    pthread_mutex_lock(&auditor->lock);
    for (size_t i = 0; i < sizeof auditor->recent / sizeof *auditor->recent; i++)
        bury(auditor, &auditor->recent[i]);
    live_table_each(auditor->map, add_live, &sums);
    pthread_mutex_unlock(&auditor->lock);
    qsort(sums.of, ORIGINS, sizeof *sums.of, by_bytes);
    const char *unknown = auditor->options.stacks ? "(lines beyond the sixteen thousand kept)"
                                                  : "(say --stacks to see from where)";
    size_t lines = 0, bytes = 0;
    for (size_t i = 0; i < ORIGINS && sums.of[i].blocks > 0; i++) {
        if (i < most)
            fprintf(file, "  %12zu bytes in %zu block%s  %s\n", sums.of[i].bytes, sums.of[i].blocks,
                    sums.of[i].blocks == 1 ? "" : "s",
                    sums.of[i].line != NULL ? sums.of[i].line : unknown);
        lines += i >= most;
        bytes += i >= most ? sums.of[i].bytes : 0;
    }
    if (most > 0 && lines > 0)
        fprintf(file, "  %12zu bytes by %zu more lines\n", bytes, lines);
    free(sums.of);
}
