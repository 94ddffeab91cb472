/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exhaustion: libc or the kernel refuses what the handler asks of them.
 */
#include <malloc.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "harness/growth.h"
#include "harness/harness.h"
#include "harness/interpose.h"
#include "harness/proc_count.h"
#include "scenarios.h"

GROUP(exhaustion, 9, "Requests of the handler that libc or the kernel refuses.",
      .rank = {RANK_IN_USE, RANK_AT_LENGTH, 39});

/* A first round of calls lets the subject make what it makes once (its pools, its thread's part),
 * and shows whether its requests are seen. */
static void begin(void)
{
    if (!interpose_works())
        skip("requests of libc do not come through the runner under memcheck or the sanitizers");
    interpose_watch();
    void *p = must_realloc(must_malloc(100), 5000);
    subject_free(p, 5000);
    p = must_calloc(100, 50);
    subject_free(p, 5000);
    void *large = must_malloc(300000);
    subject_free(large, 300000);
    if (interpose_counts().requests == 0 && subject_place()->module != NULL)
        skip("no request of this Python handler comes through the runner: what ctypes or cffi "
             "look up in libc.so.6 is libc's own function; malloc.failure-is-null and "
             "realloc.failure-keeps-block leave it no address space instead");
    if (interpose_counts().requests == 0)
        skip("it makes no request that the runner sees: its memory is its own, or it is linked "
             "statically or with -Bsymbolic");
}

/* So many requests are refused, one after the other. */
enum { MOST_REFUSALS = 20000 };

/* What stands in the table of interpose.h has to be all. */
static struct interpose_counts whole_counts(void)
{
    struct interpose_counts counts = interpose_counts();
    if (counts.left_out > 0)
        mark_incomplete("it holds so much of libc's that the harness cannot track it all");
    return counts;
}

/* What is held, once it is no more than `blocks` and `bytes`, or when a thread of the handler's
 * that gives back later has had half a second to get there. */
static struct interpose_counts held_at_most(size_t blocks, size_t bytes)
{
    struct interpose_counts held = whole_counts();
    bool waits_pay = count_threads() > 1;
    for (int waits = 0; waits_pay && (held.blocks > blocks || held.bytes > bytes) && waits < 100;
         waits++) {
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        held = interpose_counts();
    }
    return held;
}

/* Something is mapped right behind the heap, as happens where addresses are random.  What libc asks
 * of brk is refused, and it goes on by mmap: it succeeds with errno set. */
static void check_without_break(void)
{
    const struct scenario_limits limits = {
        .least_size = 16 << 10,
        .most_size = 96 << 10,
        .most_bytes = 16 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(GROWN, GROWN), [FACTOR_LIVE_BLOCKS] = FROM_TO(3, 3)}};
    malloc_trim(0); /* what it has in hand at its end */
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t end = ((uintptr_t)sbrk(0) + page - 1) / page * page;
    void *map = mmap((void *)end, page, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    step("the heap of libc cannot grow where it is");
    if (map == (void *)end || (map == MAP_FAILED && errno == EEXIST))
        check_scenarios(3000, &limits);
    if (map != MAP_FAILED)
        munmap(map, page);
}

PROPERTY(exhaustion_nth_request,
    .id     = "exhaustion.nth-request", .level = MUST, .basis = BASIS_C,
    .answers_for = ABOUT(REFUSED_MEMORY), .scenarios = true, .slow_ms = 69, .ends_process = true,
    .title  = "each refused request is handled",
    .clause = "If libc or the kernel refuses a request, the call returns NULL or a valid block.",
    .tests  = "Each request is refused in turn, once or from then on. Live blocks have to keep "
              "their contents.",
    .source = "C17 7.22.3.2, 7.22.3.4, 7.22.3.5: a null pointer, and the old object unchanged",
    .why    = "NumPy turns NULL into MemoryError, but a crash ends the program.",
    .hint   = "Check the results of malloc, mmap and other calls, not errno. Undo what was done, "
              "and unlock.",
    .looks  = "CRASH: SIGSEGV at address 0, inside malloc(1), at libmine.so+0x1139")
{
    const struct scenario_limits limits = {
        .most_size = 512 << 10,
        .most_bytes = 64 << 20,
        .address_limits = true,
        .level = {[FACTOR_PRESSURE] = FROM_TO(REQUEST_REFUSED, REQUEST_REFUSED),
                  [FACTOR_REPETITION] = FROM_TO(0, 2)}};
    const struct scenario_limits large = {
        .least_size = 1 << 20,
        .most_size = 2 << 20,
        .most_bytes = 64 << 20,
        .address_limits = true,
        .level = {[FACTOR_PRESSURE] = FROM_TO(REQUEST_REFUSED, REQUEST_REFUSED),
                  [FACTOR_MEMORY_BEFORE] = FROM_TO(FRESH, FRESH),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(1, 1)}};
    begin();
    check_without_break(); /* first, while the heap has little in hand */
    check_scenarios_about(FACTOR_PRESSURE, 10000, &limits);
    check_scenarios_about(FACTOR_PRESSURE, 60000, &large);
}

enum { ROUNDS = 64 };
struct held {
    size_t before, after; /* blocks of libc's */
    size_t refused;       /* calls */
};

/* Calls in which request nth of libc and all after it are refused, or none where that is 0. */
static struct held hold_after(size_t nth)
{
    struct held held = {0};
    for (size_t round = 0; round < ROUNDS + 8; round++) {
        if (round == 8) /* what is made once is made by now */
            held.before = whole_counts().blocks;
        static const size_t sizes[] = {40, 5000, 200000};
        size_t size = sizes[round % 3];
        void *old = must_malloc(size);
        interpose_refuse(nth, true);
        void *p = round % 2 == 0 ? subject_malloc(size) : subject_realloc(old, 3 * size);
        held.refused += interpose_counts().refused > 0;
        interpose_refuse(0, false);
        if (round % 2 == 1 && p != NULL)
            old = NULL;
        subject_free(p, round % 2 == 0 ? size : 3 * size);
        subject_free(old, size);
    }
    held.after = held_at_most(held.before + ROUNDS / 4 - 1, SIZE_MAX).blocks;
    return held;
}

PROPERTY(exhaustion_no_leak,
    .id     = "exhaustion.no-leak", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .title  = "failed calls leak nothing",
    .clause = "A call that fails releases everything that it took from libc or the kernel.",
    .source = "good practice",
    .why    = "A program that survives one MemoryError runs out of memory sooner the next time.",
    .wrong  = "node = malloc(sizeof *node);\n"
              "if ((p = mmap(...)) == MAP_FAILED)\n"
              "    return NULL; /* node leaks */",
    .right  = "if ((p = mmap(...)) == MAP_FAILED) {\n"
              "    free(node);\n"
              "    return NULL;\n"
              "}",
    .hint   = "Release what you took before the request that was refused.",
    .looks  = "64 blocks more than before are held after 64 refused calls")
{
    enum { TRIES = 8 }; /* a cache has filled by then */
    begin();
    control_begin("where nothing is refused");
    struct held held = hold_after(0);
    for (int i = 1; i < TRIES && held.after >= held.before + ROUNDS / 4; i++)
        held = hold_after(0);
    control_end();
    if (held.after >= held.before + ROUNDS / 4)
        skip("it holds %zu blocks more after %d calls that succeed: what is lost of one that fails "
             "cannot be told among them",
             held.after - held.before, ROUNDS);
    for (size_t nth = 1;; nth++) {
        held = hold_after(nth);
        if (held.refused == 0)
            return;
        for (int i = 1; i < TRIES && held.after >= held.before + ROUNDS / 4; i++)
            held = hold_after(nth); /* what is kept by bytes goes up and down in blocks */
        expect(
            held.after < held.before + ROUNDS / 4,
            fmt("no more to be held after %d calls in which request %zu was refused", ROUNDS, nth),
            "%zu blocks of libc's before, %zu after", held.before, held.after);
        if (nth == MOST_REFUSALS || time_is_up()) {
            mark_incomplete("request %zu of libc and all after it were refused, and it makes more",
                            nth);
            return;
        }
    }
}

enum { BLOCKS = 300 };

static void make_and_free(void *unused)
{
    struct blocks blocks = {0};
    (void)unused;
    for (size_t i = 0; i < BLOCKS; i++) {
        size_t size = 1 + random_below(rng(), i % 16 == 0 ? 20000 : 600);
        unsigned char *p = i % 2 == 0 ? must_malloc(size) : must_calloc(size, 1);
        if (i % 3 == 0)
            p = must_realloc(p, size += 100);
        blocks_add(&blocks, p, size);
    }
    blocks_free_all(&blocks);
}

PROPERTY(exhaustion_balance,
    .id     = "exhaustion.balance", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .scenarios = true, .answers_for = ABOUT(LIBC_MEMORY_GROWS),
    .title  = "memory kept after free is bounded",
    .clause = "After all blocks are freed, the handler keeps at most a bounded amount of memory.",
    .source = "good practice",
    .why    = "A table or cache that only grows ends a program that runs for days.",
    .hint   = "Free the nodes of side tables with their blocks, and limit every cache.",
    .looks  = "expected blocks of libc's held to stop growing while 300 blocks at a time are made "
              "and freed")
{
    enum { CYCLES = 7 };
    begin();
    control_begin("where it is done once");
    make_and_free(NULL);
    control_end();
    expect_no_growth_at(__LINE__, MEASURES, CYCLES, make_and_free, NULL, NULL,
                        fmt("%d blocks at a time are made and freed", BLOCKS));
    whole_counts();
}
