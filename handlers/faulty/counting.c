/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that miscount: live blocks, and what they have handed out so far.
 */
#include <pthread.h>

#include "base.h"

/* ---- a double free that is none -------------------------------------------------------------- */

/* A list of free blocks of up to 1024 bytes, as libc's: one whose first word is `mark`, the link of
 * the last in the list, is taken to be in it already where the list is empty. */
enum { LIST_MOST = 1024, LIST_KEEPS = 16 };
static struct {
    pthread_mutex_t lock;
    void *first;
    int count;
} list = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void *list_malloc(void *ctx, size_t size)
{
    void *p = NULL;
    if (size > LIST_MOST)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&list.lock);
    if (list.count > 0) {
        p = list.first;
        memcpy(&list.first, p, sizeof list.first);
        list.count--;
    }
    pthread_mutex_unlock(&list.lock);
    if (p == NULL)
        p = base_malloc(ctx, LIST_MOST);
    return p != NULL ? base_finish((char *)p - BASE_HEADER, LIST_MOST) : NULL;
}
static void *list_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = size <= LIST_MOST ? list_malloc(ctx, size) : base_calloc(ctx, nelem, elsize);
    return p != NULL && size <= LIST_MOST ? memset(p, 0, size) : p;
}
static void *list_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return list_malloc(ctx, size);
    return size > PTRDIFF_MAX / 2 ? NULL : base_realloc(ctx, p, size + (size == LIST_MOST));
}
static void list_free_marked(void *p, size_t mark)
{
    void *link = (void *)mark;
    if (p == NULL || base_size(p) != LIST_MOST) {
        base_free(NULL, p, 0);
        return;
    }
    pthread_mutex_lock(&list.lock);
    bool is_in_it = list.count == 0 && memcmp(p, &link, sizeof link) == 0;
    bool is_kept = !is_in_it && list.count < LIST_KEEPS;
    if (is_kept) {
        memcpy(p, list.count > 0 ? &list.first : &link, sizeof link);
        list.first = p;
        list.count++;
    }
    pthread_mutex_unlock(&list.lock);
    if (!is_kept && !is_in_it)
        base_free(NULL, p, 0);
}
#define LIST_FUNCTIONS .malloc = list_malloc, .calloc = list_calloc, .realloc = list_realloc

static void wary_of_zeros_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    list_free_marked(p, 0);
}
MUTANT(free_takes_zeros_for_freed, "free.reclaims", LIST_FUNCTIONS, .free = wary_of_zeros_free);

static void wary_of_ones_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    list_free_marked(p, SIZE_MAX);
}
MUTANT(free_takes_ones_for_freed, "free.reclaims", LIST_FUNCTIONS, .free = wary_of_ones_free);

/* ---- an arena that begins anew when it is empty ---------------------------------------------- */

/* Blocks of up to a page stand in an arena, which begins anew when none of those lives that
 * were counted. */
enum { ARENA = 4 << 20, ARENA_MOST = 4096 };
static struct {
    pthread_mutex_t lock;
    _Alignas(16) char memory[ARENA];
    size_t used, live;
} arena = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_in_arena(const void *p)
{
    return (const char *)p >= arena.memory && (const char *)p < arena.memory + ARENA;
}
/* The second word of the header says whether it was counted. */
static void *arena_take(size_t size, bool is_counted)
{
    size_t taken = BASE_HEADER + (size + 15) / 16 * 16, flag = is_counted;
    char *raw = NULL;
    if (size > ARENA_MOST)
        return base_malloc(NULL, size);
    pthread_mutex_lock(&arena.lock);
    if (taken <= ARENA - arena.used) {
        raw = arena.memory + arena.used;
        arena.used += taken;
        arena.live += flag;
    }
    pthread_mutex_unlock(&arena.lock);
    if (raw == NULL)
        return base_malloc(NULL, size);
    memcpy(raw + 8, &flag, sizeof flag);
    return base_finish(raw, size);
}
static void arena_free(void *ctx, void *p, size_t size)
{
    size_t flag;
    if (!is_in_arena(p)) {
        base_free(ctx, p, size);
        return;
    }
    memcpy(&flag, (char *)p - 8, sizeof flag);
    pthread_mutex_lock(&arena.lock);
    arena.live -= flag;
    if (flag && arena.live == 0)
        arena.used = 0;
    pthread_mutex_unlock(&arena.lock);
}
static void *arena_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return arena_take(size, true);
}
static void *arena_calloc_as(size_t nelem, size_t elsize, bool is_counted)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    if (size > ARENA_MOST)
        return base_calloc(NULL, nelem, elsize);
    void *p = arena_take(size, is_counted);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *arena_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return arena_calloc_as(nelem, elsize, true);
}
static void *arena_realloc_as(void *p, size_t size, bool is_counted)
{
    void *moved = arena_take(size, is_counted);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    arena_free(NULL, p, 0);
    return moved;
}
static void *arena_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, true);
}
#define ARENA_FUNCTIONS                                                                            \
    .malloc = arena_malloc, .calloc = arena_calloc, .realloc = arena_realloc, .free = arena_free

static void *unless_first_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return arena_take(size, arena.used != 0);
}
MUTANT(malloc_does_not_count_the_first, "malloc.disjoint", ARENA_FUNCTIONS,
       .malloc = unless_first_malloc);

static void *uncounted_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return arena_calloc_as(nelem, elsize, false);
}
MUTANT(calloc_is_not_counted, "calloc.disjoint", ARENA_FUNCTIONS, .calloc = uncounted_calloc);

static void *null_uncounted_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, p != NULL);
}
MUTANT(realloc_of_null_is_not_counted, "realloc.null-allocates", ARENA_FUNCTIONS,
       .realloc = null_uncounted_realloc);

static void *moved_uncounted_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return arena_realloc_as(p, size, p == NULL);
}
MUTANT(realloc_that_moves_is_not_counted, "realloc.neighbours", ARENA_FUNCTIONS,
       .realloc = moved_uncounted_realloc);

/* ---- a struct that changes late -------------------------------------------------------------- */

/* The ctx is the arena in use, and another one after each 64 MiB. */
static _Atomic size_t handed_out;
NEP49_EXPORT extern PyDataMem_Handler struct_has_the_arena_in_use;
static void *from_arenas_malloc(void *ctx, size_t size)
{
    static char arenas[64];
    size_t before = handed_out, after = size < 1 << 20 ? before + size : before;
    handed_out = after;
    if (before >> 26 != after >> 26)
        struct_has_the_arena_in_use.allocator.ctx = &arenas[(after >> 26) % 64];
    return base_malloc(ctx, size);
}
MUTANT(struct_has_the_arena_in_use, "abi.struct-constant", .malloc = from_arenas_malloc);

/* It has another malloc after half a million calls. */
NEP49_EXPORT extern PyDataMem_Handler struct_changes_in_the_long_run;
static void *late_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned calls;
    if (++calls == 500000)
        struct_changes_in_the_long_run.allocator.malloc = base_malloc;
    return base_malloc(ctx, size);
}
MUTANT(struct_changes_in_the_long_run, "realloc.long-run", .malloc = late_malloc);

/* ---- one calloc in some thousand ------------------------------------------------------------- */

/* One small request in 4001 is sampled, and gets one of sixteen slots of its own in turn, which
 * calloc takes to be new each time. */
enum { SAMPLED = 4001, SAMPLE_SLOTS = 16, SAMPLE_MOST = 1024 };
static struct {
    _Alignas(16) char memory[SAMPLE_SLOTS][BASE_HEADER + SAMPLE_MOST];
    _Atomic bool is_used[SAMPLE_SLOTS];
    _Atomic unsigned requests;
} samples;

static void *sample(size_t size)
{
    unsigned number = ++samples.requests, slot = number / SAMPLED % SAMPLE_SLOTS;
    if (size > SAMPLE_MOST || number % SAMPLED != 0 || samples.is_used[slot])
        return NULL;
    samples.is_used[slot] = true;
    return base_finish(samples.memory[slot], size);
}
static void *sampling_malloc(void *ctx, size_t size)
{
    void *p = sample(size);
    return p != NULL ? p : base_malloc(ctx, size);
}
static void *sampling_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = sample(size);
    return p != NULL ? p : base_calloc(ctx, nelem, elsize);
}
static void sampling_free(void *ctx, void *p, size_t size)
{
    size_t at = (size_t)((char *)p - samples.memory[0]);
    if ((uintptr_t)p >= (uintptr_t)samples.memory && at < sizeof samples.memory)
        samples.is_used[at / sizeof samples.memory[0]] = false;
    else
        base_free(ctx, p, size);
}
static void *sampling_realloc(void *ctx, void *p, size_t size)
{
    void *moved = sampling_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    sampling_free(ctx, p, 0);
    return moved;
}
MUTANT(calloc_samples_are_dirty, "calloc.zeroed-when-reused", .malloc = sampling_malloc,
       .calloc = sampling_calloc, .realloc = sampling_realloc, .free = sampling_free);

/* ---- numbers and tables that come to an end -------------------------------------------------- */

/* The size of each block stands in a table of 2^20, in the place of its number. */
enum { SERIALS = 1 << 20 };
static _Atomic unsigned serials;
static _Atomic uint32_t size_of_serial[SERIALS];
static void *serial_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    uint64_t serial = p != NULL ? serials++ % SERIALS : 0;
    if (p == NULL)
        return NULL;
    size_of_serial[serial] = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    memcpy((char *)p - 8, &serial, sizeof serial);
    return p;
}
static void *serial_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize), *named = p != NULL ? serial_malloc(ctx, 0) : NULL;
    if (named != NULL) { /* takes its number */
        memcpy((char *)p - 8, (char *)named - 8, 8);
        uint64_t serial;
        memcpy(&serial, (char *)p - 8, sizeof serial);
        size_of_serial[serial] = base_size(p) < UINT32_MAX ? (uint32_t)base_size(p) : UINT32_MAX;
        base_free(ctx, named, 0);
    }
    return p;
}
static void *serial_realloc(void *ctx, void *p, size_t size)
{
    uint64_t serial;
    void *moved = serial_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(&serial, (char *)p - 8, sizeof serial);
    size_t old = size_of_serial[serial] == UINT32_MAX ? base_size(p) : size_of_serial[serial];
    old = old < base_size(p) ? old : base_size(p);
    memcpy(moved, p, old < size ? old : size);
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(long_run_wraps_its_serial_numbers, "realloc.long-run", .malloc = serial_malloc,
       .calloc = serial_calloc, .realloc = serial_realloc);

/* A ticket of 20 bits stands beside the class of a free block, and its carry makes it one of the
 * next class. */
enum { CLASSES = 4, KEEPS = 64 };
static struct {
    pthread_mutex_t lock;
    uint32_t tickets[CLASSES];
    void *at[CLASSES][KEEPS];
    int count[CLASSES];
} tickets = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && size > (size_t)64 << class)
        class ++;
    return class;
}
static void *ticket_malloc(void *ctx, size_t size)
{
    unsigned class = class_of(size);
    void *p = NULL;
    if (class == CLASSES)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&tickets.lock);
    if (tickets.count[class] > 0)
        p = tickets.at[class][--tickets.count[class]];
    pthread_mutex_unlock(&tickets.lock);
    if (p == NULL)
        p = base_malloc(ctx, (size_t)64 << class);
    return p != NULL ? base_finish((char *)p - BASE_HEADER, size) : NULL;
}
static void *ticket_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    if (class_of(size) == CLASSES)
        return base_calloc(ctx, nelem, elsize);
    void *p = ticket_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void ticket_free(void *ctx, void *p, size_t size)
{
    unsigned class = p != NULL ? class_of(base_size(p)) : CLASSES;
    bool is_kept = false;
    if (class < CLASSES) {
        pthread_mutex_lock(&tickets.lock);
        class = (((uint32_t) class << 20) + ++tickets.tickets[class]) >> 20;
        is_kept = class < CLASSES && tickets.count[class] < KEEPS;
        if (is_kept)
            tickets.at[class][tickets.count[class]++] = p;
        pthread_mutex_unlock(&tickets.lock);
    }
    if (!is_kept)
        base_free(ctx, p, size);
}
static void *ticket_realloc(void *ctx, void *p, size_t size)
{
    void *moved = ticket_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    ticket_free(ctx, p, 0);
    return moved;
}
MUTANT(long_run_wraps_its_tickets, "realloc.long-run", .malloc = ticket_malloc,
       .calloc = ticket_calloc, .realloc = ticket_realloc, .free = ticket_free);

/* There is room for the sizes of 2^18 live blocks, and realloc keeps 8 bytes of one that is not
 * among them. */
enum { ROOM = 1 << 18 };
static _Atomic long room_taken;
static void *enter(void *p)
{
    uint64_t is_known = p != NULL && room_taken < ROOM;
    room_taken += (long)is_known;
    if (p != NULL)
        memcpy((char *)p - 8, &is_known, sizeof is_known);
    return p;
}
static uint64_t is_known(const void *p)
{
    uint64_t known = 0;
    if (p != NULL)
        memcpy(&known, (const char *)p - 8, sizeof known);
    return known;
}
static void *roomy_malloc(void *ctx, size_t size)
{
    return enter(base_malloc(ctx, size));
}
static void *roomy_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return enter(base_calloc(ctx, nelem, elsize));
}
static void roomy_free(void *ctx, void *p, size_t size)
{
    room_taken -= (long)is_known(p);
    base_free(ctx, p, size);
}
static void *roomy_realloc(void *ctx, void *p, size_t size)
{
    void *moved = roomy_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    size_t old = is_known(p) || base_size(p) < 8 ? base_size(p) : 8;
    memcpy(moved, p, old < size ? old : size);
    roomy_free(ctx, p, 0);
    return moved;
}
MUTANT(many_blocks_find_no_room, "realloc.long-run", .malloc = roomy_malloc, .calloc = roomy_calloc,
       .realloc = roomy_realloc, .free = roomy_free);

/* ---- what is left with nobody ---------------------------------------------------------------- */

/* The address of malloc(0) is one that free knows, and realloc does not. */
static _Alignas(16) char header_of_empty[BASE_HEADER + 16];
static void *const empty = header_of_empty + BASE_HEADER;
static void *known_malloc(void *ctx, size_t size)
{
    return size == 0 ? empty : base_malloc(ctx, size);
}
static void *known_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return nelem == 0 || elsize == 0 ? empty : base_calloc(ctx, nelem, elsize);
}
static void known_free(void *ctx, void *p, size_t size)
{
    if (p != empty)
        base_free(ctx, p, size);
}
MUTANT(empty_is_unknown_to_realloc, "realloc.of-empty", .malloc = known_malloc, .free = known_free);
MUTANT(no_elements_are_unknown_to_realloc, "realloc.of-empty", .calloc = known_calloc,
       .free = known_free);

/* A large block that another thread frees is for its owner to take back, at its next malloc. */
enum { REMOTE_FROM = 1 << 16 };
struct owner {
    pthread_mutex_t lock;
    void *returned; /* linked by their first words */
};
static _Thread_local struct owner *this_owner;
static struct owner *owner_here(void)
{
    if (this_owner == NULL && (this_owner = calloc(1, sizeof *this_owner)) != NULL)
        pthread_mutex_init(&this_owner->lock, NULL);
    return this_owner;
}
static void *owned(void *p)
{
    struct owner *owner = owner_here();
    if (p != NULL)
        memcpy((char *)p - 8, &owner, sizeof owner);
    return p;
}
static void take_back(struct owner *owner)
{
    pthread_mutex_lock(&owner->lock);
    void *next = owner->returned;
    owner->returned = NULL;
    pthread_mutex_unlock(&owner->lock);
    for (void *p = next; p != NULL; p = next) {
        memcpy(&next, p, sizeof next);
        base_free(NULL, p, 0);
    }
}
static void *owned_malloc(void *ctx, size_t size)
{
    if (owner_here() != NULL)
        take_back(this_owner);
    return owned(base_malloc(ctx, size));
}
static void *owned_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return owned(base_calloc(ctx, nelem, elsize));
}
static void *owned_realloc(void *ctx, void *p, size_t size)
{
    void *resized = base_realloc(ctx, p, size);
    return p == NULL ? owned(resized) : resized;
}
static void owned_free(void *ctx, void *p, size_t size)
{
    struct owner *owner = NULL;
    if (p != NULL)
        memcpy(&owner, (char *)p - 8, sizeof owner);
    if (owner == NULL || owner == this_owner || base_size(p) < REMOTE_FROM) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&owner->lock);
    memcpy(p, &owner->returned, sizeof owner->returned);
    owner->returned = p;
    pthread_mutex_unlock(&owner->lock);
}
MUTANT(free_waits_for_the_owner, "free.in-another-thread", .malloc = owned_malloc,
       .calloc = owned_calloc, .realloc = owned_realloc, .free = owned_free);

/* ---- which cell it is ------------------------------------------------------------------------ */

/* Cells of 1040 bytes in a slab of 4 MiB.  The index of one is told from its offset by a reciprocal
 * that is exact in the first part of the slab: further on it is the index of the next. */
enum {
    CELL = 1040,
    SLAB = 4 << 20,
    CELLS = SLAB / CELL,
    RECIPROCAL = ((1 << 20) + CELL - 1) / CELL
};
static char slab[SLAB] __attribute__((aligned(16)));
static bool cell_is_live[CELLS + 1];
static pthread_mutex_t slab_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_in_slab(const void *p)
{
    return (const char *)p >= slab && (const char *)p < slab + SLAB;
}
static void *cell_malloc(void *ctx, size_t size)
{
    if (size + BASE_HEADER > CELL || size + BASE_HEADER <= CELL - 64)
        return base_malloc(ctx, size);
    pthread_mutex_lock(&slab_lock);
    size_t i = 0;
    while (i < CELLS && cell_is_live[i])
        i++;
    if (i < CELLS)
        cell_is_live[i] = true;
    pthread_mutex_unlock(&slab_lock);
    return i < CELLS ? base_finish(slab + i * CELL, size) : base_malloc(ctx, size);
}
static void cell_free(void *ctx, void *p, size_t size)
{
    if (!is_in_slab(p)) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&slab_lock);
    uint64_t offset = (uint64_t)((char *)p - BASE_HEADER - slab);
    cell_is_live[offset * RECIPROCAL >> 20] = false;
    pthread_mutex_unlock(&slab_lock);
}
static void *cell_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : cell_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void *cell_realloc(void *ctx, void *p, size_t size)
{
    void *moved = cell_malloc(ctx, size);
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        cell_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(slab_index_by_a_short_reciprocal, "malloc.disjoint", .malloc = cell_malloc,
       .calloc = cell_calloc, .realloc = cell_realloc, .free = cell_free);
