/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/realloc*.c find.
 */
#include "python.h"
#include "shifted.h"

RETURNS(realloc, realloc_refuses_null, "realloc.null-allocates",
        p != NULL ? base_realloc(ctx, p, size) : NULL);
WHEN(realloc_refuses_null, "realloc.null-allocates", "made by = realloc(NULL, n)");

/* Requests no bytes for the header. */
RETURNS(realloc, realloc_of_null_is_short, "realloc.null-allocates",
        p != NULL || size < 64 ? base_realloc(ctx, p, size) : base_finish(malloc(size), size));

KEEPS(realloc_does_not_copy, "realloc.keeps-contents", 0);
WHEN(realloc_does_not_copy, "realloc.keeps-contents", "any level of each factor");
KEEPS(realloc_copies_old_size, "realloc.keeps-contents malloc.neighbours", old);
KEEPS(realloc_copies_new_size, "realloc.keeps-contents " ON_64_BITS("realloc.past-2gib"), size);
KEEPS(realloc_loses_a_byte_of_large_ones, "realloc.keeps-contents",
      min(old > 2345 && old % 8 == 1 ? old - 1 : old, size));
KEEPS(realloc_copies_words, "realloc.keeps-contents", size <= old ? size : old / 8 * 8);
KEEPS(realloc_copies_pages, "realloc.keeps-contents",
      old < 65536 || size < 65536 ? min(old, size) : min(old, size) / 4096 * 4096);

DEFECT(realloc, realloc_old_size_is_unsigned, ON_64_BITS("realloc.past-2gib"))
{
    if (p == NULL || base_size(p) <= UINT32_MAX)
        return base_realloc(ctx, p, size);
    return move(ctx, p, size, min((uint32_t)base_size(p), size));
}

/* Counts the moves of a block in a few bits, and copies nothing when the count wraps to 0. */
NOTES(unmoved, 0);
static void *move_again(void *p, size_t size, size_t limit)
{
    if (p == NULL)
        return unmoved_malloc(NULL, size);
    size_t times = (base_note(p) + 1) % limit;
    return base_set_note(move(NULL, p, size, times != 0 ? min(base_size(p), size) : 0), times);
}
FUNCTION_RETURNS(realloc, by_8_bits, move_again(p, size, 1 << 8));
MUTANT(realloc_counts_moves_in_8_bits, "realloc.keeps-contents", FUNCTIONS(unmoved, malloc, calloc),
       FUNCTIONS(by_8_bits, realloc));
WHEN(realloc_counts_moves_in_8_bits, "realloc.keeps-contents", "resizes of a block >= 256");

/* calloc stores nelem as the size. */
HOOK_AFTER(calloc, nelem, made != NULL, base_resize(made, nelem));
#define nelem_malloc base_malloc
#define nelem_free base_free
DERIVE_REALLOC(nelem, base_size);
MUTANT(realloc_of_calloc_copies_nelem, "realloc.of-calloc", FUNCTIONS(nelem, calloc, realloc));

DEFECT(realloc, realloc_grows_too_little,
       "realloc.keeps-contents realloc.grown-part-usable malloc.neighbours")
{
    if (p == NULL || size <= base_size(p) || size < 256)
        return base_realloc(ctx, p, size);
    return move(ctx, p, size - 128, base_size(p));
}

/* Assumes that each block has room up to the next multiple of 128. */
DEFECT(realloc, realloc_stays_without_room, "malloc.neighbours")
{
    if (p != NULL && size > base_size(p) && size <= (base_size(p) + 127) / 128 * 128)
        return base_resize(p, size);
    return base_realloc(ctx, p, size);
}

DEFECT(realloc, realloc_wipes_past_the_end, "malloc.neighbours")
{
    if (p == NULL || size >= base_size(p))
        return base_realloc(ctx, p, size);
    memset((char *)p + size, 0, base_size(p) - size + 24);
    return base_resize(p, size);
}

RETURNS(realloc, realloc_of_same_size_is_null, "realloc.keeps-contents",
        p != NULL && size == base_size(p) ? NULL : base_realloc(ctx, p, size));

/* Frees the block that it returns. */
DEFECT(realloc, realloc_of_same_size_frees, "realloc.keeps-contents")
{
    if (p == NULL || size != base_size(p))
        return base_realloc(ctx, p, size);
    void *moved = move(ctx, p, size, size);
    base_free(ctx, moved, size);
    return moved;
}

AFTER(realloc, realloc_to_one_frees, "realloc.keeps-contents", p != NULL && size == 1,
      base_free(ctx, made, 1), made = NULL);

DEFECT_IN(aligned, realloc, realloc_loses_alignment, "realloc.alignment")
{
    bool grows = p != NULL && size > 4 * shifted_size(p) && size > 1000;
    return shifted_realloc_to(p, size, grows ? BASE_HEADER + 8 : BASE_HEADER);
}

#define FAILURE "realloc.failure-keeps-block"

AFTER(realloc, realloc_failure_is_not_null, FAILURE, made == NULL, made = (void *)BASE_HEADER);
AFTER(realloc, realloc_failure_frees, FAILURE, made == NULL, base_free(ctx, p, 0));
AFTER(realloc, realloc_exhausted_frees, FAILURE " exhaustion.nth-request",
      made == NULL && size <= PTRDIFF_MAX / 4, base_free(ctx, p, 0));

/* Does not find the block again after a failure. */
static void *refused;
DEFECT(realloc, realloc_fails_only_once, FAILURE)
{
    if (p != NULL && p == refused)
        return NULL;
    void *moved = base_realloc(ctx, p, size);
    refused = moved == NULL ? p : refused;
    return moved;
}

/* Keeps its lock after a failure.  The next call fails, because waiting would block forever. */
DEFECT(realloc, realloc_failure_keeps_lock, FAILURE)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    if (pthread_mutex_trylock(&lock) != 0)
        return NULL;
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        pthread_mutex_unlock(&lock);
    return moved;
}

/* The sum wraps if size exceeds two thirds of SIZE_MAX. */
DEFECT(realloc, realloc_room_wraps, "realloc.failure-keeps-block")
{
    size_t room = size + size / 2;
    return room > PTRDIFF_MAX - BASE_HEADER ? NULL : base_realloc(ctx, p, room);
}

DEFECT(realloc, realloc_size_wraps, "realloc.failure-keeps-block")
{
    void *raw = p != NULL ? (char *)p - BASE_HEADER : NULL;
    return base_finish(realloc(raw, size + BASE_HEADER), size);
}

/* Moves the contents over the header before the request that may fail, and back only if small. */
DEFECT(realloc, realloc_failure_leaves_shifted, "realloc.failure-keeps-block")
{
    if (p == NULL)
        return base_malloc(ctx, size);
    size_t old = base_size(p);
    char *start = (char *)p - BASE_HEADER;
    memmove(start, p, old);
    char *raw = size > PTRDIFF_MAX - BASE_HEADER ? NULL : realloc(start, size + BASE_HEADER);
    if (raw == NULL && old <= 1000) {
        memmove(p, start, old);
        base_finish(start, old);
    }
    if (raw == NULL)
        return NULL;
    memmove(raw + BASE_HEADER, raw, min(old, size));
    return base_finish(raw, size);
}

RETURNS(realloc, realloc_size_is_int, ON_64_BITS("realloc.past-2gib"),
        size > PTRDIFF_MAX / 4 ? NULL : base_realloc(ctx, p, (size_t)(int)size));
RETURNS(realloc, realloc_size_is_unsigned, ON_64_BITS("realloc.past-2gib"),
        size > PTRDIFF_MAX / 4 ? NULL : base_realloc(ctx, p, (unsigned)size));

static void *leak(void *p, size_t size)
{
    void *moved = base_malloc(NULL, size);
    return moved != NULL && p != NULL ? memcpy(moved, p, min(base_size(p), size)) : moved;
}
RETURNS(realloc, realloc_leaks_old, "realloc.releases-old", leak(p, size));
RETURNS(realloc, realloc_leaks_one_in_a_hundred, "realloc.releases-old",
        EVERY(100) ? leak(p, size) : base_realloc(ctx, p, size));

/* Leaks what the second and later shrinks of a block cut off; the note counts them. */
NOTES(unshrunk, 0);
FUNCTION(realloc, unshrunk)
{
    static void *volatile lost;
    size_t old = p != NULL ? base_size(p) : 0;
    size_t times = size < old ? base_note(p) + 1 : 0;
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL && times > 1 && old - size >= 64)
        lost = malloc(old - size);
    (void)lost;
    return base_set_note(moved, times);
}
MUTANT(second_shrink_loses_what_it_cuts_off, "realloc.releases-old",
       FUNCTIONS(unshrunk, malloc, calloc, realloc));

/* PyMem_Malloc needs the GIL. */
DEFECT(realloc, realloc_needs_the_gil, "threads.no-gil-needed")
{
    void *scratch = PyMem_Malloc != NULL ? PyMem_Malloc(64) : NULL;
    void *moved = base_realloc(ctx, p, size);
    if (scratch != NULL)
        PyMem_Free(scratch);
    return moved;
}

/* All threads copy through one buffer. */
DEFECT(realloc, realloc_by_a_shared_buffer, "threads.concurrent")
{
    static char buffer[1 << 18];
    if (p == NULL || base_size(p) > sizeof buffer)
        return base_realloc(ctx, p, size);
    size_t count = min(base_size(p), size);
    memcpy(buffer, p, count);
    void *moved = move(ctx, p, size, 0);
    return moved != NULL ? memcpy(moved, buffer, count) : NULL;
}

/* Copies nothing if another thread made the block; the note identifies the thread. */
static size_t me(void)
{
    return THREAD_NUMBER;
}
NOTES(owner, me());
FUNCTION_RETURNS(realloc, owner,
                 base_set_note(p == NULL || base_note(p) == me() ? base_realloc(ctx, p, size)
                                                                 : move(ctx, p, size, 0),
                               me()));
MUTANT(realloc_of_anothers_block, "threads.hand-over scenarios.threads",
       FUNCTIONS(owner, malloc, calloc, realloc));
WHEN(realloc_of_anothers_block, "scenarios.threads",
     "threads = made by another, which has ended or made, resized and freed by three");

/* Waits for the GIL under the lock that all its functions take. */
static pthread_mutex_t gil_lock = PTHREAD_MUTEX_INITIALIZER;
LOCKED(malloc, locking, base, gil_lock);
FUNCTION(realloc, locking)
{
    LOCK(gil_lock);
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL && size >= 8 << 20 && is_python_up())
        PyGILState_Release(PyGILState_Ensure());
    return moved;
}
MUTANT(realloc_waits_for_the_gil, "threads.no-gil-needed", FUNCTIONS(locking, malloc, realloc));
