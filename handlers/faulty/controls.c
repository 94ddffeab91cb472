/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that go wrong in the control of a property, and in little else: the property that is
 * named first does the same without what it is about, and there it meets the defect.  It has to say
 * so, for nobody else may.  tests/controls.py sees that each control has one here.
 */
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#include "base.h"

/* ---- one call ---------------------------------------------------------------------------- */

/* A handler whose realloc from `from` to `to` bytes does `action` first. */
#define RESIZE(defect, kills, from, to, action)                                                    \
    static void *defect##_realloc(void *ctx, void *p, size_t size)                                 \
    {                                                                                              \
        if (p != NULL && base_size(p) == (from) && size == (to))                                   \
            action;                                                                                \
        return base_realloc(ctx, p, size);                                                         \
    }                                                                                              \
    MUTANT(defect, kills, .realloc = defect##_realloc)

RESIZE(aborts_from_90033, "realloc.of-calloc", 90033, 135050, abort());
RESIZE(loses_from_135050, "realloc.of-calloc", 135050, 45017, memset(p, 0, size));
RESIZE(refuses_from_901, "realloc.in-another-thread", 901, 1833, return NULL);
RESIZE(aborts_from_4095, "threads.first-call", 4095, 4195, abort());
RESIZE(loses_from_3000, "threads.concurrent threads.hand-over", 3000, 240, memset(p, 0, size));
RESIZE(aborts_from_1024, "free.any-contents", 1024, 1537, abort());
RESIZE(aborts_from_20000, "threads.outlives-its-thread", 20000, 20050, abort());
RESIZE(aborts_from_70000, "threads.small-stack", 70000, 140000, abort());
RESIZE(aborts_from_5000, "threads.in-destructors", 5000, 7500, abort());
RESIZE(aborts_from_131073, "process.fork-child", 131073, 65636, abort());
RESIZE(loses_from_4096, "process.fork-child", 4096, 2148, memset(p, 0, size));
RESIZE(refuses_70000, "process.fork-both-sides", 35000, 70000, return NULL);
RESIZE(aborts_from_500, "process.fork-while-busy", 500, 1500, abort());
RESIZE(refuses_80_from_40, "numpy.freed-inside-a-call", 40, 80, return NULL);
RESIZE(refuses_5000_from_120, "numpy.without-gil", 120, 5000, return NULL);

RESIZE(refuses_262144_from_200, "realloc.releases-old", 200, 262144, return NULL);
RESIZE(aborts_from_200000, "exhaustion.no-leak", 200000, 600000, abort());
RESIZE(refuses_205000, "interop.multiprocessing", 200000, 205000, return NULL);

/* What all of context and interop begin with. */
#define ALONE                                                                                      \
    "context.thread-isolated context.task-isolated context.copy context.empty context.executor "   \
    "context.interleaved interop.buffer interop.dlpack interop.array-interface interop.ctypes "    \
    "interop.torch interop.pickle interop.copy"
RESIZE(aborts_from_700, ALONE, 700, 2100, abort());
RESIZE(refuses_from_700, "context.copy", 700, 2100, return NULL);
RESIZE(loses_from_2100, "interop.buffer", 2100, 700, memset(p, 0, size));

/* A handler that refuses one size to malloc. */
#define REFUSE(defect, kills, wrong)                                                               \
    static void *defect##_malloc(void *ctx, size_t size)                                           \
    {                                                                                              \
        return size == (wrong) ? NULL : base_malloc(ctx, size);                                    \
    }                                                                                              \
    MUTANT(defect, kills, .malloc = defect##_malloc)

REFUSE(refuses_5900, "free.reclaims", 5900);
REFUSE(refuses_50000, "process.ends-quietly process.use-at-exit", 50000);

/* Sizes are random there as well. */
static void *by_100_realloc(void *ctx, void *p, size_t size)
{
    bool refused = p != NULL && base_size(p) > 5000 && size == base_size(p) + 100;
    return refused ? NULL : base_realloc(ctx, p, size);
}
MUTANT(refuses_100_more, "exhaustion.balance", .realloc = by_100_realloc);

/* An instance is used at random, in a child and not: no single call is met for sure. */
static pid_t loaded_in;
__attribute__((constructor)) static void remember_process(void)
{
    loaded_in = getpid();
}
static bool grows_a_lot(const void *p, size_t size)
{
    return p != NULL && base_size(p) < 310 && size > 310 && size <= 5007 && size % 100 != 0;
}
static void *growing_realloc(void *ctx, void *p, size_t size)
{
    if (grows_a_lot(p, size))
        abort();
    return base_realloc(ctx, p, size);
}
MUTANT(aborts_where_it_grows_a_lot, "abi.ctx-passed realloc.keeps-contents",
       .realloc = growing_realloc);

static void *not_in_child_realloc(void *ctx, void *p, size_t size)
{
    if (grows_a_lot(p, size) && getpid() == loaded_in)
        abort();
    return base_realloc(ctx, p, size);
}
MUTANT(aborts_so_but_in_a_child, "abi.ctx-passed realloc.keeps-contents",
       .realloc = not_in_child_realloc);

/* ---- calls in a row ---------------------------------------------------------------------- */

/* The sizes that malloc was asked for in this thread without another call between: how many, the
 * latest, how often that one, and how many of them are large. */
static _Thread_local struct row {
    size_t count, latest, times, large;
} row;

static void *row_malloc(void *ctx, size_t size)
{
    row.times = size == row.latest ? row.times + 1 : 1;
    row.latest = size;
    row.count++;
    row.large += size > 1000;
    return base_malloc(ctx, size);
}
static void row_free(void *ctx, void *p, size_t size)
{
    row = (struct row){.latest = row.latest};
    base_free(ctx, p, size);
}

/* The block is the only one of malloc's since this thread freed one, or began. */
static void *first_of_thread_realloc(void *ctx, void *p, size_t size)
{
    bool first = row.count == 1 && p != NULL && base_size(p) == 65 && size == 66;
    return first ? NULL : base_realloc(ctx, p, size);
}
MUTANT(refuses_66_of_the_first, "threads.any-number", .malloc = row_malloc,
       .realloc = first_of_thread_realloc, .free = row_free);

static void *after_1000_realloc(void *ctx, void *p, size_t size)
{
    if (row.latest == 1000 && p != NULL && base_size(p) == 17 && size == 1000)
        abort();
    return base_realloc(ctx, p, size);
}
MUTANT(aborts_from_17_after_1000, "exhaustion.nth-request", .malloc = row_malloc,
       .realloc = after_1000_realloc, .free = row_free);

static void *after_435_malloc(void *ctx, size_t size)
{
    if (row.latest == 435 && size == 442)
        abort();
    return row_malloc(ctx, size);
}
MUTANT(aborts_at_442_after_435, "free.null", .malloc = after_435_malloc, .free = row_free);

static void *after_4088_calloc(void *ctx, size_t nelem, size_t elsize)
{
    if (row.latest == 4088 && nelem == 511)
        return NULL;
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(refuses_511_after_4088, "free.null-with-size", .malloc = row_malloc,
       .calloc = after_4088_calloc, .free = row_free);

static void *after_threes_malloc(void *ctx, size_t size)
{
    if (row.latest == 1024 && row.times >= 3 && row.count > 3 && size == 1025)
        abort();
    return row_malloc(ctx, size);
}
MUTANT(aborts_after_three_of_1024, "free.poison-stays-inside", .malloc = after_threes_malloc,
       .free = row_free);

static void *long_row_malloc(void *ctx, size_t size)
{
    if (size > 3000)
        row = (struct row){0};
    if (row.count == 1400 && row.large >= 20 && row.large <= 140)
        abort();
    return row_malloc(ctx, size);
}
MUTANT(aborts_in_a_long_row, "free.any-order", .malloc = long_row_malloc, .free = row_free);

static void after_400_free(void *ctx, void *p, size_t size)
{
    if (row.count == 400 && row.large > 10)
        abort();
    row_free(ctx, p, size);
}
MUTANT(aborts_after_400, "free.in-another-thread", .malloc = row_malloc, .free = after_400_free);

/* A block of that size by calloc, where no other size that is guessed at was freed before. */
static void *of_8136_malloc(void *ctx, size_t size)
{
    return size == 8136 && row.latest == 8136 ? NULL : row_malloc(ctx, size);
}
MUTANT(refuses_another_8136, "free.best-guess-size", .malloc = of_8136_malloc);

static void *dirty_33000_calloc(void *ctx, size_t nelem, size_t elsize)
{
    unsigned char *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL && nelem == 33000)
        p[32999] = 1;
    return p;
}
MUTANT(calloc_of_33000_is_dirty, "free.any-size", .calloc = dirty_33000_calloc);

/* Arrays of these sizes, made one after the other and nothing between, are what all of
 * numpy.out-of-memory begin with; the next request is the first of their control. */
static size_t witnesses;
static void see_witness(size_t size)
{
    static const size_t sizes[] = {1, 30, 700, 5000, 40000};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    if (witnesses == SIZES)
        abort();
    witnesses = size == sizes[witnesses] ? witnesses + 1 : size == sizes[0];
}
static void *witness_malloc(void *ctx, size_t size)
{
    see_witness(size);
    return base_malloc(ctx, size);
}
static void *witness_calloc(void *ctx, size_t nelem, size_t elsize)
{
    see_witness(0);
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(aborts_after_witnesses,
       "numpy.out-of-memory-create numpy.out-of-memory-zeros numpy.out-of-memory-resize "
       "numpy.out-of-memory-fromiter numpy.out-of-memory-fromfile numpy.out-of-memory-text "
       "numpy.out-of-memory-pickle numpy.out-of-memory-setstate numpy.out-of-memory-sort "
       "numpy.out-of-memory-argsort numpy.out-of-memory-structured-sort "
       "numpy.out-of-memory-string-dtype numpy.out-of-memory-makers",
       .malloc = witness_malloc, .calloc = witness_calloc);

/* ---- memory that grows -------------------------------------------------------------------- */

/* A handler that keeps blocks of so many bytes for ever. */
#define NEVER_FREES(defect, kills, condition)                                                            \
    static void defect##_free(void *ctx, void *p, size_t size)                                     \
    {                                                                                              \
        size_t own = p != NULL ? base_size(p) : 0;                                                 \
        if (!(condition))                                                                          \
            base_free(ctx, p, size);                                                               \
    }                                                                                              \
    MUTANT(defect, kills, .free = defect##_free)

NEVER_FREES(keeps_98304, "free.best-guess-size", own == 98304);
NEVER_FREES(keeps_33000, "free.any-size", own == 33000);
NEVER_FREES(keeps_400000, "realloc.releases-old", own == 400000);
NEVER_FREES(keeps_25000, "realloc.releases-old", own == 25000);
NEVER_FREES(keeps_900000, "free.in-another-thread", own == 900000);
NEVER_FREES(keeps_those_of_thirty, "free.in-another-thread", own >= 30 && own <= 950 && own % 20 == 10);

/* A list of those of one size gets pages more for each. */
static void listing_free(void *ctx, void *p, size_t size)
{
    enum { PAGES = 32 << 10 };
    if (p != NULL && base_size(p) == 2058)
        mmap(NULL, PAGES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    base_free(ctx, p, size);
}
MUTANT(keeps_a_list_of_2058, "threads.leave-no-memory", .free = listing_free);

/* The first try at large blocks of one size is forgotten. */
static void *trying_malloc(void *ctx, size_t size)
{
    if (size == 33 << 20)
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base_malloc(ctx, size);
}
MUTANT(keeps_another_33_mib, "realloc.releases-old", .malloc = trying_malloc);

/* Likewise, of one that nobody else asks for. */
static void *trying_less_malloc(void *ctx, size_t size)
{
    if (size == 5 << 19)
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base_malloc(ctx, size);
}
MUTANT(keeps_another_2621440, "realloc.shrunk-gives-back", .malloc = trying_less_malloc);
