/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc where memory ends: what it refuses, what works then, and for how long.
 */
#include <sys/resource.h>

#include "block_checks.h"
#include "scenarios.h"

PROPERTY(malloc_too_large,
    .id     = "malloc.too-large", .level = MUST, .basis = BASIS_C, .rule = HEAP_TOO_LARGE,
    .answers_for = ABOUT(MALLOC_TOO_LARGE), .scenarios = true, .quick = true,
    .title  = "NULL for sizes above PTRDIFF_MAX",
    .clause = "malloc returns NULL and changes nothing if the size exceeds PTRDIFF_MAX.",
    .tests  = "Sizes up to SIZE_MAX are requested, also right after a small block was freed.",
    .source = "C17 7.22.3.4 paragraph 3; 6.5.6 paragraph 9, as PTRDIFF_MAX bounds an object",
    .why    = "A size that wraps becomes a small block, and NumPy writes past its end.",
    .wrong  = "block = malloc(size + HEADER);",
    .right  = "if (size > PTRDIFF_MAX - HEADER)\n"
              "    return NULL;\n"
              "block = malloc(size + HEADER);",
    .hint   = "Before each addition or rounding, check that size plus header, rounding and spare "
              "room does not wrap.",
    .looks  = "expected malloc(SIZE_MAX - 15) to return NULL; seen 0x55d0c8")
{
    const struct scenario_limits limits = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_PRESSURE] = FROM_TO(REFUSED_BEFORE, REFUSED_BEFORE),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    absurd_begin();
    check_scenarios(20000, &limits);
    absurd_end();
}

enum { PROBE = 32 << 20 };

static size_t most_resident(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* Frees blocks that hardly a byte was written into, the first one as a probe: a handler that wipes
 * what it takes back would touch all of the others. */
static void free_untouched(struct blocks *blocks)
{
    size_t before = most_resident();
    blocks_free(blocks, 0);
    if (most_resident() - before < PROBE / 2)
        blocks_free_all(blocks);
}

PROPERTY(malloc_past_4gib,
    .id     = "malloc.past-4gib", .level = MUST, .basis = BASIS_C, .ends_process = true,
    .title  = "sizes are not cut to 32 bits",
    .clause = "For sizes of 2 GiB and more, malloc returns NULL or a block whose last byte is "
              "writable.",
    .source = "C17 7.22.3.4; NEP 49: the size is a size_t",
    .why    = "np.empty((1 << 32) + 16, 'u1') would be an array over a block of 16 bytes.",
    .wrong  = "unsigned size = (unsigned)requested;",
    .right  = "size_t size = requested;",
    .hint   = "Keep sizes in size_t everywhere, including headers and tables.",
    .looks  = "CRASH: SIGSEGV, while writing the last byte of malloc(4294967312)")
{
    static const size_t sizes[] = {POWER_OF_2(32) + 16, POWER_OF_2(31),       POWER_OF_2(31) + 1,
                                   POWER_OF_2(32),      POWER_OF_2(32) + 1,   POWER_OF_2(32) + 4096,
                                   POWER_OF_2(33) + 24, POWER_OF_2(35) + 1000};
    if (SIZE_BITS < 33)
        skip("a size_t has %d bits", SIZE_BITS);
    struct blocks company = {0}, held = {0}; /* nothing is freed, so that nothing is recycled */
    blocks_add_neighbours(&company, 60);     /* before there is much that a quota may be for */
    size_t before = most_resident();
    blocks_add_unwritten(&held, must_malloc(PROBE), PROBE);
    bool fills = most_resident() - before > PROBE / 2;
    if (fills) /* a sound one then refuses, and does not take all the memory there is */
        limit_mapped_bytes((size_t)1 << 30);
    if (is_instrumented())
        ask_for_memory((size_t)1 << 30); /* of which memcheck and ASan keep track */
    for (size_t i = 0; i < (is_instrumented() ? 1 : LENGTH(sizes)); i++) {
        unsigned char *p = subject_malloc(sizes[i]);
        if (p == NULL)
            continue;
        step("writing the last byte of malloc(%zu)", sizes[i]);
        p[0] = 1;
        p[sizes[i] - 1] = 2;
        step("writing within malloc(%zu)", sizes[i]);
        p[sizes[i] / 2] = 3;
        p[sizes[i] - ((size_t)1 << 30)] = 4;
        expect(p[0] == 1 && p[sizes[i] - 1] == 2, fmt("malloc(%zu) to keep its ends", sizes[i]),
               "%d and %d instead of 1 and 2", p[0], p[sizes[i] - 1]);
        blocks_verify(&company, "after malloc(%zu)", sizes[i]);
        blocks_add_unwritten(&held, p, sizes[i]);
    }
    if (fills)
        lift_limit();
    else
        free_untouched(&held);
    blocks_free_all(&company);
}

/* ---- running out ----------------------------------------------------------------------------- */

PROPERTY(malloc_failure_is_null,
    .id     = "malloc.failure-is-null", .level = MUST, .basis = BASIS_C,
    .scenarios = true, .quick = true,
    .title  = "NULL if there is no memory",
    .clause = "Without address space malloc returns NULL, keeps live blocks intact, and does not "
              "end the process.",
    .tests  = "The limit on address space is lowered, and blocks are requested until the handler "
              "refuses.",
    .source = "C17 7.22.3.4 paragraph 3",
    .why    = "NumPy turns NULL, and no other value, into MemoryError, which programs can catch.",
    .wrong  = "return (char *)malloc(size + HEADER) + HEADER;",
    .right  = "char *block = malloc(size + HEADER);\n"
              "return block != NULL ? block + HEADER : NULL;",
    .hint   = "Check the result of the underlying malloc or mmap before you add a header to it.",
    .looks  = "expected malloc(48) to return a block or NULL; seen 0x10")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 64 << 20,
                                           .address_limits = true,
                                           .level = {[FACTOR_PRESSURE] = FROM_TO(USED_UP, USED_UP),
                                                     [FACTOR_REPETITION] = FROM_TO(0, 2),
                                                     [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2)}};
    for (int rows = 0; rows < 2 && !is_instrumented(); rows++)
        check_scenarios_about(FACTOR_PRESSURE, ONE_ROW, &limits);
}

enum { SMALL = 100, ROOM = 16 << 20, PAGE = 4096 };

/* Requests for `size` bytes, again and again, where there is no room for them: of realloc for the
 * block of SMALL bytes at `*p`.  Ends where there is room after all: calloc comes last, as it may
 * write to what it has. */
static bool all_are_refused(void **p, size_t size)
{
    enum { TIMES = 64 };
    for (int i = 0; i < TIMES && !time_is_up(); i++) {
        void *moved = NULL, *other = subject_malloc(size);
        if (other == NULL)
            moved = subject_realloc(*p, size);
        if (other == NULL && moved == NULL)
            other = subject_calloc(size, 1);
        if (moved != NULL)
            *p = subject_realloc(moved, SMALL);
        give_back(other, size);
        if (moved != NULL || other != NULL)
            return false;
    }
    return true;
}

/* Whoever counts what is asked for, and not what is had, has counted 192 GiB.  All that is live is
 * from before the limit: under it, a first block of a size may be one too many. */
static void expect_refusals_cost_nothing(void)
{
    static const size_t large = 4 * (size_t)ROOM, more = large + PAGE;
    void *small = must_malloc(SMALL), *p = subject_malloc(more);
    bool refused = p != NULL; /* else it may have less, and asks nobody for it */
    if (p != NULL) {
        subject_free(p, more);
        limit_mapped_bytes(ROOM);
        refused = all_are_refused(&small, (size_t)1 << 30) && all_are_refused(&small, large);
        lift_limit();
    }
    p = refused ? subject_malloc(more) : NULL;
    expect(p != NULL || !refused,
           fmt("malloc(%zu) to return a block, as before: what was asked for meanwhile was refused",
               more),
           "NULL");
    give_back(p, more);
    give_back(small, SMALL);
}

PROPERTY(malloc_recovers,
    .id     = "malloc.recovers", .level = MUST, .basis = BASIS_C,
    .scenarios = true, .rank = {RANK_ONE_FUNCTION, RANK_IN_USE, 23},
    .title  = "calls work again after a failed call",
    .clause = "After a failed call all functions work again on every thread once blocks are freed.",
    .tests  = "A handler with a quarantine gets 256 MiB more before the calls are repeated.",
    .source = "C17 7.22.3: a call that fails has no other effect; 7.1.4 paragraph 5, on threads",
    .why    = "A program that catches MemoryError and tries with less would hang or fail again.",
    .wrong  = "pthread_mutex_lock(&lock);\n"
              "if ((p = take(size)) == NULL)\n"
              "    return NULL; /* still locked */",
    .right  = "pthread_mutex_lock(&lock);\n"
              "p = take(size);\n"
              "pthread_mutex_unlock(&lock);\n"
              "return p;",
    .hint   = "Unlock on every failure path, and do not keep a failure as a permanent state.",
    .looks  = "TIMEOUT: no end after 10 s, inside malloc(24)")
{
    const struct scenario_limits refused = {.most_size = 1 << 20,
                                            .most_bytes = 32 << 20,
                                            .address_limits = !is_instrumented(),
                                            .level[FACTOR_PRESSURE] =
                                                FROM_TO(REFUSED_BEFORE, ADDRESS_LIMIT)};
    const struct scenario_limits in_threads = {
        .most_size = 1 << 20,
        .most_bytes = 32 << 20,
        .threads = true,
        .level = {[FACTOR_PRESSURE] = FROM_TO(REFUSED_BEFORE, REFUSED_BEFORE),
                  [FACTOR_REPETITION] = FROM_TO(0, 2),
                  [FACTOR_THREADS] = FROM_TO(FREED_THERE, CHAIN)}};
    check_scenarios_about(FACTOR_PRESSURE, 8000, &refused);
    check_scenarios_about(FACTOR_PRESSURE, 3000, &in_threads);
    if (!is_instrumented()) /* memcheck and ASan do not work under a limit */
        expect_refusals_cost_nothing();
}

PROPERTY(malloc_lasts,
    .id     = "malloc.lasts", .level = MUST, .basis = BASIS_C, .rule = HEAP_LASTS,
    .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 22},
    .answers_for = ABOUT(LITTLE_MALLOC) | ABOUT(LITTLE_CALLOC) | ABOUT(LITTLE_REALLOC) |
                   ABOUT(MALLOC_ONE),
    .scenarios = true, .slow_ms = 63,
    .title  = "65,536 blocks in a row succeed",
    .clause = "Allocating and freeing 65,536 blocks, one after the other, never fails.",
    .tests  = "Sizes include 1 byte, and the blocks come from malloc, calloc and realloc.",
    .source = "C17 7.22.3.3 paragraph 2: free makes the space available for further allocation",
    .why    = "A program that runs for hours creates and drops that many temporaries.",
    .hint   = "Look for tables, serial numbers and free lists that lose an entry now and then.",
    .looks  = "expected malloc(96) to return a block: 7 others are live; seen NULL, when 65535 had "
              "been made")
{
    const struct scenario_limits any = {.most_size = 8192, .most_bytes = 16 << 20};
    const struct scenario_limits many = {.most_size = 2048,
                                         .most_bytes = 1 << 20,
                                         .level = {[FACTOR_SIZE] = FROM_TO(SIZE_17, SIZE_129),
                                                   [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                                                   [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2),
                                                   [FACTOR_REPETITION] = FROM_TO(6, 6)}};
    check_scenarios(20000, &any);
    check_scenarios(ONE_ROW, &many);
}
