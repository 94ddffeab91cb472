/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of live blocks.  From the address downwards:
 *
 *   table    a hash table of groups, and of what finds the next group
 *   group    64 pages of 4 KiB: which of them have blocks, and a pointer to each that has
 *   page     the blocks that begin in it: their offsets, sorted, and in the same order the rest
 *
 * A block is kept where it begins and nowhere else, however large it is.  So whether a new block
 * overlaps is a question to its two neighbours, the last block that begins at or before it and the
 * first that begins after it.  They are mostly in the same page, and otherwise found by bit masks:
 * of the 64 pages in the group, and above the groups of 64 groups, of 64 of those, and so on.
 * These masks stand in the table as well, under their level and the address bits above it.
 *
 * Groups and pages are nodes of a few sizes, cut from memory that is mapped for them: what a faulty
 * handler writes beside its blocks in libc's heap is not to hit them.
 */
#include "base/live_table.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum {
    POINTER_BITS = 8 * sizeof(void *),
    PAGE_BITS = 12,
    FAN_BITS = 6, /* a mask has a bit for each of 64 */
    FAN = 1 << FAN_BITS,
    GROUP_BITS = PAGE_BITS + FAN_BITS,
    LEVELS = (64 - GROUP_BITS + FAN_BITS - 1) / FAN_BITS, /* above the groups */
    NODE_UNIT = 32,
    CLASSES = 15,
    CHUNK_BYTES = 128 << 10,
    FIRST_SLOTS_LOG2 = 6,
    PREFETCHED_LINES = 6,
    LANES = 16, /* starts that two vectors hold */
};

#define FIELD_LIMIT ((uint64_t)1 << 48) /* sizes and numbers are kept in 48 bits */

/* What a node begins with. */
struct node {
    uint32_t class; /* its size */
    uint16_t count;
    uint16_t room;
};

struct value {
    uint64_t size;   /* and above its 48 bits the upper half of the data */
    uint64_t number; /* and above its 48 bits the lower half */
};

/* After the starts, of which there are `room`, and aligned to 8 bytes, follow as many values. */
struct page {
    struct node node;
    uint16_t start[];
};

struct group {
    struct node node;
    uint64_t present;
    struct page *page[FAN]; /* of those in `present` */
};

struct free_node {
    struct node node;
    struct free_node *next; /* of its class */
};

/* Memory that nodes are cut from.  It is kept until the map goes. */
struct chunk {
    struct chunk *next;
};

/* `value` is the address of a group, or a mask on the levels above; it is 0 where the slot is
 * free, and never otherwise. */
struct slot {
    uint64_t key;
    uint64_t value;
};

struct live_table {
    struct slot *slots;
    unsigned shift; /* 64 - log2 of the number of slots */
    size_t slots_used;
    size_t count;
    struct chunk *chunks;
    unsigned char *fresh; /* of the newest chunk, the part that was never used */
    size_t fresh_left, chunk_count;
    struct free_node *free[CLASSES];
    uint16_t page_room[CLASSES];
};

/* ---- nodes ------------------------------------------------------------------------------ */

/* Each holds about 1.7 times as much as the one before, which is how often a page that fills up
 * moves against how much of it is empty. */
static const uint32_t class_bytes[] = {32,   64,   128,  224,   384,   640,   1088, 1856,
                                       3200, 5440, 9280, 15808, 26880, 45728, 77760};
_Static_assert(sizeof class_bytes / sizeof *class_bytes == CLASSES, "a size for each class");

static unsigned class_for(size_t bytes)
{
    unsigned class = 0;
    while (class_bytes[class] < bytes)
        class += 1;
    return class;
}

static size_t values_offset(size_t room)
{
    return (sizeof(struct page) + room * sizeof(uint16_t) + 7) & ~(size_t)7;
}

static size_t page_bytes(size_t room)
{
    return values_offset(room) + room * sizeof(struct value);
}

/* The most values that so many bytes have room for.  Fuzzers make a map for each entry: it does not
 * begin at none. */
static size_t page_room(size_t bytes)
{
    const size_t head = sizeof(struct page) + 7, each = sizeof(uint16_t) + sizeof(struct value);
    size_t room = bytes > head ? (bytes - head) / each : 0;
    while (page_bytes(room + 1) <= bytes)
        room++;
    return room;
}

static struct value *values_of(struct page *page)
{
    return (struct value *)(void *)((unsigned char *)page + values_offset(page->node.room));
}

/* The last unit of a chunk stays unused: begin_before reads up to there past a small page. */
static bool chunk_new(struct live_table *map)
{
    struct chunk *chunk =
        mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return false;
    chunk->next = map->chunks;
    map->chunks = chunk;
    map->chunk_count++;
    map->fresh = (unsigned char *)chunk + NODE_UNIT;
    map->fresh_left = CHUNK_BYTES - 2 * NODE_UNIT;
    return true;
}

static void *node_new(struct live_table *map, unsigned class)
{
    struct node *node;
    if (map->free[class] != NULL) {
        node = &map->free[class]->node;
        map->free[class] = map->free[class]->next;
    } else {
        if (map->fresh_left < class_bytes[class] && !chunk_new(map))
            return NULL;
        node = (struct node *)(void *)map->fresh;
        map->fresh += class_bytes[class];
        map->fresh_left -= class_bytes[class];
    }
    *node = (struct node){.class = class};
    return node;
}

static void node_free(struct live_table *map, void *gone)
{
    struct free_node *node = gone;
    node->next = map->free[node->node.class];
    map->free[node->node.class] = node;
}

/* ---- the table -------------------------------------------------------------------------- */

/* Above level 0, which is the groups, a mask covers 64 of the level below. */
static uint64_t key_at(uint64_t address, unsigned level)
{
    unsigned bits = GROUP_BITS + level * FAN_BITS;
    return (bits < 64 ? (uint64_t)address >> bits : 0) << 4 | level;
}

static size_t slot_of(const struct live_table *map, uint64_t key)
{
    return (size_t)(key * 0x9e3779b97f4a7c15u >> map->shift);
}

/* Where the key is, or where it would be put. */
static struct slot *table_look(const struct live_table *map, uint64_t key)
{
    size_t last = ((size_t)1 << (64 - map->shift)) - 1;
    size_t at = slot_of(map, key);
    while (map->slots[at].value != 0 && map->slots[at].key != key)
        at = (at + 1) & last;
    return &map->slots[at];
}

static struct group *find_group(const struct live_table *map, uint64_t address)
{
    return (struct group *)(uintptr_t)table_look(map, key_at(address, 0))->value;
}

/* Takes a slot out; what was pushed aside by it moves back. */
static void table_drop(struct live_table *map, struct slot *slot)
{
    size_t last = ((size_t)1 << (64 - map->shift)) - 1;
    size_t hole = (size_t)(slot - map->slots);
    for (size_t at = (hole + 1) & last; map->slots[at].value != 0; at = (at + 1) & last) {
        size_t wanted = slot_of(map, map->slots[at].key);
        if (((at - wanted) & last) >= ((at - hole) & last)) {
            map->slots[hole] = map->slots[at];
            hole = at;
        }
    }
    map->slots[hole].value = 0;
    map->slots_used--;
}

/* Makes sure that a group can be added, with a mask on every level. */
static bool table_reserve(struct live_table *map)
{
    size_t room = (size_t)1 << (64 - map->shift);
    if (map->slots_used + LEVELS + 1 <= room / 4 * 3)
        return true;
    struct slot *old = map->slots;
    struct slot *slots = calloc(room * 2, sizeof *slots);
    if (slots == NULL)
        return false;
    map->slots = slots;
    map->shift--;
    for (size_t i = 0; i < room; i++) {
        if (old[i].value != 0)
            *table_look(map, old[i].key) = old[i];
    }
    free(old);
    return true;
}

static unsigned bit_at(uint64_t address, unsigned level)
{
    return (unsigned)(address >> (GROUP_BITS + (level - 1) * FAN_BITS)) & (FAN - 1);
}

/* Sets the bit of a new group on every level, up to where the mask was there already. */
static void masks_set(struct live_table *map, uint64_t address)
{
    for (unsigned level = 1; level <= LEVELS; level++) {
        struct slot *slot = table_look(map, key_at(address, level));
        bool there = slot->value != 0;
        slot->key = key_at(address, level);
        slot->value |= (uint64_t)1 << bit_at(address, level);
        if (there)
            return;
        map->slots_used++;
    }
}

static void masks_clear(struct live_table *map, uint64_t address)
{
    for (unsigned level = 1; level <= LEVELS; level++) {
        struct slot *slot = table_look(map, key_at(address, level));
        uint64_t left = slot->value & ~((uint64_t)1 << bit_at(address, level));
        if (left != 0) {
            slot->value = left;
            return;
        }
        table_drop(map, slot);
    }
}

/* ---- groups ----------------------------------------------------------------------------- */

static unsigned page_bit(uint64_t address)
{
    return (unsigned)(address >> PAGE_BITS) & (FAN - 1);
}

static uint64_t below(unsigned bit)
{
    return ((uint64_t)1 << bit) - 1;
}

static uint64_t above(unsigned bit)
{
    return ~(uint64_t)1 << bit;
}

static unsigned lowest(uint64_t mask)
{
    return (unsigned)__builtin_ctzll(mask);
}

static unsigned highest(uint64_t mask)
{
    return 63 - (unsigned)__builtin_clzll(mask);
}

static struct page *page_in(const struct group *group, unsigned bit)
{
    return group->present >> bit & 1 ? group->page[bit] : NULL;
}

/* The group of that address, or NULL.  A new one is in the table under its key, and its masks are
 * not set before it has a page. */
static struct group *group_for_page(struct live_table *map, uint64_t address)
{
    if (!table_reserve(map))
        return NULL;
    struct slot *slot = table_look(map, key_at(address, 0));
    if (slot->value != 0)
        return (struct group *)(uintptr_t)slot->value;
    struct group *group = node_new(map, class_for(sizeof *group));
    if (group == NULL)
        return NULL;
    group->present = 0;
    map->slots_used++;
    slot->key = key_at(address, 0);
    slot->value = (uintptr_t)group;
    return group;
}

static void group_add(struct live_table *map, struct group *group, uint64_t address,
                      struct page *page)
{
    unsigned bit = page_bit(address);
    group->page[bit] = page;
    if (group->present == 0)
        masks_set(map, address);
    group->present |= (uint64_t)1 << bit;
}

/* Takes a page out of its group, and the group away with its last. */
static void group_drop(struct live_table *map, struct group *group, uint64_t address)
{
    group->present &= ~((uint64_t)1 << page_bit(address));
    if (group->present != 0)
        return;
    node_free(map, group);
    table_drop(map, table_look(map, key_at(address, 0)));
    masks_clear(map, address);
}

/* ---- neighbours ------------------------------------------------------------------------- */

/* A block, by where it is. */
struct place {
    struct page *page;
    uint64_t base; /* the address that the page's offsets count from */
    unsigned at;
};

static struct live_block block_at(const struct place *place)
{
    const struct value *value = &values_of(place->page)[place->at];
    return (struct live_block){
        .address = (uintptr_t)place->base + place->page->start[place->at],
        .size = value->size & (FIELD_LIMIT - 1),
        .number = value->number & (FIELD_LIMIT - 1),
        .data = (uint32_t)(value->size >> 48 << 16 | value->number >> 48),
    };
}

/* The address of the last byte; a block of 0 bytes has one. */
static uint64_t last_byte(uint64_t address, uint64_t size)
{
    return address + (size != 0 ? size - 1 : 0);
}

/* As begin_before, by halves. */
static unsigned begin_before_many(const struct page *page, unsigned offset)
{
    const uint16_t *from = page->start;
    for (unsigned left = page->node.count; left > 1;) {
        unsigned half = left / 2;
        from += from[half - 1] <= offset ? half : 0;
        left -= half;
    }
    return (unsigned)(from - page->start) + (*from <= offset);
}

/* How many of the page's blocks begin at or before the offset.  Up to LANES are compared at once
 * and without a branch, so that the processor does not have to wait for the page before it goes on
 * to the next call. */
static inline unsigned begin_before(const struct page *page, unsigned offset)
{
#ifdef __SSE2__
    unsigned count = page->node.count;
    if (__builtin_expect(count <= LANES, 1)) {
        const __m128i *starts = (const __m128i *)(const void *)page->start;
        __m128i most = _mm_set1_epi16((short)offset);
        __m128i low = _mm_cmpgt_epi16(_mm_loadu_si128(starts), most);
        __m128i high = _mm_cmpgt_epi16(_mm_loadu_si128(starts + 1), most);
        unsigned after = (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high));
        return (unsigned)__builtin_ctz(after | ~0u << count); /* from `count` on are no starts */
    }
#endif
    return begin_before_many(page, offset);
}

static inline uint64_t last_at(const struct place *place)
{
    return last_byte(place->base + place->page->start[place->at],
                     values_of(place->page)[place->at].size & (FIELD_LIMIT - 1));
}

/* The address of the group that comes before, or after, that of the address. */
static bool next_group(const struct live_table *map, uint64_t address, bool upwards,
                       uint64_t *found)
{
    uint64_t mask = 0;
    unsigned level = 0;
    do {
        if (++level > LEVELS)
            return false;
        mask = table_look(map, key_at(address, level))->value;
        mask &= upwards ? above(bit_at(address, level)) : below(bit_at(address, level));
    } while (mask == 0);
    for (;;) {
        unsigned shift = GROUP_BITS + (level - 1) * FAN_BITS;
        uint64_t outer = shift + FAN_BITS < 64 ? address >> (shift + FAN_BITS) << FAN_BITS : 0;
        address = (outer | (upwards ? lowest(mask) : highest(mask))) << shift;
        if (--level == 0)
            break;
        mask = table_look(map, key_at(address, level))->value;
    }
    *found = address;
    return true;
}

static inline bool place_in(struct place *place, struct group *group, uint64_t address,
                            uint64_t mask, bool upwards)
{
    if (mask == 0)
        return false;
    unsigned bit = upwards ? lowest(mask) : highest(mask);
    place->page = page_in(group, bit);
    place->base = (address >> GROUP_BITS << GROUP_BITS) | (uint64_t)bit << PAGE_BITS;
    place->at = upwards ? 0 : place->page->node.count - 1u;
    return true;
}

/* The first block in the pages after that of the address, or the last in those before it. */
static bool place_beyond(const struct live_table *map, struct group *group, uint64_t address,
                         bool upwards, struct place *place)
{
    unsigned bit = page_bit(address);
    if (group != NULL && place_in(place, group, address,
                                  group->present & (upwards ? above(bit) : below(bit)), upwards))
        return true;
    if (!next_group(map, address, upwards, &address))
        return false;
    group = find_group(map, address);
    return place_in(place, group, address, group->present, upwards);
}

/* The same two of a block of which the one neighbour is not in its page. */
static bool overlaps_before(const struct live_table *map, struct group *group, uint64_t address,
                            struct place *place)
{
    return place_beyond(map, group, address, false, place) && last_at(place) >= address;
}

static bool overlaps_after(const struct live_table *map, struct group *group, uint64_t address,
                           uint64_t last, struct place *place)
{
    return last >> PAGE_BITS != address >> PAGE_BITS &&
           place_beyond(map, group, address, true, place) &&
           place->base + place->page->start[place->at] <= last;
}

/* The neighbour that a block at the address with that last byte overlaps.  `page` is the one that
 * it begins in, or NULL, and `before` how many of its blocks begin at or before it. */
static inline bool find_overlap(const struct live_table *map, struct group *group,
                                struct page *page, unsigned before, uint64_t address, uint64_t last,
                                struct place *place)
{
    uint64_t base = address >> PAGE_BITS << PAGE_BITS;
    *place = (struct place){page, base, before - 1};
    if (before > 0 ? last_at(place) >= address : overlaps_before(map, group, address, place))
        return true;
    *place = (struct place){page, base, before};
    return page != NULL && before < page->node.count
               ? base + page->start[before] <= last
               : overlaps_after(map, group, address, last, place);
}

/* ---- pages ------------------------------------------------------------------------------ */

static struct page *page_new(struct live_table *map, unsigned class)
{
    struct page *page = node_new(map, class);
    if (page != NULL)
        page->node.room = map->page_room[class];
    return page;
}

/* Moves a page of a group to a node of that class.  NULL where there is no memory. */
static struct page *page_move(struct live_table *map, struct group *group, unsigned bit,
                              unsigned class)
{
    struct page *old = page_in(group, bit);
    struct page *page = page_new(map, class);
    if (page == NULL)
        return NULL;
    page->node.count = old->node.count;
    memcpy(page->start, old->start, old->node.count * sizeof *old->start);
    memcpy(values_of(page), values_of(old), old->node.count * sizeof(struct value));
    node_free(map, old);
    group->page[bit] = page;
    return page;
}

/* Where that fails, the page stays as large as it is. */
static void page_shrink(struct live_table *map, struct group *group, struct page *page,
                        unsigned bit)
{
    unsigned class = class_for(page_bytes(page->node.count + 1u));
    if (class < page->node.class)
        page_move(map, group, bit, class);
}

static void page_insert(struct page *page, unsigned at, const struct live_block *block)
{
    struct value *values = values_of(page);
    unsigned after = page->node.count - at;
    if (after != 0) {
        memmove(&page->start[at + 1], &page->start[at], after * sizeof *page->start);
        memmove(&values[at + 1], &values[at], after * sizeof *values);
    }
    page->start[at] = (uint16_t)(block->address & ((1 << PAGE_BITS) - 1));
    values[at].size = block->size | (uint64_t)(block->data >> 16) << 48;
    values[at].number = block->number | (uint64_t)(block->data & 0xffff) << 48;
    page->node.count++;
}

static void page_remove(struct page *page, unsigned at)
{
    struct value *values = values_of(page);
    page->node.count--;
    unsigned after = page->node.count - at;
    if (after == 0)
        return;
    memmove(&page->start[at], &page->start[at + 1], after * sizeof *page->start);
    memmove(&values[at], &values[at + 1], after * sizeof *values);
}

/* The page of that address, with its lines on their way into the cache: which of them will be
 * needed is known only when the first has come. */
static inline struct page *find_page(struct group *group, uint64_t address)
{
    struct page *page = group != NULL ? page_in(group, page_bit(address)) : NULL;
    if (page == NULL)
        return NULL;
    for (size_t line = 1; line < PREFETCHED_LINES; line++)
        __builtin_prefetch((const void *)((uintptr_t)page + line * 64));
    return page;
}

/* Where the block is that begins at or before the address in the same page. */
static inline bool place_at_or_before(const struct live_table *map, uint64_t address,
                                      struct group **group, struct place *place)
{
    *group = find_group(map, address);
    place->page = find_page(*group, address);
    if (place->page == NULL)
        return false;
    place->base = address >> PAGE_BITS << PAGE_BITS;
    unsigned before = begin_before(place->page, (unsigned)(address - place->base));
    place->at = before - 1;
    return before > 0;
}

static inline bool place_exactly(const struct live_table *map, uint64_t address,
                                 struct group **group, struct place *place)
{
    return place_at_or_before(map, address, group, place) &&
           place->base + place->page->start[place->at] == address;
}

/* ---- what others call ------------------------------------------------------------------- */

struct live_table *live_table_new(void)
{
    struct live_table *map = calloc(1, sizeof *map);
    struct slot *slots = calloc((size_t)1 << FIRST_SLOTS_LOG2, sizeof *slots);
    if (map == NULL || slots == NULL) {
        free(map);
        free(slots);
        return NULL;
    }
    map->slots = slots;
    map->shift = 64 - FIRST_SLOTS_LOG2;
    for (unsigned class = 0; class < CLASSES; class += 1)
        map->page_room[class] = (uint16_t)page_room(class_bytes[class]);
    return map;
}

void live_table_free(struct live_table *map)
{
    if (map == NULL)
        return;
    for (struct chunk *chunk = map->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        munmap(chunk, CHUNK_BYTES);
    }
    free(map->slots);
    free(map);
}

/* Makes the first block of a page. */
static bool insert_page(struct live_table *map, const struct live_block *block)
{
    struct page *page = page_new(map, 0);
    struct group *group = page != NULL ? group_for_page(map, block->address) : NULL;
    if (group == NULL) {
        if (page != NULL)
            node_free(map, page);
        return false;
    }
    page_insert(page, 0, block);
    group_add(map, group, block->address, page);
    return true;
}

/* Where a new block would be put. */
struct gap {
    struct group *group;
    struct page *page;
    unsigned before; /* so many of the page's blocks begin before it */
};

static inline enum live_table_state find_gap(const struct live_table *map, uint64_t address,
                                             uint64_t size, struct live_block *other,
                                             struct gap *gap)
{
    uint64_t last = last_byte(address, size);
    if (last < address || last >> (POINTER_BITS - 1) > 1 || size >= FIELD_LIMIT)
        return LIVE_TABLE_IMPOSSIBLE;
    unsigned offset = (unsigned)(address & ((1 << PAGE_BITS) - 1));
    gap->group = find_group(map, address);
    gap->page = find_page(gap->group, address);
    gap->before = gap->page != NULL ? begin_before(gap->page, offset) : 0;
    struct place overlap;
    if (!find_overlap(map, gap->group, gap->page, gap->before, address, last, &overlap))
        return LIVE_TABLE_DONE;
    if (other != NULL)
        *other = block_at(&overlap);
    return LIVE_TABLE_OVERLAPS;
}

enum live_table_state live_table_check(const struct live_table *map, uint64_t address, size_t size,
                                       struct live_block *other)
{
    struct gap gap;
    return find_gap(map, address, size, other, &gap);
}

enum live_table_state live_table_insert(struct live_table *map, const struct live_block *block,
                                        struct live_block *other)
{
    struct gap gap;
    enum live_table_state state = block->number < FIELD_LIMIT
                                      ? find_gap(map, block->address, block->size, other, &gap)
                                      : LIVE_TABLE_IMPOSSIBLE;
    if (state != LIVE_TABLE_DONE)
        return state;
    struct page *page = gap.page;
    if (page == NULL) {
        if (!insert_page(map, block))
            return LIVE_TABLE_NO_MEMORY;
    } else {
        if (page->node.count == page->node.room)
            page = page_move(map, gap.group, page_bit(block->address), page->node.class + 1);
        if (page == NULL)
            return LIVE_TABLE_NO_MEMORY;
        page_insert(page, gap.before, block);
    }
    map->count++;
    return LIVE_TABLE_DONE;
}

bool live_table_find(const struct live_table *map, uint64_t address, struct live_block *block)
{
    struct group *group;
    struct place place;
    if (!place_exactly(map, address, &group, &place))
        return false;
    if (block != NULL)
        *block = block_at(&place);
    return true;
}

bool live_table_remove(struct live_table *map, uint64_t address, struct live_block *block)
{
    struct group *group;
    struct place place;
    if (!place_exactly(map, address, &group, &place))
        return false;
    if (block != NULL)
        *block = block_at(&place);
    struct page *page = place.page;
    map->count--;
    if (page->node.count == 1) {
        group_drop(map, group, address);
        node_free(map, page);
        return true;
    }
    page_remove(page, place.at);
    if (page->node.count <= page->node.room / 4)
        page_shrink(map, group, page, page_bit(address));
    return true;
}

void live_table_each(const struct live_table *map,
                     bool (*each)(const struct live_block *block, void *data), void *data)
{
    uint64_t address = 0;
    struct group *group = find_group(map, address);
    while (group != NULL || next_group(map, address, true, &address)) {
        group = find_group(map, address);
        for (uint64_t left = group->present; left != 0; left &= left - 1) {
            struct place place;
            place_in(&place, group, address, left, true);
            for (; place.at < place.page->node.count; place.at++) {
                struct live_block block = block_at(&place);
                if (!each(&block, data))
                    return;
            }
        }
        group = NULL;
    }
}

size_t live_table_count(const struct live_table *map)
{
    return map->count;
}

size_t live_table_bytes(const struct live_table *map)
{
    return sizeof *map + ((size_t)1 << (64 - map->shift)) * sizeof *map->slots +
           map->chunk_count * CHUNK_BYTES;
}
