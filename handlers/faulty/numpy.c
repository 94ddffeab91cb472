/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/numpy.c catch.
 */
#include "meddle.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shifted.h"

/* Tells by its name what it is doing. */
extern PyDataMem_Handler renames_itself;

static void *renames_itself_calloc(void *ctx, size_t nelem, size_t elsize)
{
    strcpy(renames_itself.name, "renames_itself (zeroing)");
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(renames_itself, "numpy.name", .calloc = renames_itself_calloc);

/* The same, once it has freed a hundred blocks. */
extern PyDataMem_Handler renames_itself_late;

static void renames_itself_late_free(void *ctx, void *p, size_t size)
{
    static int calls;
    if (++calls == 100)
        strcpy(renames_itself_late.name, "renames_itself_late (100)");
    base_free(ctx, p, size);
}
MUTANT(renames_itself_late, "numpy.name", .free = renames_itself_late_free);

extern PyDataMem_Handler counts_in_its_version;

static void *counts_in_its_version_realloc(void *ctx, void *p, size_t size)
{
    counts_in_its_version.version++;
    return base_realloc(ctx, p, size);
}
MUTANT(counts_in_its_version, "numpy.version", .realloc = counts_in_its_version_realloc);

/* Whether another handler is in force than when this one was first called by NumPy. */
static bool is_replaced(void)
{
    static const PyDataMem_Handler *first;
    const PyDataMem_Handler *now = handler_in_force();
    if (first == NULL && now != NULL && strcmp(now->name, "default_allocator") != 0)
        first = now;
    return first != NULL && now != NULL && now != first;
}

static void *looking_malloc(void *ctx, size_t size)
{
    is_replaced();
    return base_malloc(ctx, size);
}

static void *looking_calloc(void *ctx, size_t nelem, size_t elsize)
{
    is_replaced();
    return base_calloc(ctx, nelem, elsize);
}

/* Gives a block to whatever handler is in force. */
static void frees_by_current_free(void *ctx, void *p, size_t size)
{
    PyDataMem_Handler *now = handler_in_force();
    if (p != NULL && is_replaced())
        now->allocator.free(now->allocator.ctx, p, size);
    else
        base_free(ctx, p, size);
}
MUTANT(frees_by_current, "numpy.array-keeps-its-handler", .malloc = looking_malloc,
       .calloc = looking_calloc, .free = frees_by_current_free);

/* A block that is resized moves to whatever handler is in force. */
static void *reallocs_by_current_realloc(void *ctx, void *p, size_t size)
{
    PyDataMem_Handler *now = handler_in_force();
    if (p == NULL || !is_replaced())
        return base_realloc(ctx, p, size);
    void *moved = now->allocator.malloc(now->allocator.ctx, size);
    if (moved == NULL)
        return NULL;
    memcpy(moved, p, size < base_size(p) ? size : base_size(p));
    base_free(ctx, p, size);
    return moved;
}
MUTANT(reallocs_by_current, "numpy.array-keeps-its-handler", .malloc = looking_malloc,
       .calloc = looking_calloc, .realloc = reallocs_by_current_realloc);

/* Takes its arena for empty once it is replaced, and wipes it: its last eight blocks, that is. */
static void *arena[8];

static void arena_replace(const void *old, void *new)
{
    for (int i = 0; i < 8; i++) {
        if (arena[i] == old) {
            arena[i] = new;
            return;
        }
    }
}

static void *wipes_when_replaced_malloc(void *ctx, size_t size)
{
    void *p = looking_malloc(ctx, size);
    arena_replace(NULL, p);
    return p;
}

static void *wipes_when_replaced_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        arena_replace(p, moved);
    return moved;
}

static void wipes_when_replaced_free(void *ctx, void *p, size_t size)
{
    arena_replace(p, NULL);
    for (int i = 0; i < 8 && p != NULL && is_replaced(); i++) {
        if (arena[i] != NULL)
            memset(arena[i], 0, base_size(arena[i]));
    }
    base_free(ctx, p, size);
}
MUTANT(wipes_when_replaced, "numpy.array-keeps-its-handler", .malloc = wipes_when_replaced_malloc,
       .realloc = wipes_when_replaced_realloc, .free = wipes_when_replaced_free);

/* Wants to be in force for as long as it has blocks. */
static void returns_on_free_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_replaced())
        put_in_force(ctx);
    base_free(ctx, p, size);
}
MUTANT(returns_on_free, "numpy.installs", .ctx = &returns_on_free, .free = returns_on_free_free);

/* The same, when one of its blocks is resized. */
static void *returns_on_realloc_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL && is_replaced())
        put_in_force(ctx);
    return base_realloc(ctx, p, size);
}
MUTANT(returns_on_realloc, "numpy.installs", .ctx = &returns_on_realloc,
       .realloc = returns_on_realloc_realloc);

/* Has itself removed when the last of its blocks is gone. */
static int live;

static void *leaves_when_empty_malloc(void *ctx, size_t size)
{
    live++;
    return base_malloc(ctx, size);
}

static void *leaves_when_empty_calloc(void *ctx, size_t nelem, size_t elsize)
{
    live++;
    return base_calloc(ctx, nelem, elsize);
}

static void leaves_when_empty_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && --live == 0)
        put_in_force(NULL);
    base_free(ctx, p, size);
}
MUTANT(leaves_when_empty, "numpy.installs", .malloc = leaves_when_empty_malloc,
       .calloc = leaves_when_empty_calloc, .free = leaves_when_empty_free);

/* ---- dtypes ---------------------------------------------------------------------------------- */

/* Aligned to eight once it was resized, or to half of what a long double wants elsewhere. */
static void *aligns_resized_to_eight_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return shifted_malloc(size, BASE_HEADER);
}

static void *aligns_resized_to_eight_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return shifted_realloc_to(p, size, BASE_HEADER + _Alignof(long double) / 2);
}
MUTANT(aligns_resized_to_eight, "numpy.dtypes", .malloc = aligns_resized_to_eight_malloc,
       .calloc = shifted_calloc, .realloc = aligns_resized_to_eight_realloc, .free = shifted_free);

/* Blocks of whole long doubles are aligned, those of any other size to four, where a long double
 * wants sixteen. */
static void *aligns_by_size_malloc(void *ctx, size_t size)
{
    (void)ctx;
    bool whole = size % sizeof(long double) == 0;
    return shifted_malloc(size, BASE_HEADER + (whole ? 0 : _Alignof(long double) / 4));
}
MUTANT(aligns_by_size, "numpy.dtypes", .malloc = aligns_by_size_malloc, .calloc = shifted_calloc,
       .realloc = shifted_realloc, .free = shifted_free);

/* Has Python call it after each garbage collection, and then takes its newest block for garbage. */
static void *newest;

static object *after_collection(object *self, object *arguments)
{
    (void)self, (void)arguments;
    if (newest != NULL)
        memset(newest, 0, base_size(newest));
    return PYTHON(object * (*)(const char *, ...), "Py_BuildValue")("");
}

static void hook_collections(void)
{
    static struct {
        const char *name;
        object *(*function)(object *, object *);
        int flags;
        const char *doc;
    } method = {"after_collection", after_collection, 1 /* METH_VARARGS */, NULL};
    object *gc = PYTHON(object * (*)(const char *), "PyImport_ImportModule")("gc");
    object *callbacks =
        PYTHON(object * (*)(object *, const char *), "PyObject_GetAttrString")(gc, "callbacks");
    object *hook = PYTHON(object * (*)(void *, object *, object *, object *),
                          "PyCMethod_New")(&method, NULL, NULL, NULL);
    PYTHON(int (*)(object *, object *), "PyList_Append")(callbacks, hook);
}

static void *collects_with_python_calloc(void *ctx, size_t nelem, size_t elsize)
{
    static bool done;
    if (!done && has_gil()) {
        done = true;
        hook_collections();
    }
    newest = base_calloc(ctx, nelem, elsize);
    return newest;
}

static void *collects_with_python_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (p == newest && moved != NULL)
        newest = moved;
    return moved;
}

static void collects_with_python_free(void *ctx, void *p, size_t size)
{
    if (p == newest)
        newest = NULL;
    base_free(ctx, p, size);
}
MUTANT(collects_with_python, "numpy.dtypes", .calloc = collects_with_python_calloc,
       .realloc = collects_with_python_realloc, .free = collects_with_python_free);

/* ---- tracemalloc ----------------------------------------------------------------------------- */

enum { NUMPYS_DOMAIN = 389047 };

static void track(const void *p, size_t size)
{
    int (*note)(unsigned, uintptr_t, size_t) =
        PYTHON(int (*)(unsigned, uintptr_t, size_t), "PyTraceMalloc_Track");
    if (p != NULL)
        note(NUMPYS_DOMAIN, (uintptr_t)p, size);
}

/* Shows what it takes itself, as one of NumPy's. */
static void *tracks_its_own_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL)
        track((char *)p - BASE_HEADER, size + BASE_HEADER);
    return p;
}
MUTANT(tracks_its_own, "numpy.tracemalloc", .malloc = tracks_its_own_malloc);

/* Shows what it keeps for later: NumPy has taken it out by then. */
static void tracks_what_was_freed_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) > 512)
        track(p, base_size(p));
    base_free(ctx, p, size);
}
MUTANT(tracks_what_was_freed, "numpy.tracemalloc", .free = tracks_what_was_freed_free);

/* Keeps its newest blocks out of its lists, as if they were its own affair. */
static void *untracks_others_malloc(void *ctx, size_t size)
{
    static void *previous;
    int (*forget)(unsigned, uintptr_t) =
        PYTHON(int (*)(unsigned, uintptr_t), "PyTraceMalloc_Untrack");
    if (previous != NULL)
        forget(NUMPYS_DOMAIN, (uintptr_t)previous);
    previous = base_malloc(ctx, size);
    return previous;
}
MUTANT(untracks_others, "numpy.tracemalloc", .malloc = untracks_others_malloc);

/* Finds that tracing costs too much. */
static void *stops_tracing_realloc(void *ctx, void *p, size_t size)
{
    if (size > 100000)
        run_python("import tracemalloc; tracemalloc.stop()");
    return base_realloc(ctx, p, size);
}
MUTANT(stops_tracing, "numpy.tracemalloc", .realloc = stops_tracing_realloc);

/* ---- the end --------------------------------------------------------------------------------- */

static long live_at_exit;

static void *counts_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    live_at_exit += p != NULL;
    return p;
}

static void counts_free(void *ctx, void *p, size_t size)
{
    live_at_exit -= p != NULL;
    base_free(ctx, p, size);
}

static bool aborts, leaves;

__attribute__((destructor)) static void end(void)
{
    if (live_at_exit > 0 && aborts)
        abort();
    if (live_at_exit > 0 && leaves)
        _exit(3);
}

/* An assertion in its destructor. */
static void *aborts_over_leaks_malloc(void *ctx, size_t size)
{
    aborts = true;
    return counts_malloc(ctx, size);
}
MUTANT(aborts_over_leaks, "numpy.finalises", .malloc = aborts_over_leaks_malloc,
       .free = counts_free);

/* A status of its own, as leak checkers have it. */
static void *fails_over_leaks_malloc(void *ctx, size_t size)
{
    leaves = true;
    return counts_malloc(ctx, size);
}
MUTANT(fails_over_leaks, "numpy.finalises", .malloc = fails_over_leaks_malloc, .free = counts_free);

/* Cleans up behind the interpreter: what is live then is live no more. */
static void *wiped[64];

static void wipe_all(void)
{
    for (int i = 0; i < 64; i++) {
        if (wiped[i] != NULL)
            memset(wiped[i], 0, base_size(wiped[i]));
    }
}

static void *wipes_with_python_malloc(void *ctx, size_t size)
{
    static bool done;
    void *p = base_malloc(ctx, size);
    if (!done && has_gil()) {
        done = true;
        PYTHON(int (*)(void (*)(void)), "Py_AtExit")(wipe_all);
    }
    for (int i = 0; i < 64; i++) {
        if (wiped[i] == NULL) {
            wiped[i] = p;
            break;
        }
    }
    return p;
}

static void wipes_with_python_free(void *ctx, void *p, size_t size)
{
    for (int i = 0; i < 64; i++)
        wiped[i] = wiped[i] == p ? NULL : wiped[i];
    base_free(ctx, p, size);
}
MUTANT(wipes_with_python, "numpy.finalises", .malloc = wipes_with_python_malloc,
       .free = wipes_with_python_free);

/* In its destructor it gives back the pages of what is large and live. */
static struct {
    pthread_mutex_t lock;
    char *at[16];
} tidied = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void tidy(const void *before, void *after)
{
    pthread_mutex_lock(&tidied.lock);
    for (int i = 0; i < 16; i++) {
        if (tidied.at[i] == before) {
            tidied.at[i] = after;
            break;
        }
    }
    pthread_mutex_unlock(&tidied.lock);
}
static void *tidy_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p != NULL && size >= 32 << 20)
        tidy(NULL, p);
    return p;
}
static void tidy_free(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        tidy(p, NULL);
    base_free(ctx, p, size);
}
static void *tidy_realloc(void *ctx, void *p, size_t size)
{
    if (p != NULL)
        tidy(p, NULL);
    return base_realloc(ctx, p, size);
}
__attribute__((destructor)) static void tidy_up(void)
{
    for (int i = 0; i < 16; i++) {
        if (tidied.at[i] != NULL)
            munmap((void *)(((uintptr_t)tidied.at[i] + 4095) & ~4095ul), 32 << 20);
    }
}
MUTANT(tidies_up_large_blocks, "numpy.finalises", .malloc = tidy_malloc, .realloc = tidy_realloc,
       .free = tidy_free);

/* ---- garbage ----------------------------------------------------------------------------- */

int PyGILState_Check(void) __attribute__((weak));
int PyRun_SimpleString(const char *command) __attribute__((weak));

/* A line of Python for each block, as a log might be, under the lock. */
static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static void log_in_python(void)
{
    if (PyRun_SimpleString != NULL && PyGILState_Check())
        PyRun_SimpleString("logged = [[], []]");
}
static void *quiet_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&log_lock);
    void *p = base_malloc(ctx, size);
    pthread_mutex_unlock(&log_lock);
    return p;
}
static void *logging_malloc(void *ctx, size_t size)
{
    pthread_mutex_lock(&log_lock);
    log_in_python();
    void *p = base_malloc(ctx, size);
    pthread_mutex_unlock(&log_lock);
    return p;
}
static void quiet_free(void *ctx, void *p, size_t size)
{
    pthread_mutex_lock(&log_lock);
    base_free(ctx, p, size);
    pthread_mutex_unlock(&log_lock);
}
static void logging_free(void *ctx, void *p, size_t size)
{
    pthread_mutex_lock(&log_lock);
    if (p != NULL && base_size(p) < 64)
        log_in_python();
    base_free(ctx, p, size);
    pthread_mutex_unlock(&log_lock);
}
MUTANT(malloc_logs_in_python_under_a_lock, "numpy.freed-inside-a-call", .malloc = logging_malloc,
       .free = quiet_free);
MUTANT(free_logs_in_python_under_a_lock, "numpy.freed-inside-a-call", .malloc = quiet_malloc,
       .free = logging_free);
