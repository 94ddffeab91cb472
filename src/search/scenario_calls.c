/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls that a scenario stands for.
 */
#include <errno.h>
#include <sys/param.h>

#include "heap/heap.h"
#include "search/scenario.h"

/* A scenario that is being written. */
struct row {
    const struct scenario *scenario;
    struct writer *writer;
    size_t size; /* of most of its blocks */
};

static size_t below(const struct row *row, size_t bound)
{
    return (size_t)random_below(&row->writer->random, bound);
}

static bool is_at(const struct row *row, enum factor factor, unsigned level)
{
    return row->scenario->level[factor] == level;
}

/* A number inside the level: an end as often as not, because that is where defects are. */
static size_t number_in(const struct row *row, enum factor factor)
{
    const struct factor_level *level = scenario_level(row->scenario, factor);
    size_t low = (size_t)level->low, high = (size_t)level->high;
    switch (below(row, 4)) {
    case 0:
        return low;
    case 1:
        return high;
    default:
        return low + below(row, high - low + 1);
    }
}

/* As number_in, or beside an edge of the handler's own size classes inside the level. */
static size_t size_in(const struct row *row)
{
    const struct factor_level *level = scenario_level(row->scenario, FACTOR_SIZE);
    if (row->writer->size_count > 0)
        return row->writer->sizes[below(row, row->writer->size_count)];
    if (below(row, 2) == 0) {
        size_t edge =
            size_dict_edge_from(row->writer->size_dict, &row->writer->random, (size_t)level->low);
        if (edge >= level->low && edge <= level->high)
            return edge;
    }
    return number_in(row, FACTOR_SIZE);
}

/* Mostly the size of the row, as blocks of one size meet each other's memory. */
static size_t a_size(const struct row *row)
{
    return below(row, 4) == 0 ? size_in(row) : row->size;
}

/* Whose steps the next ones are. */
enum role { MAKER, RESIZER, FREER };
static void step_as(const struct row *row, enum role role, size_t use)
{
    uint16_t thread = 0;
    switch (row->scenario->level[FACTOR_THREADS]) {
    case FREED_THERE:
        thread = role == FREER;
        break;
    case MADE_THERE:
        thread = role == MAKER;
        break;
    case CHAIN:
        thread = role == MAKER ? 1 : role == RESIZER ? 2 : 0;
        break;
    case ONE_AFTER_ANOTHER:
        thread = (uint16_t)(1 + use % 2);
        break;
    case IN_DESTRUCTOR:
        thread = role == FREER ? 1 | STEP_IN_DESTRUCTOR : 1;
        break;
    }
    row->writer->thread = thread;
}

static size_t an_impossible_size(const struct row *row);

/* NumPy never asks realloc for 0 bytes.  A function, as MAX would draw twice. */
static size_t at_least_one(size_t size)
{
    return size > 0 ? size : 1;
}

static void resize(const struct row *row, uint32_t slot, size_t size, size_t use)
{
    step_as(row, RESIZER, use);
    write_realloc(row->writer, slot, at_least_one(size));
    if (is_at(row, FACTOR_PRESSURE, REFUSED_BEFORE) && below(row, 4) == 0)
        write_refused_realloc(row->writer, slot, an_impossible_size(row));
}

/* From one size to another in a few steps of about the same length. */
static void resize_stepwise(const struct row *row, uint32_t slot, size_t from, size_t to,
                            size_t use)
{
    size_t steps = 2 + below(row, 7), part = (from < to ? to - from : from - to) / steps;
    for (size_t i = 1; i < steps; i++)
        resize(row, slot, from < to ? from + part * i : from - part * i, use);
    resize(row, slot, to, use);
}

/* A larger size: by a little, by a half, by a multiple. */
static size_t larger(const struct row *row, size_t size)
{
    switch (below(row, 4)) {
    case 0:
        return size + 1 + below(row, 64);
    case 1:
        return size + size / 2 + 1;
    case 2:
        return 2 * size + 1;
    default:
        return at_least_one(size * (2 + below(row, 7)) + below(row, 16));
    }
}

static size_t smaller(const struct row *row, size_t size)
{
    size_t less = 1 + below(row, 64), little = 1 + below(row, 16);
    switch (below(row, 5)) {
    case 0:
        return at_least_one(size - MIN(size, less));
    case 3:
        return at_least_one(MIN(size, little));
    case 1:
        return size / 2 + 1;
    case 2:
        return 1 + below(row, size / 8 + 1);
    default:
        return 1 + below(row, at_least_one(size));
    }
}

static uint32_t calloc_nothing(const struct row *row)
{
    static const size_t others[] = {0, 1, 8, 4096, 1000003, SIZE_MAX / 2 + 1, SIZE_MAX};
    size_t other = others[below(row, sizeof others / sizeof *others)];
    return below(row, 2) == 0 ? write_calloc(row->writer, 0, other)
                              : write_calloc(row->writer, other, 0);
}

static uint32_t make_by_calloc(const struct row *row, size_t size, unsigned level)
{
    size_t item = 2 + below(row, below(row, 2) == 0 ? 3 : 15), other = size / item;
    other -= other >= 8 && below(row, 2) == 0 ? other % 8 : 0;
    if (size == 0)
        return calloc_nothing(row);
    if (level == BY_CALLOC_N_K && size >= item)
        return below(row, 2) == 0 ? write_calloc(row->writer, other, item)
                                  : write_calloc(row->writer, item, other);
    return level == BY_CALLOC_1_N ? write_calloc(row->writer, 1, size)
                                  : write_calloc(row->writer, size, 1);
}

static uint32_t make(const struct row *row, size_t size, size_t use)
{
    struct writer *writer = row->writer;
    unsigned level = row->scenario->level[FACTOR_MADE_BY];
    uint32_t slot;
    step_as(row, MAKER, use);
    if (level >= BY_CALLOC_N_1 && level <= BY_CALLOC_N_K)
        return make_by_calloc(row, size, level);
    switch (level) {
    case BY_REALLOC_NULL:
        return write_by_realloc(writer, size);
    case GROWN:
    case GROWN_STEPWISE: {
        size_t from = size > 1 ? smaller(row, size - 1) : 0;
        slot = below(row, 4) == 0 ? write_calloc(writer, from, 1) : write_malloc(writer, from);
        if (slot != NO_SLOT && level == GROWN)
            resize(row, slot, size, use);
        else if (slot != NO_SLOT)
            resize_stepwise(row, slot, from, size, use);
        return slot;
    }
    case SHRUNK:
    case SHRUNK_STEPWISE: {
        size_t from = larger(row, size);
        slot = below(row, 4) == 0 ? write_calloc(writer, from, 1) : write_malloc(writer, from);
        if (slot != NO_SLOT && level == SHRUNK)
            resize(row, slot, size, use);
        else if (slot != NO_SLOT)
            resize_stepwise(row, slot, from, size, use);
        return slot;
    }
    case RESIZED_AND_BACK:
        slot = write_malloc(writer, size);
        if (slot != NO_SLOT) {
            resize(row, slot, below(row, 2) == 0 ? smaller(row, size) : larger(row, size), use);
            resize(row, slot, size, use);
        }
        return slot;
    case FROM_EMPTY:
        slot = below(row, 2) == 0 ? write_malloc(writer, 0) : calloc_nothing(row);
        if (slot != NO_SLOT)
            resize(row, slot, size, use);
        return slot;
    default:
        return write_malloc(writer, size);
    }
}

/* Fills the block with a word that stands before another one, its header perhaps. */
static void fill_with_header(const struct row *row, uint32_t slot)
{
    enum { PAGE = 4096, MOST_WORDS = 4 };
    uint32_t other =
        write_malloc(row->writer, below(row, 2) == 0 ? larger(row, row->size) : PAGE + row->size);
    write_fill(row->writer, slot, row->size | 1, 1 + below(row, MOST_WORDS));
    if (other != NO_SLOT)
        write_free(row->writer, other);
}

static void fill(const struct row *row, uint32_t slot)
{
    static const uint64_t marks[] = {UINT64_MAX,         0xdddddddddddddddd, 0xcdcdcdcdcdcdcdcd,
                                     0xfdfdfdfdfdfdfdfd, 0xaaaaaaaaaaaaaaaa, 0x5555555555555555,
                                     0xa5a5a5a5a5a5a5a5, 0x5a5a5a5a5a5a5a5a, 0xefbeaddeefbeadde,
                                     0xdeadbeefdeadbeef, 0xfeeefeeefeeefeee};
    struct writer *writer = row->writer;
    unsigned level = row->scenario->level[FACTOR_CONTENTS];
    if (is_at(row, FACTOR_PRESSURE, PAGES_LOCKED))
        write_lock(writer, slot);
    if (level == MARKS)
        write_fill(writer, slot, marks[below(row, sizeof marks / sizeof *marks)], 0);
    else if (level == HEADERS && below(row, 2) == 0)
        fill_with_header(row, slot);
    else if (level != PATTERN)
        write_fill(writer, slot,
                   level == ZEROS      ? 0
                   : level == POINTERS ? 0x00007f5555555550
                                       : row->size | 1,
                   0);
}

/* ---- memory before --------------------------------------------------------------------------- */

/* Blocks of these sizes come, and go in any order. */
static void make_and_free(const struct row *row, size_t size, size_t count)
{
    enum { MOST = 64 };
    uint32_t slots[MOST];
    for (size_t i = 0; i < count; i++)
        slots[i] =
            i % 4 == 3 ? write_calloc(row->writer, size, 1) : write_malloc(row->writer, size);
    if (is_at(row, FACTOR_MEMORY_BEFORE, FREED_BY_OTHER))
        row->writer->thread = 1;
    size_t first = below(row, count);
    for (size_t i = 0; i < count; i++) {
        uint32_t slot = slots[(first + i) % count];
        if (slot != NO_SLOT)
            write_free(row->writer, slot);
    }
}

/* A block is cut short, and stays. */
static void leave_rest(const struct row *row)
{
    size_t size = larger(row, row->size);
    uint32_t slot =
        below(row, 4) == 0 ? write_calloc(row->writer, size, 1) : write_malloc(row->writer, size);
    if (slot != NO_SLOT)
        write_realloc(row->writer, slot, smaller(row, size - MIN(size, row->size) + 1));
}

/* Of five blocks beside each other two or three go, or one grows into the place of another. */
static void merge_neighbors(const struct row *row)
{
    enum { COUNT = 5 };
    struct writer *writer = row->writer;
    uint32_t slots[COUNT];
    size_t part = below(row, 2) == 0 ? row->size : row->size / 2 + 1;
    for (size_t i = 0; i < COUNT; i++) {
        slots[i] = write_malloc(writer, below(row, 4) == 0 ? a_size(row) : part);
        if (slots[i] == NO_SLOT)
            return;
    }
    size_t gone = 1 + below(row, COUNT - 2);
    write_free(writer, slots[gone]);
    if (below(row, 2) == 0)
        write_realloc(writer, slots[gone - 1],
                      below(row, 2) == 0 ? at_least_one(2 * part)
                                         : part + 1 + below(row, part + 32));
    if (below(row, 2) == 0)
        write_free(writer, slots[gone + 1]);
    if (below(row, 2) == 0)
        write_realloc(writer, slots[gone - 1], 1 + below(row, part + 1));
}

static void prepare_memory(const struct row *row)
{
    enum { BURST = 64, FEW = 12, NEXT_CLASS = 1 << 14, MOST_BURST_BYTES = 1 << 22 };
    size_t few = 1 + below(row, FEW), size = row->size;
    switch (row->scenario->level[FACTOR_MEMORY_BEFORE]) {
    case FREED_LARGER:
        size = larger(row, size);
        break;
    case FREED_SMALLER:
        size = smaller(row, size);
        break;
    case REST_OF_SHRINK:
        for (size_t i = 1 + below(row, 4); i > 0; i--)
            leave_rest(row);
        return;
    case MERGED_NEIGHBORS:
        for (size_t i = 1 + below(row, 4); i > 0; i--)
            merge_neighbors(row);
        return;
    case FREED_BY_ENDED:
        row->writer->thread = 1;
        break;
    case AFTER_BURST:
        few = size * BURST <= MOST_BURST_BYTES ? BURST : few;
        break;
    case FRESH:
        return;
    }
    make_and_free(row, size, few);
    row->writer->thread = 0;
    for (size_t more = 16; more <= NEXT_CLASS && is_at(row, FACTOR_MEMORY_BEFORE, AFTER_BURST);
         more *= 4)
        write_malloc(row->writer, size + more);
}

/* ---- pressure -------------------------------------------------------------------------------- */

/* More than there can be, and next to nothing once a header, room to grow or a cut to fewer bits
 * has changed it. */
static size_t an_impossible_size(const struct row *row)
{
    enum { BITS = sizeof(size_t) * 8, MOST_PARTS = 16, LOG2 = 14, FEW = 64, SMALL = 1 << 10 };
    size_t parts = 2 + below(row, MOST_PARTS - 1);
    switch (below(row, 3)) {
    case 0:
        return SIZE_MAX - below(row, (size_t)1 << below(row, LOG2));
    case 1:
        return ((size_t)1 << (BITS - 1)) + ((size_t)1 << below(row, BITS - 1)) + below(row, SMALL);
    default:
        return SIZE_MAX / parts * (parts - 1) + parts + below(row, FEW);
    }
}

/* The number whose product with an odd one is 1 modulo SIZE_MAX + 1, by Newton's iteration. */
static size_t inverse(size_t odd)
{
    size_t x = odd; /* the lowest 3 bits are right, and each step doubles their number */
    for (int i = 0; i < 5; i++)
        x *= 2 - odd * x;
    return x;
}

/* Two factors whose product is more than there can be: it wraps to the size of the row or to
 * another small one, or would wrap if an item were padded. */
static void draw_overflow(const struct row *row, uint64_t *nelem, uint64_t *elsize)
{
    enum { BITS = sizeof(size_t) * 8, FEW = 64, MOST = 1000, MOST_SHIFT = 6 };
    size_t few = 2 + below(row, MOST), many = SIZE_MAX / few + 1 + below(row, FEW), padded = 4;
    unsigned shift = 1 + (unsigned)below(row, MOST_SHIFT);
    switch (below(row, 7)) {
    case 0:
        few = ((size_t)1 << BITS / 2) + below(row, 4);
        many = ((size_t)1 << BITS / 2) + below(row, 4);
        break;
    case 1:
        many = ((size_t)1 << (BITS - shift)) + below(row, 3);
        few = ((size_t)1 << shift) + below(row, 3);
        break;
    case 2:
        few = 1;
        many = an_impossible_size(row);
        break;
    case 3:
        few |= 1;
        many = row->size * inverse(few);
        break;
    case 4:
        few = 3 + few % FEW;
        while (padded < few)
            padded *= 2;
        many = SIZE_MAX / padded + 1 + below(row, few);
        break;
    case 5:
        many = SIZE_MAX / few - below(row, FEW);
        break;
    default:
        many *= 1 + below(row, few - 1);
    }
    bool is_first = below(row, 2) == 0;
    *nelem = is_first ? few : many;
    *elsize = is_first ? many : few;
}

/* A handler that does not notice the overflow zeroes what the product wraps to: not gigabytes. */
static void overflow(const struct row *row, uint64_t *nelem, uint64_t *elsize)
{
    const size_t most = (size_t)64 << 20;
    do
        draw_overflow(row, nelem, elsize);
    while ((size_t)*nelem * (size_t)*elsize > most && !heap_is_impossible(*nelem * *elsize));
}

/* The block can be resized afterwards, also to the size that it has. */
static void refuse_to_resize(const struct row *row, uint32_t slot)
{
    size_t size = (size_t)row->writer->size[slot];
    write_refused_realloc(row->writer, slot, an_impossible_size(row));
    if (below(row, 2) == 0)
        write_realloc(row->writer, slot,
                      at_least_one(below(row, 2) == 0   ? size
                                   : below(row, 2) == 0 ? larger(row, size)
                                                        : smaller(row, size)));
}

/* In half of the cases a small block was freed right before, which may be returned again. */
static void ask_for_the_impossible(const struct row *row)
{
    enum { MOST = 48, SMALL = 1 << 10 };
    struct writer *writer = row->writer;
    for (size_t i = 1 + below(row, MOST); i > 0; i--) {
        uint32_t slot = writer_any(writer);
        uint64_t nelem, elsize;
        if (below(row, 2) == 0)
            write_temporaries(writer, below(row, 2) == 0 ? row->size : 1 + below(row, SMALL), 1,
                              false);
        switch (below(row, 3)) {
        case 0:
            write_refused(writer, STEP_MALLOC, an_impossible_size(row), 0);
            break;
        case 1:
            overflow(row, &nelem, &elsize);
            write_refused(writer, STEP_CALLOC, nelem, elsize);
            break;
        default:
            if (slot != NO_SLOT)
                refuse_to_resize(row, slot);
        }
    }
}

/* Blocks of falling sizes, until each of them is refused. */
static void use_up_memory(const struct row *row)
{
    static const struct {
        size_t size, count;
    } blocks[] = {{1 << 20, 12}, {1 << 17, 24}, {1 << 14, 64}, {4000, 256},
                  {500, 1000},   {100, 1000},   {48, 2000},    {8, 3000}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        write_batch(row->writer, blocks[i].size - below(row, blocks[i].size / 8), blocks[i].count,
                    false);
}

static void begin_pressure(const struct row *row)
{
    static const uint8_t errors[] = {ENOMEM, EINVAL, EAGAIN, EINTR, EOVERFLOW, ENOENT};
    enum { PAGE = 4096, LOG2 = 12, FEW = 4, MOST_NTH = 24 };
    if (is_at(row, FACTOR_PRESSURE, ERRNO_SET))
        row->writer->error = errors[below(row, sizeof errors)];
    else if (is_at(row, FACTOR_PRESSURE, REFUSED_BEFORE))
        ask_for_the_impossible(row);
    else if (row->scenario->level[FACTOR_PRESSURE] >= ADDRESS_LIMIT)
        write_other(row->writer, STEP_LIMIT, (size_t)PAGE << below(row, LOG2), 0);
    else if (is_at(row, FACTOR_PRESSURE, REQUEST_REFUSED))
        write_other(row->writer, STEP_REFUSE,
                    1 + below(row, 1 + below(row, below(row, 2) == 0 ? FEW : MOST_NTH)),
                    below(row, 1 + REFUSE_ADVICE));
    if (is_at(row, FACTOR_PRESSURE, USED_UP))
        use_up_memory(row);
}

static void end_pressure(const struct row *row)
{
    row->writer->error = 0;
    if (row->scenario->level[FACTOR_PRESSURE] >= ADDRESS_LIMIT)
        write_other(row->writer, STEP_LIMIT, 0, 0);
    else if (is_at(row, FACTOR_PRESSURE, REQUEST_REFUSED))
        write_other(row->writer, STEP_REFUSE, 0, 0);
}

/* ---- live blocks, uses, frees ---------------------------------------------------------------- */

/* So many blocks, made in one step; their slots follow each other. */
struct batch {
    uint32_t first; /* NO_SLOT: there is none */
    size_t count;
};

static struct batch make_batch(const struct row *row)
{
    struct batch batch = {NO_SLOT, number_in(row, FACTOR_LIVE_BLOCKS) - 1};
    unsigned level = row->scenario->level[FACTOR_MADE_BY];
    bool by_calloc = level >= BY_CALLOC_N_1 && level <= BY_CALLOC_N_K;
    size_t size = a_size(row);
    if (batch.count == 0)
        return batch;
    step_as(row, MAKER, 0);
    bool grows = level == GROWN && size > 1, shrinks = level == SHRUNK;
    batch.first = write_batch(row->writer,
                              grows     ? size / 2
                              : shrinks ? 2 * size
                                        : size,
                              batch.count, by_calloc);
    if (batch.first != NO_SLOT && (grows || shrinks)) {
        step_as(row, RESIZER, 0);
        write_realloc_batch(row->writer, batch.first, batch.count, MAX(size, 1));
    }
    return batch;
}

static void free_batch(const struct row *row, struct batch batch)
{
    struct writer *writer = row->writer;
    size_t count = batch.count, kept = below(row, count + 1), stride = 1;
    if (batch.first == NO_SLOT || is_at(row, FACTOR_FREE_ORDER, NO_FREE))
        return;
    step_as(row, FREER, 0);
    if (is_at(row, FACTOR_FREE_ORDER, FIFO) && below(row, 2) == 0) {
        write_free_batch(writer, batch.first, count);
        return;
    }
    /* A stride that has no divisor in common with the count comes to each of them once. */
    if (is_at(row, FACTOR_FREE_ORDER, RANDOM_ORDER)) {
        static const size_t primes[] = {7, 31, 101, 499, 7919, 65537};
        stride = primes[below(row, sizeof primes / sizeof *primes)];
        stride = count % stride == 0 ? 1 : stride;
    }
    for (size_t i = 0; i < count; i++) {
        size_t k = is_at(row, FACTOR_FREE_ORDER, LIFO) ? count - 1 - i
                   : is_at(row, FACTOR_FREE_ORDER, EVERY_OTHER)
                       ? (2 * i + (2 * i >= count && count % 2 == 0)) % count
                       : i * stride % count;
        if (!is_at(row, FACTOR_FREE_ORDER, ALL_BUT_ONE) || k != kept)
            write_free(writer, batch.first + (uint32_t)k);
    }
}

/* One block is resized back and forth. */
static void resize_often(const struct row *row, size_t count)
{
    size_t other = row->scenario->level[FACTOR_MADE_BY] >= SHRUNK ? larger(row, row->size)
                                                                  : smaller(row, row->size);
    uint32_t slot = make(row, row->size, 0);
    for (size_t i = 0; i < count && slot != NO_SLOT; i++)
        resize(row, slot, i % 2 == 0 ? other : row->size, 0);
    step_as(row, FREER, 0);
    if (slot != NO_SLOT)
        write_free(row->writer, slot);
}

static size_t size_of_use(const struct row *row, size_t use)
{
    const struct factor_level *level = scenario_level(row->scenario, FACTOR_SIZE);
    switch (row->scenario->level[FACTOR_SIZES]) {
    case EACH_IN_TURN:
        return level->low + (row->size - level->low + use) % (level->high - level->low + 1);
    case ANY_SIZE:
        return size_in(row);
    default:
        return row->size;
    }
}

/* Blocks come, are resized and go, each at a time of its own. */
static void churn(const struct row *row, size_t count)
{
    enum { MOST_LIVE = 64 };
    struct writer *writer = row->writer;
    uint32_t slots[MOST_LIVE];
    size_t live = 0, wanted = 2 + below(row, MOST_LIVE - 2);
    for (size_t i = 0; i < count && writer_left(writer) > MOST_LIVE; i++) {
        size_t k = live > 0 ? below(row, live) : 0, choice = below(row, 8);
        if (live == 0 || (choice < 4 && live < wanted)) {
            slots[live] = make(row, size_of_use(row, i), i);
            if (slots[live] == NO_SLOT)
                continue;
            fill(row, slots[live++]);
        } else if (choice < 6) {
            resize(row, slots[k], below(row, 4) == 0 ? larger(row, row->size) : size_of_use(row, i),
                   i);
        } else {
            step_as(row, FREER, i);
            write_free(writer, slots[k]);
            slots[k] = slots[--live];
        }
    }
    step_as(row, FREER, count);
    while (live-- > 0)
        write_free(writer, slots[live]);
}

/* Between its size and others, and at last to its own.  Another block is written to the place that
 * it left, as a place that comes back still has what was in it. */
static void resize_back_and_forth(const struct row *row, uint32_t slot, size_t size, size_t use)
{
    size_t other = size;
    for (size_t left = number_in(row, FACTOR_RESIZES); left > 0; left--) {
        if (other == size || below(row, 8) == 0)
            other = below(row, 2) == 0 ? larger(row, size) : smaller(row, size);
        resize(row, slot, left % 2 == 0 ? other : size, use);
        uint32_t there = write_malloc(row->writer, left % 2 == 0 ? size : other);
        if (there != NO_SLOT)
            write_free(row->writer, there);
    }
}

/* Blocks come, are filled, and go, in rounds of a few.  A thread has a round to itself, as it takes
 * longer to start than to make a hundred calls. */
static void use_blocks(const struct row *row)
{
    enum { MOST_IN_ROUND = 64, FEW = 4 };
    uint32_t slots[MOST_IN_ROUND];
    size_t count = number_in(row, FACTOR_REPETITION);
    unsigned maker = row->scenario->level[FACTOR_MADE_BY];
    bool has_threads =
        !is_at(row, FACTOR_THREADS, SAME) && !is_at(row, FACTOR_THREADS, ONE_AFTER_ANOTHER);
    size_t round = has_threads                                     ? MOST_IN_ROUND
                   : is_at(row, FACTOR_THREADS, ONE_AFTER_ANOTHER) ? 1
                                                                   : 1 + below(row, FEW);
    if (scenario_is_one_step(row->scenario)) {
        step_as(row, MAKER, 0);
        write_temporaries(row->writer, row->size, count,
                          maker >= BY_CALLOC_N_1 && maker <= BY_CALLOC_N_K);
        return;
    }
    if (count > SCENARIO_MANY) {
        resize_often(row, MIN(count, writer_left(row->writer) / 2));
        return;
    }
    if (!has_threads && is_at(row, FACTOR_FREE_ORDER, RANDOM_ORDER)) {
        churn(row, count);
        return;
    }
    for (size_t done = 0; done < count; done += round) {
        if (done > 0 && is_at(row, FACTOR_PRESSURE, REQUEST_REFUSED))
            begin_pressure(row);
        size_t now = MIN(round, count - done);
        bool is_last = done + now >= count,
             keeps = is_at(row, FACTOR_FREE_ORDER, NO_FREE) && is_last;
        size_t kept = is_at(row, FACTOR_FREE_ORDER, ALL_BUT_ONE) && is_last ? below(row, now) : now;
        for (size_t i = 0; i < now; i++) {
            slots[i] = make(row, size_of_use(row, done + i), done / round);
            if (slots[i] != NO_SLOT)
                fill(row, slots[i]);
            if (slots[i] != NO_SLOT && (done + i == 0 || is_at(row, FACTOR_RESIZES, RESIZED_FEW)))
                resize_back_and_forth(row, slots[i], size_of_use(row, done + i), done / round);
        }
        step_as(row, FREER, done / round);
        for (size_t i = 0; i < now && !keeps; i++) {
            if (slots[i] != NO_SLOT && i != kept)
                write_free(row->writer, slots[i]);
        }
    }
}

/* What was freed is asked for again: zeroed, in one piece, in parts. */
static void use_again(const struct row *row)
{
    struct writer *writer = row->writer;
    bool keeps = below(row, 2) == 0;
    for (size_t i = 2 + below(row, 4); i > 0; i--) {
        size_t size = below(row, 2) == 0   ? row->size
                      : below(row, 2) == 0 ? larger(row, row->size)
                                           : smaller(row, row->size);
        uint32_t slot =
            below(row, 2) == 0 ? write_calloc(writer, size, 1) : write_malloc(writer, size);
        if (slot != NO_SLOT && below(row, 3) == 0)
            write_realloc(writer, slot,
                          below(row, 2) == 0 ? larger(row, size) : smaller(row, size));
        if (slot != NO_SLOT && (!keeps || below(row, 2) == 0))
            write_free(writer, slot);
    }
}

/* ---- a thread that is stopped ---------------------------------------------------------------- */

struct few {
    const size_t *sizes;
    size_t count;
    uint32_t most_live; /* blocks */
};

static size_t any_size(struct writer *writer, const struct few *few)
{
    return few->sizes[random_below(&writer->random, few->count)];
}

/* The newest block, half of the time: only it may end where the memory begins that was never used.
 */
static uint32_t newest_or_any(struct writer *writer)
{
    return writer->live_count > 0 && random_below(&writer->random, 2) == 0
               ? writer->live[writer->live_count - 1]
               : writer_any(writer);
}

static void write_any(struct writer *writer, const struct few *few)
{
    uint32_t slot = newest_or_any(writer);
    size_t size = any_size(writer, few);
    if (slot == NO_SLOT ||
        (writer->live_count < few->most_live && random_below(&writer->random, 2) == 0))
        write_made(writer, size);
    else if (random_below(&writer->random, 4) == 0)
        write_realloc(writer, slot, size);
    else
        write_free(writer, slot);
}

/* Two are made and the first goes: a list then begins as before, and is another.  What counts its
 * changes has to come round to the same number. */
static void write_exchange(struct writer *writer, size_t size)
{
    enum { MOST_PAIRS = 32 };
    uint32_t first = write_malloc(writer, size), second = write_malloc(writer, size);
    if (random_below(&writer->random, 2) == 0)
        write_temporaries(writer, size, 1 + random_below(&writer->random, MOST_PAIRS), false);
    if (random_below(&writer->random, 4) == 0)
        write_malloc(writer, size);
    if (first != NO_SLOT && second != NO_SLOT)
        write_free(writer, first);
}

static void write_stopped(struct writer *writer, const struct few *few)
{
    enum { LONGEST_LOG2 = 8, MOST_CALLS = 4, EXCHANGES = 3 };
    size_t power = (size_t)1 << random_below(&writer->random, LONGEST_LOG2);
    writer->thread = 0;
    write_other(writer, STEP_STOP, power + random_below(&writer->random, power), 0);
    write_any(writer, few);
    writer->thread = 1;
    if (random_below(&writer->random, EXCHANGES) == 0) {
        write_exchange(writer, any_size(writer, few));
        return;
    }
    for (size_t calls = 1 + random_below(&writer->random, MOST_CALLS); calls > 0; calls--)
        write_any(writer, few);
}

void interleaved_write(struct writer *writer, const size_t *sizes, size_t size_count, size_t stops)
{
    enum { BEFORE = 24, STOPPED = 3, LONGEST = 8, MOST_LIVE = 32, FREED = 6 };
    const struct few few = {sizes, size_count,
                            4 + (uint32_t)random_below(&writer->random, MOST_LIVE)};
    for (size_t i = random_below(&writer->random, BEFORE); i > 0; i--) {
        writer->thread = (uint16_t)random_below(&writer->random, 2);
        write_any(writer, &few);
    }
    while (stops > 0 && writer_left(writer) > LONGEST) {
        if (random_below(&writer->random, STOPPED) != 0) {
            write_stopped(writer, &few);
            stops--;
            continue;
        }
        writer->thread = (uint16_t)random_below(&writer->random, 2);
        if (random_below(&writer->random, FREED) == 0)
            write_free_batch(writer, 0, writer->slots);
        else
            write_any(writer, &few);
    }
    writer->thread = 0;
}

/* Of a few sizes, so that the threads meet in the same lists; or of many, so that lists are empty
 * and memory is taken that was never used. */
static void write_stops(const struct row *row)
{
    enum { FEW = 3, MANY = 32, MANY_EVERY = 8 };
    size_t sizes[MANY] = {row->size};
    size_t count = below(row, MANY_EVERY) == 0 ? MANY : 1 + below(row, FEW);
    for (size_t i = 1; i < count; i++)
        sizes[i] = below(row, 2) == 0 ? size_in(row) : larger(row, row->size);
    interleaved_write(row->writer, sizes, count, number_in(row, FACTOR_REPETITION));
}

/* ---- the row --------------------------------------------------------------------------------- */

size_t scenario_write(const struct scenario *scenario, struct writer *writer)
{
    enum { USES = 2 };
    struct row row = {.scenario = scenario, .writer = writer};
    uint64_t pause = scenario_level(scenario, FACTOR_TIME)->low;
    row.size = size_in(&row);
    if (is_at(&row, FACTOR_THREADS, STOPPED_INSIDE)) {
        write_stops(&row);
        return row.size;
    }
    writer->told = (enum told)scenario->level[FACTOR_FREE_SIZE];
    if (writer->told >= NULL_AS_WELL) /* perhaps the first call of all */
        write_other(writer, STEP_FREE_NULL, writer->told == NULL_AS_WELL ? 0 : row.size, 0);
    prepare_memory(&row);
    struct batch batch = make_batch(&row);
    writer->thread = 0;
    if (is_at(&row, FACTOR_PROCESS, FORK_IN_TURNS) || is_at(&row, FACTOR_PROCESS, FORK_AT_ONCE))
        write_other(writer, STEP_FORK, is_at(&row, FACTOR_PROCESS, FORK_IN_TURNS) ? 1 : 0, 0);
    begin_pressure(&row);
    use_blocks(&row);
    writer->thread = 0;
    end_pressure(&row);
    free_batch(&row, batch);
    writer->thread = 0;
    if (pause != 0) {
        for (unsigned i = 0; i < USES; i++)
            use_again(&row); /* what is to be given back after a time is in use by then */
        write_other(writer, STEP_PAUSE, pause, 0);
    }
    if (is_at(&row, FACTOR_THREADS, IN_DESTRUCTOR))
        writer->thread = 1 | STEP_IN_DESTRUCTOR;
    if (is_at(&row, FACTOR_PROCESS, AT_EXIT))
        writer->thread = STEP_AT_EXIT;
    use_again(&row);
    writer->thread = 0;
    return row.size;
}

void scenarios_write(const struct scenario_limits *limits, struct writer *writer)
{
    enum { LEAST_LEFT = 16, ENDS_EVERY = 32 };
    struct scenario scenario;
    do {
        scenario = scenario_draw(&writer->random, limits);
        scenario_write(&scenario, writer);
        if (writer->live_bytes > writer->most_bytes / 2)
            write_free_batch(writer, 0, writer->slots);
    } while (writer_left(writer) > LEAST_LEFT && scenario.level[FACTOR_PROCESS] == ONE_PROCESS &&
             random_below(&writer->random, ENDS_EVERY) != 0);
}
