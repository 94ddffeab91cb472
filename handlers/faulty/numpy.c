/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/numpy.c and conformance/owndata.c find.
 */
#include <sys/mman.h>

#include "python.h"
#include "shifted.h"

extern PyDataMem_Handler renames_itself, renames_itself_late, counts_in_its_version;
BEFORE(calloc, renames_itself, "numpy.name", true,
       strcpy(renames_itself.name, "renames_itself (zeroing)"));
BEFORE(free, renames_itself_late, "numpy.name", CALL(100),
       strcpy(renames_itself_late.name, "renames_itself_late (100)"));
BEFORE(realloc, counts_in_its_version, "numpy.version", true, counts_in_its_version.version++);

/* True if the active handler is not the one that was active in the first call. */
static bool is_replaced(void)
{
    static const PyDataMem_Handler *first;
    const PyDataMem_Handler *now = active_handler();
    if (first == NULL && now != NULL && strcmp(now->name, "default_allocator") != 0)
        first = now;
    return first != NULL && now != NULL && now != first;
}
HOOK_BEFORE(malloc, looking, true, is_replaced());
HOOK_BEFORE(calloc, looking, true, is_replaced());

static PyDataMemAllocator *current(void)
{
    return &active_handler()->allocator;
}
FUNCTION_RETURNS(free, by_current,
                 p != NULL && is_replaced() ? current()->free(current()->ctx, p, size)
                                            : base_free(ctx, p, size));
MUTANT(frees_by_current, "numpy.array-keeps-its-handler", FUNCTIONS(looking, malloc, calloc),
       FUNCTIONS(by_current, free));

FUNCTION(realloc, by_current)
{
    if (p == NULL || !is_replaced())
        return base_realloc(ctx, p, size);
    return move_to(current()->malloc(current()->ctx, size), p, min(size, base_size(p)), base_free);
}
MUTANT(reallocs_by_current, "numpy.array-keeps-its-handler", FUNCTIONS(looking, malloc, calloc),
       FUNCTIONS(by_current, realloc));

/* Sets of live blocks; `with` replaces `old` in one, and NULL is an empty place. */
static void replace(void **set, int count, const void *old, void *with)
{
    for (int i = 0; i < count; i++) {
        if (set[i] == old) {
            set[i] = with;
            return;
        }
    }
}
static void clear_all(void **set, int count)
{
    for (int i = 0; i < count; i++) {
        if (set[i] != NULL)
            memset(set[i], 0, base_size(set[i]));
    }
}

/* Clears eight of its blocks when one is freed and another handler is active. */
static void *arena[8];
HOOK_AFTER_IN(looking, malloc, wiping, true, replace(arena, 8, NULL, made));
HOOK_AFTER(realloc, wiping, made != NULL, replace(arena, 8, p, made));
HOOK_BEFORE(free, wiping, true, replace(arena, 8, p, NULL);
            if (p != NULL && is_replaced()) clear_all(arena, 8));
MUTANT(wipes_when_replaced, "numpy.array-keeps-its-handler",
       FUNCTIONS(wiping, malloc, realloc, free));

/* Installs itself when one of its blocks is freed or resized and another handler is active. */
HOOK_BEFORE(free, returning, p != NULL && is_replaced(), install(ctx));
HOOK_BEFORE(realloc, returning, p != NULL && is_replaced(), install(ctx));
MUTANT(returns_on_free, "numpy.installs", .ctx = &returns_on_free, FUNCTIONS(returning, free));
MUTANT(returns_on_realloc, "numpy.installs", .ctx = &returns_on_realloc,
       FUNCTIONS(returning, realloc));

/* Installs NumPy's default with the end of its last block. */
static int live;
HOOK_BEFORE(malloc, leaving, true, live++);
HOOK_BEFORE(calloc, leaving, true, live++);
HOOK_BEFORE(free, leaving, p != NULL && --live == 0, install(NULL));
MUTANT(leaves_when_empty, "numpy.installs", FUNCTIONS(leaving, malloc, calloc, free));

RETURNS_IN(aligned, realloc, aligns_resized_to_eight, "numpy.dtypes",
           shifted_realloc_to(p, size, BASE_HEADER + _Alignof(long double) / 2));

DEFECT_IN(aligned, malloc, aligns_by_size, "numpy.dtypes")
{
    bool is_whole = size % sizeof(long double) == 0;
    return shifted_malloc(size, BASE_HEADER + (is_whole ? 0 : _Alignof(long double) / 4));
}

/* Clears its newest block after each garbage collection of Python. */
static void *newest;
static PyObject *after_collection(UNUSED PyObject *self, UNUSED PyObject *arguments)
{
    if (newest != NULL)
        memset(newest, 0, base_size(newest));
    return Py_BuildValue("");
}
static void hook_collections(void)
{
    static struct method method = {"after_collection", after_collection, 1 /* METH_VARARGS */,
                                   NULL};
    PyObject *callbacks = PyObject_GetAttrString(PyImport_ImportModule("gc"), "callbacks");
    PyList_Append(callbacks, PyCMethod_New(&method, NULL, NULL, NULL));
}
FUNCTION(calloc, collecting)
{
    if (has_gil() && CALL(1))
        hook_collections();
    return newest = base_calloc(ctx, nelem, elsize);
}
HOOK_AFTER(realloc, collecting, p == newest && made != NULL, newest = made);
HOOK_BEFORE(free, collecting, p == newest, newest = NULL);
MUTANT(collects_with_python, "numpy.dtypes", FUNCTIONS(collecting, calloc, realloc, free));

enum { NUMPYS_DOMAIN = 389047 };

AFTER(malloc, tracks_its_own, "numpy.tracemalloc", made != NULL,
      PyTraceMalloc_Track(NUMPYS_DOMAIN, (uintptr_t)made - BASE_HEADER, size + BASE_HEADER));
BEFORE(free, tracks_what_was_freed, "numpy.tracemalloc", p != NULL && base_size(p) > 512,
       PyTraceMalloc_Track(NUMPYS_DOMAIN, (uintptr_t)p, base_size(p)));
DEFECT(malloc, untracks_others, "numpy.tracemalloc")
{
    static void *previous;
    if (previous != NULL)
        PyTraceMalloc_Untrack(NUMPYS_DOMAIN, (uintptr_t)previous);
    previous = base_malloc(ctx, size);
    return previous;
}
BEFORE(realloc, stops_tracing, "numpy.tracemalloc", size > 100000,
       run_python("import tracemalloc; tracemalloc.stop()"));

AFTER(malloc, traces_a_second_time, "numpy.tracemalloc-once", made != NULL,
      PyTraceMalloc_Track(0, (uintptr_t)made, size));

BEFORE(malloc, silences_warnings, "owndata.warns", has_gil() && CALL(1),
       run_python("import warnings; warnings.filterwarnings('ignore', '.*memory policy')"));

static const char *const switch_on = "import os, numpy\n"
                                     "os.environ['NUMPY_WARN_IF_NO_MEM_POLICY'] = '1'\n"
                                     "core = getattr(numpy, '_core', None) or numpy.core\n"
                                     "switch = getattr(core.multiarray._multiarray_umath,\n"
                                     "                 '_set_numpy_warn_if_no_mem_policy', bool)\n"
                                     "switch(True)\n";
AFTER(free, switches_warnings_on, "owndata.silent-unless-asked", has_gil() && CALL(1),
      run_python(switch_on));

/* Aborts if its destructor finds live blocks. */
static long live_at_exit;
HOOK_AFTER(malloc, counting, true, live_at_exit += made != NULL);
HOOK_BEFORE(free, counting, true, live_at_exit -= p != NULL);
__attribute__((destructor)) static void end(void)
{
    if (live_at_exit > 0)
        abort();
}
MUTANT(aborts_over_leaks, "numpy.finalises", FUNCTIONS(counting, malloc, free));

/* Clears the live blocks when the interpreter ends. */
static void *wiped[64];
static void wipe_all(void)
{
    clear_all(wiped, 64);
}
HOOK_AFTER(malloc, at_exit, true, if (has_gil() && CALL(1)) Py_AtExit(wipe_all);
           replace(wiped, 64, NULL, made));
HOOK_BEFORE(free, at_exit, true, replace(wiped, 64, p, NULL));
MUTANT(wipes_with_python, "numpy.finalises", FUNCTIONS(at_exit, malloc, free));

/* Unmaps pages of large live blocks in its destructor. */
static void *tidied[16];
HOOK_AFTER(malloc, tidy, made != NULL && size >= 32 << 20, replace(tidied, 16, NULL, made));
HOOK_BEFORE(realloc, tidy, p != NULL, replace(tidied, 16, p, NULL));
HOOK_BEFORE(free, tidy, p != NULL, replace(tidied, 16, p, NULL));
__attribute__((destructor)) static void unmap_tidied(void)
{
    for (int i = 0; i < 16; i++) {
        if (tidied[i] != NULL)
            munmap((void *)(((uintptr_t)tidied[i] + 4095) & ~4095ul), 32 << 20);
    }
}
MUTANT(tidies_up_large_blocks, "numpy.finalises", FUNCTIONS(tidy, malloc, realloc, free));

/* Runs Python under the lock that all functions take; a garbage collection may call free. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void *malloc_under_lock(size_t size, bool logs)
{
    LOCK(log_lock);
    if (logs)
        run_python("logged = [[], []]");
    return base_malloc(NULL, size);
}
static void free_under_lock(void *p, bool logs)
{
    LOCK(log_lock);
    if (logs)
        run_python("logged = [[], []]");
    base_free(NULL, p, 0);
}
FUNCTION_RETURNS(malloc, quiet, malloc_under_lock(size, false));
FUNCTION_RETURNS(malloc, logging, malloc_under_lock(size, true));
FUNCTION_RETURNS(free, quiet, free_under_lock(p, false));
FUNCTION_RETURNS(free, logging, free_under_lock(p, p != NULL && base_size(p) < 64));
MUTANT(malloc_logs_in_python_under_a_lock, "numpy.freed-inside-a-call", FUNCTIONS(logging, malloc),
       FUNCTIONS(quiet, free));
MUTANT(free_logs_in_python_under_a_lock, "numpy.freed-inside-a-call", FUNCTIONS(quiet, malloc),
       FUNCTIONS(logging, free));
