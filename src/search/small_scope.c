/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counting in a number system in which each digit is a call, and has as many values as there are
 * calls that make sense behind those before it.
 */
#include "search/generators.h"

enum {
    MAKERS = 3,
    MAKINGS = MAKERS * SMALL_SIZES,
    OF_BLOCK = SMALL_SIZES + 1, /* realloc to each size, and free */
};

static unsigned choices(unsigned live)
{
    unsigned count = 0;
    for (unsigned slot = 0; slot < SMALL_SLOTS; slot++)
        count += (live >> slot & 1) * OF_BLOCK;
    return count + (live + 1 < 1u << SMALL_SLOTS ? MAKINGS : 0);
}

static struct step making(const struct small_scope *scope, unsigned choice, uint32_t slot)
{
    unsigned kind = STEP_MALLOC + choice / SMALL_SIZES; /* to STEP_REALLOC */
    return (struct step){.kind = (uint8_t)kind,
                         .block = slot,
                         .times = 1,
                         .first = scope->size[choice % SMALL_SIZES],
                         .second = kind == STEP_CALLOC};
}

static struct step freeing(uint32_t slot)
{
    return (struct step){.kind = STEP_FREE, .block = slot, .times = 1, .second = STEP_RIGHT_SIZE};
}

/* The call of that number, of those that make sense; `live` is a bit for each slot. */
static struct step call(const struct small_scope *scope, unsigned choice, unsigned *live)
{
    uint32_t slot = 0;
    if (*live + 1 < 1u << SMALL_SLOTS) {
        while (*live >> slot & 1)
            slot++;
        if (choice < MAKINGS) {
            *live |= 1u << slot;
            return making(scope, choice, slot);
        }
        choice -= MAKINGS;
    }
    for (slot = 0; (*live >> slot & 1) == 0 || choice >= OF_BLOCK; slot++)
        choice -= (*live >> slot & 1) * OF_BLOCK;
    if (choice < SMALL_SIZES)
        return (struct step){
            .kind = STEP_REALLOC, .block = slot, .times = 1, .first = scope->size[choice]};
    *live &= ~(1u << slot);
    return freeing(slot);
}

/* All of so many calls are written, and all choices are back at the first. */
static void end_length(struct small_scope *scope)
{
    scope->whole = scope->calls;
    scope->is_done = scope->calls == scope->most;
    scope->calls += !scope->is_done;
}

/* Writes the next one, or goes past it where it is another's. */
static size_t write_next(struct small_scope *scope, struct step *steps)
{
    unsigned live = 0, had[MOST_SMALL_CALLS];
    size_t count = 0;
    bool is_ours = scope->number++ % scope->parts == scope->part;
    for (unsigned i = 0; i < scope->calls; i++) {
        had[i] = choices(live);
        steps[count++] = call(scope, scope->choice[i], &live);
    }
    for (uint32_t slot = 0; slot < SMALL_SLOTS; slot++) {
        if (live >> slot & 1)
            steps[count++] = freeing(slot);
    }
    unsigned digit = scope->calls;
    while (digit > 0 && ++scope->choice[digit - 1] == had[digit - 1])
        scope->choice[--digit] = 0;
    scope->written += is_ours;
    if (digit == 0)
        end_length(scope);
    return is_ours ? count : 0;
}

size_t small_scope_write(struct small_scope *scope, struct step *steps, size_t room)
{
    size_t count = 0;
    while (!scope->is_done && count + MOST_SMALL_CALLS + SMALL_SLOTS <= room)
        count += write_next(scope, steps + count);
    return count;
}
