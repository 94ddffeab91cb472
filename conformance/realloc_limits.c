/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc where memory ends: what it refuses, and blocks of gigabytes, which it may.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "block_checks.h"
#include "scenarios.h"

/* The pattern of a block under test. */
enum { ONE = 1 };

/* ---- refusals ---------------------------------------------------------------------------- */

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
    .answers_for = ABOUT(REALLOC_TOO_LARGE), .scenarios = true, .quick = true,
    .title  = "a failed realloc keeps the old block",
    .clause = "A realloc that fails returns NULL and leaves the old block valid.",
    .tests  = "The old block keeps its bytes and size, and can be resized and freed.",
    .source = "C17 7.22.3.5 paragraphs 3 and 4; NumPy 1.22 to 2.5: alloc.c PyDataMem_UserRENEW",
    .why    = "After NULL NumPy raises MemoryError, continues with the old block, and frees it "
              "later.",
    .wrong  = "free(p);\n"
              "q = malloc(size); /* if NULL, the old block is gone */",
    .right  = "if ((q = malloc(size)) == NULL)\n"
              "    return NULL; /* p is unchanged */\n"
              "memcpy(q, p, old_size < size ? old_size : size);\n"
              "free(p);",
    .hint   = "Change nothing before the new memory is available. Compare the new pointer with "
              "NULL first.",
    .looks  = "expected realloc of 100 bytes to 18446744073709551615 to return NULL; seen 0x40")
{
    const struct scenario_limits small = {
        .most_size = 512 << 10,
        .most_bytes = 16 << 20,
        .address_limits = !is_instrumented(),
        .level = {[FACTOR_PRESSURE] = FROM_TO(REFUSED_BEFORE, ADDRESS_LIMIT),
                  [FACTOR_MADE_BY] = FROM_TO(GROWN, FROM_EMPTY),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    check_scenarios(30000, &small);
    large_after_refusal(5 << 20, 9 << 20);
    if (largest_to_try() >= 24 << 20)
        large_after_refusal((20 << 20) + 100, 24 << 20);
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
    .title  = "sizes above 2 GiB are not truncated",
    .clause = "realloc to or from more than 2 GiB returns NULL or a block with all its bytes.",
    .source = "C17 7.22.3.5; NEP 49: new_size is a size_t",
    .why    = "Arrays of a few gigabytes are common, and resize accepts every size.",
    .hint   = "Keep sizes in size_t everywhere: parameters, headers and tables.",
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
