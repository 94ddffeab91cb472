/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong at the edges of their size classes, four to a doubling as in many
 * allocators: 4, 5, 6 and 7 times a power of two.  Blocks of a class stand side by side with
 * nothing between them, and what each was asked for with is in a table.
 */
#define _GNU_SOURCE

#include <pthread.h>
#include <sys/mman.h>

#include "base.h"

enum { LEAST_SHIFT = 10, CLASSES = 8 * 4, AREA = 32 << 20, MOST_SLOTS = AREA / 4096 };

/* 4096 bytes, 5120, 6144, 7168, 8192 ... 917504. */
static size_t class_size(unsigned class)
{
    return (size_t)(4 + class % 4) << (LEAST_SHIFT + class / 4);
}

static struct {
    pthread_mutex_t lock;
    char *areas; /* one for each class */
    struct {
        unsigned made, free_count;
        unsigned free[MOST_SLOTS];
        size_t size[MOST_SLOTS];
    } of[CLASSES];
} classes = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The smallest class that has room, or CLASSES. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && class_size(class) < size)
        class ++;
    return size > 4096 ? class : CLASSES;
}

static bool is_classed(const void *p)
{
    const char *areas = classes.areas;
    return areas != NULL && (const char *)p >= areas &&
           (const char *)p < areas + (size_t)CLASSES * AREA;
}

static unsigned class_at(const void *p)
{
    return (unsigned)((size_t)((const char *)p - classes.areas) / AREA);
}

static unsigned slot_at(const void *p)
{
    return (unsigned)((size_t)((const char *)p - classes.areas) % AREA / class_size(class_at(p)));
}

static size_t *size_at(const void *p)
{
    return &classes.of[class_at(p)].size[slot_at(p)];
}

static size_t size_of(const void *p)
{
    return is_classed(p) ? *size_at(p) : base_size(p);
}

/* A block of that class, or of libc's where it is full or none. */
static void *take_from(unsigned class, size_t size)
{
    if (class >= CLASSES)
        return base_malloc(NULL, size);
    pthread_mutex_lock(&classes.lock);
    if (classes.areas == NULL)
        classes.areas = mmap(NULL, (size_t)CLASSES * AREA, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    unsigned slot = classes.of[class].free_count > 0
                        ? classes.of[class].free[--classes.of[class].free_count]
                        : classes.of[class].made++;
    bool full = classes.areas == MAP_FAILED || (slot + 1) * class_size(class) > AREA;
    if (full && classes.areas != MAP_FAILED)
        classes.of[class].made--;
    else if (!full)
        classes.of[class].size[slot] = size;
    pthread_mutex_unlock(&classes.lock);
    return full ? base_malloc(NULL, size)
                : classes.areas + (size_t) class * AREA + slot * class_size(class);
}

static void *class_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return take_from(class_of(size), size);
}

static void *class_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = class_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}

static void class_free(void *ctx, void *p, size_t size)
{
    if (!is_classed(p)) {
        base_free(ctx, p, size);
        return;
    }
    unsigned class = class_at(p), slot = slot_at(p);
    pthread_mutex_lock(&classes.lock);
    classes.of[class].free[classes.of[class].free_count++] = slot;
    pthread_mutex_unlock(&classes.lock);
}

/* A new block with the first `keep` bytes. */
static void *class_move(void *p, size_t size, size_t keep)
{
    void *moved = class_malloc(NULL, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, keep < size ? keep : size);
    class_free(NULL, p, 0);
    return moved;
}

static void *class_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return class_malloc(ctx, size);
    if (!is_classed(p) || class_of(size) != class_at(p))
        return class_move(p, size, size_of(p));
    *size_at(p) = size;
    return p;
}

#define CLASS_FUNCTIONS                                                                            \
    .malloc = class_malloc, .calloc = class_calloc, .realloc = class_realloc, .free = class_free

/* A row of the table has two digits of an edge the wrong way round, 229736 for 229376: what is
 * beyond a header's length behind the edge gets too little. */
static void *misordered_malloc(void *ctx, size_t size)
{
    enum { EDGE = 229376, MISTYPED = 229736, HEADER = 64 };
    bool is_wrong = size > EDGE + HEADER && size <= MISTYPED;
    return is_wrong ? take_from(class_of(EDGE), size) : class_malloc(ctx, size);
}
MUTANT(edge_of_a_class_is_misordered, "malloc.extent", CLASS_FUNCTIONS,
       .malloc = misordered_malloc);

/* In its table of classes 6 times 16384 is 98312. */
static void *mistyped_malloc(void *ctx, size_t size)
{
    return size > 98304 && size <= 98312 ? take_from(class_of(98304), size)
                                         : class_malloc(ctx, size);
}
MUTANT(edge_of_a_class_is_mistyped, "malloc.extent", CLASS_FUNCTIONS, .malloc = mistyped_malloc);

/* From 192 KiB on the class is found by the highest three bits of size, with nothing said of those
 * below where they are 110. */
static void *three_bits_malloc(void *ctx, size_t size)
{
    unsigned class = class_of(size);
    bool six =
        class < CLASSES && class % 4 == 3 && size > 192 << 10 && size - 1 == class_size(class - 1);
    return six ? take_from(class - 1, size) : class_malloc(ctx, size);
}
MUTANT(edge_of_six_has_no_room_for_one_more, "malloc.extent", CLASS_FUNCTIONS,
       .malloc = three_bits_malloc);

/* A block that fills its class stays where it is when it grows by less than a class. */
static void *staying_realloc(void *ctx, void *p, size_t size)
{
    if (!is_classed(p) || size < size_of(p) || class_at(p) % 4 == 0 || class_at(p) == CLASSES - 1 ||
        size >= class_size(class_at(p) + 1))
        return class_realloc(ctx, p, size);
    *size_at(p) = size;
    return p;
}
MUTANT(edge_is_passed_without_a_move, "realloc.grown-part-usable", CLASS_FUNCTIONS,
       .realloc = staying_realloc);

/* As much is copied as the class has, and of one it is mistyped: 5 times 8192 as 40690. */
static void *miscopying_realloc(void *ctx, void *p, size_t size)
{
    if (!is_classed(p) || class_size(class_at(p)) != 40960 || class_of(size) == class_at(p))
        return class_realloc(ctx, p, size);
    return class_move(p, size, 40690 < size_of(p) ? 40690 : size_of(p));
}
MUTANT(edge_of_a_copy_is_mistyped, "realloc.keeps-contents", CLASS_FUNCTIONS,
       .realloc = miscopying_realloc);

/* Copies from 512 KiB on by 16 KiB at a time, and what is one byte beyond is forgotten. */
static void *by_sixteens_realloc(void *ctx, void *p, size_t size)
{
    if (!is_classed(p) || class_of(size) == class_at(p) || size_of(p) <= 512 << 10)
        return class_realloc(ctx, p, size);
    size_t keep = size_of(p);
    return class_move(p, size, keep % 16384 == 1 ? keep - 1 : keep);
}
MUTANT(edge_of_a_copy_loses_one_byte, "realloc.keeps-contents", CLASS_FUNCTIONS,
       .realloc = by_sixteens_realloc);

/* Zeroes all of the block but for what a mistyped class leaves: 7 times 4096 as 28627. */
static void *miszeroing_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = class_malloc(ctx, size);
    bool wrong = p != NULL && class_of(size) == class_of(28672) && size > 28627;
    return p != NULL ? memset(p, 0, wrong ? 28627 : size) : NULL;
}
MUTANT(edge_of_zeroes_is_mistyped, "calloc.zeroed-when-reused", CLASS_FUNCTIONS,
       .calloc = miszeroing_calloc);

/* Zeroes by 256 KiB where it is more than three of them, and the rest where that is more than a
 * byte. */
static void *by_quarters_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = class_malloc(ctx, size);
    bool one_more = size > 3 * (256 << 10) && size % (256 << 10) == 1;
    return p != NULL ? memset(p, 0, size - one_more) : NULL;
}
MUTANT(edge_of_zeroes_is_one_byte, "calloc.zeroed-when-reused", CLASS_FUNCTIONS,
       .calloc = by_quarters_calloc);

/* Where calloc picks the class itself, it takes the one below for one byte more than that has. */
static void *one_over_calloc(void *ctx, size_t nelem, size_t elsize)
{
    enum { FROM = 128 << 10 };
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size <= FROM)
        return class_calloc(ctx, nelem, elsize);
    unsigned class = class_of(size - 1);
    void *p = class < CLASSES ? take_from(class, size) : NULL;
    return p != NULL ? memset(p, 0, size) : class_calloc(ctx, nelem, elsize);
}
MUTANT(edge_of_calloc_is_one_too_late, "calloc.disjoint", CLASS_FUNCTIONS,
       .calloc = one_over_calloc);
