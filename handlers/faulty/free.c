/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/free.c find.
 */
#include "mapped.h"
#include "python.h"

/* ---- NULL ------------------------------------------------------------------------------------ */

/* Writes to the header, so that the block is not found again. */
static void free_unchecked(void *p)
{
    void *raw = (char *)p - BASE_HEADER;
    *(volatile size_t *)raw = 0;
    free(raw);
}
DEFECT(free, free_of_null_crashes, "free.null free.null-with-size")
{
    free_unchecked(p);
}
DEFECT(free, free_of_null_with_size_crashes, "free.null-with-size")
{
    if (p != NULL || size != 0)
        free_unchecked(p);
}

/* Counts NULL as a live block; malloc fails if the count is absurd. */
static size_t live;
static void *count(void *p)
{
    live += p != NULL;
    return p;
}
FUNCTION_RETURNS(malloc, counting, live < PTRDIFF_MAX ? count(base_malloc(ctx, size)) : NULL);
HOOK_AFTER(calloc, counting, true, live += made != NULL);
FUNCTION_RETURNS(realloc, counting,
                 p != NULL ? base_realloc(ctx, p, size) : counting_malloc(ctx, size));
HOOK_BEFORE(free, counting, true, live--);
MUTANT(free_of_null_is_counted, "free.null free.null-with-size", FUNCTIONS(counting));

/* ---- sizes that are wrong -------------------------------------------------------------------- */

/* Large blocks are mappings, of which free unmaps the given size. */
enum { PAGE = 4096, LARGE = 32768 };
static size_t with_a_page_before(size_t size)
{
    return (size + 2 * PAGE - 1) / PAGE * PAGE;
}
FUNCTION(malloc, mapping)
{
    if (size < LARGE || size > PTRDIFF_MAX / 2)
        return base_malloc(ctx, size);
    char *map = mmap(NULL, with_a_page_before(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map != MAP_FAILED ? base_finish(map + PAGE - BASE_HEADER, size) : NULL;
}
FUNCTION(free, mapping)
{
    if (p == NULL || base_size(p) < LARGE)
        base_free(ctx, p, size);
    else
        munmap((char *)p - PAGE, with_a_page_before(min(size, base_size(p))));
}
MUTANT_DERIVED(free_unmaps_given_size, "free.best-guess-size", mapping);

#define BOTH_SIZES "free.best-guess-size free.any-size"
BEFORE(free, free_wipes_given_size, "free.any-size", p != NULL, memset(p, 0, size));
BEFORE(free, free_aborts_on_wrong_size, BOTH_SIZES, p != NULL && size != base_size(p), abort());
FREES(free_keeps_on_wrong_size, BOTH_SIZES, p != NULL && size == base_size(p));
FREES(free_of_size_0_is_ignored, "free.any-size", size != 0);

/* Subtracts the given size from what is live; malloc fails beyond a limit. */
enum { ALLOWED = 1 << 30 };
static size_t booked;
static void *book(void *p, size_t size)
{
    booked += p != NULL ? size : 0;
    return p;
}
FUNCTION_RETURNS(malloc, booking,
                 size > ALLOWED || booked > ALLOWED - size ? NULL
                                                           : book(base_malloc(ctx, size), size));
FUNCTION_RETURNS(calloc, booking, book(base_calloc(ctx, nelem, elsize), nelem *elsize));
FUNCTION(realloc, booking)
{
    size_t old = p != NULL ? base_size(p) : 0;
    return book(base_realloc(ctx, p, size), size - old);
}
HOOK_BEFORE(free, booking, true, booked -= p != NULL ? size : 0);
MUTANT(free_books_given_size, BOTH_SIZES, FUNCTIONS(booking));

/* A table has no row for sizes that cannot be. */
BEFORE(free, free_of_huge_size_crashes, "free.any-size",
       p != NULL && size >= PTRDIFF_MAX && size <= SIZE_MAX - 15, abort());

/* Caches one freed block of at least `from` bytes under the given size. */
struct told {
    size_t from, size;
    void *kept;
};
FUNCTION(malloc, told)
{
    struct told *told = ctx;
    void *p = size >= told->from && size <= told->size ? swap(&told->kept, NULL) : NULL;
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, told)
{
    struct told *told = ctx;
    if (p != NULL && min(base_size(p), size) >= told->from && size <= MAPPED_MOST) {
        told->size = size;
        p = swap(&told->kept, p);
    }
    mapped_free(ctx, p, size);
}
#define KEEPS_AS_TOLD(defect, from)                                                                \
    MUTANT(defect, "free.any-size", .ctx = &(struct told){from, 0, NULL}, FUNCTIONS(mapped),       \
           FUNCTIONS(told, malloc, free))
KEEPS_AS_TOLD(free_caches_by_given_size, 0);
KEEPS_AS_TOLD(free_keeps_large_as_told, 512 * KIB);

/* Unmaps the given size of a mapping, even if it is larger than the mapping. */
DEFECT_IN(mapped, free, free_unmaps_large_as_told, "free.any-size")
{
    if (!is_mapped(p) || base_size(p) > size)
        mapped_free(ctx, p, size);
    else if (size >> 20 < 1 << 20)
        munmap((char *)p - BASE_HEADER, pages_for(size));
}

/* ---- contents that are read ------------------------------------------------------------------ */

/* Small blocks are cells without a header.  A word before other blocks marks that they have one,
 * and the last word of the cell before may look the same. */
enum { CELL = 64, CELLS = 1 << 14 };
#define MARK ((size_t)0x4b4c424547524148)
static pthread_mutex_t cell_lock = PTHREAD_MUTEX_INITIALIZER;
static _Alignas(CELL) char cells[CELLS][CELL];
static size_t cells_made = 1;
static void *free_cell; /* the first; each contains the address of the next */

FUNCTION(malloc, cell)
{
    LOCK(cell_lock);
    void *p = free_cell;
    if (size > CELL || (p == NULL && cells_made == CELLS))
        return base_set_note(base_malloc(ctx, size), MARK);
    if (p == NULL)
        return cells[cells_made++];
    memcpy(&free_cell, p, sizeof p);
    return p;
}
FUNCTION(free, cell)
{
    if (p == NULL)
        return;
    if (base_note(p) == MARK)
        return base_free(ctx, base_set_note(p, 0), size);
    LOCK(cell_lock);
    memcpy(p, &free_cell, sizeof p);
    free_cell = p;
}
#define cell_size(p) (base_note(p) == MARK ? base_size(p) : CELL)
DERIVE_CALLOC(cell);
DERIVE_REALLOC(cell, cell_size);
MUTANT(contents_before_look_like_a_header, "free.any-contents", FUNCTIONS(cell));

/* Fills freed blocks with 0xdd, and aborts if a block that is freed begins like that. */
FUNCTION(malloc, wary)
{
    void *p = base_malloc(ctx, size);
    return p != NULL ? memset(p, 0, min(size, 16)) : NULL;
}
FUNCTION(free, wary)
{
    if (p != NULL && base_size(p) >= 8 && memcmp(p, "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", 8) == 0)
        abort();
    if (p != NULL)
        memset(p, 0xdd, min(base_size(p), 4096));
    base_free(ctx, p, size);
}
MUTANT(contents_look_freed, "free.any-contents", FUNCTIONS(wary, malloc, free));

/* ---- poison ---------------------------------------------------------------------------------- */

#define POISON "free.poison-stays-inside"
BEFORE(free, free_poisons_rounded_size, POISON, p != NULL,
       memset(p, 0xdd, (base_size(p) + 63) / 64 * 64));
/* The bytes between two blocks are libc's. */
BEFORE(free, free_poisons_before_1480, POISON,
       p != NULL && base_size(p) >= 1416 && base_size(p) <= 1480, memset((char *)p - 32, 0xdd, 8));

/* Writes to a freed block fifteen frees later, even if malloc returned it again. */
DEFECT(free, free_poisons_later, POISON)
{
    enum { RING = 16 };
    static char *ring[RING];
    static size_t next;
    if (p == NULL)
        return;
    char **place = &ring[next++ % RING];
    if (*place != NULL)
        memset(*place, 0xdd, 8);
    *place = base_size(p) >= 8 && base_size(p) <= 1000 ? p : NULL;
    base_free(ctx, p, size);
}

/* ---- errno and exceptions -------------------------------------------------------------------- */

AFTER(free, free_zeroes_errno, "free.keeps-errno", true, errno = 0);
BEFORE(free, free_of_null_sets_errno, "free.keeps-errno", p == NULL, errno = EINVAL);
/* Fails with EINVAL, because p is not at a page. */
BEFORE(free, free_sets_errno_for_large, "free.keeps-errno", p != NULL && base_size(p) >= 1 << 20,
       madvise(p, base_size(p), MADV_DONTNEED));

#define EXCEPTION "free.keeps-pending-exception"
AFTER(free, free_clears_exception, EXCEPTION, has_gil(), PyErr_Clear());
BEFORE(free, free_clears_one_in_a_thousand, EXCEPTION, p != NULL && EVERY(1024) && has_gil(),
       PyErr_Clear());
BEFORE(free, free_clears_exception_of_large_blocks, EXCEPTION,
       p != NULL && base_size(p) >= 32 << 20 && has_gil(), PyErr_Clear());
BEFORE(free, free_replaces_exception, EXCEPTION " env.no-exception-set",
       p != NULL && size != base_size(p) && has_gil(),
       PyErr_SetString(PyExc_RuntimeWarning, "free: wrong size"));

/* Restores the exception without its traceback.  Since 3.14 NULL does not remove it. */
DEFECT(free, free_drops_the_traceback, EXCEPTION)
{
    PyObject *type, *value, *traceback;
    bool fetches = p != NULL && base_size(p) >= 4096 && has_gil();
    if (fetches)
        PyErr_Fetch(&type, &value, &traceback);
    base_free(ctx, p, size);
    if (fetches && type != NULL) {
        PyErr_NormalizeException(&type, &value, &traceback);
        PyException_SetTraceback(value, (PyObject *)&_Py_NoneStruct);
    }
    if (fetches)
        PyErr_Restore(type, value, NULL);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* Blocks note the thread that made them. */
static size_t me(void)
{
    return THREAD_NUMBER;
}
static bool is_mine(const void *p)
{
    return base_note(p) == me();
}
NOTES(owner, me());
FUNCTION_RETURNS(realloc, owner, base_set_note(base_realloc(ctx, p, size), me()));
FUNCTION_FREES(owner, p != NULL && is_mine(p));
MUTANT(free_elsewhere_is_ignored, "free.in-another-thread", FUNCTIONS(owner));

/* A block that another thread frees waits in a row for the next malloc of its owner.  If the row is
 * full, the block is lost. */
static struct row {
    size_t least, limit, count; /* of blocks in the row: least bytes, most, number */
    void *blocks[1 << 16];
} short_row = {.limit = 256}, long_row = {.least = 64 * KIB, .limit = 1 << 16};
static pthread_mutex_t row_lock = PTHREAD_MUTEX_INITIALIZER;
FUNCTION(malloc, handing)
{
    struct row *row = ctx;
    LOCK(row_lock);
    for (size_t i = row->count; i-- > 0;) {
        void *p = row->blocks[i];
        if (is_mine(p)) {
            row->blocks[i] = row->blocks[--row->count];
            base_free(ctx, p, 0);
        }
    }
    return owner_malloc(ctx, size);
}
FUNCTION(free, handing)
{
    struct row *row = ctx;
    if (p == NULL || is_mine(p) || base_size(p) < row->least)
        return base_free(ctx, p, size);
    LOCK(row_lock);
    if (row->count < row->limit)
        row->blocks[row->count++] = p;
}
#define HANDING(defect, row)                                                                       \
    MUTANT(defect, "free.in-another-thread", .ctx = &(row), FUNCTIONS(owner, calloc, realloc),     \
           FUNCTIONS(handing, malloc, free))
HANDING(free_elsewhere_overfills_a_row, short_row);
HANDING(free_waits_for_the_owner, long_row);

/* Each thread has a short list of freed blocks, which is lost at its end. */
struct node {
    struct node *next;
};
static _Thread_local struct node *nodes;
static _Thread_local unsigned node_count;
FUNCTION(malloc, hoarding)
{
    struct node *node = nodes;
    if (node == NULL || base_size(node) < size)
        return base_malloc(ctx, size);
    nodes = node->next;
    node_count--;
    return node;
}
FUNCTION(free, hoarding)
{
    if (p == NULL || base_size(p) < sizeof(struct node) || node_count == 32)
        return base_free(ctx, p, size);
    ((struct node *)p)->next = nodes;
    nodes = p;
    node_count++;
}
MUTANT(free_elsewhere_is_lost, "free.in-another-thread", FUNCTIONS(hoarding, malloc, free));
