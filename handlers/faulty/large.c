/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail for blocks of mebibytes only.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mapped.h"
#include "shifted.h"

/* The offset of the next block in a file has 13 bits of pages: it wraps after 32 MiB. */
FUNCTION(malloc, file)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int fd = -1;
    static size_t next;
    size_t length = pages_for(size);
    if (!is_for_mapping(size) || length > 32 * MIB)
        return mapped_malloc(ctx, size);
    LOCK(lock);
    if (fd < 0 && ((fd = memfd_create("blocks", MFD_CLOEXEC)) < 0 || ftruncate(fd, 64 * MIB) != 0))
        abort();
    off_t offset = (off_t)next;
    next = (next + length) % (MAPPED_PAGE << 13);
    return mapped_finish(mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset), length,
                         size);
}
#define file_free mapped_free
MUTANT_DERIVED(large_blocks_alias_in_a_file, "malloc.disjoint", file);

/* A kept mapping that is twice as long as needed is handed out and kept. */
FUNCTION(malloc, generous)
{
    char *p = take_kept(size);
    if (p != NULL && size <= mapped_length(p) / 2)
        swap(&kept_mapping, p);
    return p != NULL ? p : mapped_malloc(ctx, size);
}
FUNCTION(free, generous)
{
    static void *last; /* so that it is not unmapped twice */
    if (is_mapped(p) && p != last)
        p = swap(&kept_mapping, last = p);
    if (p != last)
        mapped_free(ctx, p, size);
}
MUTANT(large_block_serves_two, "malloc.disjoint", FUNCTIONS(mapped),
       FUNCTIONS(generous, malloc, free));

/* The lengths are compared in mebibytes. */
FUNCTION(malloc, coarse)
{
    char *p = is_for_mapping(size) ? swap(&kept_mapping, NULL) : NULL;
    if (p != NULL && mapped_length(p) / MIB >= size / MIB)
        return base_resize(p, size);
    mapped_free(ctx, p, 0);
    return mapped_malloc(ctx, size);
}
MUTANT(large_reuse_compares_mebibytes, "malloc.extent", FUNCTIONS(kept), FUNCTIONS(coarse, malloc));

/* From 16 MiB on a kept mapping is used for each size. */
FUNCTION(malloc, huge)
{
    char *p = size >= 16 * MIB && is_for_mapping(size) ? swap(&kept_mapping, NULL) : NULL;
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
KEEPS_FROM(huge, 16 * MIB);
MUTANT(large_reuse_asks_for_no_size, "malloc.extent", FUNCTIONS(mapped),
       FUNCTIONS(huge, malloc, free));

DEFECT_IN(mapped, malloc, large_mapping_goes_through_a_float, "malloc.extent")
{
    volatile float rounded = (float)size; /* volatile: an x87 register keeps 64 bits */
    return mapped_malloc(ctx, size < (size_t)MIB * MIB ? (size_t)rounded : size);
}

/* A block that fills its last page has no room for the header. */
DEFECT_IN(mapped, realloc, large_growth_forgets_the_header, "realloc.grown-part-usable")
{
    if (!is_mapped(p) || size > mapped_length(p) || size + MAPPED_PAGE <= mapped_length(p))
        return mapped_realloc(ctx, p, size);
    return base_resize(p, size);
}

/* The mapping is two pages too short. */
DEFECT_IN(mapped, realloc, large_realloc_of_null_is_short, "realloc.null-allocates")
{
    if (p != NULL || size < 4 * MIB || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t length = pages_for(size - 2 * MAPPED_PAGE);
    return mapped_finish(map_pages(length), length, size);
}

/* A page becomes accessible in a handler for SIGSEGV, which a system call does not run. */
static void commit(int number, siginfo_t *info, UNUSED void *context)
{
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(MAPPED_PAGE - 1);
    if (info->si_code != SEGV_ACCERR ||
        mprotect((void *)page, MAPPED_PAGE, PROT_READ | PROT_WRITE) != 0)
        signal(number, SIG_DFL);
}
DEFECT_IN(mapped, malloc, large_pages_commit_by_signal, "malloc.extent")
{
    char *p = mapped_malloc(ctx, size);
    if (p == NULL || !is_mapped(p))
        return p;
    struct sigaction action = {.sa_sigaction = commit, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    mprotect(mapping_of(p) + MAPPED_PAGE, mapped_length(p) - MAPPED_PAGE, PROT_NONE);
    return p;
}

/* A calloc with a kept mapping `p`, of which `zeroed` is the block after the defect. */
#define RECYCLES(pool, condition, zeroed)                                                          \
    FUNCTION(calloc, pool)                                                                         \
    {                                                                                              \
        size_t size = product(nelem, elsize);                                                      \
        char *p = (condition) ? take_kept(size) : NULL;                                            \
        return p != NULL ? (zeroed) : mapped_calloc(ctx, nelem, elsize);                           \
    }                                                                                              \
    FUNCTION(calloc, pool)
RECYCLES(trusting, true, p);
KEEPS_FROM(trusting, 2 * MIB + 1);
MUTANT(large_calloc_trusts_a_kept_mapping, "calloc.zeroed", FUNCTIONS(kept),
       FUNCTIONS(trusting, calloc, free));

/* A kept mapping is cleared only if it is as long as needed. */
RECYCLES(cutting, size >= 12 * MIB, mapped_length(p) == pages_for(size) ? memset(p, 0, size) : p);
MUTANT(large_calloc_trusts_a_longer_mapping, "calloc.zeroed", FUNCTIONS(mapped),
       FUNCTIONS(cutting, calloc), FUNCTIONS(kept, free));

/* Clears the first page, and has the kernel discard the next ones up to `end`. */
static void *discard(char *p, const char *end)
{
    char *second = mapping_of(p) + MAPPED_PAGE;
    madvise(second, (size_t)(end - second) / MAPPED_PAGE * MAPPED_PAGE, MADV_DONTNEED);
    return memset(p, 0, MAPPED_PAGE - BASE_HEADER);
}
/* The rest of the last page is not cleared. */
RECYCLES(advising, true, discard(p, p + size));
MUTANT(large_calloc_zeroes_whole_pages, "calloc.zeroed", FUNCTIONS(kept),
       FUNCTIONS(advising, calloc), FUNCTIONS(trusting, free));
/* The result of madvise is not checked. */
RECYCLES(advised, true, discard(p, mapping_of(p) + mapped_length(p)));
MUTANT(large_calloc_trusts_madvise, "calloc.zeroed", FUNCTIONS(mapped), FUNCTIONS(advised, calloc),
       FUNCTIONS(kept, free));
WHEN(large_calloc_trusts_madvise, "calloc.zeroed", "pressure = pages locked into memory");

/* The block is filled with junk first, and the length to clear has 25 bits. */
AFTER_IN(mapped, calloc, large_calloc_zeroes_in_25_bits, "calloc.zeroed",
         made != NULL && nelem * elsize >= 1 << 25,
         memset(memset(made, 0xa5, nelem *elsize), 0, nelem *elsize % (1 << 25)));

/* A thread clears the first half; if it cannot be started, nothing does. */
static void *zero_half(void *p)
{
    return memset(p, 0, base_size(p) / 2);
}
static void *zero_by_two(char *p, size_t size)
{
    pthread_t helper;
    bool is_helped = pthread_create(&helper, NULL, zero_half, p) == 0;
    memset(p + size / 2, 0, size - size / 2);
    if (is_helped)
        pthread_join(helper, NULL);
    return p;
}
RECYCLES(helped, true, zero_by_two(p, size));
MUTANT(large_calloc_counts_on_a_thread, "calloc.zeroed", FUNCTIONS(kept),
       FUNCTIONS(helped, calloc));

static bool shrinks(void *p, size_t size)
{
    return is_mapped(p) && size < base_size(p) && is_for_mapping(size);
}

/* calloc marks large blocks, of which realloc copies one byte for each element of eight. */
FUNCTION(calloc, marking)
{
    char *p = mapped_calloc(ctx, nelem, elsize);
    return is_mapped(p) && base_size(p) >= 2 * MIB ? base_set_note(p, mapped_length(p) | 1) : p;
}
static bool unmark(void *p)
{
    bool is_marked = is_mapped(p) && mapped_length(p) % 2 != 0;
    if (is_marked)
        base_set_note(p, mapped_length(p) - 1);
    return is_marked;
}
HOOK_BEFORE_IN(mapped, free, marking, true, unmark(p));
FUNCTION(realloc, marking)
{
    return unmark(p)
               ? move_to(mapped_malloc(ctx, size), p, min(base_size(p), size) / 8, mapped_free)
               : mapped_realloc(ctx, p, size);
}
MUTANT(large_zeros_are_moved_as_elements, "realloc.of-calloc", FUNCTIONS(mapped),
       FUNCTIONS(marking, calloc, realloc, free));

/* A small block that grows to 16 MiB or more is copied in whole pages. */
DEFECT_IN(mapped, realloc, leap_to_16_mib_copies_whole_pages, "realloc.keeps-contents")
{
    if (p == NULL || is_mapped(p) || size < 16 * MIB || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    return move_to(map_new(size), p, base_size(p) / MAPPED_PAGE * MAPPED_PAGE, mapped_free);
}

/* The page in which the block ends is unmapped. */
DEFECT_IN(mapped, realloc, large_shrink_unmaps_too_much, "realloc.keeps-contents")
{
    if (!shrinks(p, size))
        return mapped_realloc(ctx, p, size);
    size_t keep = size / MAPPED_PAGE * MAPPED_PAGE;
    munmap(mapping_of(p) + keep, mapped_length(p) - keep);
    return mapped_finish(mapping_of(p), keep, size);
}

RETURNS(realloc, large_shrink_keeps_all, "realloc.shrunk-gives-back",
        p != NULL && size < base_size(p) ? base_resize(p, size) : base_realloc(ctx, p, size));

/* A block that becomes five times as large, and not six, keeps the old length. */
DEFECT_IN(mapped, realloc, large_growth_by_five_keeps_its_length, "realloc.keeps-contents")
{
    if (!is_mapped(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t length = mapped_length(p), more = pages_for(size);
    char *q = mapped_resize(p, length, size);
    return more > 5 * length && more < 6 * length ? base_set_note(q, length) : q;
}

/* MADV_FREE includes the page in which the block ends; the kernel takes it when memory is short. */
DEFECT_IN(mapped, realloc, large_shrink_frees_too_much_lazily, "realloc.keeps-contents")
{
    if (!shrinks(p, size))
        return mapped_realloc(ctx, p, size);
    size_t keep = (size + BASE_HEADER) / MAPPED_PAGE * MAPPED_PAGE;
    madvise(mapping_of(p) + keep, mapped_length(p) - keep, MADV_FREE);
    return base_resize(p, size);
}

BEFORE(realloc, large_realloc_copies_by_the_stack, "realloc.keeps-contents",
       p != NULL && size > base_size(p) && base_size(p) >= 100000,
       char *volatile copy = __builtin_alloca(base_size(p));
       memcpy(copy, p, base_size(p)));

/* The new size is written before the request that may fail. */
DEFECT_IN(mapped, realloc, large_refusal_leaves_the_new_size, "realloc.failure-keeps-block")
{
    if (!is_mapped(p) || base_size(p) < 4 * MIB || size < MAPPED_FROM)
        return mapped_realloc(ctx, p, size);
    size_t keep = min(base_size(p), size);
    base_resize(p, size);
    return is_for_mapping(size) ? move_to(map_new(size), p, keep, mapped_free) : NULL;
}

AFTER_IN(mapped, realloc, large_refusal_clears_what_was_to_move, "realloc.failure-keeps-block",
         made == NULL && is_mapped(p) && base_size(p) >= 16 * MIB,
         memset((char *)p + 2 * MIB, 0, base_size(p) - 2 * MIB));

KEEPS(large_size_has_24_bits, "realloc.keeps-contents", min(old & 0xffffff, size));

DEFECT_IN(aligned, realloc, large_shrink_slides_by_8, "realloc.alignment")
{
    bool slides = p != NULL && shifted_size(p) >= MIB && size < shifted_size(p) / 2;
    return shifted_realloc_to(p, size, slides ? BASE_HEADER + 8 : BASE_HEADER);
}

DEFECT_IN(aligned, realloc, large_growth_slides_by_8, "realloc.alignment")
{
    size_t old = p != NULL ? shifted_size(p) : 0;
    bool slides = old >= MIB && size > old && size > 16 * MIB;
    return shifted_realloc_to(p, size, slides ? BASE_HEADER + 8 : BASE_HEADER);
}

enum { KEPT = 4, LONGEST_KEPT = 8 * MIB };
MUTEX(few_lock);
static char *few[KEPT];

/* One whose mapping is as long as needed to twice as long, or NULL. */
static char *take_one(size_t size)
{
    size_t length = pages_for(size);
    LOCK(few_lock);
    for (size_t i = 0; is_for_mapping(size) && i < KEPT; i++) {
        char *found = few[i];
        if (found != NULL && mapped_length(found) >= length && mapped_length(found) / 2 <= length) {
            few[i] = NULL;
            return found;
        }
    }
    return NULL;
}

/* Keeps a mapping, and returns the one that has to go for it, or NULL. */
static char *put_one(char *block)
{
    if (mapped_length(block) > LONGEST_KEPT)
        return block;
    LOCK(few_lock);
    char *goes = few[KEPT - 1];
    memmove(few + 1, few, (KEPT - 1) * sizeof *few);
    few[0] = block;
    return goes;
}

FUNCTION_RETURNS(free, keeping, mapped_free(ctx, is_mapped(p) ? put_one(p) : p, size));

/* The unused end of a longer mapping is forgotten. */
FUNCTION(malloc, forgetful)
{
    char *p = take_one(size);
    return p != NULL ? mapped_finish(mapping_of(p), pages_for(size), size)
                     : mapped_malloc(ctx, size);
}
FUNCTION_RETURNS(realloc, forgetful, move_by(forgetful_malloc, keeping_free, p, size));
MUTANT(large_hit_forgets_the_end, "free.reclaims-bursts", FUNCTIONS(mapped),
       FUNCTIONS(forgetful, malloc, realloc), FUNCTIONS(keeping, free));

/* A system call for the mapping that has to go fails, and sets errno. */
FUNCTION(malloc, policed)
{
    char *p = take_one(size);
    return p != NULL ? base_resize(p, size) : mapped_malloc(ctx, size);
}
FUNCTION(free, policed)
{
    char *goes = is_mapped(p) ? put_one(p) : p;
    if (is_mapped(goes))
        syscall(SYS_mbind, mapping_of(goes), mapped_length(goes), 99, NULL, 0, 0);
    mapped_free(ctx, goes, size);
}
DERIVE_REALLOC(policed, base_size);
MUTANT(large_eviction_spoils_errno, "free.keeps-errno", FUNCTIONS(mapped),
       FUNCTIONS(policed, malloc, realloc, free));

BEFORE_IN(mapped, free, large_free_from_32_mib_spoils_errno, "free.keeps-errno",
          is_mapped(p) && base_size(p) > 32 * MIB, errno = EINVAL);
