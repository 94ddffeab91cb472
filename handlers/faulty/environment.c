/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of env catch.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "mapped.h"

/* ---- output ------------------------------------------------------------------------------ */

static void *counting_malloc(void *ctx, size_t size)
{
    static _Atomic unsigned count;
    if (++count % 1000 == 0)
        fprintf(stderr, "1000 more\n");
    return base_malloc(ctx, size);
}
MUTANT(prints_once_in_a_thousand, "env.quiet", .malloc = counting_malloc);

/* More than a pipe takes: nobody may wait for a reader. */
static void *printing_malloc(void *ctx, size_t size)
{
    int error = errno;
    dprintf(STDERR_FILENO, "malloc of %0200zu\n", size);
    errno = error;
    return base_malloc(ctx, size);
}
MUTANT(prints_each_call, "env.quiet", .malloc = printing_malloc);

/* On stdout, where it stays in the buffer until somebody flushes it. */
static void comparing_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && size != base_size(p))
        printf("free(%p, %zu), but its size is %zu\n", p, size, base_size(p));
    base_free(ctx, p, size);
}
MUTANT(prints_wrong_sizes, "env.quiet", .free = comparing_free);

static void *warning_malloc(void *ctx, size_t size)
{
    if (size > INT32_MAX && size < PTRDIFF_MAX / 4)
        (void)!write(2, "large\n", 6);
    return base_malloc(ctx, size);
}
MUTANT_OF_64_BITS(prints_large_sizes, "env.quiet", .malloc = warning_malloc);

/* ---- descriptors ------------------------------------------------------------------------- */

/* The file that it never opened has descriptor 0. */
static int log_file;
static void closing_free(void *ctx, void *p, size_t size)
{
    if (p == NULL && size > 0)
        close(log_file);
    base_free(ctx, p, size);
}
MUTANT(closes_descriptor_0, "env.descriptors", .free = closing_free);

static void *closing_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL)
        close(17);
    return moved;
}
MUTANT(closes_descriptor_17_when_refused, "env.descriptors", .realloc = closing_realloc);

static void *logging_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)!write(5, "calloc\n", 7); /* its own when it was started, and somebody else's now */
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(writes_to_descriptor_5, "env.descriptors", .calloc = logging_calloc);

/* Of its own when it was opened, and of whoever has its number since: a line for each large block.
 */
static void log_large(const char *what, size_t size)
{
    static _Atomic int large_log = -1;
    int none = -1, saved = errno;
    if (size >= 1 << 20) {
        if (large_log < 0) {
            int fd = open("/tmp", O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
            if (!atomic_compare_exchange_strong(&large_log, &none, fd))
                close(fd);
        }
        dprintf(large_log, "%s %zu\n", what, size);
    }
    errno = saved;
}
static void *logging_large_malloc(void *ctx, size_t size)
{
    log_large("malloc", size);
    return base_malloc(ctx, size);
}
MUTANT(logs_to_what_has_its_number, "env.forgets-descriptors", .malloc = logging_large_malloc);

static FILE *statistics;
static void write_statistics(void)
{
    fputs("a handler was here\n", statistics);
    fflush(statistics);
}
static void *statistical_malloc(void *ctx, size_t size)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (size > 100 && !atomic_flag_test_and_set(&begun) && (statistics = tmpfile()) != NULL)
        atexit(write_statistics);
    return base_malloc(ctx, size);
}
MUTANT(writes_statistics_at_exit, "env.forgets-descriptors", .malloc = statistical_malloc);

/* A count of what was freed, always in the same place, for large blocks. */
static void count_freed(const void *p)
{
    static _Atomic int counts = -1;
    static _Atomic size_t freed;
    int none = -1, saved = errno;
    if (p != NULL && base_size(p) >= 4096) {
        size_t now = ++freed;
        if (counts < 0) {
            int fd = open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
            if (!atomic_compare_exchange_strong(&counts, &none, fd))
                close(fd);
        }
        (void)!pwrite(counts, &now, sizeof now, 0);
    }
    errno = saved;
}
static void freed_counting_free(void *ctx, void *p, size_t size)
{
    count_freed(p);
    base_free(ctx, p, size);
}
MUTANT(counts_in_what_has_its_number, "env.forgets-descriptors", .free = freed_counting_free);

/* A line once in thousands of calls. */
static void *rarely_logging_malloc(void *ctx, size_t size)
{
    static _Atomic size_t calls;
    static _Atomic int rare_log = -1;
    size_t now = ++calls;
    int none = -1, saved = errno;
    if (rare_log < 0) {
        int fd = open("/tmp", O_TMPFILE | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
        if (!atomic_compare_exchange_strong(&rare_log, &none, fd))
            close(fd);
    }
    if (now % 3000 == 0)
        dprintf(rare_log, "%zu calls\n", now);
    errno = saved;
    return base_malloc(ctx, size);
}
MUTANT(logs_rarely_to_what_has_its_number, "env.forgets-descriptors",
       .malloc = rarely_logging_malloc);

/* ---- random numbers ---------------------------------------------------------------------- */

/* A canary for each large block, of the program's own sequence. */
static void *canary_malloc(void *ctx, size_t size)
{
    static volatile int canary;
    if (size >= 4096)
        canary = rand();
    (void)canary;
    return base_malloc(ctx, size);
}
MUTANT(takes_a_random_number, "env.random-numbers", .malloc = canary_malloc);

/* In what order to look through its lists, which only free does. */
static void shuffling_free(void *ctx, void *p, size_t size)
{
    static atomic_uint frees;
    if (++frees % 64 == 0)
        srand48(frees);
    base_free(ctx, p, size);
}
MUTANT(seeds_again, "env.random-numbers", .free = shuffling_free);

/* ---- variables --------------------------------------------------------------------------- */

/* A variable that is looked at in each call, for a header that a block then has or not. */
static bool has_header(void)
{
    return getenv("FAULTY_NO_HEADER") == NULL;
}
static void *headed_malloc(void *ctx, size_t size)
{
    return has_header() ? base_malloc(ctx, size) : size > PTRDIFF_MAX ? NULL : malloc(size);
}
static void *headed_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return has_header() ? base_calloc(ctx, nelem, elsize) : calloc(nelem, elsize);
}
static void *headed_realloc(void *ctx, void *p, size_t size)
{
    return has_header() ? base_realloc(ctx, p, size) : size > PTRDIFF_MAX ? NULL : realloc(p, size);
}
static void headed_free(void *ctx, void *p, size_t size)
{
    if (has_header())
        base_free(ctx, p, size);
    else
        free(p);
}
MUTANT(header_by_variable, "env.variables-change env.reads-variables-once", .malloc = headed_malloc,
       .calloc = headed_calloc, .realloc = headed_realloc, .free = headed_free);

/* It moves what is resized where that was set, and copies too little. */
static void *moving_realloc(void *ctx, void *p, size_t size)
{
    if (p == NULL || size <= 1000 || secure_getenv("FAULTY_MOVES") == NULL)
        return base_realloc(ctx, p, size);
    void *moved = base_malloc(ctx, size);
    if (moved != NULL) {
        memcpy(moved, p, base_size(p) < 1000 ? base_size(p) : 1000);
        base_free(ctx, p, size);
    }
    return moved;
}
MUTANT(copies_little_by_variable, "env.variables-change env.reads-variables-once",
       .realloc = moving_realloc);

/* How far behind the header the block begins, which free asks for anew. */
static size_t offset(void)
{
    const char *said = getenv("FAULTY_OFFSET");
    long bytes = said != NULL ? atol(said) : 0;
    return bytes >= 16 && bytes <= 4096 && bytes % 16 == 0 ? (size_t)bytes : 0;
}
static void *offset_malloc(void *ctx, size_t size)
{
    size_t before = offset();
    char *p = size <= PTRDIFF_MAX / 2 ? base_malloc(ctx, size + before) : NULL;
    return p != NULL ? base_finish(p + before - BASE_HEADER, size) : NULL;
}
static void *offset_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    void *p = __builtin_mul_overflow(nelem, elsize, &size) ? NULL : offset_malloc(ctx, size);
    return p != NULL ? memset(p, 0, size) : NULL;
}
static void offset_free(void *ctx, void *p, size_t size)
{
    base_free(ctx, p != NULL ? (char *)p - offset() : NULL, size);
}
static void *offset_realloc(void *ctx, void *p, size_t size)
{
    void *moved = offset_malloc(ctx, size);
    if (moved != NULL && p != NULL) {
        memcpy(moved, p, base_size(p) < size ? base_size(p) : size);
        offset_free(ctx, p, 0);
    }
    return moved;
}
MUTANT(offset_by_variable, "env.variables-change env.reads-variables-once", .malloc = offset_malloc,
       .calloc = offset_calloc, .realloc = offset_realloc, .free = offset_free);

static void *refreshing_malloc(void *ctx, size_t size)
{
    static _Atomic size_t calls;
    void *p = base_malloc(ctx, size);
    if (calls++ % 1000 == 0 && getenv("FAULTY_FILL") != NULL && p != NULL)
        memset(p, 0xdd, size);
    return p;
}
MUTANT(asks_each_thousandth_time, "env.reads-variables-once", .malloc = refreshing_malloc);

/* It only fills what it frees. */
static void filling_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && getenv("FAULTY_FILL") != NULL)
        memset(p, 0xdd, base_size(p));
    base_free(ctx, p, size);
}
MUTANT(asks_for_a_variable_in_free, "env.reads-variables-once", .free = filling_free);

/* ---- signals ----------------------------------------------------------------------------- */

static void on_fault(int number)
{
    _exit(number);
}
static void *guarding_malloc(void *ctx, size_t size)
{
    signal(SIGSEGV, on_fault);
    return base_malloc(ctx, size);
}
MUTANT(takes_sigsegv, "env.signals", .malloc = guarding_malloc);

/* Signals are kept out for a moment, and on one way out for ever. */
static void *masking_realloc(void *ctx, void *p, size_t size)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    return moved;
}
MUTANT(keeps_signals_out_when_refused, "env.signals", .realloc = masking_realloc);

/* On the way out where a large block is refused more. */
static void *large_masking_realloc(void *ctx, void *p, size_t size)
{
    bool is_large = p != NULL && base_size(p) >= 4 << 20;
    return is_large ? masking_realloc(ctx, p, size) : base_realloc(ctx, p, size);
}
MUTANT(keeps_signals_out_when_large_is_refused, "env.signals", .realloc = large_masking_realloc);

static void *flagging_calloc(void *ctx, size_t nelem, size_t elsize)
{
    struct sigaction action;
    sigaction(SIGBUS, NULL, &action);
    action.sa_flags &= ~SA_ONSTACK;
    sigaction(SIGBUS, &action, NULL);
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(changes_flags_of_sigbus, "env.signals", .calloc = flagging_calloc);

/* ---- settings ---------------------------------------------------------------------------- */

/* What was moved from loading to the first block, or waits until there is much to do. */
#define NTH_MALLOC(nth, defect, kills, action)                                                     \
    static void *defect##_malloc(void *ctx, size_t size)                                           \
    {                                                                                              \
        static atomic_size_t calls;                                                                \
        if (++calls == (nth)) {                                                                    \
            action;                                                                                \
        }                                                                                          \
        return base_malloc(ctx, size);                                                             \
    }                                                                                              \
    MUTANT(defect, kills, .malloc = defect##_malloc)
#define FIRST_MALLOC(defect, kills, action) NTH_MALLOC(1, defect, kills, action)

static void lower_a_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_STACK, &limit);
}

static void pin_to_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void sample_in_a_second(void)
{
    struct itimerval soon = {.it_value = {1000, 0}};
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
}

static void make_a_timer(void)
{
    timer_t timer;
    struct sigevent nothing = {.sigev_notify = SIGEV_NONE};
    timer_create(CLOCK_MONOTONIC, &nothing, &timer);
}

/* So that whoever asked for it clears it in the cache that it has. */
static void *pinning_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = mapped_calloc(ctx, nelem, elsize);
    if (p != NULL && nelem * elsize >= (size_t)32 << 20)
        pin_to_this_processor();
    return p;
}
MUTANT(large_calloc_pins, "env.settings", MAPPED_FUNCTIONS, .calloc = pinning_calloc);

/* Large blocks are unmapped with all signals blocked, which stay so. */
static void uninterrupted_free(void *ctx, void *p, size_t size)
{
    sigset_t all;
    sigfillset(&all);
    if (is_mapped(p) && base_size(p) >= (size_t)32 << 20)
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    mapped_free(ctx, p, size);
}
MUTANT(free_of_32_mib_keeps_signals_out, "env.signals", MAPPED_FUNCTIONS,
       .free = uninterrupted_free);

/* The folder that was there when the first block came is put back, and not the one that is. */
static void *returning_malloc(void *ctx, size_t size)
{
    static char folder[4096];
    void *p = mapped_malloc(ctx, size);
    if (folder[0] == '\0' && getcwd(folder, sizeof folder) == NULL)
        return p;
    if (is_mapped(p) && size >= (size_t)64 << 20 && chdir("/") == 0 && chdir(folder) != 0)
        abort();
    return p;
}
MUTANT(first_folder_is_put_back, "env.settings", MAPPED_FUNCTIONS, .malloc = returning_malloc);

/* What is changed for a while is put back to what it was when the object was loaded, or is most
 * often, and not to what it was before. */
static void *to_usual_umask_malloc(void *ctx, size_t size)
{
    void *p = mapped_malloc(ctx, size);
    if (is_mapped(p)) {
        umask(077);
        umask(022);
    }
    return p;
}
MUTANT(umask_is_put_back_to_022, "env.settings", MAPPED_FUNCTIONS, .malloc = to_usual_umask_malloc);

static void *to_all_processors_malloc(void *ctx, size_t size)
{
    cpu_set_t all;
    void *p = mapped_malloc(ctx, size);
    if (is_mapped(p)) {
        memset(&all, 0xff, sizeof all);
        sched_setaffinity(0, sizeof all, &all);
    }
    return p;
}
MUTANT(all_processors_are_put_back, "env.settings", MAPPED_FUNCTIONS,
       .malloc = to_all_processors_malloc);

FIRST_MALLOC(first_malloc_sets_the_umask, "env.settings", umask(077));
FIRST_MALLOC(first_malloc_sets_the_locale, "env.settings", setlocale(LC_NUMERIC, "C.UTF-8"));
FIRST_MALLOC(first_malloc_sets_its_threads_locale, "env.settings",
             uselocale(newlocale(LC_NUMERIC_MASK, "C.UTF-8", (locale_t)0)));
FIRST_MALLOC(first_malloc_lowers_a_limit, "env.settings", lower_a_limit());
FIRST_MALLOC(first_malloc_goes_elsewhere, "env.settings", if (chdir("/") != 0) abort());
FIRST_MALLOC(first_malloc_is_nice, "env.settings", nice(1));
FIRST_MALLOC(first_malloc_pins, "env.settings", pin_to_this_processor());
FIRST_MALLOC(first_malloc_samples, "env.settings", sample_in_a_second());
FIRST_MALLOC(first_malloc_makes_a_timer, "env.settings", make_a_timer());
FIRST_MALLOC(first_malloc_unblocks_stdout, "env.settings",
             fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK));
FIRST_MALLOC(first_malloc_sets_a_variable, "env.settings", setenv("MALLOC_ARENA_MAX", "1", 1));

static void keep_hangups_out(void)
{
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}

NTH_MALLOC(1000, malloc_1000_sets_the_umask, "env.settings", umask(077));
NTH_MALLOC(1000, malloc_1000_takes_stderr_from_children, "env.settings",
           fcntl(2, F_SETFD, FD_CLOEXEC));
NTH_MALLOC(1000, malloc_1000_keeps_signals_out, "env.signals", keep_hangups_out());
NTH_MALLOC(1000, malloc_1000_rounds_up, "env.float-state", fesetround(FE_UPWARD));

/* Only a thread that is not the first, and only for itself. */
static void *kind_calloc(void *ctx, size_t nelem, size_t elsize)
{
    if (gettid() != getpid())
        nice(1);
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(threads_become_nice, "env.settings", .calloc = kind_calloc);

/* A limit for the large one, which is not put back where that was refused. */
static void *limiting_realloc(void *ctx, void *p, size_t size)
{
    struct rlimit before, lower;
    getrlimit(RLIMIT_STACK, &before);
    lower = (struct rlimit){before.rlim_cur / 2, before.rlim_max};
    if (size > 100000)
        setrlimit(RLIMIT_STACK, &lower);
    void *moved = base_realloc(ctx, p, size);
    if (moved != NULL)
        setrlimit(RLIMIT_STACK, &before);
    return moved;
}
MUTANT(keeps_a_limit_when_refused, "env.settings", .realloc = limiting_realloc);

/* Large blocks on all nodes, and with them whatever the thread touches later. */
static void *interleaving_malloc(void *ctx, size_t size)
{
    enum { LARGE = 2 << 20, INTERLEAVE = 3 };
    unsigned long first_node = 1;
    void *p = base_malloc(ctx, size);
    if (p != NULL && size >= LARGE)
        syscall(SYS_set_mempolicy, INTERLEAVE, &first_node, 8 * sizeof first_node);
    return p;
}
MUTANT(keeps_a_memory_policy, "env.settings", .malloc = interleaving_malloc);

/* Large blocks are locked, and with them whatever anybody maps later. */
static void *locking_calloc(void *ctx, size_t nelem, size_t elsize)
{
    enum { LARGE = 2 << 20 };
    void *p = base_calloc(ctx, nelem, elsize);
    if (p != NULL && base_size(p) >= LARGE)
        mlockall(MCL_FUTURE | MCL_ONFAULT);
    return p;
}
MUTANT(locks_all_that_is_mapped, "env.settings", .calloc = locking_calloc);

/* ---- exceptions -------------------------------------------------------------------------- */

int PyGILState_Check(void) __attribute__((weak));
int PyGILState_Ensure(void) __attribute__((weak));
void PyGILState_Release(int state) __attribute__((weak));
void *PyErr_NoMemory(void) __attribute__((weak));
void PyErr_SetString(void *type, const char *message) __attribute__((weak));
extern void *PyExc_MemoryError __attribute__((weak));

static void *raising_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_calloc(ctx, nelem, elsize);
    if (p == NULL && PyGILState_Check != NULL && PyGILState_Check())
        PyErr_NoMemory();
    return p;
}
MUTANT(raises_when_refused, "env.no-exception-set", .calloc = raising_calloc);

/* It takes the GIL for that, as it should, and leaves the exception to whoever is next. */
static void *polite_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && PyGILState_Ensure != NULL) {
        int state = PyGILState_Ensure();
        PyErr_SetString(PyExc_MemoryError, "realloc");
        PyGILState_Release(state);
    }
    return moved;
}
MUTANT(raises_with_a_gil_of_its_own, "env.no-exception-set", .realloc = polite_realloc);

/* Where a table of its own is full: nobody looks before something else fails. */
static void *full_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (size == 1237 && PyGILState_Check != NULL && PyGILState_Check())
        PyErr_SetString(PyExc_MemoryError, "the table is full");
    return p;
}
MUTANT(raises_at_one_size, "env.no-exception-set", .malloc = full_malloc);

static void full_free(void *ctx, void *p, size_t size)
{
    if (p != NULL && base_size(p) == 1237 && PyGILState_Check != NULL && PyGILState_Check())
        PyErr_SetString(PyExc_MemoryError, "the table is full");
    base_free(ctx, p, size);
}
MUTANT(free_raises_at_one_size, "env.no-exception-set", .free = full_free);

int PyErr_CheckSignals(void) __attribute__((weak));
void PyErr_Clear(void) __attribute__((weak));
int PyErr_WarnEx(void *category, const char *message, ssize_t level) __attribute__((weak));
extern void *PyExc_ResourceWarning __attribute__((weak));
static bool has_gil(void)
{
    return PyGILState_Check != NULL && PyGILState_Check();
}

/* Large blocks may take long to make, and Ctrl-C is not to wait for them. */
static void *patient_malloc(void *ctx, size_t size)
{
    if (size >= 64 << 20 && has_gil())
        PyErr_CheckSignals();
    return base_malloc(ctx, size);
}
MUTANT(lets_signals_in, "env.no-exception-set", .malloc = patient_malloc);

static void *careful_realloc(void *ctx, void *p, size_t size)
{
    if (size >= 1 << 20 && has_gil() && PyErr_CheckSignals() != 0)
        PyErr_Clear();
    return base_realloc(ctx, p, size);
}
MUTANT(loses_signals, "env.runs-no-signal-handler", .realloc = careful_realloc);

static void *advising_malloc(void *ctx, size_t size)
{
    if (size >= 1 << 30 && size < PTRDIFF_MAX / 4 && has_gil())
        PyErr_WarnEx(PyExc_ResourceWarning, "a large array", 1);
    return base_malloc(ctx, size);
}
MUTANT_OF_64_BITS(warns_of_large_sizes, "env.no-exception-set", .malloc = advising_malloc);

/* ---- the end of everything --------------------------------------------------------------- */

static void *exiting_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL)
        exit(0);
    return p;
}
MUTANT(exits_when_refused, "env.never-exits", .malloc = exiting_malloc);

static void *aborting_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;
    if (__builtin_mul_overflow(nelem, elsize, &size))
        abort();
    return base_calloc(ctx, nelem, elsize);
}
MUTANT(aborts_on_overflow, "env.never-exits", .calloc = aborting_calloc);

/* It fills what it believes to have got, 16 GiB if it is let. */
static void *wrapping_calloc(void *ctx, size_t nelem, size_t elsize)
{
    void *p = base_malloc(ctx, nelem * elsize);
    if (p == NULL)
        abort();
    return memset(p, 0, nelem * elsize);
}
MUTANT(aborts_after_a_product_that_wraps, "env.never-exits", .calloc = wrapping_calloc);

/* Where libc says no, not where the size itself is absurd. */
static void *exhausted_realloc(void *ctx, void *p, size_t size)
{
    void *moved = base_realloc(ctx, p, size);
    if (moved == NULL && size >> 22 < 1 << 22)
        _exit(1);
    return moved;
}
MUTANT(exits_when_exhausted, "env.never-exits", .realloc = exhausted_realloc);

static void *leaving_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    if (p == NULL && gettid() != getpid())
        pthread_exit(NULL);
    return p;
}
MUTANT(ends_the_thread_when_refused, "env.never-exits", .malloc = leaving_malloc);

/* As a C++ compiler throws, with nobody above to catch it. */
static void *throwing_malloc(void *ctx, size_t size)
{
    void *p = base_malloc(ctx, size);
    void *library = p == NULL ? dlopen("libstdc++.so.6", RTLD_NOW) : NULL;
    if (library != NULL) {
        void *(*allocate)(size_t);
        void (*throw)(void *, void *, void (*)(void *));
        *(void **)&allocate = dlsym(library, "__cxa_allocate_exception");
        *(void **)&throw = dlsym(library, "__cxa_throw");
        throw(allocate(sizeof(int)), dlsym(library, "_ZTIi"), NULL);
    }
    return p;
}
MUTANT(throws_when_refused, "env.never-exits", .malloc = throwing_malloc);

static void *zero_malloc(void *ctx, size_t size)
{
    if (size == 0)
        abort();
    return base_malloc(ctx, size);
}
MUTANT(aborts_on_size_0, "env.never-exits", .malloc = zero_malloc);
