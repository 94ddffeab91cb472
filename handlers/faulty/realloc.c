/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/realloc*.c catch.
 */
#include <pthread.h>

#include "base.h"

/* A block of `size` bytes that begins with the first `keep` bytes of p, which is freed. */
static void *move_keeping(void *ctx, void *p, size_t size, size_t keep)
{
    void *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, keep);
    base_free(ctx, p, 0);
    return moved;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- NULL -------------------------------------------------------------------------------- */

static void *no_null_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? base_realloc(ctx, p, size) : NULL;
}
MUTANT(realloc_refuses_null, "realloc.null-allocates", .realloc = no_null_realloc);

/* The header is reckoned with, but not asked for. */
static void *short_null_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL || size < 64)
        return base_realloc(ctx, p, size);
    return base_finish(malloc(size), size);
}
MUTANT(realloc_of_null_is_short, "realloc.null-allocates", .realloc = short_null_realloc);

/* Room for half as much again, where that is not too much: it is less, from two thirds of all
 * addresses on. */
static void *generous_realloc(void *ctx, void *p, size_t size)
{
    size_t room = size + size / 2;
    return room > PTRDIFF_MAX - BASE_HEADER ? NULL : base_realloc(ctx, p, room);
}
MUTANT(realloc_room_wraps, "realloc.failure-keeps-block", .realloc = generous_realloc);

/* ---- contents ---------------------------------------------------------------------------- */

static void *forgetful_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? move_keeping(ctx, p, size, 0) : base_malloc(ctx, size);
}
MUTANT(realloc_does_not_copy,
       "realloc.keeps-contents realloc.keeps-contents-again "
       "realloc.same-size realloc.to-one",
       .realloc = forgetful_realloc);

/* Frees first, as if libc or another thread wrote there at once, and then copies from where the
 * block was. */
static void *late_copying_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0;
    if (size > PTRDIFF_MAX - BASE_HEADER)
        return NULL;
    if (p != NULL)
        memset(p, 0xdd, old < 16 ? old : 16);
    base_free(ctx, p, old);
    void *moved = base_malloc(ctx, size);
    return moved != NULL && p != NULL ? memmove(moved, p, old < size ? old : size) : moved;
}
MUTANT(realloc_copies_what_it_freed, "realloc.keeps-contents", .realloc = late_copying_realloc);

static void *too_much_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    return move_keeping(ctx, p, size, base_size(p));
}
MUTANT(realloc_copies_old_size, "realloc.keeps-contents realloc.neighbours",
       .realloc = too_much_realloc);

/* One size of 4096, and the last byte alone. */
static void *size_2345_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) != 2345)
        return base_realloc(ctx, p, size);
    return move_keeping(ctx, p, size, least(2344, size));
}
MUTANT(realloc_loses_byte_of_2345, "realloc.keeps-contents", .realloc = size_2345_realloc);

/* Whole words only. */
static void *words_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size <= base_size(p))
        return base_realloc(ctx, p, size);
    return move_keeping(ctx, p, size, base_size(p) / 8 * 8);
}
MUTANT(realloc_copies_words, "realloc.keeps-contents", .realloc = words_realloc);

/* From 64 KiB on by pages, the last one of which is forgotten. */
static void *pages_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) < 65536 || size < 65536)
        return base_realloc(ctx, p, size);
    return move_keeping(ctx, p, size, least(base_size(p), size) / 4096 * 4096);
}
MUTANT(realloc_copies_pages, "realloc.keeps-contents realloc.keeps-contents-again",
       .realloc = pages_realloc);

/* The header keeps the size of birth, so that what came by growth is lost at the next move. */
static void *stale_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t born = base_size(p);
    void *moved = move_keeping(ctx, p, size, least(born, size));
    if (moved != NULL && born < size)
        base_finish((char *)moved - BASE_HEADER, born);
    return moved;
}
MUTANT(realloc_keeps_first_size, "realloc.keeps-contents realloc.keeps-contents-again",
       .realloc = stale_realloc);

/* The first seven moves of a block are right. */
static void *tired_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p), age;
    memcpy(&age, (char *)p - 8, sizeof age);
    age = age > 64 ? 0 : age;
    void *moved = move_keeping(ctx, p, size, least(old, size) - (age >= 7 && size > old));
    age++;
    if (moved != NULL)
        memcpy((char *)moved - 8, &age, sizeof age);
    return moved;
}
MUTANT(realloc_tires, "realloc.keeps-contents realloc.keeps-contents-again",
       .realloc = tired_realloc);

/* ---- extent ------------------------------------------------------------------------------ */

/* What was asked for is rounded down. */
static void *rounding_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size <= base_size(p) || size < 256)
        return base_realloc(ctx, p, size);
    return move_keeping(ctx, p, size - 128, base_size(p));
}
MUTANT(realloc_grows_too_little,
       "realloc.keeps-contents realloc.grown-part-usable realloc.neighbours",
       .realloc = rounding_realloc);

/* Believes that every block has room up to the next multiple of 128. */
static void *roomy_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && size > base_size(p) && size <= (base_size(p) + 127) / 128 * 128)
        return base_finish((char *)p - BASE_HEADER, size);
    return base_realloc(ctx, p, size);
}
MUTANT(realloc_stays_without_room, "realloc.grown-part-usable", .realloc = roomy_realloc);

static void *tidy_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size >= base_size(p))
        return base_realloc(ctx, p, size);
    memset((char *)p + size, 0, base_size(p) - size + 24); /* up to where it thinks the end is */
    return base_finish((char *)p - BASE_HEADER, size);
}
MUTANT(realloc_wipes_past_the_end, "realloc.neighbours", .realloc = tidy_realloc);

/* ---- the same size, and one byte --------------------------------------------------------- */

static void *same_null_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL && size == base_size(p) ? NULL : base_realloc(ctx, p, size);
}
MUTANT(realloc_of_same_size_is_null, "realloc.same-size realloc.retry-after-failure",
       .realloc = same_null_realloc);

static void *same_free_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size != base_size(p))
        return base_realloc(ctx, p, size);
    void *moved = move_keeping(ctx, p, size, size);
    free(moved != NULL ? (char *)moved - BASE_HEADER : NULL);
    return moved; /* which is nobody's now */
}
MUTANT(realloc_of_same_size_frees, "realloc.same-size", .realloc = same_free_realloc);

/* One byte is taken for none. */
static void *one_realloc(void *ctx, void *p, size_t size)
{
    static _Alignas(16) char nothing[32];
    if (p == NULL || size > 1)
        return base_realloc(ctx, p, size);
    base_free(ctx, p, 0);
    return nothing + 16;
}
static void one_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) != 0) /* all zero: the static block */
        base_free(ctx, p, size);
}
MUTANT(realloc_to_one_is_to_none, "realloc.keeps-contents realloc.to-one", .realloc = one_realloc,
       .free = one_free);

static void *one_null_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    return p != NULL && size == 1 && base_size(moved) == 1 ? (base_free(ctx, moved, 1), NULL)
                                                           : moved;
}
MUTANT(realloc_to_one_frees, "realloc.to-one", .realloc = one_null_realloc);

/* ---- alignment --------------------------------------------------------------------------- */

/* Blocks of 16 bytes further on after a growth, with a header of 8 bytes to tell. */
enum { SHIFTED = 0x5a5a };
struct odd {
    size_t size;
    size_t shift; /* of the block against where the base would have it */
};
static struct odd *odd_of(void *p)
{
    return (struct odd *)(void *)((char *)p - sizeof(struct odd));
}
static void *odd_make(size_t size, size_t shift)
{
    if (size > PTRDIFF_MAX - 64)
        return NULL;
    char *raw = malloc(size + sizeof(struct odd) + 16);
    if (raw == NULL)
        return NULL;
    struct odd odd = {size, shift};
    memcpy(raw + shift, &odd, sizeof odd);
    return raw + shift + sizeof odd;
}
static void *odd_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return odd_make(size, 0);
}
static void *odd_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : odd_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void odd_free(void *ctx, void *p, size_t size)
{
    (void)ctx, (void)size;
    struct odd odd;
    if (p == NULL)
        return;
    memcpy(&odd, odd_of(p), sizeof odd);
    free((char *)p - sizeof odd - odd.shift);
}
static void *odd_realloc(void *ctx, void *p, size_t size)
{
    struct odd odd = {0};
    if (p != NULL)
        memcpy(&odd, odd_of(p), sizeof odd);
    void *moved = odd_make(size, size > 4 * odd.size && size > 1000 && p != NULL ? 8 : 0);
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, least(odd.size, size));
        odd_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(realloc_loses_alignment, "realloc.alignment", .malloc = odd_malloc, .calloc = odd_calloc,
       .realloc = odd_realloc, .free = odd_free);

/* ---- of calloc --------------------------------------------------------------------------- */

static void *nelem_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    return p != NULL ? base_finish((char *)p - BASE_HEADER, nelem) : NULL;
}
static void *copying_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? move_keeping(ctx, p, size, least(base_size(p), size)) : base_malloc(ctx, size);
}
MUTANT(realloc_of_calloc_copies_nelem, "realloc.of-calloc", .calloc = nelem_calloc,
       .realloc = copying_realloc);

/* ---- failure ----------------------------------------------------------------------------- */

static void *offset_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    char *raw = size > PTRDIFF_MAX - BASE_HEADER
                    ? NULL
                    : realloc(p != NULL ? (char *)p - BASE_HEADER : NULL, size + BASE_HEADER);
    if (raw != NULL)
        memcpy(raw, &size, sizeof size);
    return raw + BASE_HEADER;
}
MUTANT(realloc_failure_is_not_null, "realloc.failure-keeps-block realloc.retry-after-failure",
       .realloc = offset_realloc);

static void *freeing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL)
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(realloc_failure_frees, "realloc.failure-keeps-block realloc.retry-after-failure",
       .realloc = freeing_realloc);

/* Only where libc says no, not where the size itself is absurd. */
static void *freeing_late_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && size <= PTRDIFF_MAX / 4)
        base_free(ctx, p, 0);
    return moved;
}
MUTANT(realloc_exhausted_frees, "realloc.failure-keeps-block realloc.retry-after-failure",
       .realloc = freeing_late_realloc);

/* The new size is in the header before it is clear that there will be room. */
static void *hasty_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    base_finish((char *)p - BASE_HEADER, size);
    return move_keeping(ctx, p, size, least(old, size));
}
static void hasty_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) > PTRDIFF_MAX / 4)
        abort(); /* no such block was ever made */
    base_free(ctx, p, size);
}
MUTANT(realloc_failure_leaves_new_size, "realloc.failure-keeps-block", .realloc = hasty_realloc,
       .free = hasty_free);

/* size + 64 wraps, and the block shrinks. */
static void *wrapping_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    char *raw = realloc(p != NULL ? (char *)p - BASE_HEADER : NULL, size + BASE_HEADER);
    return base_finish(raw, size);
}
MUTANT(realloc_size_wraps, "realloc.failure-keeps-block", .realloc = wrapping_realloc);

/* The contents are moved to the front before the request that fails. */
static void *eager_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    char *start = (char *)p - BASE_HEADER;
    memmove(start, p, old); /* over the header, as this handler likes to */
    char *raw = size > PTRDIFF_MAX - BASE_HEADER ? NULL : realloc(start, size + BASE_HEADER);
    if (raw == NULL && old > 1000)
        return NULL;
    if (raw == NULL) {
        memmove(p, start, old);
        base_finish(start, old);
        return NULL;
    }
    memmove(raw + BASE_HEADER, raw, least(old, size));
    return base_finish(raw, size);
}
MUTANT(realloc_failure_leaves_shifted, "realloc.failure-keeps-block", .realloc = eager_realloc);

/* A lock that the failing path does not give back; it is tried, so that nothing hangs. */
static void *busy_realloc(void *ctx, void *p, size_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (pthread_mutex_trylock(&lock) != 0)
        return NULL;
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        pthread_mutex_unlock(&lock);
    return moved;
}
MUTANT(realloc_failure_keeps_lock, "realloc.failure-keeps-block realloc.retry-after-failure",
       .realloc = busy_realloc);

/* After a failure the block is taken for gone. */
static void *once_realloc(void *ctx, void *p, size_t size)
{
    static void *failed;
    if (p != NULL && p == failed)
        return NULL;
    void *moved = base_realloc(ctx, p, size);
    failed = moved == NULL ? p : failed;
    return moved;
}
MUTANT(realloc_fails_only_once, "realloc.retry-after-failure realloc.failure-keeps-block",
       .realloc = once_realloc);

/* ---- large ------------------------------------------------------------------------------- */

static void *int_realloc(void *ctx, void *p, size_t size)
{
    return size > PTRDIFF_MAX / 4 ? NULL : base_realloc(ctx, p, (size_t)(int)size);
}
MUTANT_OF_64_BITS(realloc_size_is_int, "realloc.past-2gib", .realloc = int_realloc);

static void *unsigned_realloc(void *ctx, void *p, size_t size)
{
    return size > PTRDIFF_MAX / 4 ? NULL : base_realloc(ctx, p, (unsigned)size);
}
MUTANT_OF_64_BITS(realloc_size_is_unsigned, "realloc.past-2gib", .realloc = unsigned_realloc);

static void *over_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL ? move_keeping(ctx, p, size, size) : base_malloc(ctx, size);
}
MUTANT_ALSO_OF_64_BITS(realloc_copies_new_size, "realloc.keeps-contents", "realloc.past-2gib",
                       .realloc = over_realloc);

/* The old size is kept in 32 bits. */
static void *narrow_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || base_size(p) <= UINT32_MAX)
        return base_realloc(ctx, p, size);
    return move_keeping(ctx, p, size, least((uint32_t)base_size(p), size));
}
MUTANT_OF_64_BITS(realloc_old_size_is_unsigned, "realloc.past-2gib", .realloc = narrow_realloc);

/* ---- memory that is lost ----------------------------------------------------------------- */

static void *losing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_malloc(ctx, size);
    if (moved != NULL && p != NULL)
        memcpy(moved, p, least(base_size(p), size));
    return moved;
}
MUTANT(realloc_leaks_old, "realloc.releases-old", .realloc = losing_realloc);

static void *sometimes_losing_realloc(void *ctx, void *p, size_t size)
{
    static _Atomic unsigned count;
    return ++count % 100 == 0 ? losing_realloc(ctx, p, size) : base_realloc(ctx, p, size);
}
MUTANT(realloc_leaks_one_in_a_hundred, "realloc.releases-old", .realloc = sometimes_losing_realloc);

/* ---- threads ----------------------------------------------------------------------------- */

/* Python's allocator of the domain that wants the GIL. */
void *PyMem_Malloc(size_t size) __attribute__((weak));
void PyMem_Free(void *p) __attribute__((weak));
static void *python_realloc(void *ctx, void *p, size_t size)
{
    void *scratch = PyMem_Malloc != NULL ? PyMem_Malloc(64) : NULL;
    void *moved = base_realloc(ctx, p, size);
    if (scratch != NULL)
        PyMem_Free(scratch);
    return moved;
}
MUTANT(realloc_needs_the_gil, "realloc.without-gil threads.no-gil-needed",
       .realloc = python_realloc);

/* The contents go by way of one buffer for all threads: right as long as the GIL keeps them apart.
 */
static void *bouncing_realloc(void *ctx, void *p, size_t size)
{
    static char buffer[1 << 18];
    if (p == NULL || base_size(p) > sizeof buffer)
        return base_realloc(ctx, p, size);
    size_t keep = least(base_size(p), size);
    memcpy(buffer, p, keep);
    void *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, buffer, keep);
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(realloc_by_a_shared_buffer, "realloc.without-gil threads.concurrent",
       .realloc = bouncing_realloc);

/* Who made a block is in its header, and nobody else can resize it. */
static _Thread_local char me;
static void *mine(void *p)
{
    void *owner = &me;
    if (p != NULL)
        memcpy((char *)p - 8, &owner, sizeof owner);
    return p;
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
    void *owner = &me;
    if (p != NULL)
        memcpy(&owner, (char *)p - 8, sizeof owner);
    if (owner != &me) /* a block of another thread: its size is in that thread's table */
        return mine(move_keeping(ctx, p, size, 0));
    return mine(base_realloc(ctx, p, size));
}
MUTANT(realloc_of_anothers_block, "realloc.in-another-thread threads.hand-over",
       .malloc = owner_malloc, .calloc = owner_calloc, .realloc = owner_realloc);

/* The size of the block that this thread resized last, or was to: where another thread frees that
 * one, nobody tells. */
static _Thread_local struct {
    void *p;
    size_t size;
} latest;
static void *remembering_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL)
        return base_malloc(ctx, size);
    if (latest.p != p) {
        latest.p = p;
        latest.size = base_size(p);
    }
    void *moved = move_keeping(ctx, p, size, least(latest.size, size));
    if (moved != NULL)
        latest.p = NULL;
    return moved;
}
static void forgetting_free(void *ctx, void *p, size_t size)
{
    if (latest.p == p)
        latest.p = NULL;
    base_free(ctx, p, size);
}
MUTANT(realloc_remembers_a_size, "realloc.in-another-thread", .realloc = remembering_realloc,
       .free = forgetting_free);

/* Large blocks are told to Python, with the GIL, and under the lock that all functions take. */
int Py_IsInitialized(void) __attribute__((weak));
int PyGILState_Ensure(void) __attribute__((weak));
void PyGILState_Release(int state) __attribute__((weak));
static pthread_mutex_t told = PTHREAD_MUTEX_INITIALIZER;
static void *waiting_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&told);
    void *p = base_malloc(ctx, size);
    pthread_mutex_unlock(&told);
    return p;
}
static void *telling_realloc(void *ctx, void *p, size_t size)
{
    enum { LARGE = 8 << 20 };
    pthread_mutex_lock(&told);
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL && size >= LARGE && Py_IsInitialized != NULL && Py_IsInitialized())
        PyGILState_Release(PyGILState_Ensure());
    pthread_mutex_unlock(&told);
    return moved;
}
MUTANT(realloc_waits_for_the_gil, "realloc.without-gil", .malloc = waiting_malloc,
       .realloc = telling_realloc);

/* What the first shrinking cut off is joined with the rest of its region; what the second one does
 * stands before that, and is lost. */
static void *unshrunk_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        memset((char *)p - 8, 0, 8);
    return p;
}
static void *unshrunk_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL)
        memset((char *)p - 8, 0, 8);
    return p;
}
static void *cutting_realloc(void *ctx, void *p, size_t size)
{
    size_t old = p != NULL ? base_size(p) : 0, times = 0;
    if (p != NULL)
        memcpy(&times, (char *)p - 8, sizeof times);
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL)
        return NULL;
    times = size < old ? times + 1 : 0;
    memcpy((char *)moved - 8, &times, sizeof times);
    if (times > 1 && old - size >= 64) {
        static void *volatile lost;
        lost = malloc(old - size);
        (void)lost;
    }
    return moved;
}
MUTANT(second_shrink_loses_what_it_cuts_off, "realloc.releases-old", .malloc = unshrunk_malloc,
       .calloc = unshrunk_calloc, .realloc = cutting_realloc);

/* ---- resized often ----------------------------------------------------------------------- */

/* The header has how often a block was moved, and moves nothing where that wraps. */
static void *moved_so_often(void *p, uint32_t times)
{
    if (p != NULL)
        memcpy((char *)p - sizeof times, &times, sizeof times);
    return p;
}
static void *unmoved_malloc(void *ctx, size_t size)
{
    return moved_so_often(base_malloc(ctx, size), 0);
}
static void *unmoved_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return moved_so_often(base_calloc(ctx, nelem, elsize), 0);
}
static void *move_again(void *p, size_t size, uint32_t wraps_at)
{
    void *moved = unmoved_malloc(NULL, size);
    uint32_t times;
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(&times, (char *)p - sizeof times, sizeof times);
    times = (times + 1) % wraps_at;
    if (times != 0)
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
    base_free(NULL, p, 0);
    return moved_so_often(moved, times);
}
static void *realloc_of_8_bits(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_again(p, size, 1 << 8);
}
static void *realloc_of_16_bits(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return move_again(p, size, 1 << 16);
}
MUTANT(realloc_counts_moves_in_8_bits, "realloc.keeps-contents-again", .malloc = unmoved_malloc,
       .calloc = unmoved_calloc, .realloc = realloc_of_8_bits);
MUTANT(realloc_counts_moves_in_16_bits, "realloc.keeps-contents-again", .malloc = unmoved_malloc,
       .calloc = unmoved_calloc, .realloc = realloc_of_16_bits);
