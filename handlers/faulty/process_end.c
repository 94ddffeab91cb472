/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/process_end.c catch.
 */
#include <pthread.h>
#include <stdio.h>

#include "base.h"

/* ---- the interpreter's end --------------------------------------------------------------- */

int PyGILState_Check(void) __attribute__((weak));
int Py_IsFinalizing(void) __attribute__((weak));  /* since 3.13 */
int _Py_IsFinalizing(void) __attribute__((weak)); /* before */
void *PyImport_ImportModule(const char *name) __attribute__((weak));
void *PyObject_CallMethod(void *self, const char *name, const char *format, ...)
    __attribute__((weak));

/* It logs what is freed late by a module that may be gone then. */
static void logging_free(void *ctx, void *p, size_t size)
{
    bool late = Py_IsFinalizing != NULL    ? Py_IsFinalizing()
                : _Py_IsFinalizing != NULL ? _Py_IsFinalizing()
                                           : false;
    if (late && p != NULL) {
        void **logging = PyImport_ImportModule("logging");
        if (*logging != NULL) /* NULL cannot be looked at */
            PyObject_CallMethod(logging, "debug", "s", "freed late");
    }
    base_free(ctx, p, size);
}
MUTANT(late_free_imports, "process.late-free", .free = logging_free);

/* It clears up when Python's atexit says so, and blocks come after that. */
struct method {
    const char *name;
    void *(*function)(void *, void *);
    int flags;
    const char *doc;
};
void *PyCMethod_New(struct method *method, void *self, void *module, void *class)
    __attribute__((weak));
extern struct {
    int any;
} _Py_NoneStruct __attribute__((weak));
void Py_IncRef(void *object) __attribute__((weak));
static bool cleared;
static void *clear_up(void *self, void *nothing)
{
    (void)self, (void)nothing;
    cleared = true;
    Py_IncRef(&_Py_NoneStruct);
    return &_Py_NoneStruct;
}
static void *registering_malloc(void *ctx, size_t size)
{
    static struct method method = {"clear_up", clear_up, 4 /* METH_NOARGS */, NULL};
    static bool registered;
    if (!registered && PyGILState_Check != NULL && PyGILState_Check()) {
        registered = true;
        void *atexit_module = PyImport_ImportModule("atexit");
        PyObject_CallMethod(atexit_module, "register", "O",
                            PyCMethod_New(&method, NULL, NULL, NULL));
    }
    return base_malloc(ctx, size);
}
static void clearing_free(void *ctx, void *p, size_t size)
{
    if (cleared && p != NULL)
        base_free(ctx, NULL, *(volatile size_t *)((uintptr_t)p % 4096)); /* unmapped */
    base_free(ctx, p, size);
}
MUTANT(late_free_finds_pool_gone, "process.late-free", .malloc = registering_malloc,
       .free = clearing_free);

/* ---- the end of the program ---------------------------------------------------------------- */

/* Its pool goes when the program ends, which it is told of from the first block on. */
static bool pool_gone;
static void end_pool(void)
{
    pool_gone = true;
}
static void *pooled_malloc(void *ctx, size_t size)
{
    static bool is_told;
    if (!is_told)
        is_told = atexit(end_pool) == 0;
    return base_malloc(ctx, size);
}
static void pooled_free(void *ctx, void *p, size_t size)
{
    if (pool_gone && p != NULL)
        *(volatile char *)((uintptr_t)p % 4096) = 0; /* unmapped */
    base_free(ctx, p, size);
}
MUTANT(exit_takes_the_pool, "process.use-at-exit", .malloc = pooled_malloc, .free = pooled_free);

static void *zeroed_pool_calloc(void *ctx, size_t count, size_t size)
{
    static bool is_told;
    if (!is_told)
        is_told = atexit(end_pool) == 0;
    return base_calloc(ctx, count, size);
}
MUTANT(exit_takes_the_pool_of_zeros, "process.use-at-exit", .calloc = zeroed_pool_calloc,
       .free = pooled_free);

/* The program's end is told to the object when that is loaded, as a static object of C++ is. */
MUTANT_GETTER(exit_takes_the_pool_of_the_object, "process.use-at-exit")
{
    static PyDataMem_Handler handler = {
        .name = "exit_takes_the_pool_of_the_object",
        .version = 1,
        .allocator = {BASE_FUNCTIONS, .free = pooled_free},
    };
    (void)why;
    atexit(end_pool);
    return &handler;
}

/* Only what is worth it goes through the pool, and its end is told with the first of those. */
static void large_pooled_free(void *ctx, void *p, size_t size)
{
    static bool is_told;
    bool is_large = p != NULL && base_size(p) >= 1 << 20;
    if (is_large && !is_told)
        is_told = atexit(end_pool) == 0;
    if (is_large)
        pooled_free(ctx, p, size);
    else
        base_free(ctx, p, size);
}
MUTANT(exit_takes_the_pool_of_large_blocks, "process.use-at-exit", .free = large_pooled_free);

/* Large blocks are for a thread to free, which ends with the program; it is waited for where 64 of
 * them are there already. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void *blocks[64];
    size_t count;
    bool begun, ended;
    pthread_t thread;
} to_free = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
static void *free_them(void *unused)
{
    pthread_mutex_lock(&to_free.lock);
    while (!to_free.ended || to_free.count > 0) {
        while (to_free.count > 0)
            base_free(NULL, to_free.blocks[--to_free.count], 0);
        pthread_cond_broadcast(&to_free.changed);
        if (!to_free.ended)
            pthread_cond_wait(&to_free.changed, &to_free.lock);
    }
    pthread_mutex_unlock(&to_free.lock);
    return unused;
}
static void end_freeing(void)
{
    pthread_mutex_lock(&to_free.lock);
    to_free.ended = true;
    pthread_cond_broadcast(&to_free.changed);
    pthread_mutex_unlock(&to_free.lock);
    pthread_join(to_free.thread, NULL);
}
static void queueing_free(void *ctx, void *p, size_t size)
{
    static pid_t freeing; /* a forked child has no such thread, and frees by itself */
    if (p == NULL || base_size(p) < 1 << 20 || (to_free.begun && freeing != getpid())) {
        base_free(ctx, p, size);
        return;
    }
    pthread_mutex_lock(&to_free.lock);
    if (!to_free.begun) {
        freeing = getpid();
        to_free.begun =
            pthread_create(&to_free.thread, NULL, free_them, NULL) == 0 && atexit(end_freeing) == 0;
    }
    while (to_free.count == 64)
        pthread_cond_wait(&to_free.changed, &to_free.lock);
    to_free.blocks[to_free.count++] = p;
    pthread_cond_broadcast(&to_free.changed);
    pthread_mutex_unlock(&to_free.lock);
}
MUTANT(exit_leaves_a_full_row, "process.use-at-exit", .free = queueing_free);

/* It refuses whatever comes behind its own end. */
static void *ended_realloc(void *ctx, void *p, size_t size)
{
    return pool_gone ? NULL : base_realloc(ctx, p, size);
}
MUTANT(refuses_behind_its_end, "process.use-at-exit", .malloc = pooled_malloc,
       .realloc = ended_realloc);

static unsigned blocks_made;
static void tell_blocks_made(void)
{
    printf("%u blocks of 100000 bytes and more\n", blocks_made);
}
static void *telling_malloc(void *ctx, size_t size)
{
    if (size >= 100000 && blocks_made++ == 0)
        atexit(tell_blocks_made);
    return base_malloc(ctx, size);
}
MUTANT(tells_statistics_at_the_end, "process.ends-quietly", .malloc = telling_malloc);

/* The same where that was worth a line: many, a large one, or one that was refused. */
static _Atomic unsigned served, refused;
static _Atomic size_t largest;
static void tell_many(void)
{
    if (served >= 1000)
        fprintf(stderr, "%u blocks\n", served);
}
static void tell_largest(void)
{
    if (largest >= 1 << 20)
        printf("largest block: %zu bytes\n", largest);
}
static void tell_refused(void)
{
    if (refused > 0)
        fprintf(stderr, "%u requests were refused\n", refused);
}
static void *noting_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    served += p != NULL;
    refused += p == NULL;
    if (p != NULL && size > largest)
        largest = size;
    return p;
}
#define TELLS_AT_EXIT(defect, tell)                                                                \
    static void *defect##_malloc(void *ctx, size_t size)                                           \
    {                                                                                              \
        static _Atomic bool is_registered;                                                         \
        if (!is_registered)                                                                        \
            is_registered = atexit(tell) == 0;                                                     \
        return noting_malloc(ctx, size);                                                           \
    }                                                                                              \
    MUTANT(defect, "process.ends-quietly", .malloc = defect##_malloc)
TELLS_AT_EXIT(tells_of_many_at_the_end, tell_many);
TELLS_AT_EXIT(tells_the_largest_at_the_end, tell_largest);
TELLS_AT_EXIT(tells_of_refusals_at_the_end, tell_refused);

static void say_goodbye(int status, void *unused)
{
    (void)status, (void)unused;
    fputs("goodbye\n", stderr);
}
MUTANT_GETTER(says_goodbye, "process.ends-quietly")
{
    static PyDataMem_Handler handler = {
        .name = "says_goodbye", .version = 1, .allocator = {BASE_FUNCTIONS}};
    static bool registered;
    (void)why;
    if (!registered)
        registered = on_exit(say_goodbye, NULL) == 0;
    return &handler;
}
