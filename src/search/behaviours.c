/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The behaviours, a function each.
 */
#include "search/generators.h"

#include <sys/param.h>

enum { SIZES = 6, MIB = 1 << 20 };

/* A history has few sizes, so that its blocks meet those of their own kind; or any, as large ones
 * as small ones, so that they leave gaps of all lengths. */
struct style {
    struct writer *writer;
    size_t sizes[SIZES];
    size_t count;
    unsigned any_log2; /* 0: few; or from 1 to so many powers of two */
    const struct behaviour_options *options;
};

static size_t below(struct style *style, size_t bound)
{
    return (size_t)random_below(&style->writer->random, bound);
}

static size_t a_size(struct style *style)
{
    if (style->any_log2 != 0) {
        size_t power = (size_t)1 << below(style, style->any_log2);
        return power + below(style, power);
    }
    if (below(style, 16) == 0)
        return size_dict_neighbour(style->writer->size_dict, &style->writer->random,
                                   style->sizes[below(style, style->count)]);
    return style->sizes[below(style, style->count)];
}

/* How many: a power of two, or one beside it, or anything near. */
static size_t a_number(struct style *style, unsigned most_log2)
{
    size_t power = (size_t)1 << below(style, most_log2 + 1);
    switch (below(style, 5)) {
    case 0:
        return power;
    case 1:
        return power + 1;
    case 2:
        return power > 1 ? power - 1 : 1;
    default:
        return power + below(style, power);
    }
}

/* ---- long lives and short -------------------------------------------------------------------- */

static void churn(struct style *style)
{
    struct writer *writer = style->writer;
    size_t target = a_number(style, 8), steps = MIN(a_number(style, 12), writer_left(writer));
    for (size_t i = 0; i < steps; i++) {
        bool makes = writer->live_count < target || below(style, 8) == 0;
        uint32_t slot = writer_any(writer);
        if (makes && below(style, 2) == 0)
            write_made(writer, a_size(style));
        else if (slot == NO_SLOT)
            write_made(writer, a_size(style));
        else if (below(style, 3) == 0)
            write_realloc(writer, slot, a_size(style));
        else
            write_free(writer, slot);
    }
}

/* Sometimes by the hundred thousand, as counters wrap: then they are small. */
static void temporaries(struct style *style)
{
    enum { SMALL = 512, MOST_LOG2 = 17 };
    size_t size = a_size(style);
    bool many = size <= SMALL && !style->options->is_brief && below(style, 8) == 0;
    write_temporaries(style->writer, size, a_number(style, many ? MOST_LOG2 : 8),
                      below(style, 3) == 0);
}

/* ---- caches ---------------------------------------------------------------------------------- */

enum { MOST_FILL = 1 << 17 };
enum order { LIFO, FIFO, EVERY_OTHER, ANY_ORDER, ORDERS };

/* The index in a row of `count` of which `done` are gone. */
static void shuffle(struct style *style, uint32_t *slots, size_t count, enum order order)
{
    for (size_t i = 0; i < count / 2 && order == LIFO; i++) {
        uint32_t other = slots[i];
        slots[i] = slots[count - 1 - i];
        slots[count - 1 - i] = other;
    }
    for (size_t i = count; i > 1 && order == ANY_ORDER; i--) {
        size_t k = below(style, i);
        uint32_t other = slots[i - 1];
        slots[i - 1] = slots[k];
        slots[k] = other;
    }
}

static void free_in_order(struct style *style, uint32_t *slots, size_t count, enum order order)
{
    shuffle(style, slots, count, order);
    for (size_t i = 0; i < count; i++) {
        if (order != EVERY_OTHER || i % 2 == 0)
            write_free(style->writer, slots[i]);
    }
    for (size_t i = 1; i < count && order == EVERY_OTHER && below(style, 8) != 0; i += 2)
        write_free(style->writer, slots[i]);
}

/* Thousands of one class, made, freed in some order, and made again. */
static void fill_and_drain(struct style *style)
{
    static uint32_t slots[MOST_FILL];
    struct writer *writer = style->writer;
    size_t size = a_size(style), wanted = a_number(style, below(style, 6) == 0 ? 17 : 10);
    size_t rounds = 1 + below(style, 4);
    for (size_t round = 0; round < rounds && writer_left(writer) > 2 * wanted; round++) {
        size_t count = 0;
        bool by_calloc = below(style, 4) == 0;
        for (; count < MIN(wanted, (size_t)MOST_FILL); count++) {
            slots[count] = by_calloc ? write_calloc(writer, size, 1) : write_malloc(writer, size);
            if (slots[count] == NO_SLOT)
                break;
        }
        if (round + 1 == rounds && below(style, 2) == 0)
            return;
        free_in_order(style, slots, count, (enum order)below(style, ORDERS));
        wanted = below(style, 3) == 0 ? wanted + 1 : wanted;
    }
}

/* ---- crowds ---------------------------------------------------------------------------------- */

struct batch {
    uint32_t first; /* slot, or NO_SLOT */
    size_t size, times;
};

/* A few of them go, come back, or are resized. */
static void stir(struct style *style, const struct batch *batch)
{
    struct writer *writer = style->writer;
    size_t times = a_number(style, 5);
    for (size_t i = 0; i < times; i++) {
        uint32_t slot = writer_any(writer);
        if (slot != NO_SLOT && below(style, 4) == 0)
            write_realloc(writer, slot, below(style, 2) == 0 ? batch->size : a_size(style));
        else if (slot != NO_SLOT && below(style, 2) == 0)
            write_free(writer, slot);
        else
            write_made(writer, batch->size);
    }
}

static struct batch a_batch(struct style *style, bool many)
{
    enum { LARGEST = 64 << 10, TINY = 64, MOST_LOG2 = 12, MANY_LOG2 = 16 };
    size_t size = a_size(style), power = (size_t)1 << (MANY_LOG2 - below(style, 4));
    if (many)
        return (struct batch){NO_SLOT, size % TINY + 1,
                              power + below(style, below(style, 2) == 0 ? 4 : power)};
    size = size > LARGEST ? size % LARGEST + 1 : size;
    return (struct batch){NO_SLOT, size,
                          MIN(a_number(style, MOST_LOG2), (size_t)16 * MIB / (size + 1) + 1)};
}

/* Up to a hundred thousand live of a class or two, that come and go as a whole. */
static void crowds(struct style *style)
{
    enum { CROWDS = 3 };
    struct writer *writer = style->writer;
    struct batch at[CROWDS];
    bool many = !style->options->is_brief && below(style, 4) == 0;
    for (size_t i = 0; i < CROWDS; i++)
        at[i] = a_batch(style, many && below(style, 2) == 0);
    for (size_t i = 0, turns = 2 + below(style, 10); i < turns; i++) {
        struct batch *batch = &at[below(style, CROWDS)];
        size_t what = below(style, 8);
        if (batch->first == NO_SLOT)
            batch->first = write_batch(writer, batch->size, batch->times, below(style, 4) == 0);
        else if (what < 3)
            stir(style, batch);
        else if (what < 5)
            write_realloc_batch(writer, batch->first, batch->times,
                                below(style, 2) == 0 ? batch->size + 1 : a_size(style));
        else {
            write_free_batch(writer, batch->first, batch->times);
            batch->first = NO_SLOT;
        }
    }
}

/* One size after the other, a few of them live at a time: where a single one is wrong. */
static void sweep(struct style *style)
{
    enum { FROM = 8192, LIVE = 4 };
    struct writer *writer = style->writer;
    uint32_t slots[LIVE] = {NO_SLOT, NO_SLOT, NO_SLOT, NO_SLOT};
    size_t from = below(style, 4) == 0 ? a_size(style) : 1 + below(style, FROM);
    size_t times = a_number(style, 10);
    for (size_t i = 0; i < times + LIVE; i++) {
        uint32_t *slot = &slots[i % LIVE];
        if (*slot != NO_SLOT)
            write_free(writer, *slot);
        *slot = i < times ? write_made(writer, from + i) : NO_SLOT;
    }
}

/* What was freed comes back zeroed, and for another size. */
static void recycle_by_calloc(struct style *style)
{
    struct writer *writer = style->writer;
    size_t size = a_size(style), times = a_number(style, 5);
    for (size_t i = 0; i < times; i++) {
        uint32_t slot = write_malloc(writer, size);
        if (slot == NO_SLOT)
            return;
        if (below(style, 3) == 0)
            write_realloc(writer, slot, a_size(style));
        write_free(writer, slot);
        size_t other = below(style, 2) == 0 ? size : a_size(style), elsize = 1 + below(style, 16);
        write_calloc(writer, below(style, 2) == 0 ? other : MAX(other / elsize, (size_t)1),
                     below(style, 2) == 0 ? 1 : elsize);
    }
}

/* ---- one block that is resized --------------------------------------------------------------- */

static size_t longer(struct style *style, size_t size, size_t way)
{
    switch (way) {
    case 0:
        return size + 1;
    case 1:
        return size + 8 * (1 + below(style, 16));
    case 2:
        return size + size / 8 + 16;
    case 3:
        return size + size / 2 + 1;
    default:
        return size + 1 + below(style, 4096);
    }
}

static size_t shorter(struct style *style, size_t size, size_t way)
{
    size_t by = longer(style, size, way) - size;
    return size > by ? size - by : 1;
}

/* Hundreds of steps on one block, with neighbours that come and go. */
static void chain(struct style *style)
{
    struct writer *writer = style->writer;
    size_t size = a_size(style), way = below(style, 5), steps = a_number(style, 8);
    size_t most = MIN(writer->most_bytes / 4, (size_t)(below(style, 8) == 0 ? 64 : 2) * MIB);
    bool grows = below(style, 2) == 0;
    uint32_t slot = write_made(writer, size);
    for (size_t i = 0; i < steps && slot != NO_SLOT; i++) {
        size = grows ? longer(style, size, way) : shorter(style, size, way);
        if (size > most || size <= 1)
            grows = !grows;
        write_realloc(writer, slot, MIN(size, most));
        size = MIN(size, most);
        if (below(style, 4) == 0)
            write_made(writer, a_size(style));
        if (below(style, 8) == 0 && writer_any(writer) != slot) {
            uint32_t other = writer_any(writer);
            if (other != slot)
                write_free(writer, other);
        }
        if (below(style, 64) == 0)
            grows = !grows;
    }
    if (slot != NO_SLOT && below(style, 2) == 0)
        write_free(writer, slot);
}

/* So often that a counter of 16 bits wraps, where there is room for that. */
static void resize_often(struct style *style)
{
    enum { LARGEST = 4096, OFTEN = 1 << 16, MORE = 1 << 12 };
    struct writer *writer = style->writer;
    size_t a = a_size(style) % LARGEST + 1, b = a_size(style) % LARGEST + 1;
    bool has_room = writer_left(writer) > OFTEN + MORE && !style->options->is_brief;
    size_t steps = has_room ? OFTEN + below(style, MORE) : a_number(style, 9);
    uint32_t slot = write_made(writer, a);
    for (size_t i = 0; i < steps && slot != NO_SLOT; i++)
        write_realloc(writer, slot, i % 2 == 0 ? b : a);
    if (slot != NO_SLOT && below(style, 2) == 0)
        write_free(writer, slot);
}

/* Back and forth between two sizes, for all of a row. */
static void resize_all(struct style *style)
{
    struct writer *writer = style->writer;
    size_t a = a_size(style), b = a_size(style),
           count = MIN((size_t)writer->live_count, a_number(style, 9));
    for (size_t i = 0; i < count; i++)
        write_realloc(writer, writer_any(writer), below(style, 2) == 0 ? a : b);
}

/* ---- neighbours ------------------------------------------------------------------------------ */

/* A block between two goes; one grows into its place, and what is left of it is asked for. */
static void coalesce(struct style *style)
{
    enum { ROW = 5 };
    struct writer *writer = style->writer;
    size_t size = a_size(style), times = a_number(style, 4);
    for (size_t time = 0; time < times; time++) {
        uint32_t row[ROW];
        for (int i = 0; i < ROW; i++) {
            row[i] = write_malloc(writer, below(style, 4) == 0 ? a_size(style) : size);
            if (row[i] == NO_SLOT)
                return;
        }
        size_t gone = 1 + below(style, ROW - 2);
        bool whole = below(style, 2) == 0; /* of the gap, or as much as comes */
        write_free(writer, row[gone]);
        if (below(style, 2) == 0)
            write_realloc(writer, row[gone - 1],
                          whole ? 2 * size : size + 1 + below(style, size + 32));
        write_made(writer, below(style, 2) == 0 ? size : 1 + below(style, size));
        if (below(style, 2) == 0)
            write_free(writer, row[gone + 1]);
        if (below(style, 2) == 0)
            write_made(writer, 2 * size - below(style, MIN(size, (size_t)64)));
        if (below(style, 2) == 0)
            write_realloc(writer, row[gone - 1], 1 + below(style, size));
    }
}

/* ---- one thread after the other -------------------------------------------------------------- */

/* Each makes a batch and ends; those before it are freed by it, or by a later one, or wait for the
 * end.  One is larger by a little than the one before, so that what is counted of them comes to any
 * number. */
static void relay(struct style *style)
{
    enum { SMALL = 2048, THREADS_LOG2 = 6 };
    struct writer *writer = style->writer;
    size_t size = a_size(style) % SMALL + 1, times = a_number(style, 9), by = below(style, 4);
    size_t turns = a_number(style, THREADS_LOG2), rounds = 1 + below(style, 4);
    bool leaves_late = below(style, 3) == 0; /* and does something while its variables go */
    uint32_t waiting = NO_SLOT;
    size_t waiting_times = 0;
    for (size_t i = 0; i < turns && style->options->threads; i++, times += by) {
        writer->thread = (uint16_t)(1 + i % 2); /* each run of steps is a new thread's */
        for (size_t round = 0; round < rounds; round++) {
            uint32_t first = write_batch(writer, size, times, false);
            if (first == NO_SLOT)
                break;
            if (waiting != NO_SLOT)
                write_free_batch(writer, waiting, waiting_times);
            waiting = first;
            waiting_times = times;
            if (below(style, 4) != 0) {
                write_free_batch(writer, waiting, waiting_times);
                waiting = NO_SLOT;
            }
        }
        if (leaves_late && waiting != NO_SLOT) {
            writer->thread |= STEP_IN_DESTRUCTOR;
            write_free_batch(writer, waiting, waiting_times);
            waiting = write_batch(writer, size, times, false);
            waiting_times = times;
        }
    }
    writer->thread = 0;
}

static void free_all(struct style *style)
{
    struct writer *writer = style->writer;
    if (writer->live_count > 0 && below(style, 2) == 0)
        write_free_batch(writer, 0, writer->slots);
    while (writer->live_count > 0 && writer_left(writer) > 0)
        write_free(writer, writer_any(writer));
}

/* ---- what is odd ----------------------------------------------------------------------------- */

/* More than there can be: by a little, or so much that with a header, or with some room to grow, it
 * is next to nothing. */
static size_t an_impossible_size(struct style *style)
{
    enum { MOST_PARTS = 16, PAGES_LOG2 = 14, FEW = 64 };
    size_t parts = 2 + below(style, MOST_PARTS - 1);
    if (below(style, 2) == 0)
        return SIZE_MAX - below(style, (size_t)1 << below(style, PAGES_LOG2));
    return SIZE_MAX / parts * (parts - 1) + parts + below(style, FEW);
}

/* The same of calloc.  The product is what no size_t holds, and then little more than a multiple of
 * that; or it would be if elements were a little longer. */
static void overflow(struct style *style, struct step *step)
{
    enum { BITS = sizeof(size_t) * 8, LARGEST_SMALL = 1000, FEW = 64, LONGEST_LOG2 = 6 };
    size_t few = 2 + below(style, LARGEST_SMALL), many = SIZE_MAX / few + 1;
    unsigned shift = 1 + (unsigned)below(style, LONGEST_LOG2);
    switch (below(style, 6)) {
    case 0:
        few = many = (size_t)2 << (BITS / 2 + below(style, 8));
        break;
    case 1:
        few = ((size_t)1 << BITS / 2) + 1 + below(style, 4);
        many = ((size_t)1 << BITS / 2) + 1 + below(style, 4);
        break;
    case 2:
        many = ((size_t)1 << (BITS - shift)) + below(style, 3);
        few = 1 + below(style, (size_t)1 << shift);
        break;
    case 3:
    case 4:
        few = below(style, 4) != 0 ? 1 : below(style, FEW);
        many = few > 1 ? an_impossible_size(style) / few : an_impossible_size(style);
        break;
    default:
        many = many * (below(style, 2) == 0 ? 1 : 1 + below(style, few - 1)) + below(style, FEW);
    }
    bool is_first = below(style, 2) == 0;
    step->first = is_first ? few : many;
    step->second = is_first ? many : few;
}

/* Nothing asked for, and more than there can be. */
static void oddities(struct style *style)
{
    struct writer *writer = style->writer;
    uint32_t slot = writer_any(writer);
    write_other(writer, STEP_FREE_NULL, a_size(style), 0);
    slot = below(style, 2) == 0 ? slot : write_malloc(writer, below(style, 2));
    if (slot != NO_SLOT && below(style, 2) == 0)
        write_realloc(writer, slot, 1);
    for (size_t i = 0; i < 4; i++) {
        if (slot != NO_SLOT && below(style, 3) == 0)
            write_refused_realloc(writer, slot, an_impossible_size(style));
        uint32_t fresh = write_malloc(writer, 0); /* whose size is then another */
        if (fresh == NO_SLOT)
            return;
        struct step *step = &writer->steps[writer->count - 1];
        step->first = an_impossible_size(style);
        if (below(style, 2) == 0) {
            step->kind = STEP_CALLOC;
            overflow(style, step);
        }
        write_free(writer, fresh);
    }
    write_zeroed(writer, a_size(style));
}

/* Less memory than is asked for; then there is enough again. */
static void refusals(struct style *style)
{
    struct writer *writer = style->writer;
    size_t size = MAX(a_size(style), (size_t)512), steps = a_number(style, 8);
    if (!style->options->limits)
        return;
    write_other(writer, STEP_LIMIT, (size_t)4096 << below(style, 12), 0);
    for (size_t i = 0; i < steps; i++) {
        uint32_t slot = writer_any(writer);
        if (slot != NO_SLOT && below(style, 4) == 0)
            write_realloc(writer, slot, size + a_size(style));
        else if (slot != NO_SLOT && below(style, 6) == 0)
            write_free(writer, slot);
        else
            write_made(writer, size << below(style, 8));
    }
    write_other(writer, STEP_LIMIT, 0, 0);
    for (size_t i = below(style, 4); i > 0 && writer->live_count > 0; i--)
        write_realloc(writer, writer_any(writer),
                      size + a_size(style)); /* perhaps refused before */
    if (style->options->threads && writer->thread == 0 && below(style, 2) == 0) {
        writer->thread = 1;
        write_made(writer, a_size(style));
        writer->thread = 0;
    }
    write_made(writer, a_size(style));
}

/* Time passes, and what is idle may be given back. */
static void idle(struct style *style)
{
    size_t milliseconds = below(style, 32) == 0 ? below(style, 300) : 1 + below(style, 12);
    if (!style->options->is_brief && below(style, 16) == 0)
        write_other(style->writer, STEP_PAUSE, milliseconds, 0);
}

static void forks(struct style *style)
{
    if (style->options->forks && below(style, 8) == 0)
        write_other(style->writer, STEP_FORK, 0, 0);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static void (*const behaviours[])(struct style *style) = {
    churn,  churn,  fill_and_drain, fill_and_drain, fill_and_drain, recycle_by_calloc,
    chain,  chain,  resize_all,     coalesce,       coalesce,       temporaries,
    crowds, crowds, crowds,         free_all,       oddities,       refusals,
    idle,   forks,  relay,          sweep,          resize_often,
};
enum { BEHAVIOURS = sizeof behaviours / sizeof *behaviours };

/* Whether the next behaviour is another thread's: one that is new, and ends behind it. */
static uint16_t next_thread(struct style *style, uint16_t threads)
{
    if (!style->options->threads || below(style, 3) != 0)
        return 0;
    unsigned late = below(style, 8) == 0 ? STEP_IN_DESTRUCTOR : 0;
    return (uint16_t)((1 + below(style, threads)) | late);
}

/* A few behaviours with the same few sizes. */
static void write_mood(struct writer *writer, const struct behaviour_options *options)
{
    struct style style = {.writer = writer, .options = options};
    style.count = 1 + below(&style, SIZES);
    size_t most = below(&style, 32) == 0   ? writer->most_bytes / 2
                  : below(&style, 16) == 0 ? (size_t)8 * MIB
                  : below(&style, 8) == 0  ? (size_t)MIB
                  : below(&style, 3) == 0  ? (size_t)(64 << 10)
                                           : (size_t)4096;
    bool are_large = below(&style, 2) == 0;
    for (size_t i = 0; i < style.count; i++)
        style.sizes[i] =
            are_large ? most / 32 + size_dict_size(writer->size_dict, &writer->random, most / 2)
                      : size_dict_size(writer->size_dict, &writer->random, most);
    for (size_t i = 0; i < style.count && options->sizes != NULL; i++)
        style.sizes[i] = options->sizes[below(&style, options->size_count)];
    if (below(&style, 4) == 0 && options->sizes == NULL)
        style.any_log2 = (unsigned)(6 + below(&style, 17));
    writer->wrong_sizes = below(&style, 8) == 0 ? 4 : 0;
    size_t parts = 1 + below(&style, 12);
    bool has_threads = options->threads && below(&style, 6) == 0;
    for (size_t i = 0; i < parts && writer_left(writer) > 16; i++) {
        writer->thread = has_threads ? next_thread(&style, 8) : 0;
        behaviours[below(&style, BEHAVIOURS)](&style);
    }
    if (below(&style, 2) == 0)
        free_all(&style);
}

/* What goes, comes and grows while the process exits. */
static void write_exit(struct writer *writer)
{
    enum { MOST_LOG2 = 8, LARGEST = 1 << 14 };
    writer->thread = STEP_AT_EXIT;
    for (size_t i = (size_t)1 << random_below(&writer->random, MOST_LOG2); i > 0; i--) {
        uint32_t slot = writer_any(writer);
        if (slot == NO_SLOT || random_below(&writer->random, 3) == 0)
            write_made(writer, size_dict_size(writer->size_dict, &writer->random, LARGEST));
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
