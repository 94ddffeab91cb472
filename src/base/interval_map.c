/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The map of intervals: sorted pages, each with up to 84 intervals, in sorted order.
 *
 * Two binary searches find the neighbors of an address, and an insertion moves at most one page.
 * The pages are mapped apart from the heap of libc, where a faulty handler that writes out of
 * bounds would hit them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* mremap */
#endif

#include "base/interval_map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE_ROOM = 84, FIRST_PAGES = 16 };

struct value {
    size_t size;
    uint64_t value;
};

struct page {     /* 2 KiB */
    size_t count; /* at least 1 while the page is in use */
    uintptr_t address[PAGE_ROOM];
    struct value value[PAGE_ROOM];
};

/* `first` and `order` are sorted by address.  The addresses in a page are at least its `first`,
 * which is 0 for the first page, and below the `first` of the next page. */
struct interval_map {
    size_t count;
    struct page *pages;
    size_t used, room;
    uintptr_t *first;
    uint32_t *order; /* indices of pages; those from `used` on are not in use */
};

struct position {
    size_t page, at;
};

struct interval_map *interval_map_new(void)
{
    return calloc(1, sizeof(struct interval_map));
}

void interval_map_free(struct interval_map *map)
{
    if (map == NULL)
        return;
    if (map->pages != NULL)
        munmap(map->pages, map->room * sizeof *map->pages);
    free(map->first);
    free(map->order);
    free(map);
}

static struct page *page_at(const struct interval_map *map, size_t i)
{
    return &map->pages[map->order[i]];
}

/* Returns how many of the sorted addresses are at most `address`, without a branch
 * that the processor would have to predict. */
static inline size_t count_up_to(const uintptr_t *sorted, size_t count, uintptr_t address)
{
    const uintptr_t *from = sorted;
    while (count > 1) {
        size_t half = count / 2;
        const uintptr_t *middle = from + half;
        from = middle[-1] <= address ? middle : from;
        count -= half;
    }
    return (size_t)(from - sorted) + (count == 1 && *from <= address);
}

/* Returns the position behind the last interval that begins at or before the address. */
static inline struct position position_after(const struct interval_map *map, uintptr_t address)
{
    if (map->used == 0)
        return (struct position){0, 0};
    size_t i = count_up_to(map->first, map->used, address) - 1;
    const struct page *page = page_at(map, i);
    return (struct position){i, count_up_to(page->address, page->count, address)};
}

static inline struct interval interval_at(const struct page *page, size_t at)
{
    return (struct interval){page->address[at], page->value[at].size, page->value[at].value};
}

static inline uintptr_t last_of(uintptr_t address, size_t size)
{
    return address + (size != 0 ? size - 1 : 0);
}

static inline enum interval_state check_neighbors(const struct interval_map *map, uintptr_t address,
                                                  size_t size, struct position after,
                                                  struct interval *other)
{
    uintptr_t last = last_of(address, size);
    if (last < address)
        return INTERVAL_IMPOSSIBLE;
    if (map->used == 0)
        return INTERVAL_FREE;
    const struct page *page = page_at(map, after.page), *next = page;
    size_t at = after.at;
    if (at == page->count) {
        next = after.page + 1 < map->used ? page_at(map, after.page + 1) : NULL;
        at = 0;
    }
    if (next != NULL && next->address[at] <= last) {
        *other = interval_at(next, at);
        return INTERVAL_OVERLAPS;
    }
    at = after.at;
    if (at == 0) {
        if (after.page == 0)
            return INTERVAL_FREE;
        page = page_at(map, after.page - 1);
        at = page->count;
    }
    if (last_of(page->address[at - 1], page->value[at - 1].size) < address)
        return INTERVAL_FREE;
    *other = interval_at(page, at - 1);
    return INTERVAL_OVERLAPS;
}

enum interval_state interval_map_check(const struct interval_map *map, uintptr_t address,
                                       size_t size, struct interval *other)
{
    return check_neighbors(map, address, size, position_after(map, address), other);
}

static bool grow(struct interval_map *map)
{
    size_t room = map->room != 0 ? 2 * map->room : FIRST_PAGES;
    uintptr_t *first = realloc(map->first, room * sizeof *first);
    if (first == NULL)
        return false;
    map->first = first;
    uint32_t *order = realloc(map->order, room * sizeof *order);
    if (order == NULL)
        return false;
    map->order = order;
    size_t before = map->room * sizeof *map->pages, bytes = room * sizeof *map->pages;
    void *pages = map->pages != NULL ? mremap(map->pages, before, bytes, MREMAP_MAYMOVE)
                                     : mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED)
        return false;
    map->pages = pages;
    for (; map->room < room; map->room++)
        map->order[map->room] = (uint32_t)map->room;
    return true;
}

bool interval_map_reserve(struct interval_map *map, size_t count)
{
    while (map->room * PAGE_ROOM / 2 < count) { /* a page that is full is split */
        if (!grow(map))
            return false;
    }
    return true;
}

/* Puts an empty page at index i of the sorted ones. */
static struct page *add_page(struct interval_map *map, size_t i)
{
    if (map->used == map->room && !grow(map))
        return NULL;
    uint32_t index = map->order[map->used];
    size_t behind = map->used++ - i;
    memmove(map->first + i + 1, map->first + i, behind * sizeof *map->first);
    memmove(map->order + i + 1, map->order + i, behind * sizeof *map->order);
    map->first[i] = 0;
    map->order[i] = index;
    map->pages[index].count = 0;
    return &map->pages[index];
}

static void remove_page(struct interval_map *map, size_t i)
{
    uint32_t index = map->order[i];
    size_t behind = --map->used - i;
    memmove(map->first + i, map->first + i + 1, behind * sizeof *map->first);
    memmove(map->order + i, map->order + i + 1, behind * sizeof *map->order);
    map->order[map->used] = index;
    map->first[0] = 0;
}

static void move(struct page *page, size_t from, struct page *to_page, size_t to, size_t count)
{
    memmove(to_page->address + to, page->address + from, count * sizeof *page->address);
    memmove(to_page->value + to, page->value + from, count * sizeof *page->value);
}

/* Returns the page at `after`, with room for one more interval, or NULL.  A page without room is
 * split in two. */
static struct page *page_with_room(struct interval_map *map, struct position *after)
{
    enum { HALF = PAGE_ROOM / 2 };
    if (map->used == 0)
        return add_page(map, 0);
    struct page *page = page_at(map, after->page);
    if (page->count < PAGE_ROOM)
        return page;
    struct page *upper = add_page(map, after->page + 1);
    if (upper == NULL)
        return NULL;
    page = page_at(map, after->page); /* the pages may have moved */
    move(page, HALF, upper, 0, PAGE_ROOM - HALF);
    page->count = HALF;
    upper->count = PAGE_ROOM - HALF;
    map->first[after->page + 1] = upper->address[0];
    if (after->at <= HALF)
        return page;
    after->page++;
    after->at -= HALF;
    return upper;
}

enum interval_state interval_map_insert(struct interval_map *map, struct interval interval,
                                        struct interval *other)
{
    struct interval unused;
    struct position after = position_after(map, interval.address);
    enum interval_state state = check_neighbors(map, interval.address, interval.size, after,
                                                other != NULL ? other : &unused);
    if (state != INTERVAL_FREE)
        return state;
    struct page *page = page_with_room(map, &after);
    if (page == NULL)
        return INTERVAL_NO_MEMORY;
    move(page, after.at, page, after.at + 1, page->count - after.at);
    page->address[after.at] = interval.address;
    page->value[after.at] = (struct value){interval.size, interval.value};
    page->count++;
    map->count++;
    return INTERVAL_FREE;
}

/* Finds the interval that begins at the address, at the position before `after`. */
static inline struct page *find(const struct interval_map *map, uintptr_t address,
                                struct position *after, struct interval *found)
{
    *after = position_after(map, address);
    if (after->at == 0)
        return NULL;
    struct page *page = page_at(map, after->page);
    if (page->address[after->at - 1] != address)
        return NULL;
    if (found != NULL)
        *found = interval_at(page, after->at - 1);
    return page;
}

bool interval_map_find(const struct interval_map *map, uintptr_t address, struct interval *found)
{
    struct position after;
    return find(map, address, &after, found) != NULL;
}

bool interval_map_remove(struct interval_map *map, uintptr_t address, struct interval *removed)
{
    struct position after;
    struct page *page = find(map, address, &after, removed);
    if (page == NULL)
        return false;
    move(page, after.at, page, after.at - 1, page->count - after.at);
    map->count--;
    if (--page->count == 0)
        remove_page(map, after.page);
    return true;
}

size_t interval_map_count(const struct interval_map *map)
{
    return map->count;
}

struct interval *interval_map_list(const struct interval_map *map)
{
    struct interval *list = malloc((map->count + 1) * sizeof *list), *to = list;
    for (size_t i = 0; list != NULL && i < map->used; i++) {
        const struct page *page = page_at(map, i);
        for (size_t at = 0; at < page->count; at++)
            *to++ = interval_at(page, at);
    }
    return list;
}
