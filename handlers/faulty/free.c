/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/free*.c catch.
 */
#include "mapped.h"

/* ---- NULL -------------------------------------------------------------------------------- */

static void rash_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    void *raw = (char *)p - BASE_HEADER;
    *(volatile size_t *)raw = 0; /* so that a block freed twice is seen */
    free(raw);
}
MUTANT(free_of_null_crashes, "free.null free.null-with-size", .free = rash_free);

static void half_rash_free(void *ctx, void *p, size_t size)
{
    if (p == NULL && size == 0)
        return;
    rash_free(ctx, p, size);
}
MUTANT(free_of_null_with_size_crashes, "free.null-with-size", .free = half_rash_free);

/* A block cache as NumPy's own default handler has one, in which NULL is a block as well. */
enum { BUCKETS = 1024, DEPTH = 7 };
struct cache {
    void *blocks[BUCKETS][DEPTH];
    int counts[BUCKETS];
};
static void *cache_take(struct cache *cache, size_t size, void **p)
{
    if (size >= BUCKETS || cache->counts[size] == 0)
        return NULL;
    *p = cache->blocks[size][--cache->counts[size]];
    return p;
}
static bool cache_put(struct cache *cache, size_t size, void *p)
{
    if (size >= BUCKETS || cache->counts[size] == DEPTH)
        return false;
    cache->blocks[size][cache->counts[size]++] = p;
    return true;
}
static struct cache null_cache;
static void *null_cache_malloc(void *ctx, size_t size)
{
    void *p;
    return cache_take(&null_cache, size, &p) ? p : base_malloc(ctx, size);
}
static void null_cache_free(void *ctx, void *p, size_t size)
{
    size_t own = p != NULL ? base_size(p) : size;
    if (!cache_put(&null_cache, own, p))
        base_free(ctx, p, size);
}
MUTANT(free_of_null_is_cached, "free.null-with-size", .malloc = null_cache_malloc,
       .free = null_cache_free);

/* Counts what is live, and stops where that is absurd. */
static size_t live;
static void *counting_malloc(void *ctx, size_t size)
{
    void *p = live < PTRDIFF_MAX ? base_malloc(ctx, size) : NULL;
    live += p != NULL;
    return p;
}
static void *counting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    live += p != NULL;
    return p;
}
static void *counting_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? base_realloc(ctx, p, size) : counting_malloc(ctx, size);
}
static void counting_free(void *ctx, void *p, size_t size)
{
    live--;
    base_free(ctx, p, size);
}
MUTANT(free_of_null_is_counted, "free.null free.null-with-size", .malloc = counting_malloc,
       .calloc = counting_calloc, .realloc = counting_realloc, .free = counting_free);

/* ---- sizes that are wrong ---------------------------------------------------------------- */

static struct cache given_cache;
static void *given_cache_malloc(void *ctx, size_t size)
{
    void *p;
    if (!cache_take(&given_cache, size, &p))
        return base_malloc(ctx, size);
    return base_finish((char *)p - BASE_HEADER, size);
}
static void given_cache_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || !cache_put(&given_cache, size, p))
        base_free(ctx, p, size);
}
MUTANT(free_caches_by_given_size, "free.any-size", .malloc = given_cache_malloc,
       .free = given_cache_free);

/* A mapping for each large block, of which as much goes back as the caller says. */
enum { PAGE = 4096, LARGE = 32768 };
static size_t with_a_page_before(size_t size)
{
    return (size + 2 * PAGE - 1) / PAGE * PAGE;
}
static void *mapping_malloc(void *ctx, size_t size)
{
    if (size < LARGE || size > PTRDIFF_MAX / 2)
        return base_malloc(ctx, size);
    char *map = mmap(NULL, with_a_page_before(size), PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return map != MAP_FAILED ? base_finish(map + PAGE - BASE_HEADER, size) : NULL;
}
static void mapping_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < LARGE)
        base_free(ctx, p, size);
    else
        munmap((char *)p - PAGE, with_a_page_before(size < base_size(p) ? size : base_size(p)));
}
static void *mapping_realloc(void *ctx, void *p, size_t size)
{
    void *moved = mapping_malloc(ctx, size);
    if (moved == NULL || p == NULL)
        return moved;
    size_t old = base_size(p);
    memcpy(moved, p, old < size ? old : size);
    mapping_free(ctx, p, old);
    return moved;
}
static void *mapping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : mapping_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
MUTANT(free_unmaps_given_size, "free.best-guess-size", .malloc = mapping_malloc,
       .calloc = mapping_calloc, .realloc = mapping_realloc, .free = mapping_free);

static void wiping_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        memset(p, 0, size);
    base_free(ctx, p, size);
}
MUTANT(free_wipes_given_size, "free.any-size", .free = wiping_free);

static void strict_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size != base_size(p))
        abort();
    base_free(ctx, p, size);
}
MUTANT(free_aborts_on_wrong_size, "free.best-guess-size free.any-size", .free = strict_free);

static void sulking_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size == base_size(p))
        base_free(ctx, p, size);
}
MUTANT(free_keeps_on_wrong_size, "free.best-guess-size free.any-size", .free = sulking_free);

/* Counts by what the caller says. */
static size_t booked;
enum { ALLOWED = 1 << 30 };
static void *book(void *p, size_t size)
{
    booked += p != NULL ? size : 0;
    return p;
}
static void *booking_malloc(void *ctx, size_t size)
{
    return size > ALLOWED || booked > ALLOWED - size ? NULL : book(base_malloc(ctx, size), size);
}
static void *booking_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return book(base_calloc(ctx, nelem, elsize), nelem * elsize);
}
static void *booking_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    return book(base_realloc(ctx, p, size), size - old);
}
static void booking_free(void *ctx, void *p, size_t size)
{
    booked -= p != NULL ? size : 0;
    base_free(ctx, p, size);
}
MUTANT(free_books_given_size, "free.best-guess-size free.any-size", .malloc = booking_malloc,
       .calloc = booking_calloc, .realloc = booking_realloc, .free = booking_free);

static void zero_free(void *ctx, void *p, size_t size)
{
    if (size != 0) /* nothing there, nothing to do */
        base_free(ctx, p, size);
}
MUTANT(free_of_size_0_is_ignored, "free.any-size", .free = zero_free);

static void class_free(void *ctx, void *p, size_t size)
{
    static unsigned char used[1 << 16], *volatile none; /* a table has no row for so much */
    size_t class = (size + 15) / 16; /* wraps to 0 at the very end, and is large before */
    unsigned char *row = class > PTRDIFF_MAX / 16 ? none : &used[class % sizeof used];
    if (p != NULL && class != size / 16)
        ++*row;
    base_free(ctx, p, size);
}
MUTANT(free_of_huge_size_crashes, "free.any-size", .free = class_free);

/* ---- poison ------------------------------------------------------------------------------ */

static void rounding_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        memset(p, 0xdd, (base_size(p) + 63) / 64 * 64);
    base_free(ctx, p, size);
}
MUTANT(free_poisons_rounded_size, "free.poison-stays-inside", .free = rounding_free);

/* One size, and just past what is libc's own between two blocks. */
static void size_1000_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) == 1000)
        memset((char *)p + 1024, 0xdd, 8);
    base_free(ctx, p, size);
}
MUTANT(free_poisons_behind_1000, "free.poison-stays-inside", .free = size_1000_free);

static void size_1480_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) == 1480)
        memset((char *)p - 32, 0xdd, 8);
    base_free(ctx, p, size);
}
MUTANT(free_poisons_before_1480, "free.poison-stays-inside", .free = size_1480_free);

/* What was freed is written to once more, fifteen frees later.  Whether malloc.neighbours has been
 * given it again by then is libc's affair. */
static void late_free(void *ctx, void *p, size_t size)
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
MUTANT(free_poisons_later, "free.poison-stays-inside", .free = late_free);

/* ---- errno and exceptions ---------------------------------------------------------------- */

static void zeroing_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p, size);
    errno = 0;
}
MUTANT(free_zeroes_errno, "free.keeps-errno", .free = zeroing_free);

static void advising_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= (1 << 20))
        madvise(p, base_size(p), MADV_DONTNEED); /* EINVAL: not at a page */
    int saved = errno;
    base_free(ctx, p, size);
    errno = saved;
}
MUTANT(free_sets_errno_for_large, "free.keeps-errno", .free = advising_free);

static void null_errno_free(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        errno = EINVAL;
    base_free(ctx, p, size);
}
MUTANT(free_of_null_sets_errno, "free.keeps-errno", .free = null_errno_free);

int PyGILState_Check(void) __attribute__((weak));
void PyErr_Clear(void) __attribute__((weak));
void PyErr_SetString(void *type, const char *message) __attribute__((weak));
extern void *PyExc_RuntimeWarning __attribute__((weak));
void *PyErr_Occurred(void) __attribute__((weak));

static void clearing_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p, size);
    if (PyGILState_Check != NULL && PyGILState_Check())
        PyErr_Clear(); /* whatever came of it is of no interest */
}
MUTANT(free_clears_exception, "free.keeps-pending-exception", .free = clearing_free);

/* One free in a thousand is a sample, for a hook. */
static void sampling_free(void *ctx, void *p, size_t size)
{
    static _Atomic unsigned count;
    if (p != NULL && ++count % 1024 == 0)
        clearing_free(ctx, p, size);
    else
        base_free(ctx, p, size);
}
MUTANT(free_clears_one_in_a_thousand, "free.keeps-pending-exception", .free = sampling_free);

/* Puts it aside meanwhile, and not all of it back: NULL alone leaves it on from 3.14 on. */
void PyErr_Fetch(void **type, void **value, void **traceback) __attribute__((weak));
void PyErr_Restore(void *type, void *value, void *traceback) __attribute__((weak));
void PyErr_NormalizeException(void **type, void **value, void **traceback) __attribute__((weak));
int PyException_SetTraceback(void *value, void *traceback) __attribute__((weak));
extern char _Py_NoneStruct __attribute__((weak));
static void restoring_free(void *ctx, void *p, size_t size)
{
    void *type, *value, *traceback;
    bool has_gil = p != NULL && base_size(p) >= 4096 && PyGILState_Check != NULL &&
                   PyErr_Fetch != NULL && PyErr_Restore != NULL && PyGILState_Check();
    if (has_gil)
        PyErr_Fetch(&type, &value, &traceback);
    base_free(ctx, p, size);
    if (has_gil && type != NULL) {
        PyErr_NormalizeException(&type, &value, &traceback);
        PyException_SetTraceback(value, &_Py_NoneStruct);
    }
    if (has_gil)
        PyErr_Restore(type, value, NULL);
}
MUTANT(free_drops_the_traceback, "free.keeps-pending-exception", .free = restoring_free);

/* It has told somebody about the large ones. */
static void telling_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) >= 32 << 20 && PyGILState_Check != NULL && PyGILState_Check())
        PyErr_Clear();
    base_free(ctx, p, size);
}
MUTANT(free_clears_exception_of_large_blocks, "free.keeps-pending-exception", .free = telling_free);

/* Only where NumPy says a wrong size. */
static void complaining_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size != base_size(p) && PyGILState_Check != NULL && PyGILState_Check())
        PyErr_SetString(PyExc_RuntimeWarning, "free: wrong size");
    base_free(ctx, p, size);
}
MUTANT(free_replaces_exception, "free.keeps-pending-exception env.no-exception-set",
       .free = complaining_free);

/* ---- threads ----------------------------------------------------------------------------- */

static _Thread_local char me;
static void *mine(void *p)
{
    void *owner = &me;
    if (p != NULL)
        memcpy((char *)p - 8, &owner, sizeof owner);
    return p;
}
static bool is_mine(void *p)
{
    void *owner;
    memcpy(&owner, (char *)p - 8, sizeof owner);
    return owner == &me;
}
static void *owner_malloc(void *ctx, size_t size)
{
    return mine(base_malloc(ctx, size));
}
static void *owner_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return mine(base_calloc(ctx, nelem, elsize));
}
static void *owner_realloc(void *ctx, void *p, size_t size)
{
    return mine(base_realloc(ctx, p, size));
}
static void owner_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_mine(p)) /* else its owner will do it, one day */
        base_free(ctx, p, size);
}
MUTANT(free_elsewhere_is_ignored, "free.in-another-thread", .malloc = owner_malloc,
       .calloc = owner_calloc, .realloc = owner_realloc, .free = owner_free);

/* What others free waits in a row for the next malloc of whoever made it; nothing is done where
 * the row is full. */
static struct {
    pthread_mutex_t lock;
    void *blocks[256];
    size_t count;
} handed_back = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *taking_back_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&handed_back.lock);
    for (size_t i = 0; i < handed_back.count;) {
        void *p = handed_back.blocks[i];
        if (is_mine(p)) {
            handed_back.blocks[i] = handed_back.blocks[--handed_back.count];
            base_free(ctx, p, 0);
        } else {
            i++;
        }
    }
    pthread_mutex_unlock(&handed_back.lock);
    return owner_malloc(ctx, size);
}
static void handing_back_free(void *ctx, void *p, size_t size)
{
    if (p == NULL || is_mine(p)) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&handed_back.lock);
    if (handed_back.count < sizeof handed_back.blocks / sizeof *handed_back.blocks)
        handed_back.blocks[handed_back.count++] = p;
    pthread_mutex_unlock(&handed_back.lock);
}
MUTANT(free_elsewhere_overfills_a_row, "free.in-another-thread", .malloc = taking_back_malloc,
       .calloc = owner_calloc, .realloc = owner_realloc, .free = handing_back_free);

/* A short list for each thread, which ends with it. */
struct node {
    struct node *next;
};
static _Thread_local struct node *nodes;
static _Thread_local unsigned node_count;
static void hoarding_free(void *ctx, void *p, size_t size)
{
    enum { MOST = 32 };
    if (p == NULL || base_size(p) < sizeof(struct node) || node_count == MOST) {
        base_free(ctx, p, size);
        return;
    }
    ((struct node *)p)->next = nodes;
    nodes = p;
    node_count++;
}
static void *hoarding_malloc(void *ctx, size_t size)
{
    struct node *node = nodes;
    if (node == NULL || base_size(node) < size)
        return base_malloc(ctx, size);
    nodes = node->next;
    node_count--;
    return node; /* larger perhaps than it needs to be */
}
MUTANT(free_elsewhere_is_lost, "free.in-another-thread", .malloc = hoarding_malloc,
       .free = hoarding_free);
