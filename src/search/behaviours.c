/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The behaviours, a function each.
 */
#include "search/behaviours.h"

#include <sys/param.h>

enum { SIZES = 6, MIB = 1 << 20 };

/* A history has few sizes, so that its blocks meet those of their own kind; or any, as large ones
 * as small ones, so that they leave gaps of all lengths. */
struct mood {
    struct writer *writer;
    size_t sizes[SIZES];
    size_t count;
    unsigned any_log2; /* 0: few; or from 1 to so many powers of two */
    const struct behaviour_options *options;
};

static size_t below(struct mood *mood, size_t bound)
{
    return (size_t)random_below(&mood->writer->random, bound);
}

static size_t a_size(struct mood *mood)
{
    if (mood->any_log2 != 0) {
        size_t power = (size_t)1 << below(mood, mood->any_log2);
        return power + below(mood, power);
    }
    if (below(mood, 16) == 0)
        return palette_neighbour(mood->writer->palette, &mood->writer->random,
                                 mood->sizes[below(mood, mood->count)]);
    return mood->sizes[below(mood, mood->count)];
}

/* How many: a power of two, or one beside it, or anything near. */
static size_t a_number(struct mood *mood, unsigned most_log2)
{
    size_t power = (size_t)1 << below(mood, most_log2 + 1);
    switch (below(mood, 5)) {
    case 0:
        return power;
    case 1:
        return power + 1;
    case 2:
        return power > 1 ? power - 1 : 1;
    default:
        return power + below(mood, power);
    }
}

/* ---- long lives and short ----------------------------------------------------------------------
 */

static void churn(struct mood *mood)
{
    struct writer *writer = mood->writer;
    size_t target = a_number(mood, 8), steps = MIN(a_number(mood, 12), writer_left(writer));
    for (size_t i = 0; i < steps; i++) {
        bool makes = writer->live_count < target || below(mood, 8) == 0;
        uint32_t slot = writer_any(writer);
        if (makes && below(mood, 2) == 0)
            write_made(writer, a_size(mood));
        else if (slot == NO_SLOT)
            write_made(writer, a_size(mood));
        else if (below(mood, 3) == 0)
            write_realloc(writer, slot, a_size(mood));
        else
            write_free(writer, slot);
    }
}

/* Sometimes by the hundred thousand, as counters wrap: then they are small. */
static void temporaries(struct mood *mood)
{
    enum { SMALL = 512, MOST_LOG2 = 17 };
    size_t size = a_size(mood);
    bool many = size <= SMALL && !mood->options->is_brief && below(mood, 8) == 0;
    write_temporaries(mood->writer, size, a_number(mood, many ? MOST_LOG2 : 8),
                      below(mood, 3) == 0);
}

/* ---- caches ---------------------------------------------------------------------------------- */

enum { MOST_FILL = 1 << 17 };
enum order { LIFO, FIFO, EVERY_OTHER, ANY_ORDER, ORDERS };

/* The index in a row of `count` of which `done` are gone. */
static void shuffle(struct mood *mood, uint32_t *slots, size_t count, enum order order)
{
    for (size_t i = 0; i < count / 2 && order == LIFO; i++) {
        uint32_t other = slots[i];
        slots[i] = slots[count - 1 - i];
        slots[count - 1 - i] = other;
    }
    for (size_t i = count; i > 1 && order == ANY_ORDER; i--) {
        size_t k = below(mood, i);
        uint32_t other = slots[i - 1];
        slots[i - 1] = slots[k];
        slots[k] = other;
    }
}

static void free_in_order(struct mood *mood, uint32_t *slots, size_t count, enum order order)
{
    shuffle(mood, slots, count, order);
    for (size_t i = 0; i < count; i++) {
        if (order != EVERY_OTHER || i % 2 == 0)
            write_free(mood->writer, slots[i]);
    }
    for (size_t i = 1; i < count && order == EVERY_OTHER && below(mood, 8) != 0; i += 2)
        write_free(mood->writer, slots[i]);
}

/* Thousands of one class, made, freed in some order, and made again. */
static void fill_and_drain(struct mood *mood)
{
    static uint32_t slots[MOST_FILL];
    struct writer *writer = mood->writer;
    size_t size = a_size(mood), wanted = a_number(mood, below(mood, 6) == 0 ? 17 : 10);
    size_t rounds = 1 + below(mood, 4);
    for (size_t round = 0; round < rounds && writer_left(writer) > 2 * wanted; round++) {
        size_t count = 0;
        bool by_calloc = below(mood, 4) == 0;
        for (; count < MIN(wanted, (size_t)MOST_FILL); count++) {
            slots[count] = by_calloc ? write_calloc(writer, size, 1) : write_malloc(writer, size);
            if (slots[count] == NO_SLOT)
                break;
        }
        if (round + 1 == rounds && below(mood, 2) == 0)
            return;
        free_in_order(mood, slots, count, (enum order)below(mood, ORDERS));
        wanted = below(mood, 3) == 0 ? wanted + 1 : wanted;
    }
}

/* ---- crowds ---------------------------------------------------------------------------------- */

struct crowd {
    uint32_t first; /* slot, or NO_SLOT */
    size_t size, times;
};

/* A few of them go, come back, or are resized. */
static void stir(struct mood *mood, const struct crowd *crowd)
{
    struct writer *writer = mood->writer;
    size_t times = a_number(mood, 5);
    for (size_t i = 0; i < times; i++) {
        uint32_t slot = writer_any(writer);
        if (slot != NO_SLOT && below(mood, 4) == 0)
            write_realloc(writer, slot, below(mood, 2) == 0 ? crowd->size : a_size(mood));
        else if (slot != NO_SLOT && below(mood, 2) == 0)
            write_free(writer, slot);
        else
            write_made(writer, crowd->size);
    }
}

static struct crowd a_crowd(struct mood *mood, bool many)
{
    enum { LARGEST = 64 << 10, TINY = 64, MOST_LOG2 = 12, MANY_LOG2 = 16 };
    size_t size = a_size(mood), power = (size_t)1 << (MANY_LOG2 - below(mood, 4));
    if (many)
        return (struct crowd){NO_SLOT, size % TINY + 1,
                              power + below(mood, below(mood, 2) == 0 ? 4 : power)};
    size = size > LARGEST ? size % LARGEST + 1 : size;
    return (struct crowd){NO_SLOT, size,
                          MIN(a_number(mood, MOST_LOG2), (size_t)16 * MIB / (size + 1) + 1)};
}

/* Up to a hundred thousand live of a class or two, that come and go as a whole. */
static void crowds(struct mood *mood)
{
    enum { CROWDS = 3 };
    struct writer *writer = mood->writer;
    struct crowd at[CROWDS];
    bool many = !mood->options->is_brief && below(mood, 4) == 0;
    for (size_t i = 0; i < CROWDS; i++)
        at[i] = a_crowd(mood, many && below(mood, 2) == 0);
    for (size_t i = 0, turns = 2 + below(mood, 10); i < turns; i++) {
        struct crowd *crowd = &at[below(mood, CROWDS)];
        size_t what = below(mood, 8);
        if (crowd->first == NO_SLOT)
            crowd->first = write_crowd(writer, crowd->size, crowd->times, below(mood, 4) == 0);
        else if (what < 3)
            stir(mood, crowd);
        else if (what < 5)
            write_realloc_crowd(writer, crowd->first, crowd->times,
                                below(mood, 2) == 0 ? crowd->size + 1 : a_size(mood));
        else {
            write_free_crowd(writer, crowd->first, crowd->times);
            crowd->first = NO_SLOT;
        }
    }
}

/* One size after the other, a few of them live at a time: where a single one is wrong. */
static void sweep(struct mood *mood)
{
    enum { FROM = 8192, LIVE = 4 };
    struct writer *writer = mood->writer;
    uint32_t slots[LIVE] = {NO_SLOT, NO_SLOT, NO_SLOT, NO_SLOT};
    size_t from = below(mood, 4) == 0 ? a_size(mood) : 1 + below(mood, FROM);
    size_t times = a_number(mood, 10);
    for (size_t i = 0; i < times + LIVE; i++) {
        uint32_t *slot = &slots[i % LIVE];
        if (*slot != NO_SLOT)
            write_free(writer, *slot);
        *slot = i < times ? write_made(writer, from + i) : NO_SLOT;
    }
}

/* What was freed comes back zeroed, and for another size. */
static void recycle_by_calloc(struct mood *mood)
{
    struct writer *writer = mood->writer;
    size_t size = a_size(mood), times = a_number(mood, 5);
    for (size_t i = 0; i < times; i++) {
        uint32_t slot = write_malloc(writer, size);
        if (slot == NO_SLOT)
            return;
        if (below(mood, 3) == 0)
            write_realloc(writer, slot, a_size(mood));
        write_free(writer, slot);
        size_t other = below(mood, 2) == 0 ? size : a_size(mood), elsize = 1 + below(mood, 16);
        write_calloc(writer, below(mood, 2) == 0 ? other : MAX(other / elsize, (size_t)1),
                     below(mood, 2) == 0 ? 1 : elsize);
    }
}

/* ---- one block that is resized -----------------------------------------------------------------
 */

static size_t longer(struct mood *mood, size_t size, size_t way)
{
    switch (way) {
    case 0:
        return size + 1;
    case 1:
        return size + 8 * (1 + below(mood, 16));
    case 2:
        return size + size / 8 + 16;
    case 3:
        return size + size / 2 + 1;
    default:
        return size + 1 + below(mood, 4096);
    }
}

static size_t shorter(struct mood *mood, size_t size, size_t way)
{
    size_t by = longer(mood, size, way) - size;
    return size > by ? size - by : 1;
}

/* Hundreds of steps on one block, with neighbours that come and go. */
static void chain(struct mood *mood)
{
    struct writer *writer = mood->writer;
    size_t size = a_size(mood), way = below(mood, 5), steps = a_number(mood, 8);
    size_t most = MIN(writer->most_bytes / 4, (size_t)(below(mood, 8) == 0 ? 64 : 2) * MIB);
    bool grows = below(mood, 2) == 0;
    uint32_t slot = write_made(writer, size);
    for (size_t i = 0; i < steps && slot != NO_SLOT; i++) {
        size = grows ? longer(mood, size, way) : shorter(mood, size, way);
        if (size > most || size <= 1)
            grows = !grows;
        write_realloc(writer, slot, MIN(size, most));
        size = MIN(size, most);
        if (below(mood, 4) == 0)
            write_made(writer, a_size(mood));
        if (below(mood, 8) == 0 && writer_any(writer) != slot) {
            uint32_t other = writer_any(writer);
            if (other != slot)
                write_free(writer, other);
        }
        if (below(mood, 64) == 0)
            grows = !grows;
    }
    if (slot != NO_SLOT && below(mood, 2) == 0)
        write_free(writer, slot);
}

/* So often that a counter of 16 bits wraps, where there is room for that. */
static void resize_often(struct mood *mood)
{
    enum { LARGEST = 4096, OFTEN = 1 << 16, MORE = 1 << 12 };
    struct writer *writer = mood->writer;
    size_t a = a_size(mood) % LARGEST + 1, b = a_size(mood) % LARGEST + 1;
    bool has_room = writer_left(writer) > OFTEN + MORE && !mood->options->is_brief;
    size_t steps = has_room ? OFTEN + below(mood, MORE) : a_number(mood, 9);
    uint32_t slot = write_made(writer, a);
    for (size_t i = 0; i < steps && slot != NO_SLOT; i++)
        write_realloc(writer, slot, i % 2 == 0 ? b : a);
    if (slot != NO_SLOT && below(mood, 2) == 0)
        write_free(writer, slot);
}

/* Back and forth between two sizes, for all of a row. */
static void resize_all(struct mood *mood)
{
    struct writer *writer = mood->writer;
    size_t a = a_size(mood), b = a_size(mood),
           count = MIN((size_t)writer->live_count, a_number(mood, 9));
    for (size_t i = 0; i < count; i++)
        write_realloc(writer, writer_any(writer), below(mood, 2) == 0 ? a : b);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* A block between two goes; one grows into its place, and what is left of it is asked for. */
static void coalesce(struct mood *mood)
{
    enum { ROW = 5 };
    struct writer *writer = mood->writer;
    size_t size = a_size(mood), times = a_number(mood, 4);
    for (size_t time = 0; time < times; time++) {
        uint32_t row[ROW];
        for (int i = 0; i < ROW; i++) {
            row[i] = write_malloc(writer, below(mood, 4) == 0 ? a_size(mood) : size);
            if (row[i] == NO_SLOT)
                return;
        }
        size_t gone = 1 + below(mood, ROW - 2);
        bool whole = below(mood, 2) == 0; /* of the gap, or as much as comes */
        write_free(writer, row[gone]);
        if (below(mood, 2) == 0)
            write_realloc(writer, row[gone - 1],
                          whole ? 2 * size : size + 1 + below(mood, size + 32));
        write_made(writer, below(mood, 2) == 0 ? size : 1 + below(mood, size));
        if (below(mood, 2) == 0)
            write_free(writer, row[gone + 1]);
        if (below(mood, 2) == 0)
            write_made(writer, 2 * size - below(mood, MIN(size, (size_t)64)));
        if (below(mood, 2) == 0)
            write_realloc(writer, row[gone - 1], 1 + below(mood, size));
    }
}

/* ---- one thread after the other ----------------------------------------------------------------
 */

/* Each makes a crowd and ends; those before it are freed by it, or by a later one, or wait for the
 * end.  One is larger by a little than the one before, so that what is counted of them comes to any
 * number. */
static void relay(struct mood *mood)
{
    enum { SMALL = 2048, THREADS_LOG2 = 6 };
    struct writer *writer = mood->writer;
    size_t size = a_size(mood) % SMALL + 1, times = a_number(mood, 9), by = below(mood, 4);
    size_t turns = a_number(mood, THREADS_LOG2), rounds = 1 + below(mood, 4);
    bool leaves_late = below(mood, 3) == 0; /* and does something while its variables go */
    uint32_t waiting = NO_SLOT;
    size_t waiting_times = 0;
    for (size_t i = 0; i < turns && mood->options->threads; i++, times += by) {
        writer->thread = (uint16_t)(1 + i % 2); /* each run of steps is a new thread's */
        for (size_t round = 0; round < rounds; round++) {
            uint32_t first = write_crowd(writer, size, times, false);
            if (first == NO_SLOT)
                break;
            if (waiting != NO_SLOT)
                write_free_crowd(writer, waiting, waiting_times);
            waiting = first;
            waiting_times = times;
            if (below(mood, 4) != 0) {
                write_free_crowd(writer, waiting, waiting_times);
                waiting = NO_SLOT;
            }
        }
        if (leaves_late && waiting != NO_SLOT) {
            writer->thread |= STEP_IN_DESTRUCTOR;
            write_free_crowd(writer, waiting, waiting_times);
            waiting = write_crowd(writer, size, times, false);
            waiting_times = times;
        }
    }
    writer->thread = 0;
}

static void free_all(struct mood *mood)
{
    struct writer *writer = mood->writer;
    if (writer->live_count > 0 && below(mood, 2) == 0)
        write_free_crowd(writer, 0, writer->slots);
    while (writer->live_count > 0 && writer_left(writer) > 0)
        write_free(writer, writer_any(writer));
}

/* ---- what is odd ----------------------------------------------------------------------------- */

/* More than there can be: by a little, or so much that with a header, or with some room to grow, it
 * is next to nothing. */
static size_t an_impossible_size(struct mood *mood)
{
    enum { MOST_PARTS = 16, PAGES_LOG2 = 14, FEW = 64 };
    size_t parts = 2 + below(mood, MOST_PARTS - 1);
    if (below(mood, 2) == 0)
        return SIZE_MAX - below(mood, (size_t)1 << below(mood, PAGES_LOG2));
    return SIZE_MAX / parts * (parts - 1) + parts + below(mood, FEW);
}

/* The same of calloc.  The product is what no size_t holds, and then little more than a multiple of
 * that; or it would be if elements were a little longer. */
static void overflow(struct mood *mood, struct step *step)
{
    enum { BITS = sizeof(size_t) * 8, LARGEST_SMALL = 1000, FEW = 64, LONGEST_LOG2 = 6 };
    size_t few = 2 + below(mood, LARGEST_SMALL), many = SIZE_MAX / few + 1;
    unsigned shift = 1 + (unsigned)below(mood, LONGEST_LOG2);
    switch (below(mood, 6)) {
    case 0:
        few = many = (size_t)2 << (BITS / 2 + below(mood, 8));
        break;
    case 1:
        few = ((size_t)1 << BITS / 2) + 1 + below(mood, 4);
        many = ((size_t)1 << BITS / 2) + 1 + below(mood, 4);
        break;
    case 2:
        many = ((size_t)1 << (BITS - shift)) + below(mood, 3);
        few = 1 + below(mood, (size_t)1 << shift);
        break;
    case 3:
    case 4:
        few = below(mood, 4) != 0 ? 1 : below(mood, FEW);
        many = few > 1 ? an_impossible_size(mood) / few : an_impossible_size(mood);
        break;
    default:
        many = many * (below(mood, 2) == 0 ? 1 : 1 + below(mood, few - 1)) + below(mood, FEW);
    }
    bool is_first = below(mood, 2) == 0;
    step->first = is_first ? few : many;
    step->second = is_first ? many : few;
}

/* Nothing asked for, and more than there can be. */
static void oddities(struct mood *mood)
{
    struct writer *writer = mood->writer;
    uint32_t slot = writer_any(writer);
    write_other(writer, STEP_FREE_NULL, a_size(mood), 0);
    slot = below(mood, 2) == 0 ? slot : write_malloc(writer, below(mood, 2));
    if (slot != NO_SLOT && below(mood, 2) == 0)
        write_realloc(writer, slot, 1);
    for (size_t i = 0; i < 4; i++) {
        if (slot != NO_SLOT && below(mood, 3) == 0)
            write_refused_realloc(writer, slot, an_impossible_size(mood));
        uint32_t fresh = write_malloc(writer, 0); /* whose size is then another */
        if (fresh == NO_SLOT)
            return;
        struct step *step = &writer->steps[writer->count - 1];
        step->first = an_impossible_size(mood);
        if (below(mood, 2) == 0) {
            step->kind = STEP_CALLOC;
            overflow(mood, step);
        }
        write_free(writer, fresh);
    }
    write_zeroed(writer, a_size(mood));
}

/* Less memory than is asked for; then there is enough again. */
static void refusals(struct mood *mood)
{
    struct writer *writer = mood->writer;
    size_t size = MAX(a_size(mood), (size_t)512), steps = a_number(mood, 8);
    if (!mood->options->limits)
        return;
    write_other(writer, STEP_LIMIT, (size_t)4096 << below(mood, 12), 0);
    for (size_t i = 0; i < steps; i++) {
        uint32_t slot = writer_any(writer);
        if (slot != NO_SLOT && below(mood, 4) == 0)
            write_realloc(writer, slot, size + a_size(mood));
        else if (slot != NO_SLOT && below(mood, 6) == 0)
            write_free(writer, slot);
        else
            write_made(writer, size << below(mood, 8));
    }
    write_other(writer, STEP_LIMIT, 0, 0);
    for (size_t i = below(mood, 4); i > 0 && writer->live_count > 0; i--)
        write_realloc(writer, writer_any(writer), size + a_size(mood)); /* perhaps refused before */
    if (mood->options->threads && writer->thread == 0 && below(mood, 2) == 0) {
        writer->thread = 1;
        write_made(writer, a_size(mood));
        writer->thread = 0;
    }
    write_made(writer, a_size(mood));
}

/* Time passes, and what is idle may be given back. */
static void idle(struct mood *mood)
{
    size_t milliseconds = below(mood, 32) == 0 ? below(mood, 300) : 1 + below(mood, 12);
    if (!mood->options->is_brief && below(mood, 16) == 0)
        write_other(mood->writer, STEP_PAUSE, milliseconds, 0);
}

static void forks(struct mood *mood)
{
    if (mood->options->forks && below(mood, 8) == 0)
        write_other(mood->writer, STEP_FORK, 0, 0);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void (*const behaviours[])(struct mood *mood) = {
    churn,  churn,  fill_and_drain, fill_and_drain, fill_and_drain, recycle_by_calloc,
    chain,  chain,  resize_all,     coalesce,       coalesce,       temporaries,
    crowds, crowds, crowds,         free_all,       oddities,       refusals,
    idle,   forks,  relay,          sweep,          resize_often,
};
enum { BEHAVIOURS = sizeof behaviours / sizeof *behaviours };

/* Whether the next behaviour is another thread's: one that is new, and ends behind it. */
static uint16_t next_thread(struct mood *mood, uint16_t threads)
{
    if (!mood->options->threads || below(mood, 3) != 0)
        return 0;
    unsigned late = below(mood, 8) == 0 ? STEP_IN_DESTRUCTOR : 0;
    return (uint16_t)((1 + below(mood, threads)) | late);
}

/* A few behaviours with the same few sizes. */
static void write_mood(struct writer *writer, const struct behaviour_options *options)
{
    struct mood mood = {.writer = writer, .options = options};
    mood.count = 1 + below(&mood, SIZES);
    size_t most = below(&mood, 32) == 0   ? writer->most_bytes / 2
                  : below(&mood, 16) == 0 ? (size_t)8 * MIB
                  : below(&mood, 8) == 0  ? (size_t)MIB
                  : below(&mood, 3) == 0  ? (size_t)(64 << 10)
                                          : (size_t)4096;
    bool are_large = below(&mood, 2) == 0;
    for (size_t i = 0; i < mood.count; i++)
        mood.sizes[i] = are_large
                            ? most / 32 + palette_size(writer->palette, &writer->random, most / 2)
                            : palette_size(writer->palette, &writer->random, most);
    for (size_t i = 0; i < mood.count && options->sizes != NULL; i++)
        mood.sizes[i] = options->sizes[below(&mood, options->size_count)];
    if (below(&mood, 4) == 0 && options->sizes == NULL)
        mood.any_log2 = (unsigned)(6 + below(&mood, 17));
    writer->wrong_sizes = below(&mood, 8) == 0 ? 4 : 0;
    size_t parts = 1 + below(&mood, 12);
    bool has_threads = options->threads && below(&mood, 6) == 0;
    for (size_t i = 0; i < parts && writer_left(writer) > 16; i++) {
        writer->thread = has_threads ? next_thread(&mood, 8) : 0;
        behaviours[below(&mood, BEHAVIOURS)](&mood);
    }
    if (below(&mood, 2) == 0)
        free_all(&mood);
}

/* What goes, comes and grows while the process exits. */
static void write_exit(struct writer *writer)
{
    enum { MOST_LOG2 = 8, LARGEST = 1 << 14 };
    writer->thread = STEP_AT_EXIT;
    for (size_t i = (size_t)1 << random_below(&writer->random, MOST_LOG2); i > 0; i--) {
        uint32_t slot = writer_any(writer);
        if (slot == NO_SLOT || random_below(&writer->random, 3) == 0)
            write_made(writer, palette_size(writer->palette, &writer->random, LARGEST));
        else
            write_free(writer, slot);
    }
    writer->thread = 0;
}

void behaviours_write(struct writer *writer, const struct behaviour_options *options)
{
    enum { EXITS_EVERY = 16 };
    bool exits = options->exits && random_below(&writer->random, EXITS_EVERY) == 0;
    size_t room = writer->room;
    if (exits)
        writer->room -= room / 4;
    do
        write_mood(writer, options);
    while (writer_left(writer) > 16 && random_below(&writer->random, 16) != 0);
    writer->room = room;
    if (exits)
        write_exit(writer);
}
