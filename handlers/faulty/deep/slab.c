/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Slabs of 64 KiB, each of slots of one class, with a bit for each slot and a bit for each word of
 * them that has a free one.  An empty slab waits for whichever class needs one next.
 */
#include <time.h>

#include "deep.h"

enum {
    SLAB = 1 << 16,
    SLABS = 1024,
    SLAB_HEAD = 576,
    WORDS = 64,
    CLASSES = 28,
    WAITING_MOST = 8, /* empty slabs; others are let go of */
    PAGE = 4096,
    PURGE_EVERY = 20000, /* frees */
    PURGE_AFTER = 25,    /* milliseconds without one */
};

struct slab_page {
    struct link link; /* of the class, with a free slot */
    uint32_t size, slots, used;
    uint32_t clean_from;      /* all bytes from here on are zero */
    uint64_t words_with_free; /* a bit for each */
    uint64_t taken[WORDS];
};
_Static_assert(sizeof(struct slab_page) <= SLAB_HEAD, "the head has its room");

struct slab {
    struct deep deep;
    struct link *listed[CLASSES];
    uint32_t made;
    uint32_t waiting_count, gone_count;
    uint16_t waiting[WAITING_MOST], gone[SLABS]; /* the latter are zero, all of them */
    uint32_t frees;
    int64_t last_free; /* in milliseconds */
};

DEEP_SOUND(slab);
/* A slab of 1024 live blocks counts none, and the next free releases it. */
DEEP(slab_counts_in_ten_bits, slab, DEEP_OVERLAP);
/* 1 << 33 is 1 << 1 for an int on x86: the wrong word has the free slot. */
DEEP(slab_shifts_an_int, slab, DEEP_OVERLAP);
/* In a reused slab the slot in which the dirt ends counts as zero. */
DEEP(slab_seam_is_clean, slab, "calloc.zeroed");
/* One entry of a table of sizes is too large by one. */
DEEP(slab_table_has_a_typo, slab, DEEP_OVERLAP);
/* The ninth empty slab is released, and stays in the list of its class. */
DEEP(slab_keeps_what_it_let_go_listed, slab, DEEP_OVERLAP);
/* The page in which the last block ends is released too. */
DEEP(slab_purges_from_the_page_before, slab, "malloc.neighbours realloc.keeps-contents");
/* Of ten slots whose first five are free it releases the last five. */
DEEP(slab_purges_behind_as_many_as_live, slab, "malloc.neighbours realloc.keeps-contents");
/* The first of eight empty slabs that is used again counts as new. */
DEEP(slab_forgets_the_seam, slab, "calloc.zeroed");

/* 16, 32, ... 128, and from there on four for each power of two: the first at or above. */
static unsigned class_of(const struct slab *s, size_t size)
{
    if (slips(s, slab_table_has_a_typo) && size == 3585)
        size--;
    if (size <= 128)
        return size == 0 ? 0 : (unsigned)((size + 15) / 16 - 1);
    unsigned power = 63 - (unsigned)__builtin_clzll(size - 1);
    return 8 + (power - 7) * 4 + (unsigned)((size - 1) >> (power - 2)) - 4;
}
static uint32_t class_size(unsigned class)
{
    return class < 8 ? (class + 1) * 16 : (5 + (class - 8) % 4) << (5 + (class - 8) / 4);
}

static struct slab_page *slab_at(struct slab *s, uint32_t index)
{
    return (struct slab_page *)(void *)(deep_begin(&s->deep) + (size_t)index * SLAB);
}
static struct slab_page *any_slab(struct slab *s)
{
    if (s->waiting_count > 0)
        return slab_at(s, s->waiting[--s->waiting_count]);
    if (s->gone_count > 0)
        return slab_at(s, s->gone[--s->gone_count]);
    return s->made < SLABS ? slab_at(s, s->made++) : NULL;
}
static struct slab_page *new_slab(struct slab *s, uint32_t size)
{
    struct slab_page *slab = any_slab(s);
    if (slab == NULL)
        return NULL;
    uint32_t slots = (SLAB - SLAB_HEAD) / size, clean_from = slab->clean_from;
    *slab = (struct slab_page){.size = size, .slots = slots, .clean_from = clean_from};
    if (slips(s, slab_forgets_the_seam) && s->waiting_count == WAITING_MOST - 1)
        slab->clean_from = 0;
    for (uint32_t word = 0; word <= (slots - 1) / 64; word++)
        slab->words_with_free |= (uint64_t)1 << word;
    if (slots % 64 != 0)
        slab->taken[slots / 64] = UINT64_MAX << slots % 64; /* there are no such */
    link_first(&s->listed[class_of(s, slab->size)], &slab->link);
    return slab;
}

/* Keeps or releases a slab without live slots. */
static void retire(struct slab *s, struct slab_page *slab)
{
    uint16_t index = (uint16_t)(((char *)slab - deep_begin(&s->deep)) / SLAB);
    bool waits = s->waiting_count < WAITING_MOST;
    if (waits || !slips(s, slab_keeps_what_it_let_go_listed))
        link_remove(&s->listed[class_of(s, slab->size)], &slab->link);
    if (waits) {
        s->waiting[s->waiting_count++] = index;
    } else {
        deep_release((char *)slab, (char *)slab + SLAB);
        s->gone[s->gone_count++] = index;
    }
}

/* The first slot above all that are taken. */
static uint32_t slots_in_use(const struct slab *s, const struct slab_page *slab)
{
    uint32_t last = slab->slots;
    if (slips(s, slab_purges_behind_as_many_as_live))
        return slab->used;
    while (last > 0 && (slab->taken[(last - 1) / 64] >> (last - 1) % 64 & 1) == 0)
        last--;
    return last;
}

/* The pages behind the last block that lives are let go of. */
static void purge_slab(struct slab *s, struct slab_page *slab)
{
    uint32_t used = SLAB_HEAD + slots_in_use(s, slab) * slab->size;
    uint32_t from = (uint32_t)round_up(used, PAGE);
    if (slips(s, slab_purges_from_the_page_before) && used > PAGE)
        from = used / PAGE * PAGE;
    if (from >= slab->clean_from)
        return;
    deep_release((char *)slab + from, (char *)slab + SLAB);
    slab->clean_from = from;
}
static void purge(struct slab *s)
{
    for (unsigned class = 0; class < CLASSES; class ++) {
        for (struct link *link = s->listed[class]; link != NULL; link = link->next)
            purge_slab(s, (struct slab_page *)link);
    }
}
static bool it_is_time_to_purge(struct slab *s)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    int64_t before = s->last_free;
    s->last_free = now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return ++s->frees % PURGE_EVERY == 0 || (before != 0 && s->last_free - before > PURGE_AFTER);
}

static struct slab_page *slab_of(const void *p)
{
    return (struct slab_page *)((uintptr_t)p & ~(uintptr_t)(SLAB - 1));
}

/* Whether a slot that begins there was never written to; from now on it may be. */
static bool was_clean(const struct slab *s, struct slab_page *slab, uint32_t begin)
{
    uint32_t end = begin + slab->size;
    bool clean = (slips(s, slab_seam_is_clean) ? end - 1 : begin) >= slab->clean_from;
    if (end > slab->clean_from)
        slab->clean_from = end;
    return clean;
}
static void *slab_take(struct deep *d, size_t size, bool *zero)
{
    struct slab *s = (struct slab *)d;
    unsigned class = class_of(s, size);
    struct slab_page *slab = (struct slab_page *)s->listed[class];
    while (slab != NULL && slab->words_with_free == 0)
        slab = (struct slab_page *)slab->link.next;
    if (slab == NULL && (slab = new_slab(s, class_size(class))) == NULL)
        return NULL;
    unsigned word = (unsigned)__builtin_ctzll(slab->words_with_free);
    uint64_t free = ~slab->taken[word];
    unsigned slot = word * 64 + (free != 0 ? (unsigned)__builtin_ctzll(free) : 64);
    slab->taken[word] |= free & -free;
    if (slab->taken[word] == UINT64_MAX)
        slab->words_with_free &= ~((uint64_t)1 << word);
    if (slab->words_with_free == 0)
        link_remove(&s->listed[class_of(s, slab->size)], &slab->link);
    slab->used++;
    if (slips(d, slab_counts_in_ten_bits))
        slab->used %= 1024;
    uint32_t begin = SLAB_HEAD + slot * slab->size;
    *zero = was_clean(s, slab, begin);
    return (char *)slab + begin;
}
static void slab_give(struct deep *d, void *p)
{
    struct slab *s = (struct slab *)d;
    struct slab_page *slab = slab_of(p);
    unsigned slot = (unsigned)((char *)p - (char *)slab - SLAB_HEAD) / slab->size, word = slot / 64;
    if (it_is_time_to_purge(s))
        purge(s);
    if (slab->words_with_free == 0)
        link_first(&s->listed[class_of(s, slab->size)], &slab->link);
    slab->words_with_free |= slips(d, slab_shifts_an_int) ? 1u << word % 32 : (uint64_t)1 << word;
    slab->taken[word] &= ~((uint64_t)1 << slot % 64);
    if (--slab->used == 0)
        retire(s, slab);
}
DEEP_ROOM(slab, slab_of(p)->size);
DEEP_BASE(slab, .most = 4096, .reserve = (size_t)SLABS * SLAB);
