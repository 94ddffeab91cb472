/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that fail in the control of a property and in little else: the property that is named
 * first does the same calls without its subject, and meets the defect there.  tests/controls.py
 * checks that each control has a mutant here.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "mutant.h"

/* ---- one call -------------------------------------------------------------------------------- */

static bool has_size(const void *p, size_t size)
{
    return p != NULL && base_size(p) == size;
}
/* Does `action` before realloc from `from` to `to` bytes. */
#define RESIZE(defect, kills, from, to, ...)                                                       \
    BEFORE(realloc, defect, kills, has_size(p, from) && size == (to), __VA_ARGS__)

RESIZE(aborts_from_90033, "realloc.of-calloc", 90033, 135050, abort());
RESIZE(loses_from_135050, "realloc.of-calloc", 135050, 45017, memset(p, 0, size));
RESIZE(aborts_from_70000, "threads.small-stack", 70000, 140000, abort());
RESIZE(aborts_from_131073, "process.fork-child", 131073, 65636, abort());
RESIZE(loses_from_4096, "process.fork-child", 4096, 2148, memset(p, 0, size));
RESIZE(refuses_70000, "process.fork-both-sides", 35000, 70000, return NULL);
RESIZE(aborts_from_500, "process.fork-while-busy", 500, 1500, abort());
RESIZE(refuses_80_from_40, "numpy.freed-inside-a-call", 40, 80, return NULL);
RESIZE(refuses_5000_from_120, "numpy.without-gil", 120, 5000, return NULL);
RESIZE(refuses_262144_from_200, "realloc.releases-old", 200, 262144, return NULL);
RESIZE(aborts_from_200000, "exhaustion.no-leak", 200000, 600000, abort());
RESIZE(refuses_205000, "interop.multiprocessing", 200000, 205000, return NULL);

/* The properties of context and interop all begin with this call. */
#define ALONE                                                                                      \
    "context.thread-isolated context.task-isolated context.copy context.empty context.executor "   \
    "context.interleaved interop.buffer interop.dlpack interop.array-interface interop.ctypes "    \
    "interop.torch interop.pickle interop.copy"
RESIZE(aborts_from_700, ALONE, 700, 2100, abort());
RESIZE(refuses_from_700, "context.copy", 700, 2100, return NULL);
RESIZE(loses_from_2100, "interop.buffer", 2100, 700, memset(p, 0, size));

BEFORE(malloc, refuses_5900, "free.reclaims", size == 5900, return NULL);
BEFORE(malloc, refuses_50000, "process.ends-quietly process.use-at-exit", size == 50000,
       return NULL);
/* In rows of scenarios, also without what they are about. */
BEFORE(malloc, aborts_at_a_page, "free.null scenarios.blocks", size == 4096, abort());
BEFORE(realloc, refuses_100_more, "exhaustion.balance",
       p != NULL && base_size(p) > 5000 && size == base_size(p) + 100, return NULL);

/* An instance is used at random, in a child and not: no single call is sure to be made. */
static pid_t loaded_in;
__attribute__((constructor)) static void remember_process(void)
{
    loaded_in = getpid();
}
static bool grows_a_lot(const void *p, size_t size)
{
    return p != NULL && base_size(p) < 310 && size > 310 && size <= 5007 && size % 100 != 0;
}
BEFORE(realloc, aborts_where_it_grows_a_lot, "abi.ctx-passed realloc.keeps-contents",
       grows_a_lot(p, size), abort());
BEFORE(realloc, aborts_so_but_in_a_child, "abi.ctx-passed realloc.keeps-contents",
       grows_a_lot(p, size) && getpid() == loaded_in, abort());

/* ---- several calls --------------------------------------------------------------------------- */

/* The pool `row`: how many blocks the calling thread made by malloc since its last free, and how
 * many of them have more than 1000 bytes. */
static _Thread_local struct row {
    size_t count, large;
} row;
FUNCTION(malloc, row)
{
    row.count++;
    row.large += size > 1000;
    return base_malloc(ctx, size);
}
FUNCTION(free, row)
{
    row = (struct row){0};
    base_free(ctx, p, size);
}
#define row_calloc base_calloc
#define row_realloc base_realloc
BEFORE_IN(row, free, aborts_after_400, "free.in-another-thread", row.count == 400 && row.large > 10,
          abort());

/* The properties numpy.out-of-memory-* all begin with arrays of these sizes; the next request is
 * the first of their control. */
static void see(size_t size)
{
    static const size_t sizes[] = {1, 30, 700, 5000, 40000};
    static size_t seen;
    if (seen == sizeof sizes / sizeof *sizes)
        abort();
    seen = size == sizes[seen] ? seen + 1 : size == sizes[0];
}
HOOK_BEFORE(malloc, seeing, true, see(size));
HOOK_BEFORE(calloc, seeing, true, see(0));
MUTANT(aborts_after_witnesses,
       "numpy.out-of-memory-create numpy.out-of-memory-zeros numpy.out-of-memory-resize "
       "numpy.out-of-memory-fromiter numpy.out-of-memory-fromfile numpy.out-of-memory-text "
       "numpy.out-of-memory-pickle numpy.out-of-memory-setstate numpy.out-of-memory-sort "
       "numpy.out-of-memory-argsort numpy.out-of-memory-structured-sort "
       "numpy.out-of-memory-string-dtype numpy.out-of-memory-makers",
       FUNCTIONS(seeing, malloc, calloc));

/* ---- memory that grows ----------------------------------------------------------------------- */

BEFORE(free, keeps_98304, "free.best-guess-size free.any-size", has_size(p, 98304), return );
BEFORE(free, keeps_400000, "realloc.releases-old", has_size(p, 400000), return );
BEFORE(free, keeps_25000, "realloc.releases-old", has_size(p, 25000), return );
BEFORE(free, keeps_900000, "free.in-another-thread", has_size(p, 900000), return );
BEFORE(free, keeps_those_of_thirty, "free.in-another-thread",
       p != NULL && base_size(p) >= 30 && base_size(p) <= 950 && base_size(p) % 20 == 10, return );

static void leave_a_mapping(size_t length)
{
    mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
BEFORE(free, keeps_a_list_of_2058, "threads.leave-no-memory", has_size(p, 2058),
       leave_a_mapping(32 * KIB));
BEFORE(malloc, keeps_another_33_mib, "realloc.releases-old", size == 33 * MIB,
       leave_a_mapping(size));
BEFORE(malloc, keeps_another_2621440, "realloc.shrunk-gives-back", size == 2621440,
       leave_a_mapping(size));
