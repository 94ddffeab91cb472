/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc where memory ends: what it refuses, and blocks of gigabytes, which it may.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "block_checks.h"

/* A pattern for each block under test. */
enum { ONE = 1, ANOTHER = 2 };

/* ---- refusals ---------------------------------------------------------------------------- */

/* Asks for what nobody has, and looks at the block, of which `size` bytes are pattern ONE. */
static void expect_refused(unsigned char *p, size_t size, size_t absurd)
{
    void *q = subject_realloc(p, absurd);
    expect(q == NULL, fmt("realloc of %zu bytes to %zu to return NULL", size, absurd), "%p, %s", q,
           q == p ? "the old block" : "where there can be no such block");
    unsigned char ends[2] = {pattern_byte(ONE, 0), pattern_byte(ONE, size - 1)};
    expect(
        p[0] == ends[0] && p[size - 1] == ends[1],
        fmt("a block of %zu bytes to be as it was after realloc to %zu was refused", size, absurd),
        "its first byte is 0x%02x for 0x%02x, its last 0x%02x for 0x%02x", p[0], ends[0],
        p[size - 1], ends[1]);
}

/* Every size that a header of up to 8 KiB or room to grow could make small, those round
 * PTRDIFF_MAX, and more than there are addresses. */
static void expect_absurd_refused(unsigned char *p, size_t size)
{
    absurd_begin();
    for (size_t k = 0; k <= 8192; k += k > 64 ? stride(61) : 1)
        expect_refused(p, size, SIZE_MAX - k);
    for (size_t k = 0; k <= 128; k++)
        expect_refused(p, size, (size_t)PTRDIFF_MAX + 64 - k);
    for (unsigned shift = ABSURD_BITS; shift < SIZE_BITS; shift++)
        expect_refused(p, size, (size_t)1 << shift);
    for_each_wrapping_size (absurd)
        expect_refused(p, size, absurd);
    absurd_end();
    expect_pattern(p, size, ONE, "after realloc of %zu bytes was refused", size);
}

/* After a refusal the block is like any other: it can be resized both ways and freed, and nobody
 * else is given it. */
static void use_on(unsigned char *p, size_t size)
{
    enum { OTHERS = 4 };
    unsigned char *others[OTHERS];
    for (size_t i = 0; i < OTHERS; i++)
        others[i] = filled(size, ANOTHER + i);
    expect_pattern(p, size, ONE, "after a refused realloc and %d times malloc(%zu)", OTHERS, size);
    p = resized(p, size, 2 * size + 100, ONE);
    p = resized(p, size, (size + 1) / 2, ONE);
    for (size_t i = 0; i < OTHERS; i++) {
        expect_pattern(others[i], size, ANOTHER + i, "beside a block that realloc refused to grow");
        subject_free(others[i], size);
    }
    subject_free(p, (size + 1) / 2);
}

/* A block whose size is wrong in a header or table since the refusal is copied past its end. */
static void grow_after_refusal(size_t size)
{
    enum { MUCH = 16 << 20 };
    unsigned char *p = filled(size, ONE);
    expect_refused(p, size, POWER_OF_2(60));
    unsigned char *q = subject_realloc(p, MUCH);
    expect_pattern(q != NULL ? q : p, size, ONE, "after realloc from %zu to %d", size, MUCH);
    subject_free(q != NULL ? q : p, q != NULL ? MUCH : size);
}

/* Asks for ever more until the kernel says no.  The size that was refused, or 0 where `most` was
 * not; *p and *size are the block then. */
static size_t grow_until_refused(unsigned char **p, size_t *size, size_t by, size_t most)
{
    while (*size < most) {
        unsigned char *q = subject_realloc(*p, *size + by);
        if (q == NULL)
            return *size + by;
        *p = q;
        *size += by;
    }
    return 0;
}

/* A real shortage: little address space is left, and one request is for more. */
static void refuse_for_want_of_memory(size_t size)
{
    static const size_t wanted[] = {64 << 20, 1 << 30, POWER_OF_2(36), POWER_OF_2(40)};
    unsigned char *p = filled(size, ONE);
    limit_mapped_bytes(4 << 20);
    for (size_t i = 0; i < LENGTH(wanted); i++) {
        unsigned char *q = subject_realloc(p, wanted[i]);
        if (q != NULL) { /* it has a pool; what it returns is a block all the same */
            expect_pattern(q, size, ONE, "after realloc from %zu to %zu", size, wanted[i]);
            p = resized(q, size, size, ONE);
            continue;
        }
        expect_pattern(p, size, ONE, "after realloc from %zu to %zu was refused", size, wanted[i]);
    }
    lift_limit();
    use_on(p, size);
}

/* A page that cannot be read, among the first behind a block, or NULL where others are. */
static void *build_wall(const unsigned char *p, size_t size)
{
    enum { TRIES = 4 };
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = ((uintptr_t)p + size + page - 1) / page * page;
    for (uintptr_t at = end; at < end + TRIES * page; at += page) {
        void *wall = mmap((void *)at, page, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        if (wall == (void *)at)
            return wall;
        if (wall != MAP_FAILED)
            munmap(wall, page); /* of a kernel that knows no such flag */
    }
    return NULL;
}

/* A large block is in pages of its own, and past their end is a wall: there it cannot grow in
 * place, and whoever copies more than it has comes to it. */
static void large_after_refusal(size_t size, size_t more)
{
    enum { MIB = 1 << 20, ROOM = 64 * MIB };
    void *room = subject_malloc(is_instrumented() ? MIB : ROOM);
    unsigned char *p = subject_malloc(size), *q = NULL;
    give_back(room, is_instrumented() ? MIB : ROOM);
    if (p == NULL)
        return;
    sample_fill(p, size, ONE);
    void *wall = build_wall(p, size);
    absurd_begin();
    q = subject_realloc(p, POWER_OF_2(50));
    absurd_end();
    if (q == NULL && !is_instrumented()) {
        limit_mapped_bytes(MIB);
        q = subject_realloc(p, POWER_OF_2(34));
        lift_limit();
    }
    if (q == NULL) {
        expect_samples(p, size, ONE, "after realloc of %zu bytes was refused", size);
        q = subject_realloc(p, more);
        expect_samples(q != NULL ? q : p, size, ONE,
                       "after a refused realloc, and realloc from %zu to %zu", size, more);
        subject_free(q != NULL ? q : p, q != NULL ? more : size);
    }
    if (wall != NULL)
        munmap(wall, 1); /* which is its page */
}

PROPERTY(realloc_failure_keeps_block,
    .id     = "realloc.failure-keeps-block", .level = MUST, .basis = BASIS_C,
    .rule = HEAP_FAILURE_KEEPS_BLOCK, .rank = {RANK_RESIZED, RANK_RESIZED, 27},
    .answers_for = ABOUT(REALLOC_TOO_LARGE), .quick = true,
    .clause = "a refused realloc returns NULL, and the old block keeps its bytes and size and can "
              "be resized and freed",
    .source = "C17 7.22.3.5 paragraphs 3 and 4; NumPy 1.22 to 2.5: alloc.c PyDataMem_UserRENEW",
    .why    = "after NULL NumPy raises MemoryError, goes on with the old block, and frees it later",
    .hint   = "change nothing before the new memory is there; check it for NULL first",
    .looks  = "FAIL: realloc of 100 bytes to 18446744073709551615 to return NULL; 0x40")
{
    static const size_t sizes[] = {1, 24, 100, 1000, 5000, 70000, 300000};
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        unsigned char *p = filled(sizes[i], ONE);
        expect_absurd_refused(p, sizes[i]);
        use_on(p, sizes[i]);
        p = filled(sizes[i], ONE); /* after MemoryError, the usual next thing */
        absurd_begin();
        expect_refused(p, sizes[i], PTRDIFF_MAX);
        absurd_end();
        subject_free(p, sizes[i]);
        grow_after_refusal(sizes[i]);
    }
    for (size_t i = 0; !is_instrumented() && i < LENGTH(sizes); i++)
        refuse_for_want_of_memory(sizes[i]);
    large_after_refusal(5 << 20, 9 << 20);
    if (largest_to_try() >= 24 << 20)
        large_after_refusal((20 << 20) + 100, 24 << 20);
}

/* What array_from_text does with a text whose third buffer is refused: the block is resized to the
 * size that it has, which succeeds where nothing is short, and is freed with that size; where it
 * fails again, with the size of the first buffer. */
static void retry_as_numpy(unsigned char *p, size_t size, bool is_short)
{
    unsigned char *q = subject_realloc(p, size);
    if (q == NULL && !is_short)
        fail(fmt("realloc of %zu bytes to %zu, after more was refused, to return a block", size,
                 size),
             "NULL");
    p = q != NULL ? q : p;
    expect_pattern(p, size, ONE, "after realloc to more was refused and realloc to %zu %s", size,
                   q != NULL ? "was not" : "as well");
    subject_free(p, q != NULL ? size : 32768);
}

PROPERTY(realloc_retry_after_failure,
    .id     = "realloc.retry-after-failure", .level = MUST, .basis = BASIS_CALLER,
    .rank = {RANK_ONE_FUNCTION, RANK_ONE_FUNCTION, 32}, .quick = true,
    .clause = "after a refused realloc the same block can be given to realloc again at once",
    .source = "NumPy 1.22 to 2.5: ctors.c array_from_text cuts the block after a refused growth",
    .why    = "a text that is too large would crash instead of raising MemoryError",
    .hint   = "keep no note of the failure and no lock",
    .looks  = "FAIL: realloc of 65536 bytes to 65536, after a refusal, to return a block; NULL")
{
    for (size_t buffers = 1; buffers <= 4; buffers++) {
        size_t size = buffers * 32768;
        unsigned char *p = filled(size, ONE);
        absurd_begin();
        expect_refused(p, size, PTRDIFF_MAX - 32767);
        expect_refused(p, size, SIZE_MAX - 32767);
        absurd_end();
        retry_as_numpy(p, size, false);
    }
    if (is_instrumented())
        return; /* no limit can be set */
    unsigned char *p = filled(32768, ONE);
    size_t size = 32768;
    limit_mapped_bytes(2 << 20);
    size_t refused = grow_until_refused(&p, &size, 32768, 32 << 20);
    pattern_fill(p, size, ONE);
    if (refused == 0) /* it has a pool of its own */
        expect_refused(p, size, PTRDIFF_MAX);
    retry_as_numpy(p, size, true);
    lift_limit();
    subject_free(must_malloc(32768), 32768);
}

/* ---- large ------------------------------------------------------------------------------- */

/* What is beyond 2 and 4 GiB is never touched but for three bytes, and the block is left to the
 * end of this child: a handler that wipes what it frees would need all of it. */
static void grow_past(void *data)
{
    size_t size = *(size_t *)data, half = size / 2, small = 1000;
    unsigned char *p = filled(small, ONE), *q = subject_realloc(p, size);
    if (q == NULL) { /* which is its right; and the block is as it was */
        expect_pattern(p, small, ONE, "after realloc from %zu to %zu was refused", small, size);
        return;
    }
    step("writing to byte %zu of the %zu that realloc returned", size - 1, size);
    q[size - 1] = 0x5a;
    q[half] = 0xa5;
    expect(q[size - 1] == 0x5a && q[half] == 0xa5,
           fmt("the last byte of %zu to be 0x5a, as it was written, and byte %zu 0xa5", size, half),
           "0x%02x and 0x%02x", q[size - 1], q[half]);
    expect_pattern(q, small, ONE, "after realloc from %zu to %zu", small, size);
}

static void shrink_from(size_t size)
{
    unsigned char *p = subject_malloc(size);
    if (p == NULL)
        return;
    pattern_fill(p, 5000, ONE);
    p = must_realloc(p, 5000);
    expect_pattern(p, 5000, ONE, "after realloc from %zu to 5000", size);
    subject_free(p, 5000);
}

PROPERTY(realloc_past_2gib,
    .id     = "realloc.past-2gib", .level = MUST, .basis = BASIS_C, .ends_process = true,
    .clause = "realloc to or from more than 2 GiB returns NULL, or a block with all its bytes",
    .source = "C17 7.22.3.5; NEP 49: new_size is a size_t",
    .why    = "an array of a few gigabytes is nothing unusual, and resize reaches every size",
    .hint   = "keep sizes in size_t from end to end: parameters, headers, tables",
    .looks  = "CRASH: SIGSEGV at address 0x7f0c0ab12fff, while writing to byte 4294967300")
{
    size_t sizes[] = {POWER_OF_2(31) + 5, POWER_OF_2(32) + 5};
    bool has_room = lacking_memory(sizes[1]) == NULL && !subject_fills_blocks();
    if (!has_room) /* what cuts the size has room enough, and what fills the block is refused */
        absurd_begin();
    for (size_t i = 0; i < 2; i++)
        in_child(grow_past, &sizes[i]);
    if (has_room)
        shrink_from(sizes[1]);
    else
        absurd_end();
    check_huge_realloc();
}
