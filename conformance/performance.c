/* SPDX-License-Identifier: BSD-3-Clause
 *
 * performance: what arrays lose in speed when a handler takes the place of NumPy's default one.
 */
#include <math.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "harness/harness.h"
#include "python/api.h"
#include "python/python.h"

GROUP(performance, 17, "Speed that arrays have with NumPy's default handler.");

/* ---- advice about huge pages ---------------------------------------------------------------- */

enum { LARGE = 8 << 20 /* NumPy's advice begins at half of that */, BESIDE = 64 };

/* What /proc/self/smaps says of the mappings that a block lies in. */
struct lie {
    size_t huge;     /* bytes of the block for which huge pages were advised, or that are in them */
    size_t ordinary; /* bytes in private anonymous memory */
    bool beside_guard; /* it begins or ends at a page that cannot be touched */
};

static struct lie where_it_lies(const void *p, size_t size)
{
    unsigned long first = (unsigned long)p, end = first + size, from, to, inode;
    size_t bytes = 0;
    struct lie lie = {0};
    char line[512], access[5];
    FILE *smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL)
        skip("/proc/self/smaps cannot be read: %s", strerror(errno));
    while (fgets(line, sizeof line, smaps) != NULL) {
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &from, &to, access, &inode) == 4) {
            if (from >= end + BESIDE)
                break; /* they are in the order of their addresses */
            bytes = from < end && to > first ? MIN(to, end) - MAX(from, first) : 0;
            if (access[3] == 'p' && inode == 0)
                lie.ordinary += bytes;
            if (strncmp(access, "---", 3) == 0 && (from - end < BESIDE || first - to < BESIDE))
                lie.beside_guard = true;
        } else if (strncmp(line, "VmFlags:", 8) == 0 &&
                   (strstr(line, " hg") != NULL || strstr(line, " ht") != NULL)) {
            lie.huge += bytes;
        }
    }
    fclose(smaps);
    return lie;
}

/* Whether somebody who asks for huge pages on this machine may get any. */
static void need_huge_pages(void)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char line[64] = "";
    FILE *file = fopen(path, "re");
    if (file == NULL)
        skip("this kernel has no transparent huge pages: %s: %s", path, strerror(errno));
    bool never = fgets(line, sizeof line, file) == NULL || strstr(line, "[never]") != NULL;
    fclose(file);
    if (never)
        skip("transparent huge pages are off on this machine: %s says never", path);
    if (prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) > 0)
        skip("transparent huge pages are off for this process (PR_SET_THP_DISABLE)");
}

/* NumPy's own handler on the same machine, with the same settings.  Asked last: the next to make a
 * block may be given its memory, and the advice with it. */
static void need_advice_of_default(void)
{
    PyDataMem_Handler *numpys = PyCapsule_GetPointer(PyDataMem_DefaultHandler, "mem_handler");
    if (numpys == NULL)
        harness_broke("NumPy's default handler: %s", python_error());
    PyDataMemAllocator *a = &numpys->allocator;
    void *p = a->malloc(a->ctx, LARGE);
    if (p == NULL)
        skip("there is no memory for a block of %d MiB of NumPy's default handler", LARGE >> 20);
    struct lie lie = where_it_lies(p, LARGE);
    a->free(a->ctx, p, LARGE);
    if (lie.huge < LARGE / 2)
        skip("NumPy's default handler advises no huge pages here: NUMPY_MADVISE_HUGEPAGE says so, "
             "or the kernel does not tell");
}

static void expect_advice(const void *p, const char *call)
{
    struct lie lie = where_it_lies(p, LARGE);
    if (lie.huge >= LARGE / 2)
        return;
    if (lie.ordinary < LARGE / 2)
        skip("its large blocks are no ordinary memory: they are shared, or a file's or device's");
    if (lie.beside_guard)
        skip("its large blocks have pages beside them that cannot be touched");
    need_advice_of_default();
    fail(fmt("huge pages to be advised for the block, after %s", call),
         "for %zu of %zu KiB; NumPy's default handler advises them from 4 MiB on", lie.huge >> 10,
         (size_t)LARGE >> 10);
}

PROPERTY(performance_large_blocks_advised,
    .id     = "performance.large-blocks-advised", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "huge pages from 4 MiB on",
    .clause = "From 4 MiB on, malloc and calloc advise the kernel to use huge pages, as NumPy's "
              "default handler does.",
    .source = "good practice; madvise(2), MADV_HUGEPAGE; NumPy: alloc.c indicate_hugepages",
    .why    = "Most kernels use huge pages only on request. Without them, a + a of 16 MiB took 2.7 "
              "times as long, and the first write of 256 MiB 4.8 times the processor time.",
    .wrong  = "p = malloc(size);",
    .right  = "p = nep49_advise(malloc(size), size); /* nep49_advise.h */",
    .hint   = "Call nep49_advise(p, size) of nep49_advise.h after malloc and calloc, or "
              "madvise(MADV_HUGEPAGE) from the start of p's page if size >= 4 << 20.",
    .looks  = "expected huge pages to be advised for the block; seen for 0 of 8192 KiB")
{
    need_huge_pages();
    if (subject_claims().guard != GUARD_NONE || subject_claims().pinned != 0)
        skip("a handler that guards or pins its blocks has its own way with pages");
    if (subject_claims().hugepage > LARGE)
        skip("it says itself from where on it uses huge pages: hugepage=%zu",
             subject_claims().hugepage);
    void *p = must_malloc(LARGE);
    expect_advice(p, fmt("malloc(%d)", LARGE));
    void *zeros = must_calloc(LARGE / 8, 8);
    expect_advice(zeros, fmt("calloc(%d, 8)", LARGE / 8));
    subject_free(zeros, LARGE);
    subject_free(p, LARGE);
}

/* ---- how long calls take --------------------------------------------------------------------- */

/* In batches of blocks that are made and freed, between which nothing is live; the costs are
 * nanoseconds of this thread's processor time for a block, each the least of some batches. */
enum { BATCH = 100, LOOKED_AT = 4 };
struct way {
    size_t size;
    const char *name;
    size_t (*make_and_free)(size_t size, size_t count); /* how many it made */
};
struct pace {
    const struct way *way;
    size_t batches;
    double first, last;
    double latest[LOOKED_AT];
    uint64_t begun;
    double too_long;
    bool ended_early; /* it took too long, by the clock on the wall */
};

static size_t calloc_and_free(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++)
        subject_free(must_calloc(size, 1), size);
    return count;
}

static size_t realloc_and_free(size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++)
        subject_free(must_realloc(must_malloc(size), 2 * size), 2 * size);
    return count;
}

static double processor_time(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

static double least_of(const double costs[LOOKED_AT])
{
    double least = costs[0];
    for (size_t i = 1; i < LOOKED_AT; i++)
        least = MIN(least, costs[i]);
    return least;
}

/* What the cheapest of them cost. */
static double do_batches(struct pace *pace, size_t count)
{
    double least = INFINITY;
    for (size_t i = 0; i < count && !pace->ended_early; i++) {
        double begun = processor_time();
        size_t done = pace->way->make_and_free(pace->way->size, BATCH);
        double cost = (processor_time() - begun) / BATCH;
        least = MIN(least, cost);
        pace->latest[pace->batches++ % LOOKED_AT] = cost;
        if (pace->batches == LOOKED_AT)
            pace->first = least_of(pace->latest);
        pace->ended_early = done < BATCH || clock_since(pace->begun) > pace->too_long;
    }
    pace->last = least_of(pace->latest);
    return least;
}

/* By so much that no cache that fills, and no other program, explains it. */
static bool is_steep(const struct pace *pace)
{
    static const double times = 8, least = 1000;
    return pace->last >= times * pace->first && pace->last >= least;
}

/* Goes on until it is steep.  Where a call costs much, as a mapping does, there are fewer of them,
 * unless it costs ever more. */
static void look(struct pace *pace)
{
    enum { MOST = 300, MOST_NS = 3 * 1000 * 1000, MOST_NS_IF_RISING = 30 * MOST_NS };
    double begun = processor_time(), used = 0;
    do_batches(pace, 2 * LOOKED_AT);
    while (!is_steep(pace) && !pace->ended_early && pace->batches < MOST &&
           used < (pace->last < 2 * pace->first ? MOST_NS : MOST_NS_IF_RISING)) {
        do_batches(pace, 1);
        used = processor_time() - begun;
    }
}

/* What may fill is full after 9000 blocks, as the clause has it: where the cost grows with each, it
 * is then four times as much after four times as many. */
static bool goes_on_rising(struct pace *pace)
{
    enum { FULL = 90, WINDOW = 30, TIMES = 4 };
    size_t full = MAX(FULL, pace->batches);
    pace->begun = clock_now();
    pace->too_long = 6 * clock_slowness();
    do_batches(pace, full - pace->batches);
    double middle = do_batches(pace, WINDOW);
    if (pace->ended_early)
        skip("%s costs %.1f microseconds of processor time after %zu times, %.1f at first, and "
             "whether it goes on rising takes too long to see",
             pace->way->name, pace->last / 1000, pace->batches * BATCH, pace->first / 1000);
    do_batches(pace, TIMES * full - pace->batches);
    if (!pace->ended_early)
        pace->last = do_batches(pace, WINDOW);
    return is_steep(pace) && pace->last >= 3 * middle;
}

/* In a process of its own: what others made and freed has cost nothing yet. */
static void look_at_way(void *data)
{
    const struct way *way = data;
    struct pace pace = {.way = way, .begun = clock_now(), .too_long = 0.5 * clock_slowness()};
    way->make_and_free(way->size, 1);
    look(&pace);
    if (!is_steep(&pace) && pace.ended_early)
        skip("it takes its time over a few hundred times %s", way->name);
    if (is_steep(&pace) && goes_on_rising(&pace))
        fail(fmt("%s to cost about what they did at first", way->name),
             "%.1f microseconds of processor time after %zu times, %.1f at first", pace.last / 1000,
             pace.batches * BATCH, pace.first / 1000);
}

PROPERTY(performance_calls_stay_fast,
    .id     = "performance.calls-stay-fast", .level = SHOULD, .basis = BASIS_QOI, .slow_ms = 46,
    .title  = "calls stay fast over time",
    .clause = "With a constant number of live blocks, the cost of a call does not grow with the "
              "number made so far.",
    .source = "good practice",
    .why    = "With tombstones, a call took 12 microseconds after 10000 blocks and 60 after 30000.",
    .hint   = "Reuse free entries, including tombstones. Search nothing that only grows.",
    .looks  = "expected malloc(100) and free to cost what they did; seen 9.4 microseconds, 0.3 at "
              "first")
{
    static struct way ways[] = {
        {100, "malloc(100) and free", subject_malloc_and_free},
        {100, "calloc(100, 1) and free", calloc_and_free},
        {100, "malloc(100), realloc(p, 200) and free", realloc_and_free},
        {6000, "malloc(6000) and free", subject_malloc_and_free},
        {300000, "malloc(300000) and free", subject_malloc_and_free},
    };
    if (is_instrumented())
        skip("under a checker or an emulator time says nothing");
    for (size_t i = 0; i < LENGTH(ways); i++)
        in_child(look_at_way, &ways[i]);
}
