/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that are wrong in blocks of mebibytes alone.
 */
#define _GNU_SOURCE

#include <signal.h>
#include <unistd.h>

#include "mapped.h"
#include "shifted.h"

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void *zeroed(void *p, size_t size)
{
    return p != NULL ? memset(p, 0, size) : NULL;
}

/* ---- disjoint -------------------------------------------------------------------------------- */

/* Large blocks lie in one file, and where the next one begins is counted in 13 bits of pages: 32
 * MiB further on it is where it was. */
static struct {
    pthread_mutex_t lock;
    int fd;
    unsigned next : 13;
} file = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

static void *file_malloc(void *ctx, size_t size)
{
    enum { MOST = 32 << 20 };
    if (!is_for_mapping(size) || pages_for(size) > MOST)
        return mapped_malloc(ctx, size);
    size_t length = pages_for(size);
    pthread_mutex_lock(&file.lock);
    if (file.fd < 0) {
        file.fd = memfd_create("blocks", MFD_CLOEXEC);
        if (file.fd < 0 || ftruncate(file.fd, 2 * (off_t)MOST) != 0)
            abort();
    }
    off_t offset = (off_t)file.next * MAPPED_PAGE;
    file.next = (file.next + length / MAPPED_PAGE) & 0x1fff;
    pthread_mutex_unlock(&file.lock);
    char *map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, offset);
    return mapped_finish(map, length, size);
}
static void *file_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL
                                                        : zeroed(file_malloc(ctx, size), size);
}
static void *file_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) && !is_for_mapping(size))
        return base_realloc(ctx, p, size);
    return move_by(file_malloc, mapped_free, p, size);
}
MUTANT(large_blocks_alias_in_a_file, "malloc.disjoint", MAPPED_FUNCTIONS, .malloc = file_malloc,
       .calloc = file_calloc, .realloc = file_realloc);

/* The block that is kept serves a smaller request as well, and then it is kept still, for the half
 * of it that is left. */
static struct kept_mapping generous = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *generous_malloc(void *ctx, size_t size)
{
    char *p = take_kept(&generous, size);
    if (p == NULL)
        return mapped_malloc(ctx, size);
    if (size <= mapped_length(p) / 2)
        exchange_kept(&generous, p);
    return p;
}
static void *generous_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return mapped_calloc(ctx, nelem, elsize);
}
static void generous_free(void *ctx, void *p, size_t size)
{
    static void *last; /* so that it is not unmapped twice */
    if (is_mapped(p) && p != last)
        p = exchange_kept(&generous, last = p);
    if (p != last)
        mapped_free(ctx, p, size);
}
MUTANT(large_block_serves_two, "malloc.disjoint", MAPPED_FUNCTIONS, .malloc = generous_malloc,
       .calloc = generous_calloc, .free = generous_free);

/* ---- extent ---------------------------------------------------------------------------------- */

/* Whether a kept mapping is large enough is asked in mebibytes. */
static struct kept_mapping coarse = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *coarse_malloc(void *ctx, size_t size)
{
    char *p = is_for_mapping(size) ? exchange_kept(&coarse, NULL) : NULL;
    if (p != NULL && mapped_length(p) >> 20 >= size >> 20)
        return base_finish(p - BASE_HEADER, size);
    mapped_free(ctx, p, 0);
    return mapped_malloc(ctx, size);
}
static void coarse_free(void *ctx, void *p, size_t size)
{
    mapped_free(ctx, is_mapped(p) ? exchange_kept(&coarse, p) : p, size);
}
MUTANT(large_reuse_compares_mebibytes, "malloc.extent", MAPPED_FUNCTIONS, .malloc = coarse_malloc,
       .free = coarse_free);

/* What is huge is large enough for everything. */
enum { HUGE_FROM = 16 << 20 };
static struct kept_mapping huge = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *huge_malloc(void *ctx, size_t size)
{
    char *p = size >= HUGE_FROM && is_for_mapping(size) ? exchange_kept(&huge, NULL) : NULL;
    return p != NULL ? base_finish(p - BASE_HEADER, size) : mapped_malloc(ctx, size);
}
static void huge_free(void *ctx, void *p, size_t size)
{
    mapped_free(ctx, is_mapped(p) && base_size(p) >= HUGE_FROM ? exchange_kept(&huge, p) : p, size);
}
MUTANT(large_reuse_asks_for_no_size, "malloc.extent malloc.disjoint", MAPPED_FUNCTIONS,
       .malloc = huge_malloc, .free = huge_free);

/* The size goes through a float, which has 24 bits.  libc's blocks of that size have, where they
 * are of 32 bits, always as many bytes to spare. */
static size_t as_float(size_t size)
{
    volatile float rounded = (float)size; /* or an x87 would keep 64 */
    return size >> 20 < 1 << 20 ? (size_t)rounded : size;
}
static void *rounding_malloc(void *ctx, size_t size)
{
    return base_malloc(ctx, as_float(size));
}
static void *rounding_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    return __builtin_mul_overflow(nelem, elsize, &size) ? NULL
                                                        : base_calloc(ctx, as_float(size), 1);
}
static void *rounding_realloc(void *ctx, void *p, size_t size)
{
    return base_realloc(ctx, p, as_float(size));
}
MUTANT_OF_64_BITS(large_size_goes_through_a_float, "malloc.extent", .malloc = rounding_malloc,
                  .calloc = rounding_calloc, .realloc = rounding_realloc);

/* The same of mappings. */
static void *rounding_map(void *ctx, size_t size)
{
    return mapped_malloc(ctx, as_float(size));
}
MUTANT(large_mapping_goes_through_a_float, "malloc.extent", MAPPED_FUNCTIONS,
       .malloc = rounding_map);

/* A mapping that ends where the new size does has no room for the header. */
static void *headless_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || size > mapped_length(p) || size + MAPPED_PAGE <= mapped_length(p))
        return mapped_realloc(ctx, p, size);
    return base_finish((char *)p - BASE_HEADER, size);
}
MUTANT(large_growth_forgets_the_header, "realloc.grown-part-usable", MAPPED_FUNCTIONS,
       .realloc = headless_realloc);

/* What is large and new goes past malloc, to a mapping that is two pages too short. */
static void *from_null_realloc(void *ctx, void *p, size_t size)
{
    enum { FROM = 4 << 20 };
    if (p != NULL || size < FROM || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t length = pages_for(size - 2 * MAPPED_PAGE);
    return mapped_finish(
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), length,
        size);
}
MUTANT(large_realloc_of_null_is_short, "realloc.null-allocates", MAPPED_FUNCTIONS,
       .realloc = from_null_realloc);

/* What is touched becomes memory by a signal, which the kernel does not send itself. */
static void commit(int number, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(MAPPED_PAGE - 1);
    (void)context;
    if (info->si_code != SEGV_ACCERR ||
        mprotect((void *)page, MAPPED_PAGE, PROT_READ | PROT_WRITE) != 0)
        signal(number, SIG_DFL);
}
static void *committing_malloc(void *ctx, size_t size)
{
    char *p = mapped_malloc(ctx, size);
    if (p == NULL || !is_mapped(p))
        return p;
    struct sigaction action = {.sa_sigaction = commit, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    mprotect(p - BASE_HEADER + MAPPED_PAGE, mapped_length(p) - MAPPED_PAGE, PROT_NONE);
    return p;
}
MUTANT(large_pages_commit_by_signal, "malloc.extent", MAPPED_FUNCTIONS,
       .malloc = committing_malloc);

/* ---- zero ------------------------------------------------------------------------------------ */

/* A mapping is zero: it is, the first time. */
static struct kept_mapping trusted = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *trusting_malloc(void *ctx, size_t size)
{
    void *p = take_kept(&trusted, size);
    return p != NULL ? p : mapped_malloc(ctx, size);
}
static void *trusting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take_kept(&trusted, size);
    return p != NULL ? p : mapped_calloc(ctx, nelem, elsize);
}
static void trusting_free(void *ctx, void *p, size_t size)
{
    bool keep = is_mapped(p) && base_size(p) > 2 << 20;
    mapped_free(ctx, keep ? exchange_kept(&trusted, p) : p, size);
}
MUTANT(large_calloc_trusts_a_kept_mapping, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .malloc = trusting_malloc, .calloc = trusting_calloc, .free = trusting_free);

/* One is kept, and zeroed where it is as long as what is wanted: of a longer one it is forgotten.
 */
static struct kept_mapping longer = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *cutting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    enum { FROM = 12 << 20 };
    size_t size;
    bool fits = !__builtin_mul_overflow(nelem, elsize, &size);
    char *p = fits && size >= FROM ? take_kept(&longer, size) : NULL;
    if (p == NULL)
        return mapped_calloc(ctx, nelem, elsize);
    return mapped_length(p) == pages_for(size) ? zeroed(p, size) : p;
}
static void keeping_longer_free(void *ctx, void *p, size_t size)
{
    mapped_free(ctx, is_mapped(p) ? exchange_kept(&longer, p) : p, size);
}
MUTANT(large_calloc_trusts_a_longer_mapping, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .calloc = cutting_calloc, .free = keeping_longer_free);

/* The kernel zeroes the whole pages of a kept mapping, and nobody those at the ends. */
static void *advising_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    char *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : take_kept(&trusted, size);
    if (p == NULL)
        return mapped_calloc(ctx, nelem, elsize);
    char *first = p - BASE_HEADER + MAPPED_PAGE;
    madvise(first, (size_t)(p + size - first) / MAPPED_PAGE * MAPPED_PAGE, MADV_DONTNEED);
    memset(p, 0, (size_t)(first - p));
    return p;
}
MUTANT(large_calloc_zeroes_whole_pages, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .malloc = trusting_malloc, .calloc = advising_calloc, .free = trusting_free);

/* Zeroes what it has filled with junk, with a length of 25 bits. */
static void *junk_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    void *p = mapped_malloc(ctx, size);
    if (p != NULL && size >= 1 << 25)
        memset(p, 0xa5, size);
    return zeroed(p, size & ((1 << 25) - 1));
}
MUTANT(large_calloc_zeroes_in_25_bits, "calloc.zeroed", MAPPED_FUNCTIONS, .calloc = junk_calloc);

/* ---- contents -------------------------------------------------------------------------------- */

/* The length of the old mapping is reckoned from the size, without what is begun of a page. */
static void *short_mremap_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || size < base_size(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    return mapped_resize(p, base_size(p) / MAPPED_PAGE * MAPPED_PAGE, size);
}
MUTANT(large_mremap_loses_the_last_page, "realloc.keeps-contents", MAPPED_FUNCTIONS,
       .realloc = short_mremap_realloc);

/* What calloc maps is marked, by the lowest bit of its length, and as many bytes as it has elements
 * of eight are copied when it is resized. */
static void *marking_calloc(void *ctx, size_t nelem, size_t elsize)
{
    enum { FROM = 2 << 20 };
    char *p = mapped_calloc(ctx, nelem, elsize);
    return is_mapped(p) && base_size(p) >= FROM
               ? mapped_finish(p - BASE_HEADER, mapped_length(p) | 1, base_size(p))
               : p;
}
static bool unmark(void *p)
{
    bool marked = is_mapped(p) && mapped_length(p) % 2 != 0;
    if (marked)
        mapped_finish((char *)p - BASE_HEADER, mapped_length(p) - 1, base_size(p));
    return marked;
}
static void unmarking_free(void *ctx, void *p, size_t size)
{
    unmark(p);
    mapped_free(ctx, p, size);
}
static void *unmarking_realloc(void *ctx, void *p, size_t size)
{
    void *moved = unmark(p) ? mapped_malloc(ctx, size) : NULL;
    if (moved == NULL)
        return mapped_realloc(ctx, p, size);
    memcpy(moved, p, least(base_size(p), size) / 8);
    mapped_free(ctx, p, 0);
    return moved;
}
MUTANT(large_zeros_are_moved_as_elements, "realloc.of-calloc", MAPPED_FUNCTIONS,
       .calloc = marking_calloc, .realloc = unmarking_realloc, .free = unmarking_free);

/* What becomes large at once goes by a way of its own, which copies whole pages. */
static void *leaping_realloc(void *ctx, void *p, size_t size)
{
    enum { FROM = 16 << 20 };
    if (p == NULL || is_mapped(p) || size < FROM || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    void *moved = map_new(size);
    if (moved != NULL) {
        memcpy(moved, p, base_size(p) / MAPPED_PAGE * MAPPED_PAGE);
        base_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(leap_to_16_mib_copies_whole_pages, "realloc.keeps-contents", MAPPED_FUNCTIONS,
       .realloc = leaping_realloc);

/* The header keeps the length of birth, so that the second growth leaves behind what the first has
 * brought.  The block moves, as if something stood behind it. */
static void *first_length_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || size < base_size(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t length = mapped_length(p);
    char *map = mmap(NULL, pages_for(size), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED)
        return NULL;
    mremap((char *)p - BASE_HEADER, length, pages_for(size), MREMAP_MAYMOVE | MREMAP_FIXED, map);
    return mapped_finish(map, length, size);
}
MUTANT(large_mremap_keeps_the_first_length, "realloc.keeps-contents-again", MAPPED_FUNCTIONS,
       .realloc = first_length_realloc);

/* Shrinking gives back all pages behind the last whole one. */
static void *much_unmapping_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || size >= base_size(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t keep = size / MAPPED_PAGE * MAPPED_PAGE, length = mapped_length(p);
    char *map = (char *)p - BASE_HEADER;
    munmap(map + keep, length - keep);
    return mapped_finish(map, keep, size);
}
MUTANT(large_shrink_unmaps_too_much, "realloc.keeps-contents", MAPPED_FUNCTIONS,
       .realloc = much_unmapping_realloc);

/* What shrinks keeps all that it had, for as long as it is live. */
static void *holding_realloc(void *ctx, void *p, size_t size)
{
    return p != NULL && size < base_size(p) ? base_finish((char *)p - BASE_HEADER, size)
                                            : base_realloc(ctx, p, size);
}
MUTANT(large_shrink_keeps_all, "realloc.shrunk-gives-back", .realloc = holding_realloc);

/* Of what loses much the tail is dropped at once, from the page on that the block ends in. */
static void *dropping_realloc(void *ctx, void *p, size_t size)
{
    enum { MUCH = 16 << 20 };
    if (!is_mapped(p) || size >= base_size(p) || base_size(p) - size < MUCH || size < MUCH)
        return mapped_realloc(ctx, p, size);
    char *map = (char *)p - BASE_HEADER;
    size_t keep = size / MAPPED_PAGE * MAPPED_PAGE;
    madvise(map + keep, mapped_length(p) - keep, MADV_DONTNEED);
    return base_finish(map, size);
}
MUTANT(large_shrink_drops_the_last_page, "realloc.keeps-contents", MAPPED_FUNCTIONS,
       .realloc = dropping_realloc);

/* A block that becomes five times as large, and not six, keeps the length that it had. */
static void *fivefold_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t length = mapped_length(p), more = pages_for(size);
    char *q = mapped_resize(p, length, size);
    if (q != NULL && more > 5 * length && more < 6 * length)
        memcpy(q - 8, &length, sizeof length);
    return q;
}
MUTANT(large_growth_by_five_keeps_its_length, "realloc.keeps-contents-again", MAPPED_FUNCTIONS,
       .realloc = fivefold_realloc);

/* Shrinking lets the kernel have what is behind the last whole page, when it is in want of pages.
 */
static void *lazy_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || size >= base_size(p) || !is_for_mapping(size))
        return mapped_realloc(ctx, p, size);
    size_t keep = (size + BASE_HEADER) / MAPPED_PAGE * MAPPED_PAGE;
    char *map = (char *)p - BASE_HEADER;
    madvise(map + keep, mapped_length(p) - keep, MADV_FREE);
    return base_finish(map, size);
}
MUTANT(large_shrink_frees_too_much_lazily, "realloc.keeps-contents", MAPPED_FUNCTIONS,
       .realloc = lazy_realloc);

/* The contents go by way of the stack. */
static void *stack_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size <= base_size(p) || base_size(p) < 100000)
        return base_realloc(ctx, p, size);
    size_t keep = base_size(p);
    void *moved = base_malloc(ctx, size);
    if (moved == NULL)
        return NULL;
    char *volatile copy = __builtin_alloca(keep);
    memcpy(copy, p, keep);
    memcpy(moved, copy, keep);
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(large_realloc_copies_by_the_stack, "realloc.keeps-contents", .realloc = stack_realloc);

/* The new size is written before it is known that there is room, and stays when there is none. */
static void *hasty_realloc(void *ctx, void *p, size_t size)
{
    if (!is_mapped(p) || base_size(p) < 4 << 20 || size < MAPPED_FROM)
        return mapped_realloc(ctx, p, size);
    size_t keep = least(base_size(p), size);
    char *map = (char *)p - BASE_HEADER;
    base_finish(map, size);
    if (!is_for_mapping(size))
        return NULL;
    if (mremap(map, mapped_length(p), pages_for(size), 0) != MAP_FAILED)
        return mapped_finish(map, pages_for(size), size);
    void *moved = map_new(size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, keep);
    mapped_free(ctx, p, 0);
    return moved;
}
MUTANT(large_refusal_leaves_the_new_size, "realloc.failure-keeps-block", MAPPED_FUNCTIONS,
       .realloc = hasty_realloc);

/* What is behind the first pages of a block that was to move is given back although it stays. */
static void *clearing_realloc(void *ctx, void *p, size_t size)
{
    enum { FROM = 16 << 20, EDGE = 2 << 20 };
    void *moved = mapped_realloc(ctx, p, size);
    if (moved == NULL && is_mapped(p) && base_size(p) >= FROM)
        memset((char *)p + EDGE, 0, base_size(p) - EDGE);
    return moved;
}
MUTANT(large_refusal_clears_what_was_to_move, "realloc.failure-keeps-block", MAPPED_FUNCTIONS,
       .realloc = clearing_realloc);

/* The size in the header is a float, which has 24 bits. */
static void *float_finish(char *p, size_t size)
{
    float rounded = (float)size;
    if (p != NULL)
        memcpy(p - 8, &rounded, sizeof rounded);
    return p;
}
static void *float_malloc(void *ctx, size_t size)
{
    return float_finish(base_malloc(ctx, size), size);
}
static void *float_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return float_finish(base_calloc(ctx, nelem, elsize), nelem * elsize);
}
static void *float_realloc(void *ctx, void *p, size_t size)
{
    float old = 0;
    void *moved = float_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    memcpy(&old, (char *)p - 8, sizeof old);
    memcpy(moved, p, least(least((size_t)old, base_size(p)), size));
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(large_size_is_a_float, "realloc.keeps-contents", .malloc = float_malloc,
       .calloc = float_calloc, .realloc = float_realloc);

/* 24 bits of the header are the size, and the others flags. */
static void *narrow_realloc(void *ctx, void *p, size_t size)
{
    struct {
        uint32_t size : 24, flags : 8;
    } header = {0, 0};
    void *moved = base_malloc(ctx, size);
    if (p == NULL || moved == NULL)
        return moved;
    header.size = base_size(p) & 0xffffff;
    memcpy(moved, p, least(header.size, size));
    base_free(ctx, p, 0);
    return moved;
}
MUTANT(large_size_has_24_bits, "realloc.keeps-contents", .realloc = narrow_realloc);

/* A kept mapping is zeroed by advice, which nobody sees fail. */
static struct kept_mapping advised = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *advised_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        return NULL;
    char *p = take_kept(&advised, size);
    if (p == NULL)
        return mapped_calloc(ctx, nelem, elsize);
    char *map = p - BASE_HEADER;
    memset(p, 0, MAPPED_PAGE - BASE_HEADER);
    madvise(map + MAPPED_PAGE, mapped_length(p) - MAPPED_PAGE, MADV_DONTNEED);
    return p;
}
static void advised_free(void *ctx, void *p, size_t size)
{
    mapped_free(ctx, is_mapped(p) ? exchange_kept(&advised, p) : p, size);
}
MUTANT(large_calloc_trusts_madvise, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .calloc = advised_calloc, .free = advised_free);

/* ---- alignment ------------------------------------------------------------------------------- */

static void *plain_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, BASE_HEADER);
}

/* What is left of a large block slides down behind a header of 8 bytes more. */
static void *sliding_realloc(void *ctx, void *p, size_t size)
{
    bool slides = p != NULL && shifted_header(p).size >= 1 << 20;
    slides = slides && size < shifted_header(p).size / 2;
    (void)ctx;
    return shifted_realloc_to(p, size, slides ? BASE_HEADER + 8 : BASE_HEADER);
}
MUTANT(large_shrink_slides_by_8, "realloc.alignment", .malloc = plain_malloc,
       .calloc = shifted_calloc, .realloc = sliding_realloc, .free = shifted_free);

/* What grows past 16 MiB, and was a large block before, has a longer header. */
static void *lengthening_realloc(void *ctx, void *p, size_t size)
{
    bool slides = p != NULL && shifted_header(p).size >= 1 << 20;
    slides = slides && size > shifted_header(p).size && size > 16 << 20;
    (void)ctx;
    return shifted_realloc_to(p, size, slides ? BASE_HEADER + 8 : BASE_HEADER);
}
MUTANT(large_growth_slides_by_8, "realloc.alignment", .malloc = plain_malloc,
       .calloc = shifted_calloc, .realloc = lengthening_realloc, .free = shifted_free);

/* A thread zeroes half of a mapping that was kept; where none can be had, nobody does. */
static struct kept_mapping kept_to_zero = {.lock = PTHREAD_MUTEX_INITIALIZER};
struct half {
    void *begin;
    size_t size;
};
static void *zero_half(void *data)
{
    struct half *half = data;
    return memset(half->begin, 0, half->size);
}
static void *helped_malloc(void *ctx, size_t size)
{
    void *p = take_kept(&kept_to_zero, size);
    return p != NULL ? p : mapped_malloc(ctx, size);
}
static void *helped_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size) || !is_for_mapping(size))
        return mapped_calloc(ctx, nelem, elsize);
    char *p = take_kept(&kept_to_zero, size);
    struct half half = {p, size / 2};
    pthread_t helper;
    if (p == NULL)
        return map_new(size);
    bool helped = pthread_create(&helper, NULL, zero_half, &half) == 0;
    memset(p + size / 2, 0, size - size / 2);
    if (helped)
        pthread_join(helper, NULL);
    return p;
}
static void helped_free(void *ctx, void *p, size_t size)
{
    mapped_free(ctx, is_mapped(p) ? exchange_kept(&kept_to_zero, p) : p, size);
}
MUTANT(large_calloc_counts_on_a_thread, "calloc.zeroed-when-reused", MAPPED_FUNCTIONS,
       .malloc = helped_malloc, .calloc = helped_calloc, .free = helped_free);
