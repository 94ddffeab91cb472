/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making up histories of calls.
 */
#include "history.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define IS_WIDE (sizeof(void *) == 8)
#define CELL_BYTES ((uintptr_t)1 << (IS_WIDE ? 26 : 18))
#define CELL_ROOM (CELL_BYTES - 4096)
#define FIRST_CELL (IS_WIDE ? (uintptr_t)0x600000000000 : CELL_BYTES)

/* An array, twice that, and two factors for calloc: they fit into a cell. */
enum { MOST_ARRAY = IS_WIDE ? 1 << 20 : 1 << 16, MOST_ELSIZE = IS_WIDE ? 1000 : 3 };
enum { NO_CELL = HISTORY_CELLS, STEADY_ARRAYS = 1000 };

void history_begin(struct history *history, enum history_kind kind, uint64_t seed)
{
    *history = (struct history){.kind = kind, .temporary = NO_CELL};
    history->random = random_for(seed, "history");
}

static uint64_t below(struct history *history, uint64_t bound)
{
    return random_below(&history->random, bound);
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* Some address in a free cell. */
static const char *free_address(struct history *history)
{
    unsigned cell;
    do
        cell = (unsigned)below(history, HISTORY_CELLS);
    while (history->block[cell].p != NULL);
    return (const char *)(uintptr_t)(FIRST_CELL + cell * CELL_BYTES + 16 * below(history, 256));
}

uintptr_t history_cell(const char *p)
{
    return ((uintptr_t)p - FIRST_CELL) / CELL_BYTES;
}

static unsigned cell_of(const char *p)
{
    return (unsigned)history_cell(p);
}

static void take(struct history *history, const char *p, size_t size)
{
    unsigned cell = cell_of(p);
    history->block[cell] = (struct history_block){p, size};
    history->live[history->live_count++] = cell;
}

static void give(struct history *history, const char *p)
{
    unsigned cell = cell_of(p), at = 0;
    while (history->live[at] != cell)
        at++;
    history->live[at] = history->live[--history->live_count];
    history->block[cell].p = NULL;
}

static struct history_block any_block(struct history *history)
{
    return history->block[history->live[below(history, history->live_count)]];
}

/* ---- calls ---------------------------------------------------------------------------------- */

static void make(struct history *history, struct history_call *call, bool zeroed, size_t size)
{
    call->kind = zeroed ? STEP_CALLOC : STEP_MALLOC;
    call->size = call->nelem = size;
    call->elsize = 1;
    call->result = free_address(history);
    take(history, call->result, size);
}

static void resize(struct history *history, struct history_call *call, struct history_block block,
                   size_t size)
{
    call->kind = STEP_REALLOC;
    call->p = call->result = block.p;
    call->size = size;
    give(history, block.p);
    if (below(history, 2) == 0)
        call->result = free_address(history);
    take(history, call->result, size);
}

static void drop(struct history *history, struct history_call *call, struct history_block block)
{
    call->kind = STEP_FREE;
    call->p = block.p;
    call->size = block.size;
    give(history, block.p);
}

/* Elements of eight bytes: few of them mostly, now and then hundreds, and seldom very many. */
static size_t array_size(struct history *history)
{
    uint64_t dice = below(history, 1000);
    if (dice < 700)
        return 8 * (1 + below(history, 32));
    if (dice < 970)
        return 8 * (1 + below(history, 512));
    return dice < 999 ? 8 * (512 + below(history, 4096)) : 8 * (1 + below(history, MOST_ARRAY / 8));
}

/* Two of three calls are of a temporary that goes at once; about a thousand arrays stay. */
static void next_of_arrays(struct history *history, struct history_call *call)
{
    uint64_t dice = below(history, 1000);
    if (history->temporary != NO_CELL) {
        struct history_block block = history->block[history->temporary];
        history->temporary = NO_CELL;
        drop(history, call, block);
    } else if (dice < 500) {
        make(history, call, dice % 8 == 0, array_size(history));
        history->temporary = cell_of(call->result);
    } else if (dice < 530 && history->live_count > 8) {
        struct history_block block = any_block(history);
        resize(history, call, block,
               dice % 3 == 0 ? array_size(history) : block.size + block.size / 2 + 8);
        if (call->size > MOST_ARRAY) /* not for ever */
            history->block[cell_of(call->result)].size = call->size = 64;
    } else if (dice < 533) {
        call->kind = STEP_FREE;
        call->size = array_size(history);
    } else if (dice < 533 + 467 * (uint64_t)history->live_count / (2 * STEADY_ARRAYS)) {
        drop(history, call, any_block(history));
    } else {
        make(history, call, dice % 8 == 0, array_size(history));
    }
}

/* ---- anything ------------------------------------------------------------------------------- */

static size_t any_size(struct history *history)
{
    uint64_t dice = random_next(&history->random);
    switch (dice % 8) {
    case 0:
        return 0;
    case 1:
        return dice & 8 ? SIZE_MAX - (size_t)(dice >> 50) : (size_t)(dice >> 4);
    default:
        return (size_t)(dice >> 40 >> (dice >> 8) % 24);
    }
}

static void next_of_anything(struct history *history, struct history_call *call)
{
    bool few = history->live_count == 0, many = history->live_count > HISTORY_CELLS / 2;
    size_t size = any_size(history);
    uint64_t dice = below(history, 100);
    struct history_block block = few ? (struct history_block){NULL, 0} : any_block(history);
    if (dice < 45 && !many) {
        make(history, call, dice % 2, size % CELL_ROOM);
        if (dice % 5 == 1) { /* calloc's arguments any way round */
            call->nelem = below(history, 1 << 16);
            call->elsize = below(history, MOST_ELSIZE);
            history->block[cell_of(call->result)].size = call->nelem * call->elsize;
        }
    } else if (dice < 55) { /* refused */
        call->kind = dice % 3 == 0 ? STEP_MALLOC : dice % 3 == 1 ? STEP_CALLOC : STEP_REALLOC;
        call->size = call->nelem = size;
        call->elsize = any_size(history);
        call->p = call->kind == STEP_REALLOC ? block.p : NULL;
    } else if (dice < 65 && !few) {
        resize(history, call, block, size % CELL_ROOM);
    } else if (dice < 68 && !many) { /* of NULL, or of what nobody knows */
        call->kind = STEP_REALLOC;
        call->p = dice == 67 ? (const char *)0x1234 : NULL;
        call->size = size % CELL_ROOM;
        call->result = free_address(history);
        take(history, call->result, call->size);
    } else if (dice < 72 || few) {
        call->kind = STEP_FREE;
        call->p = dice % 2 == 0 ? (const char *)0x4321 : NULL;
        call->size = size;
    } else {
        drop(history, call, block);
        if (dice > 90)
            call->size = size;
    }
}

struct history_call history_next(struct history *history)
{
    struct history_call call = {.caller = {.gil = true}};
    uint64_t dice = below(history, 100);
    if (history->kind == HISTORY_ANYTHING) {
        call.caller.thread = (uint32_t)(dice < 20 ? random_next(&history->random) >> dice % 8 * 4
                                                  : history->time >> 12 & 3);
        call.caller.gil = dice > 30;
        history->time += below(history, 2000) - (dice == 50) * 5000;
        next_of_anything(history, &call);
    } else {
        history->time += 50 + below(history, 400);
        next_of_arrays(history, &call);
    }
    call.caller.time = history->time;
    history->calls++;
    return call;
}

void history_record(struct trace_writer *writer, const struct history_call *call)
{
    switch (call->kind) {
    case STEP_MALLOC:
        trace_malloc(writer, &call->caller, call->size, call->result);
        break;
    case STEP_CALLOC:
        trace_calloc(writer, &call->caller, call->nelem, call->elsize, call->result);
        break;
    case STEP_REALLOC:
        trace_realloc(writer, &call->caller, trace_give(writer, call->p), call->size, call->result);
        break;
    default:
        trace_free(writer, &call->caller, trace_give(writer, call->p), call->size);
        break;
    }
}

bool history_write(const char *path, enum history_kind kind, uint64_t seed, uint64_t calls)
{
    struct history history;
    char why[256];
    struct trace_writer *writer = trace_create(path, kind == HISTORY_ANYTHING, why, sizeof why);
    if (writer == NULL)
        return false;
    trace_note(writer, "command", "a made-up history");
    history_begin(&history, kind, seed);
    for (uint64_t i = 0; i < calls; i++) {
        struct history_call call = history_next(&history);
        if (kind == HISTORY_ANYTHING && i % 16 == 0)
            trace_begin_part(writer, "a made-up part");
        history_record(writer, &call);
    }
    return trace_close(writer, why, sizeof why);
}

char history_path[256];

void history_path_make(void)
{
    const char *folder = getenv("TMPDIR");
    snprintf(history_path, sizeof history_path, "%s/conform-trace-XXXXXX",
             folder != NULL ? folder : "/tmp");
    int fd = mkstemp(history_path);
    if (fd < 0)
        abort();
    close(fd);
}

void history_path_remove(void)
{
    unlink(history_path);
}
