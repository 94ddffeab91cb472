/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong at the edges of their size classes: 4, 5, 6 and 7 times a power of two.
 * The blocks of a class are contiguous, and a table has their sizes.
 */
#include "mapped.h"

enum { LEAST_SHIFT = 10, CLASSES = 8 * 4, AREA = 32 * MIB, MOST_SLOTS = AREA / 4096 };

/* 4096 bytes, 5120, 6144, 7168, 8192 ... 917504. */
static size_t class_size(unsigned class)
{
    return (size_t)(4 + class % 4) << (LEAST_SHIFT + class / 4);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *areas; /* one for each class */
static struct {
    unsigned made, free_count;
    unsigned free[MOST_SLOTS];
    size_t size[MOST_SLOTS];
} classes[CLASSES];

/* The smallest class that has room; CLASSES: none. */
static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < CLASSES && class_size(class) < size)
        class ++;
    return size > 4096 ? class : CLASSES;
}
static bool is_classed(const void *p)
{
    return areas != NULL && (size_t)((const char *)p - areas) < (size_t)CLASSES * AREA;
}
static unsigned class_at(const void *p)
{
    return (unsigned)((size_t)((const char *)p - areas) / AREA);
}
static unsigned slot_at(const void *p)
{
    return (unsigned)((size_t)((const char *)p - areas) % AREA / class_size(class_at(p)));
}
static size_t *size_at(const void *p)
{
    return &classes[class_at(p)].size[slot_at(p)];
}
static size_t size_of(const void *p)
{
    return is_classed(p) ? *size_at(p) : base_size(p);
}

/* A block of that class; of libc if the class is full or CLASSES. */
static void *take_from(unsigned class, size_t size)
{
    if (class >= CLASSES)
        return base_malloc(NULL, size);
    LOCK(lock);
    if (areas == NULL && (areas = map_pool((size_t)CLASSES * AREA)) == NULL)
        return base_malloc(NULL, size);
    unsigned slot = classes[class].free_count > 0 ? classes[class].free[--classes[class].free_count]
                                                  : classes[class].made;
    if ((slot + 1) * class_size(class) > AREA)
        return base_malloc(NULL, size);
    classes[class].made += slot == classes[class].made;
    classes[class].size[slot] = size;
    return areas + (size_t) class * AREA + slot * class_size(class);
}
FUNCTION_RETURNS(malloc, classed, take_from(class_of(size), size));
FUNCTION(free, classed)
{
    if (!is_classed(p))
        return base_free(ctx, p, size);
    unsigned class = class_at(p), slot = slot_at(p);
    LOCK(lock);
    classes[class].free[classes[class].free_count++] = slot;
}
DERIVE_CALLOC(classed);

/* Moves p and copies the first `count` bytes. */
#define class_move(p, size, count)                                                                 \
    move_to(classed_malloc(NULL, size), p, min(count, size), classed_free)
FUNCTION(realloc, classed)
{
    if (p == NULL)
        return classed_malloc(ctx, size);
    if (!is_classed(p) || class_of(size) != class_at(p))
        return class_move(p, size, size_of(p));
    *size_at(p) = size;
    return p;
}

/* The table has 229736 instead of 229376. */
DEFECT_IN(classed, malloc, edge_of_a_class_is_misordered, "malloc.extent")
{
    bool is_wrong = size > 229376 + 64 && size <= 229736;
    return is_wrong ? take_from(class_of(229376), size) : classed_malloc(ctx, size);
}

/* Determines large classes by the highest three bits of the size: if they are 110, the bits below
 * are ignored. */
DEFECT_IN(classed, malloc, edge_of_six_has_no_room_for_one_more, "malloc.extent")
{
    unsigned class = class_of(size);
    bool is_wrong =
        class < CLASSES && class % 4 == 3 && size > 192 << 10 && size - 1 == class_size(class - 1);
    return take_from(is_wrong ? class - 1 : class, size);
}

/* A block that fills its class stays in place if it grows by less than a class. */
DEFECT_IN(classed, realloc, edge_is_passed_without_a_move, "realloc.grown-part-usable")
{
    if (!is_classed(p) || size < size_of(p) || class_at(p) % 4 == 0 || class_at(p) == CLASSES - 1 ||
        size >= class_size(class_at(p) + 1))
        return classed_realloc(ctx, p, size);
    *size_at(p) = size;
    return p;
}

/* Copies large blocks by 16 KiB, and does not copy a rest of one byte. */
DEFECT_IN(classed, realloc, edge_of_a_copy_loses_one_byte, "realloc.keeps-contents")
{
    if (!is_classed(p) || class_of(size) == class_at(p) || size_of(p) <= 512 << 10)
        return classed_realloc(ctx, p, size);
    size_t count = size_of(p);
    return class_move(p, size, count % 16384 == 1 ? count - 1 : count);
}

/* Clears 28627 instead of 28672 bytes of one class. */
DEFECT_IN(classed, calloc, edge_of_zeroes_is_mistyped, "calloc.zeroed")
{
    size_t size = product(nelem, elsize);
    bool is_wrong = class_of(size) == class_of(28672);
    return clear(classed_malloc(ctx, size), is_wrong ? min(size, 28627) : size);
}

/* Clears by 256 KiB, and does not clear a rest of one byte. */
DEFECT_IN(classed, calloc, edge_of_zeroes_is_one_byte, "calloc.zeroed")
{
    size_t size = product(nelem, elsize);
    bool is_wrong = size > 3 * 256 * KIB && size % (256 * KIB) == 1;
    return clear(classed_malloc(ctx, size), size - is_wrong);
}

/* Determines the class of a large block by its size less 1. */
DEFECT_IN(classed, calloc, edge_of_calloc_is_one_too_late, "calloc.product")
{
    size_t size = product(nelem, elsize);
    return clear(take_from(class_of(size > 128 * KIB ? size - 1 : size), size), size);
}

/* Blocks of 64 pages do not mark their pages as used: (1 << 64) - 1 is 0 on x86. */
static char *run;
FUNCTION(malloc, run)
{
    LOCK(lock);
    if (run == NULL)
        run = map_pool(64 * MAPPED_PAGE);
    return run != NULL && pages_for(size) == 64 * MAPPED_PAGE ? base_finish(run, size)
                                                              : base_malloc(ctx, size);
}
FUNCTION_FREES(run, run == NULL || p != run + BASE_HEADER);
MUTANT_DERIVED(run_of_64_pages_takes_none, "malloc.disjoint", run);

/* Eight blocks of each class between 38 and 64 KiB are kept after their count, and a ninth one,
 * whose place is the count of the next class. */
enum { ROW = 64, FIRST_ROW = 600, ROWS = 1024, PLACES = 8 };
static uintptr_t rows[(ROWS + 1) * (PLACES + 1)];
static uintptr_t *row_for(size_t size)
{
    size_t row = size < (size_t)ROWS * ROW ? (size + ROW - 1) / ROW : 0;
    return row >= FIRST_ROW && row < ROWS ? &rows[row * (PLACES + 1)] : NULL;
}
FUNCTION(malloc, row)
{
    uintptr_t *row = row_for(size);
    if (row == NULL)
        return base_malloc(ctx, size);
    LOCK(lock);
    char *p = row[0] > 0 ? (char *)row[row[0]--] : base_malloc(ctx, (size + ROW - 1) / ROW * ROW);
    return p != NULL ? base_resize(p, size) : NULL;
}
FUNCTION(free, row)
{
    uintptr_t *row = p != NULL ? row_for(base_size(p)) : NULL;
    LOCK(lock);
    if (row != NULL && row[0] <= PLACES)
        row[++row[0]] = (uintptr_t)p;
    else
        base_free(ctx, p, size);
}
MUTANT_DERIVED(cache_row_takes_one_too_many, "free.any-order", row);
