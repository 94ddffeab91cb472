/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One step of a list: calls of the handler with what the model says of each, and what is no call.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/interval_map.h"
#include "search/execute.h"

/* For the search, which goes on from a list in which something is new. */
static void note(struct executing *e, unsigned kind, size_t size, uintptr_t before, const void *p)
{
#ifndef REPRODUCER
    if (e->novelty != NULL)
        novelty_of_call(e->novelty, kind, size, before, (uintptr_t)p);
#else
    (void)kind, (void)size, (void)before;
#endif
    if (p != NULL)
        e->last = (uintptr_t)p;
}

static inline void begin_call(struct executing *e)
{
    if (__builtin_expect(e->in_turn != 0, 0) && e->left-- == 0)
        steps_end_turn(e);
    uint64_t calls = atomic_load_explicit(&e->execution->calls, memory_order_relaxed) + 1;
    atomic_store_explicit(&e->execution->calls, calls, memory_order_relaxed);
    e->heap.call = calls;
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { MOST_SPENT = 384 << 20 };

static bool is_huge(const struct executing *e, size_t size)
{
    return e->options->huge && size >= STEPS_HUGE;
}

/* Nobody is asked for more than is to be live, but for what nobody can have; nor for so many large
 * blocks that a history is nothing but pages which the kernel clears.  Huge blocks do not count, as
 * few of their pages are touched. */
static bool may_ask(struct executing *e, size_t size)
{
    enum { LARGE = 1 << 14 };
    if (heap_is_impossible(size) || e->options->most_bytes == SIZE_MAX)
        return true;
    if (is_huge(e, size) || size + e->heap.live_bytes - e->huge_bytes > e->options->most_bytes ||
        (size > LARGE && e->spent > MOST_SPENT))
        return false;
    e->spent += size > LARGE ? size : 0;
    return true;
}

/* No more than `kept` bytes of it are to be copied. */
static bool may_be_huge(const struct executing *e, size_t size, size_t kept)
{
    enum { MOST_KEPT = 1 << 24 };
    const uint64_t asked = size; /* where size_t has 32 bits, none is too much */
    return is_huge(e, size) && asked < STEPS_MOST_HUGE / 8 * 9 && kept <= MOST_KEPT &&
           e->huge_bytes < STEPS_MOST_HUGE;
}

/* What may be zeroed byte by byte is not for many: for one that is very large. */
static bool may_be_huge_and_zero(struct executing *e, size_t size)
{
    if (!may_be_huge(e, size, 0) || e->zeroed > MOST_SPENT)
        return false;
    e->zeroed += size;
    return true;
}

static void count_huge(struct executing *e, size_t more, size_t less)
{
    e->huge_bytes += is_huge(e, more) ? more : 0;
    e->huge_bytes -= is_huge(e, less) ? less : 0;
}

/* That a handler fills what it takes back, or clears what it gives, is its right, and takes time.
 * In a thread of several nobody is told: they have no huge blocks. */
static void may_touch(struct executing *e, size_t size)
{
    bool may = is_huge(e, size) && !heap_is_impossible(size);
    atomic_store_explicit(&e->execution->huge, may ? size : 0, memory_order_relaxed);
}

/* Pages of this process were locked into memory.  mremap refuses a range of which a part is locked,
 * also after the block that was there is gone. */
static bool has_locked;

/* False if this process may be the cause of a refusal: its address-space limit leaves less than
 * glibc maps for a new arena (128 MiB). */
static bool has_room(const struct executing *e, size_t size)
{
    enum { ARENA = 128 << 20 };
    return e->room.rlim_cur == RLIM_INFINITY ||
           steps_bytes(false) + size + ARENA <= e->room.rlim_cur;
}

static bool refused(struct executing *e, size_t size)
{
    return size == 0 || heap_is_impossible(size) || !has_room(e, size) ||
           heap_refused(&e->heap, size);
}

static bool made(struct executing *e, uint32_t slot, enum step_kind by, void *p, size_t size)
{
    note(e, by, size, e->last, p);
    if (p == NULL)
        return refused(e, size);
    count_huge(e, size, 0);
    return heap_made(&e->heap, slot, ++e->numbers, by, p, size);
}

static bool do_malloc(struct executing *e, uint32_t slot, size_t size)
{
    const PyDataMemAllocator *a = e->allocator;
    if (e->heap.block[slot].p != NULL || (!may_ask(e, size) && !may_be_huge(e, size, 0)))
        return true;
    begin_call(e);
    return made(e, slot, STEP_MALLOC, a->malloc(a->ctx, size), size);
}

static bool do_calloc(struct executing *e, uint32_t slot, size_t nelem, size_t elsize)
{
    const PyDataMemAllocator *a = e->allocator;
    size_t size = heap_product(nelem, elsize);
    if (e->heap.block[slot].p != NULL || (!may_ask(e, size) && !may_be_huge_and_zero(e, size)))
        return true;
    begin_call(e);
    may_touch(e, size);
    void *p = a->calloc(a->ctx, nelem, elsize);
    may_touch(e, 0);
    if (size == SIZE_MAX && !heap_overflowed(&e->heap, p))
        return false;
    return made(e, slot, STEP_CALLOC, p, size);
}

static bool do_realloc(struct executing *e, uint32_t slot, size_t size)
{
    const PyDataMemAllocator *a = e->allocator;
    unsigned char *before = e->heap.block[slot].p;
    size_t old = before != NULL ? e->heap.block[slot].size : 0;
    if (!may_ask(e, size) && !may_be_huge(e, size, old))
        return true;
    begin_call(e);
    if (before == NULL)
        return made(e, slot, STEP_REALLOC, a->realloc(a->ctx, NULL, size), size);
    if (!heap_will_resize(&e->heap, slot, size))
        return false;
    may_touch(e, old);
    void *p = a->realloc(a->ctx, before, size);
    may_touch(e, 0);
    note(e, STEP_FREE, size, (uintptr_t)before, p);
    if (p != NULL) {
        count_huge(e, size, old);
        return heap_resized(&e->heap, slot, p, size);
    }
    return heap_kept(&e->heap, slot, size) && (has_locked || refused(e, size));
}

static bool do_free(struct executing *e, uint32_t slot, const struct step *step)
{
    const PyDataMemAllocator *a = e->allocator;
    struct heap_block block = e->heap.block[slot];
    if (block.p == NULL)
        return true;
    begin_call(e);
    if (!heap_will_free(&e->heap, slot))
        return false;
    count_huge(e, 0, block.size);
    may_touch(e, block.size);
    a->free(a->ctx, block.p, step->second == STEP_RIGHT_SIZE ? block.size : (size_t)step->first);
    may_touch(e, 0);
    return heap_freed(&e->heap);
}

static bool do_free_null(struct executing *e, size_t size)
{
    const PyDataMemAllocator *a = e->allocator;
    begin_call(e);
    heap_set_error(&e->heap);
    a->free(a->ctx, NULL, size);
    return heap_freed(&e->heap);
}

/* ---- what is no call ------------------------------------------------------------------------- */

size_t steps_bytes(bool resident)
{
    size_t pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &pages[0], &pages[1]) != 2)
        pages[0] = pages[1] = 0;
    if (file != NULL)
        fclose(file);
    return pages[resident] * (size_t)sysconf(_SC_PAGESIZE);
}

void steps_limit(struct executing *e, size_t room)
{
    struct rlimit limit = e->room;
    size_t mapped = room != 0 ? steps_bytes(false) : 0;
    if (room != 0 && (mapped == 0 || !interval_map_reserve(e->heap.map, e->heap.room)))
        return;
    if (room != 0)
        limit.rlim_cur = mapped + room;
    e->heap.is_limited = (setrlimit(RLIMIT_AS, &limit) == 0 && room != 0) || e->options->may_refuse;
}

static void refuse(struct executing *e, const struct step *step)
{
    if (e->options->refuse == NULL)
        return;
    e->options->refuse((size_t)step->first, (enum refusal)step->second);
    e->heap.is_limited = step->first != 0 || e->options->may_refuse;
}

static void fill(struct executing *e, const struct step *step, uint32_t slot)
{
    uint64_t word = step->first;
    uintptr_t before = e->last - (uintptr_t)step->second * sizeof word;
    struct iovec here = {&word, sizeof word}, there = {(void *)before, sizeof word};
    if (e->heap.block[slot].p == NULL)
        return;
    if (step->second != 0) /* by the kernel, because it may be nobody's memory */
        (void)!process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    heap_refill(&e->heap, slot, word);
}

/* A handler that acts when a time has passed cannot tell a clock that jumps from one that goes. */
static void pause_for(struct executing *e, size_t milliseconds)
{
    enum { SECOND = 1000 };
    if (e->options->jump != NULL && milliseconds >= SECOND) {
        e->options->jump((unsigned)(milliseconds / SECOND + 1));
        return;
    }
    e->execution->pause = milliseconds;
    nanosleep(
        &(struct timespec){(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000},
        NULL);
    e->execution->pause = 0;
}

static unsigned side_of(const struct executing *e)
{
    return (unsigned)(e->execution - e->all->side);
}

/* Until the other process is gone, or takes more than a second. */
static void wait_for_turn(struct executing *e)
{
    enum { YIELDS = 100, TRIES = 10000 };
    static const struct timespec a_while = {0, 100000};
    const struct execution *other = &e->all->side[e->is_child ? 0 : e->forks];
    for (int i = 0; e->all->turn != side_of(e) && e->in_turn != 0; i++) {
        if (other->state != EXECUTION_UNDER_WAY || i == TRIES)
            e->in_turn = 0;
        else if (i < YIELDS)
            sched_yield();
        else
            nanosleep(&a_while, NULL);
    }
    e->left = e->in_turn;
}

void steps_end_turn(struct executing *e)
{
    if (e->in_turn == 0)
        return;
    e->all->turn = e->is_child ? 0 : e->forks;
    wait_for_turn(e);
}

/* A forked process that makes its calls in turn fills blocks with other bytes than the first one.
 */
static void begin_process(struct executing *e, struct execution *side)
{
    e->is_child = true;
    e->execution = side;
    uint64_t number = (uint64_t)side_of(e) << 32;
    e->numbers |= e->in_turn != 0 ? number : 0;
    for (uint32_t slot = 0; slot < e->heap.room && e->in_turn != 0; slot++) {
        struct heap_block *block = &e->heap.block[slot];
        block->number = (block->number & UINT32_MAX) | number;
        if (block->p != NULL)
            fill_write(block->p, block->size, &e->heap.rules.fill, block->number);
    }
    wait_for_turn(e);
}

/* From here on two processes do what is left, each with memory of its own.  The new one has but the
 * thread that forks: that has to be the first. */
static void split(struct executing *e, const struct step *step)
{
    if (e->is_child || e->forks == MOST_FORKS || step->thread != 0)
        return;
    struct execution *side = &e->all->side[1 + e->forks];
    side->at = e->execution->at;
    side->calls = e->execution->calls;
    side->state = EXECUTION_UNDER_WAY;
    e->in_turn = e->left = (size_t)step->first;
    e->all->turn = 0;
    pid_t pid = fork();
    if (pid == 0) {
        begin_process(e, side);
    } else if (pid < 0) {
        side->state = EXECUTION_NONE;
        e->in_turn = 0;
    } else {
        e->children[e->forks++] = pid;
    }
}

static bool is_utf8(const unsigned char *p)
{
    while (*p != '\0') {
        int more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : 3;
        if (*p >= 0xf5 || (*p >= 0x80 && *p < 0xc2) || (*p == 0xe0 && p[1] < 0xa0) ||
            (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] >= 0x90))
            return false;
        for (p++; more > 0; more--, p++) {
            if ((*p & 0xc0) != 0x80)
                return false;
        }
    }
    return true;
}

static bool look_at_struct(struct executing *e)
{
    const PyDataMem_Handler *handler = e->options->rules.watched;
    const PyDataMemAllocator *a = e->allocator;
    bool ends = memchr(handler->name, '\0', sizeof handler->name) != NULL;
    enum heap_rule rule =
        a->malloc == NULL || a->calloc == NULL || a->realloc == NULL || a->free == NULL
            ? HEAP_FUNCTIONS_PRESENT
        : !ends                                          ? HEAP_NAME_TERMINATED
        : !is_utf8((const unsigned char *)handler->name) ? HEAP_NAME_UTF8
        : handler->version != 1                          ? HEAP_VERSION
                                                         : HEAP_NO_RULE;
    return rule == HEAP_NO_RULE || heap_violated(&e->heap, rule, "%s", "the struct is wrong");
}

static bool ask_getter(struct executing *e)
{
    const char *why = NULL;
    begin_call(e);
    return (e->options->getter == NULL || e->options->getter(&why) == e->options->rules.watched ||
            heap_violated(&e->heap, HEAP_GETTER_STABLE, "%s", "it is another one")) &&
           heap_state_holds(&e->heap);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool do_pair(struct executing *e, const struct step *step)
{
    static const struct step right = {.second = STEP_RIGHT_SIZE};
    bool good = step->kind == STEP_MALLOC_FREE
                    ? do_malloc(e, step->block, step->first)
                    : do_calloc(e, step->block, step->first, step->second);
    return good && do_free(e, step->block, &right);
}

static bool do_once(struct executing *e, const struct step *step, uint32_t slot)
{
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
        return do_malloc(e, slot, step->first);
    case STEP_CALLOC:
        return do_calloc(e, slot, step->first, step->second);
    case STEP_REALLOC:
        return do_realloc(e, slot, step->first);
    case STEP_FREE:
        return do_free(e, slot, step);
    case STEP_MALLOC_FREE:
    case STEP_CALLOC_FREE:
        return do_pair(e, step);
    case STEP_FREE_NULL:
        return do_free_null(e, step->first);
    case STEP_LIMIT:
        steps_limit(e, step->thread == 0 ? step->first : 0);
        return true;
    case STEP_LOCK:
        if (e->heap.block[slot].p != NULL)
            has_locked |= mlock(e->heap.block[slot].p, e->heap.block[slot].size) == 0;
        return true;
    case STEP_REFUSE:
        refuse(e, step);
        return true;
    case STEP_PAUSE:
        pause_for(e, step->first);
        return true;
    case STEP_FORK:
        split(e, step);
        return true;
    case STEP_FILL:
        fill(e, step, slot);
        return true;
    case STEP_ASK_GETTER:
        return ask_getter(e);
    case STEP_LOOK_AT_STRUCT:
        return look_at_struct(e);
    case STEP_STOP: /* for interleaved.c */
    case OUTSIDE:
        break;
    }
    return true;
}

/* Called for the blocks of a step that makes many. */
static bool has_memory(struct executing *e, uint32_t block)
{
    enum { LOOK_EVERY = 1024 };
    if (block % LOOK_EVERY == LOOK_EVERY - 1 && e->options->most_resident != 0)
        e->heap.no_memory = steps_bytes(true) > e->options->most_resident;
    return !e->heap.no_memory;
}

bool steps_do(struct executing *e, const struct step *step)
{
    enum { MOST_REFUSED = 16 }; /* after which all blocks of that size would be */
    for (uint32_t i = 0, refused = 0; i < step->times && refused < MOST_REFUSED; i++) {
        uint32_t slot = step->block + i;
        if (step->error != 0)
            errno = step->error;
        if (!has_memory(e, i) || !do_once(e, step, slot))
            return false;
        refused += step->kind == STEP_MALLOC && e->heap.block[slot].p == NULL;
    }
    return true;
}
