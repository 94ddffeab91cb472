/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checking every call: the handler's side by the heap model, NumPy's side here.  What runs on each
 * call is kept to some tens of nanoseconds: one or two locks and no system call.
 */
#include "shims/auditor.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/float_state.h"
#include "base/text.h"
#include "heap/heap.h"
#include "python/api.h"
#include "python/python.h"

enum { FREED_LOG2 = 12, SAMPLE_EVERY = 64, ORIGINS = 1 << 14, HINT_LOG2 = 16 };
enum { MOST_KEPT_BACK = 256 << 20 };

struct auditor {
    PyDataMem_Handler outer, *inner;
    const PyDataMem_Handler *before;
    struct audit *audit;          /* where is counted */
    struct violation *violations; /* the creator's, also in forked children */
    struct audit of_child;
    struct auditor_options options;
    const void *object;                    /* the file that the handler's code is in, or NULL */
    _Atomic uint16_t hint[1 << HINT_LOG2]; /* live blocks by a hash of the address */
    pthread_mutex_t lock;                  /* of all that follows */
    size_t kept_back; /* bytes that stay with the handler though libc's free got them */
    struct heap heap; /* the number of a block is its origin and marks */
    struct heap_block freed[1 << FREED_LOG2]; /* lately, by a hash of the address */
    char *origins[ORIGINS];                   /* Python lines, by a hash */
};

/* Where a block has been, beside the index of its origin.  NumPy has no GIL where it grows and cuts
 * the block of a text that it reads, and has it for every other realloc. */
enum {
    OF_TEXT = 1 << 16,
    RESIZED = 1 << 17,
    ARRAY_CHANGE = 1 << 18, /* and one for each enum array_change */
};

/* A fork must not leave the lock held in the child. */
static struct auditor *only;

/* Nesting of this thread in the handler and in the lock, where libc's free is not checked: a holder
 * of the lock must not ask for it again. */
static _Thread_local int inside;

static void lock(struct auditor *a)
{
    inside++;
    pthread_mutex_lock(&a->lock);
}

static void unlock(struct auditor *a)
{
    pthread_mutex_unlock(&a->lock);
    inside--;
}

static void lock_before_fork(void)
{
    lock(only);
}

static void unlock_after_fork(void)
{
    unlock(only);
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

const struct violation_facts violation_facts[VIOLATION_KINDS] = {
    [GAVE_OVERLAPPING] = {BY_HANDLER, true, "memory that overlaps a live block"},
    [GAVE_MISALIGNED] = {BY_HANDLER, true, "memory that is not aligned"},
    [GAVE_DIRTY] = {BY_HANDLER, true, "memory from calloc that is not zero"},
    [LOST_CONTENTS] = {BY_HANDLER, true, "contents lost by realloc"},
    [CHANGED_STRUCT] = {BY_HANDLER, true, "a handler struct that changed"},
    [CHANGED_ERRNO] = {BY_HANDLER, true, "errno changed by free"},
    [CHANGED_FLOAT_STATE] = {BY_HANDLER, true, "floating-point state changed"},
    [LOST_EXCEPTION] = {BY_HANDLER, true, "a pending exception lost"},
    [SET_EXCEPTION] = {BY_HANDLER, true, "an exception set"},
    [FREED_BY_LIBC] = {BY_THIRD_PARTY, true,
                       "a block of the handler passed to libc's free or realloc"},
    [OWNED_WITHOUT_HANDLER] = {BY_THIRD_PARTY, false, "an array with OWNDATA and no handler"},
    [CALLED_WITHOUT_GIL] = {BY_THIRD_PARTY, true, "a request or a free without the GIL"},
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

size_t audit_violations(const struct audit *audit, enum party party)
{
    size_t count = 0;
    for (int i = 0; i < VIOLATION_KINDS; i++)
        count += violation_facts[i].party == party && violation_facts[i].counts &&
                 audit->violations[i].times > 0;
    return count;
}

static const enum violation_kind kind_of_rule[HEAP_RULES] = {
    [HEAP_MALLOC_ALIGNMENT] = GAVE_MISALIGNED,
    [HEAP_CALLOC_ALIGNMENT] = GAVE_MISALIGNED,
    [HEAP_REALLOC_ALIGNMENT] = GAVE_MISALIGNED,
    [HEAP_CLAIMED_ALIGNMENT] = GAVE_MISALIGNED,
    [HEAP_DISJOINT] = GAVE_OVERLAPPING,
    [HEAP_TOO_LARGE] = GAVE_OVERLAPPING,
    [HEAP_ZEROED] = GAVE_DIRTY,
    [HEAP_KEEPS_CONTENTS] = LOST_CONTENTS,
    [HEAP_FAILURE_KEEPS_BLOCK] = LOST_CONTENTS,
    [HEAP_KEEPS_ERRNO] = CHANGED_ERRNO,
    [HEAP_STRUCT_CONSTANT] = CHANGED_STRUCT,
    [HEAP_FLOAT_STATE] = CHANGED_FLOAT_STATE,
};

static void violated(struct auditor *a, enum violation_kind kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void violated(struct auditor *a, enum violation_kind kind, const char *format, ...)
{
    struct violation *violation = &a->violations[kind];
    size_t times = atomic_fetch_add(&violation->times, 1);
    char where[VIOLATION_LINE];
    va_list arguments;
    if (times == 0) {
        va_start(arguments, format);
        vsnprintf(violation->text, sizeof violation->text, format, arguments);
        va_end(arguments);
    }
    if (times >= VIOLATION_SAMPLES)
        return;
    if (violation_facts[kind].party == BY_THIRD_PARTY)
        python_line_with_gil(where, sizeof where);
    else
        python_line(where, sizeof where);
    for (int i = 0; i < VIOLATION_LINES; i++) {
        if (times == 0 || violation->where[i][0] == '\0') /* two threads may write the same place */
            snprintf(violation->where[i], sizeof where, "%s", where);
        if (times == 0 || strcmp(violation->where[i], where) == 0)
            return;
    }
}

/* ---- the state around a call ------------------------------------------------------------ */

struct around {
    const char *function;
    PyObject *exception; /* borrowed: the type that was pending */
    bool has_gil;
    unsigned floating;
    int error;
    uint64_t begin; /* 0: this call is not timed */
};

/* NumPy has the GIL for each call but realloc. */
static struct around begin(struct auditor *a, const char *function)
{
    int error = errno;
    struct around around = {.function = function,
                            .has_gil = python_is_up() && PyGILState_Check(),
                            .floating = float_state()};
    if (around.has_gil) {
        around.exception = PyErr_Occurred();
    } else if (python_is_up()) {
        a->audit->without_gil++;
        if (function[0] != 'r')
            violated(a, CALLED_WITHOUT_GIL, "%s, by a thread that %s", function,
                     PyGILState_GetThisThreadState() != NULL ? "has let go of the GIL"
                                                             : "Python does not know");
    }
    static _Thread_local unsigned calls;
    if (calls++ % SAMPLE_EVERY == 0)
        around.begin = clock_now();
    around.error = error;
    return around;
}

static void check_exception(struct auditor *a, const struct around *around)
{
    PyObject *exception = around->has_gil ? PyErr_Occurred() : around->exception;
    if (exception != around->exception && around->exception != NULL)
        violated(a, LOST_EXCEPTION, "%s was called with a pending exception, and it is gone",
                 around->function);
    else if (exception != around->exception)
        violated(a, SET_EXCEPTION, "%s returned with an exception that was not there before",
                 around->function);
}

/* After the handler's call: takes the lock, for what the model is told of it. */
static struct heap *lock_after(struct auditor *a, const struct around *around, int *error)
{
    if (around->begin != 0)
        a->audit->nanoseconds_inside += SAMPLE_EVERY * (clock_now() - around->begin);
    check_exception(a, around);
    lock(a);
    a->heap.float_state = around->floating;
    a->heap.error_before = around->error;
    a->heap.error = error;
    a->heap.call++;
    return &a->heap;
}

/* Gives the lock back, and reports what the model has seen. */
static void unlock_after(struct auditor *a, const struct around *around)
{
    struct heap_violation seen = {.rule = a->heap.violation.rule};
    if (__builtin_expect(seen.rule != HEAP_NO_RULE, 0))
        seen = a->heap.violation;
    a->heap.violation.rule = HEAP_NO_RULE;
    unlock(a);
    if (seen.rule != HEAP_NO_RULE)
        violated(a, kind_of_rule[seen.rule], "%s: %s%s%s", around->function, seen.seen,
                 seen.history[0] != '\0' ? "; " : "", seen.history);
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

static void count_live(struct auditor *a)
{
    struct audit *audit = a->audit;
    size_t peak = atomic_load_explicit(&audit->peak_bytes, memory_order_relaxed);
    audit->live_blocks = a->heap.live_blocks;
    audit->live_bytes = a->heap.live_bytes;
    if (a->heap.live_bytes > peak)
        audit->peak_bytes = a->heap.live_bytes;
}

/* ---- blocks, under the lock -------------------------------------------------------------- */

static size_t hash(const void *p, unsigned bits)
{
    return ((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> (64 - bits);
}

static struct heap_block *freed_at(struct auditor *a, const void *p)
{
    return &a->freed[hash(p, FREED_LOG2)];
}

/* Adds `by` to the number of live blocks with p's hash. */
static void hint(struct auditor *a, const void *p, int by)
{
    _Atomic uint16_t *count = &a->hint[hash(p, HINT_LOG2)];
    atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + by,
                          memory_order_relaxed);
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
    lock(a);
    uint32_t at = hash % ORIGINS, found = 0;
    for (int tries = 0; tries < 64 && found == 0; tries++, at = (at + 1) % ORIGINS) {
        if (at != 0 && a->origins[at] == NULL)
            a->origins[at] = strdup(line);
        if (at != 0 && a->origins[at] != NULL && strcmp(a->origins[at], line) == 0)
            found = at;
    }
    unlock(a);
    return found;
}

static bool track(struct auditor *a, void *p, size_t size, uint32_t data, enum step_kind by)
{
    uint32_t slot = heap_new_slot(&a->heap);
    if (slot != HEAP_NO_SLOT)
        heap_made(&a->heap, slot, data, by, p, size);
    bool tracked = !a->heap.no_memory;
    hint(a, p, tracked);
    bump(&a->audit->untracked, !tracked);
    a->heap.no_memory = false;
    if (freed_at(a, p)->p == p)
        freed_at(a, p)->p = NULL;
    count_live(a);
    return tracked;
}

/* After a call that returned p, NULL for a refusal.  Takes the lock and gives it back. */
static void enter(struct auditor *a, const struct around *around, void *p, size_t size,
                  uint32_t marks, enum step_kind by, _Atomic size_t *calls)
{
    int error = errno;
    uint32_t data = p != NULL ? origin(a) | marks : 0;
    struct heap *heap = lock_after(a, around, &error);
    bump(calls, 1);
    if (p != NULL) {
        track(a, p, size, data, by);
        count_size(a->audit, size);
    } else {
        heap_state_holds(heap);
        bump(&a->audit->refused, size != 0);
    }
    unlock_after(a, around);
    errno = error;
}

enum whose { OURS, OLDER, FREED, UNBOOKED };

/* Untracks a live block, under the lock. */
static struct heap_block drop(struct auditor *a, uint32_t slot)
{
    struct heap_block block = a->heap.block[slot];
    hint(a, block.p, -1);
    heap_will_free(&a->heap, slot);
    *freed_at(a, block.p) = block;
    count_live(a);
    return block;
}

/* Untracks a block before the handler gets it back.  `others` are blocks that are older than the
 * audit. */
static enum whose leave(struct auditor *a, void *p, struct heap_block *block, _Atomic size_t *calls)
{
    lock(a);
    bump(calls, 1);
    uint32_t slot = heap_slot_at(&a->heap, p);
    bool was_freed = freed_at(a, p)->p == p;
    if (slot != HEAP_NO_SLOT)
        *block = drop(a, slot);
    unlock(a);
    if (slot != HEAP_NO_SLOT)
        return OURS;
    /* Without a record, whose it is cannot be known, and the handler's is likelier. */
    return was_freed ? FREED : a->audit->untracked > 0 ? UNBOOKED : OLDER;
}

/* ---- the four functions ----------------------------------------------------------------- */

static void *audited_malloc(void *ctx, size_t size)
{
    struct auditor *a = ctx;
    struct around around = begin(a, "malloc");
    inside++;
    void *p = a->inner->allocator.malloc(a->inner->allocator.ctx, size);
    inside--;
    enter(a, &around, p, size, 0, STEP_MALLOC, &a->audit->malloc_calls);
    return p;
}

static void *audited_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct auditor *a = ctx;
    struct around around = begin(a, "calloc");
    inside++;
    void *p = a->inner->allocator.calloc(a->inner->allocator.ctx, nelem, elsize);
    inside--;
    enter(a, &around, p, heap_product(nelem, elsize), 0, STEP_CALLOC, &a->audit->calloc_calls);
    return p;
}

static void *forward_realloc(struct auditor *a, void *p, size_t size, enum whose whose,
                             const struct heap_block *old)
{
    struct heap_edges edges = {.length = 0};
    if (whose == OURS)
        heap_note_edges(&edges, p, old->size < size ? old->size : size);
    struct around around = begin(a, p != NULL ? "realloc" : "realloc(NULL)");
    inside++;
    void *moved = a->inner->allocator.realloc(a->inner->allocator.ctx, p, size);
    inside--;
    uint32_t marks = p == NULL ? 0 : python_is_up() && !PyGILState_Check() ? OF_TEXT : RESIZED;
    enter(a, &around, moved, size, marks, STEP_REALLOC, &a->audit->realloc_calls);
    if (whose != OURS)
        return moved;
    int error = errno;
    lock(a);
    if (moved == NULL) /* the old block is live, as it was */
        track(a, p, old->size, (uint32_t)old->number, STEP_REALLOC);
    heap_check_edges(&a->heap, &edges, moved != NULL ? moved : p, moved == NULL);
    unlock_after(a, &around);
    errno = error;
    return moved;
}

static void *audited_realloc(void *ctx, void *p, size_t size)
{
    struct auditor *a = ctx;
    struct heap_block old = {.p = NULL};
    _Atomic size_t unused = 0; /* enter counts a realloc */
    enum whose whose = p != NULL ? leave(a, p, &old, &unused) : UNBOOKED;
    if (whose == OLDER) {
        void *moved = a->before->allocator.realloc(a->before->allocator.ctx, p, size);
        lock(a);
        if (freed_at(a, moved)->p == moved) /* it may lie where one of ours was */
            freed_at(a, moved)->p = NULL;
        unlock(a);
        return moved;
    }
    if (whose != FREED)
        return forward_realloc(a, p, size, whose, &old);
    violated(a, RESIZED_DEAD, "realloc(%p, %zu): that block was freed before", p, size);
    return NULL;
}

/* Text is read into room for so many items, and then for as many again and again. */
enum { ITEMS_OF_TEXT = 4096 };
enum { FEATURES_OF_1_22 = 0x0f, FEATURES_OF_2_3 = 0x14 };

/* Returns the kind of a wrong size given to free: NumPy's known ones, each by where the block has
 * been, or SAID_WRONG_SIZE. */
static enum violation_kind kind_of_size(const struct auditor *a, const struct heap_block *block,
                                        size_t size, bool exception)
{
    unsigned features = a->options.features, marks = (unsigned)block->number;
    bool of_text = (marks & OF_TEXT) != 0;
    if (marks & ARRAY_CHANGE << LEFT_BY_SETSTATE)
        return SAID_AFTER_SETSTATE;
    if (size == 1 && of_text)
        return SAID_ONE_FOR_TEXT;
    if (size == 1 && (marks & ARRAY_CHANGE << EMPTIED_BY_DTYPE))
        return SAID_ONE_FOR_DTYPE;
    if (size == 1 && (marks & (RESIZED | ARRAY_CHANGE << EMPTY_OF_FROMITER)) &&
        features <= FEATURES_OF_2_3)
        return SAID_ONE_FOR_EMPTIED;
    if (size == 1)
        return features <= FEATURES_OF_1_22 ? SAID_ONE_FOR_EMPTY : SAID_WRONG_SIZE;
    if (of_text && size != 0 && size % ITEMS_OF_TEXT == 0 && block->size > size &&
        block->size % size == 0 && a->audit->refused > 0)
        return SAID_FIRST_AFTER_REFUSAL;
    return features <= FEATURES_OF_1_22 && exception && size < block->size ? SAID_SIZE_SO_FAR
                                                                           : SAID_WRONG_SIZE;
}

static void audited_free(void *ctx, void *p, size_t size)
{
    struct auditor *a = ctx;
    struct heap_block block = {.p = NULL};
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
    struct around around = begin(a, "free");
    if (p != NULL && whose == OURS && size != block.size)
        violated(a, kind_of_size(a, &block, size, around.exception != NULL),
                 "free of %zu bytes with size %zu", block.size, size);
    errno = around.error;
    inside++;
    a->inner->allocator.free(a->inner->allocator.ctx, p, size);
    inside--;
    int error = errno;
    if (around.begin != 0 || !heap_is_as_before(&a->heap, around.floating, error == around.error)) {
        heap_freed(lock_after(a, &around, &error));
        unlock_after(a, &around);
    } else {
        check_exception(a, &around);
    }
    errno = error;
}

void auditor_note(struct auditor *a, const void *p, enum array_change change)
{
    lock(a);
    uint32_t slot = heap_slot_at(&a->heap, p);
    if (slot != HEAP_NO_SLOT)
        a->heap.block[slot].number |= (uint64_t)ARRAY_CHANGE << change;
    unlock(a);
}

void auditor_note_unowned(struct auditor *a, const void *data)
{
    violated(a, OWNED_WITHOUT_HANDLER, "NumPy frees %p by libc's free; give such an array a base",
             data);
}

/* ---- libc's free and realloc ------------------------------------------------------------- */

static const void *object_of(const void *code, const char **name)
{
    Dl_info info = {.dli_fname = ""};
    bool found = dladdr(code, &info) != 0;
    const char *slash = strrchr(info.dli_fname, '/');
    *name = slash != NULL ? slash + 1 : info.dli_fname;
    return found ? info.dli_fbase : NULL;
}

/* A live block stays with the handler, so that what NumPy does with it later does not fail because
 * of this call; if that is too much memory, the handler frees it.  The handler's own code may free
 * its blocks. */
bool auditor_owns(void *p, const void *caller, size_t *size)
{
    struct auditor *a = only;
    struct heap_block block = {.p = NULL};
    const char *name;
    if (atomic_load_explicit(&a->hint[hash(p, HINT_LOG2)], memory_order_relaxed) == 0 || inside > 0)
        return false;
    lock(a);
    uint32_t slot = heap_slot_at(&a->heap, p);
    if (slot != HEAP_NO_SLOT)
        block = a->heap.block[slot];
    unlock(a);
    if (block.p == NULL)
        return false;
    const void *object = object_of(caller, &name); /* may wait for the linker's lock */
    bool is_own = object != NULL && object == a->object, is_over = false;
    lock(a);
    if (!is_own && size == NULL)
        is_over = (a->kept_back += block.size) > MOST_KEPT_BACK;
    slot = is_own || is_over ? heap_slot_at(&a->heap, p) : HEAP_NO_SLOT;
    if (slot != HEAP_NO_SLOT)
        drop(a, slot);
    unlock(a);
    if (is_own)
        return false;
    int error = errno;
    violated(a, FREED_BY_LIBC, "%s(%p) by %s, of a block of %zu bytes",
             size != NULL ? "realloc" : "free", p, *name != '\0' ? name : "code in no file",
             block.size);
    inside++;
    if (slot != HEAP_NO_SLOT)
        a->inner->allocator.free(a->inner->allocator.ctx, p, block.size);
    inside--;
    if (size != NULL)
        *size = block.size;
    errno = error;
    return true;
}

/* ---- making one ------------------------------------------------------------------------- */

struct auditor *auditor_create(PyDataMem_Handler *inner, const PyDataMem_Handler *before,
                               struct audit *audit, const struct auditor_options *options)
{
    struct heap_rules rules = {.alignment = options->alignment,
                               .fill = {.whole = 4096},
                               .watched = inner,
                               .observes = true,
                               .in_each_call = true};
    struct auditor *a = calloc(1, sizeof *a);
    if (a == NULL || !heap_begin(&a->heap, &rules)) {
        free(a);
        return NULL;
    }
    a->inner = inner;
    a->before = before;
    a->audit = audit;
    a->violations = audit->violations;
    a->options = *options;
    a->outer = *inner;
    a->outer.allocator =
        (PyDataMemAllocator){a, audited_malloc, audited_calloc, audited_realloc, audited_free};
    pthread_mutex_init(&a->lock, NULL);
    only = a;
    const char *name;
    a->object = object_of(*(void **)&inner->allocator.free, &name);
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

static int by_bytes(const void *left, const void *right)
{
    const struct origin_sum *a = left, *b = right;
    return a->bytes < b->bytes ? 1 : a->bytes > b->bytes ? -1 : 0;
}

void auditor_print_live(struct auditor *auditor, FILE *file, size_t most)
{
    struct origin_sum *sums = calloc(ORIGINS, sizeof *sums);
    if (sums == NULL)
        return;
    lock(auditor);
    for (uint32_t slot = 0; slot < auditor->heap.used; slot++) {
        const struct heap_block *block = &auditor->heap.block[slot];
        struct origin_sum *sum = &sums[block->number % ORIGINS];
        if (block->p == NULL)
            continue;
        sum->line = auditor->origins[block->number % ORIGINS];
        sum->blocks++;
        sum->bytes += block->size;
    }
    unlock(auditor);
    qsort(sums, ORIGINS, sizeof *sums, by_bytes);
    const char *unknown = auditor->options.stacks ? "(lines beyond the sixteen thousand kept)"
                                                  : "(say --stacks to see from where)";
    size_t line = 0, lines = 0, bytes = 0;
    for (; line < most && sums[line].blocks > 0; line++)
        fprintf(file, "  %12zu bytes in %zu block%s  %s\n", sums[line].bytes, sums[line].blocks,
                sums[line].blocks == 1 ? "" : "s",
                sums[line].line != NULL ? sums[line].line : unknown);
    for (; line < ORIGINS && sums[line].blocks > 0; line++, lines++)
        bytes += sums[line].bytes;
    if (most > 0 && lines > 0)
        fprintf(file, "  %12zu bytes by %zu more lines\n", bytes, lines);
    free(sums);
}

/* ---- the nearest block ------------------------------------------------------------------ */

static size_t distance(const struct heap_block *block, uintptr_t address)
{
    uintptr_t p = (uintptr_t)block->p;
    if (block->p == NULL)
        return SIZE_MAX;
    return address < p ? p - address : address < p + block->size ? 0 : address - p - block->size;
}

/* Of `count` blocks, returns the nearest one that is nearer than `best`, or NULL. */
static const struct heap_block *nearest(const struct heap_block *blocks, size_t count,
                                        uintptr_t address, size_t best)
{
    const struct heap_block *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (distance(&blocks[i], address) >= best)
            continue;
        found = &blocks[i];
        best = distance(found, address);
    }
    return found;
}

void auditor_describe(const struct auditor *a, const void *address, bool has_guard, char *to,
                      size_t room)
{
    enum { NEAR = 1 << 16 };
    uintptr_t at = (uintptr_t)address;
    const struct heap_block *block = nearest(a->heap.block, a->heap.used, at, NEAR);
    size_t best = block != NULL ? distance(block, at) : NEAR;
    const struct heap_block *freed = nearest(a->freed, 1 << FREED_LOG2, at, best);
    int length = snprintf(to, room, " at address %p", address);
    if (freed != NULL && distance(freed, at) == 0)
        block = freed;
    if (block == NULL)
        return;
    const char *line = a->origins[block->number % ORIGINS];
    char away[64] = "inside";
    if (distance(block, at) > 0)
        snprintf(away, sizeof away, "%zu bytes %s", distance(block, at),
                 at < (uintptr_t)block->p ? "before" : "after the end of");
    snprintf(to + length, room - (size_t)length, ", %s a block of %zu bytes at %p%s, made at %s%s",
             away, block->size, block->p, block == freed ? " that was freed" : "",
             line != NULL ? line : "an unknown line (--stacks shows it)",
             !has_guard       ? ""
             : block == freed ? "; its memory is guarded"
                              : "; the guard page was hit");
}
