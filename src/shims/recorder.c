/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Forwarding calls, and tracking the blocks that live.
 *
 * A block is untracked before the handler is told to free or move it, because from then on
 * another thread may be given the same address.
 */
#include "shims/recorder.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "shims/shim.h"

struct recorder {
    PyDataMem_Handler handler; /* its ctx is this struct */
    PyDataMem_Handler *inner;
    bool has_own_name;
    struct recorder *next; /* of all; under the lock of the list */

    pthread_mutex_t lock; /* on the rest */
    struct interval_map *live;
    struct recorder_counts counts;
    struct note notes[MOST_NOTES];
    size_t note_count;
};

/* Its lock may be held when a recorder's is taken, never the other way round. */
static struct {
    pthread_mutex_t lock;
    struct recorder *first;
    size_t count;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static atomic_bool saw_overlap;

/* ---- live blocks ---------------------------------------------------------------------------- */

/* Under the recorder's lock. */
static void take_note(struct recorder *r, struct note note)
{
    r->counts.notes[note.kind]++;
    if (r->note_count < MOST_NOTES)
        r->notes[r->note_count++] = note;
}

/* Tracks the block at p, unless that is NULL.  Under the recorder's lock. */
static void track(struct recorder *r, const void *p, size_t size, uint64_t by)
{
    struct interval other;
    if (p == NULL)
        return;
    switch (interval_map_insert(r->live, (struct interval){(uintptr_t)p, size, by}, &other)) {
    case INTERVAL_FREE:
        r->counts.live_bytes += size;
        if (r->counts.peak_bytes < r->counts.live_bytes)
            r->counts.peak_bytes = r->counts.live_bytes;
        break;
    case INTERVAL_OVERLAPS:
        atomic_store(&saw_overlap, true);
        take_note(r,
                  (struct note){.kind = NOTE_OVERLAPS, .p = p, .size = size, .asked = other.size});
        break;
    case INTERVAL_IMPOSSIBLE:
    case INTERVAL_NO_MEMORY:
        r->counts.incomplete = true;
    }
}

bool recorder_saw_overlap(void)
{
    return atomic_load(&saw_overlap);
}

static bool untrack(struct recorder *r, const void *p, struct interval *gone)
{
    pthread_mutex_lock(&r->lock);
    bool was_live = interval_map_remove(r->live, (uintptr_t)p, gone);
    if (was_live)
        r->counts.live_bytes -= gone->size;
    pthread_mutex_unlock(&r->lock);
    return was_live;
}

struct recorder *recorder_of_block(const void *p)
{
    struct recorder *owner = NULL;
    pthread_mutex_lock(&all.lock);
    for (struct recorder *r = all.first; r != NULL && owner == NULL; r = r->next) {
        pthread_mutex_lock(&r->lock);
        if (interval_map_find(r->live, (uintptr_t)p, NULL))
            owner = r;
        pthread_mutex_unlock(&r->lock);
    }
    pthread_mutex_unlock(&all.lock);
    return owner;
}

/* ---- forwarding ---------------------------------------------------------------------------- */

/* After a request: counts it, tracks its block, and shows the struct of the handler behind. */
static void *requested(struct recorder *r, size_t *calls, void *p, size_t size, enum step_kind by)
{
    pthread_mutex_lock(&r->lock);
    ++*calls;
    r->counts.refused += p == NULL && size != 0;
    track(r, p, size, by);
    pthread_mutex_unlock(&r->lock);
    if (!r->has_own_name)
        shim_show_through(&r->handler, r->inner);
    return p;
}

static void *record_malloc(void *ctx, size_t size)
{
    struct recorder *r = ctx;
    void *p = r->inner->allocator.malloc(r->inner->allocator.ctx, size);
    return requested(r, &r->counts.malloc_calls, p, size, STEP_MALLOC);
}

static void *record_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct recorder *r = ctx;
    size_t size;
    void *p = r->inner->allocator.calloc(r->inner->allocator.ctx, nelem, elsize);
    if (__builtin_mul_overflow(nelem, elsize, &size))
        size = SIZE_MAX;
    return requested(r, &r->counts.calloc_calls, p, size, STEP_CALLOC);
}

/* The block at p is not tracked here.  One that another recorder tracks is handed over to this one,
 * so that the call can be forwarded; *gone is then the block.  A pointer that is in nobody's must
 * not reach the handler. */
static bool take_over(struct recorder *r, void *p, size_t size, enum note_kind others,
                      enum note_kind foreign, struct interval *gone)
{
    struct recorder *owner = recorder_of_block(p);
    struct note note = {.kind = foreign, .p = p, .size = size};
    bool is_others = owner != NULL && untrack(owner, p, gone);
    if (is_others) {
        note.kind = others;
        note.asked = gone->size;
        memcpy(note.owner, owner->handler.name, sizeof note.owner);
    }
    pthread_mutex_lock(&r->lock);
    take_note(r, note);
    pthread_mutex_unlock(&r->lock);
    return is_others;
}

static void *record_realloc(void *ctx, void *p, size_t size)
{
    struct recorder *r = ctx;
    struct interval old = {0};
    if (p != NULL && !untrack(r, p, &old) &&
        !take_over(r, p, size, NOTE_OTHERS_REALLOC, NOTE_FOREIGN_REALLOC, &old))
        return NULL;
    void *moved = r->inner->allocator.realloc(r->inner->allocator.ctx, p, size);
    if (moved == NULL) {
        pthread_mutex_lock(&r->lock);
        track(r, p, old.size, old.value);
        pthread_mutex_unlock(&r->lock);
    }
    return requested(r, &r->counts.realloc_calls, moved, size, STEP_REALLOC);
}

static void record_free(void *ctx, void *p, size_t size)
{
    struct recorder *r = ctx;
    struct interval gone = {0};
    bool is_known = p == NULL || untrack(r, p, &gone) ||
                    take_over(r, p, size, NOTE_OTHERS_FREE, NOTE_FOREIGN_FREE, &gone);
    pthread_mutex_lock(&r->lock);
    r->counts.free_calls++;
    if (is_known && p != NULL && gone.size != size)
        take_note(r,
                  (struct note){.kind = NOTE_WRONG_SIZE, .p = p, .size = size, .asked = gone.size});
    pthread_mutex_unlock(&r->lock);
    if (!is_known)
        return;
    r->inner->allocator.free(r->inner->allocator.ctx, p, size);
    if (!r->has_own_name)
        shim_show_through(&r->handler, r->inner);
}

/* ---- making, ending, reading --------------------------------------------------------------- */

struct recorder *recorder_create(PyDataMem_Handler *inner, const char *name)
{
    struct recorder *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->live = interval_map_new();
    if (r->live == NULL) {
        free(r);
        return NULL;
    }
    r->handler = (PyDataMem_Handler){
        .allocator = {r, record_malloc, record_calloc, record_realloc, record_free}};
    r->inner = inner;
    shim_show_through(&r->handler, inner);
    if (name != NULL) {
        r->has_own_name = true;
        snprintf(r->handler.name, sizeof r->handler.name, "%s", name);
    }
    pthread_mutex_init(&r->lock, NULL);
    pthread_mutex_lock(&all.lock);
    r->next = all.first;
    all.first = r;
    all.count++;
    pthread_mutex_unlock(&all.lock);
    return r;
}

bool recorder_destroy(struct recorder *recorder)
{
    pthread_mutex_lock(&all.lock);
    pthread_mutex_lock(&recorder->lock);
    bool is_empty = interval_map_count(recorder->live) == 0;
    pthread_mutex_unlock(&recorder->lock);
    struct recorder **link = &all.first;
    while (is_empty && *link != recorder)
        link = &(*link)->next;
    if (is_empty) {
        *link = recorder->next;
        all.count--;
    }
    pthread_mutex_unlock(&all.lock);
    if (!is_empty)
        return false;
    interval_map_free(recorder->live);
    pthread_mutex_destroy(&recorder->lock);
    free(recorder);
    return true;
}

size_t recorder_count(void)
{
    pthread_mutex_lock(&all.lock);
    size_t count = all.count;
    pthread_mutex_unlock(&all.lock);
    return count;
}

PyDataMem_Handler *recorder_handler(struct recorder *recorder)
{
    return &recorder->handler;
}

struct recorder *recorder_of_handler(const PyDataMem_Handler *handler)
{
    pthread_mutex_lock(&all.lock);
    struct recorder *r = all.first;
    while (r != NULL && &r->handler != handler)
        r = r->next;
    pthread_mutex_unlock(&all.lock);
    return r;
}

const char *recorder_name(const struct recorder *recorder)
{
    return fmt("%.*s", (int)sizeof recorder->handler.name, recorder->handler.name);
}

struct recorder_counts recorder_counts(struct recorder *recorder)
{
    pthread_mutex_lock(&recorder->lock);
    struct recorder_counts counts = recorder->counts;
    counts.live_blocks = interval_map_count(recorder->live);
    pthread_mutex_unlock(&recorder->lock);
    return counts;
}

size_t recorder_notes(struct recorder *recorder, struct note *notes, size_t room)
{
    pthread_mutex_lock(&recorder->lock);
    size_t count = recorder->note_count < room ? recorder->note_count : room;
    memcpy(notes, recorder->notes, count * sizeof *notes);
    pthread_mutex_unlock(&recorder->lock);
    return count;
}

struct interval *recorder_live(struct recorder *recorder, size_t *count)
{
    pthread_mutex_lock(&recorder->lock);
    struct interval *live = interval_map_list(recorder->live);
    *count = interval_map_count(recorder->live);
    pthread_mutex_unlock(&recorder->lock);
    return live;
}

const char *note_kind_name(enum note_kind kind)
{
    static const char *const names[NOTE_KINDS] = {
        [NOTE_FOREIGN_FREE] = "foreign-free", [NOTE_FOREIGN_REALLOC] = "foreign-realloc",
        [NOTE_OTHERS_FREE] = "others-free",   [NOTE_OTHERS_REALLOC] = "others-realloc",
        [NOTE_WRONG_SIZE] = "wrong-size",     [NOTE_OVERLAPS] = "overlaps",
    };
    return names[kind];
}

const char *note_text(const struct note *note)
{
    const char *owner = escape(fmt("%.*s", (int)sizeof note->owner, note->owner));
    switch (note->kind) {
    case NOTE_FOREIGN_FREE:
        return fmt("free(%p, %zu) of a pointer that no handler gave", note->p, note->size);
    case NOTE_FOREIGN_REALLOC:
        return fmt("realloc(%p, %zu) of a pointer that no handler gave", note->p, note->size);
    case NOTE_OTHERS_FREE:
        return fmt("free(%p, %zu) of a block of %s's", note->p, note->size, owner);
    case NOTE_OTHERS_REALLOC:
        return fmt("realloc(%p, %zu) of a block of %s's", note->p, note->size, owner);
    case NOTE_WRONG_SIZE:
        return fmt("free(%p, %zu) of a block of %zu bytes", note->p, note->size, note->asked);
    case NOTE_OVERLAPS:
        return fmt("a block of %zu bytes at %p, which overlaps a live one of %zu", note->size,
                   note->p, note->asked);
    }
    return "";
}
