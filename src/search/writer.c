/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Steps, and the slots that they leave with a block.
 */
#include "search/writer.h"

#include <stdlib.h>

struct writer *writer_new(void)
{
    return calloc(1, sizeof(struct writer));
}

void writer_begin(struct writer *writer, struct step *steps, size_t room)
{
    writer->steps = steps;
    writer->room = room;
    writer->count = 0;
    writer->thread = 0;
    writer->told = TRUE_SIZE;
    writer->error = 0;
    writer->live_count = writer->empty_count = writer->slots = 0;
    writer->live_bytes = 0;
}

static bool append(struct writer *writer, struct step step)
{
    if (writer->count == writer->room)
        return false;
    step.thread = writer->thread;
    step.error = writer->error;
    if (step.times == 0)
        step.times = 1;
    writer->steps[writer->count++] = step;
    return true;
}

/* ---- slots ----------------------------------------------------------------------------------- */

static bool has_room(const struct writer *writer, size_t size)
{
    return writer->count < writer->room && size <= writer->most_bytes &&
           writer->live_bytes + size <= writer->most_bytes &&
           (writer->empty_count > 0 || writer->slots < MOST_SLOTS);
}

static uint32_t take_slot(struct writer *writer, uint64_t size)
{
    uint32_t slot =
        writer->empty_count > 0 ? writer->empty[--writer->empty_count] : writer->slots++;
    writer->place[slot] = writer->live_count;
    writer->live[writer->live_count++] = slot;
    writer->size[slot] = size;
    writer->live_bytes += size;
    return slot;
}

static void leave_slot(struct writer *writer, uint32_t slot)
{
    uint32_t last = writer->live[--writer->live_count];
    writer->live[writer->place[slot]] = last;
    writer->place[last] = writer->place[slot];
    writer->live_bytes -= writer->size[slot];
    writer->empty[writer->empty_count++] = slot;
}

uint32_t writer_any(struct writer *writer)
{
    return writer->live_count == 0
               ? NO_SLOT
               : writer->live[random_below(&writer->random, writer->live_count)];
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t make(struct writer *writer, enum step_kind kind, uint64_t first, uint64_t second,
                     size_t size)
{
    if (!has_room(writer, size))
        return NO_SLOT;
    uint32_t slot = take_slot(writer, size);
    append(writer,
           (struct step){.kind = (uint8_t)kind, .block = slot, .first = first, .second = second});
    return slot;
}

uint32_t write_malloc(struct writer *writer, size_t size)
{
    return make(writer, STEP_MALLOC, size, 0, size);
}

uint32_t write_calloc(struct writer *writer, size_t nelem, size_t elsize)
{
    return make(writer, STEP_CALLOC, nelem, elsize, nelem * elsize);
}

uint32_t write_zeroed(struct writer *writer, size_t size)
{
    static const uint8_t items[] = {1, 2, 3, 4, 8, 16, 24, 32, 40, 100};
    enum { ITEMS = sizeof items / sizeof *items, NONE = 32 };
    size_t item = items[random_below(&writer->random, ITEMS)];
    size_t nelem = size >= item ? size / item : 1, elsize = size >= item ? item : size;
    if (random_below(&writer->random, NONE) == 0)
        nelem = 0;
    return random_below(&writer->random, 2) == 0 ? write_calloc(writer, nelem, elsize)
                                                 : write_calloc(writer, elsize, nelem);
}

uint32_t write_by_realloc(struct writer *writer, size_t size)
{
    return make(writer, STEP_REALLOC, size, 0, size);
}

uint32_t write_made(struct writer *writer, size_t size)
{
    switch (random_below(&writer->random, 8)) {
    case 0:
        return write_calloc(writer, size, 1);
    case 1:
        return write_zeroed(writer, size);
    case 2:
        return write_by_realloc(writer, size);
    default:
        return write_malloc(writer, size);
    }
}

static void resize(struct writer *writer, uint32_t slot, size_t size, size_t counted)
{
    struct step step = {.kind = STEP_REALLOC, .block = slot, .first = size};
    if (!append(writer, step))
        return;
    writer->live_bytes += counted - writer->size[slot];
    writer->size[slot] = counted;
}

void write_realloc(struct writer *writer, uint32_t slot, size_t size)
{
    if (size <= writer->most_bytes && writer->live_bytes + size <= writer->most_bytes)
        resize(writer, slot, size, size);
}

void write_refused_realloc(struct writer *writer, uint32_t slot, size_t size)
{
    resize(writer, slot, size, writer->size[slot]);
}

/* Of huge blocks nothing is in the budget. */
uint32_t write_huge(struct writer *writer, size_t size, bool by_calloc)
{
    return make(writer, by_calloc ? STEP_CALLOC : STEP_MALLOC, size, by_calloc, 0);
}

void write_huge_realloc(struct writer *writer, uint32_t slot, size_t size)
{
    resize(writer, slot, size, 0);
}

/* What NumPy is known to say of a block of that size (docs/auditing.md): 1, of an array that became
 * empty; the size of 4096 items, of a text that was longer; that of the items so far, of an
 * iterator that ended in an exception; the latter two where an item has 1 to 16 bytes. */
static uint64_t numpys_size(struct random *random, uint64_t size)
{
    enum { CUT_ITEMS = 4096, ITEM_SIZES = 5 };
    uint64_t item = (uint64_t)1 << random_below(random, ITEM_SIZES);
    switch (random_below(random, 3)) {
    case 0:
        return size > CUT_ITEMS * item ? CUT_ITEMS * item : 1;
    case 1:
        return size > item ? item * (1 + random_below(random, size / item)) : 1;
    default:
        return 1;
    }
}

/* The size itself, one off, a part, more than it, or what no block can have. */
static uint64_t any_size(struct random *random, uint64_t size)
{
    enum { PAGE = 4096, WAYS = 9 };
    switch (random_below(random, WAYS)) {
    case 0:
        return 0;
    case 1:
        return size - 1;
    case 2:
        return size + 1;
    case 3:
        return size;
    case 4:
        return size + size / 2 + random_below(random, PAGE);
    case 5:
        return size + random_below(random, 2 * size + PAGE);
    case 6:
        return random_below(random, size + 1);
    case 7:
        return PTRDIFF_MAX - PAGE / 2 + random_below(random, PAGE);
    default:
        return SIZE_MAX - random_below(random, PAGE) * random_below(random, 2);
    }
}

void write_refused(struct writer *writer, enum step_kind kind, uint64_t first, uint64_t second)
{
    uint32_t slot = make(writer, kind, first, second, 0);
    if (slot != NO_SLOT)
        write_free(writer, slot);
}

void write_fill(struct writer *writer, uint32_t slot, uint64_t word, uint64_t words_before)
{
    append(writer,
           (struct step){.kind = STEP_FILL, .block = slot, .first = word, .second = words_before});
}

void write_lock(struct writer *writer, uint32_t slot)
{
    append(writer, (struct step){.kind = STEP_LOCK, .block = slot});
}

void write_free(struct writer *writer, uint32_t slot)
{
    struct step step = {.kind = STEP_FREE, .block = slot, .second = STEP_RIGHT_SIZE};
    uint64_t size = writer->size[slot];
    bool is_odd = writer->told != TRUE_SIZE && random_below(&writer->random, 2) == 0;
    if (is_odd && writer->told <= ANY_TOLD_SIZE) {
        step.second = 0;
        step.first = writer->told == ANY_TOLD_SIZE ? any_size(&writer->random, size)
                                                   : numpys_size(&writer->random, size);
    }
    if (append(writer, step))
        leave_slot(writer, slot);
    if (is_odd && writer->told == NULL_AS_WELL)
        write_other(writer, STEP_FREE_NULL, 0, 0);
    else if (is_odd && writer->told == NULL_OF_ANY_SIZE)
        write_other(writer, STEP_FREE_NULL, any_size(&writer->random, size), 0);
}

void write_temporaries(struct writer *writer, size_t size, size_t times, bool by_calloc)
{
    if (!has_room(writer, size))
        return;
    uint32_t slot = take_slot(writer, size);
    leave_slot(writer, slot);
    append(writer, (struct step){.kind = by_calloc ? STEP_CALLOC_FREE : STEP_MALLOC_FREE,
                                 .block = slot,
                                 .times = (uint32_t)times,
                                 .first = size,
                                 .second = by_calloc});
}

uint32_t write_batch(struct writer *writer, size_t size, size_t times, bool by_calloc)
{
    struct step step = {.kind = by_calloc ? STEP_CALLOC : STEP_MALLOC,
                        .block = writer->slots,
                        .times = (uint32_t)times,
                        .first = size,
                        .second = by_calloc};
    if (times > MOST_SLOTS - writer->slots ||
        size > (writer->most_bytes - writer->live_bytes) / times || !append(writer, step))
        return NO_SLOT;
    uint32_t had = writer->empty_count;
    writer->empty_count = 0; /* fresh slots alone follow each other */
    for (size_t i = 0; i < times; i++)
        take_slot(writer, size);
    writer->empty_count = had;
    return step.block;
}

static bool is_live(const struct writer *writer, uint32_t slot)
{
    return writer->place[slot] < writer->live_count && writer->live[writer->place[slot]] == slot;
}

void write_free_batch(struct writer *writer, uint32_t first, size_t times)
{
    struct step step = {
        .kind = STEP_FREE, .block = first, .times = (uint32_t)times, .second = STEP_RIGHT_SIZE};
    if (!append(writer, step))
        return;
    for (size_t i = 0; i < times; i++) {
        if (is_live(writer, first + (uint32_t)i))
            leave_slot(writer, first + (uint32_t)i);
    }
}

void write_realloc_batch(struct writer *writer, uint32_t first, size_t times, size_t size)
{
    struct step step = {
        .kind = STEP_REALLOC, .block = first, .times = (uint32_t)times, .first = size};
    size_t live = 0;
    for (size_t i = 0; i < times; i++)
        live += is_live(writer, first + (uint32_t)i);
    if (live < times || size > (writer->most_bytes - writer->live_bytes) / times ||
        !append(writer, step))
        return;
    for (size_t i = 0; i < times; i++) {
        writer->live_bytes += size - writer->size[first + i];
        writer->size[first + i] = size;
    }
}

void write_other(struct writer *writer, enum step_kind kind, uint64_t first, uint64_t second)
{
    append(writer, (struct step){.kind = (uint8_t)kind, .first = first, .second = second});
}
