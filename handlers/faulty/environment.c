/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that change the process around them, which the properties of env find.
 */
#define _GNU_SOURCE
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
#include "python.h"

/* ---- output ------------------------------------------------------------------------------ */

BEFORE(malloc, prints_once_in_a_thousand, "env.quiet", EVERY(1000), fprintf(stderr, "1000 more\n"));

/* Each line is long, so that all of them together do not fit into a pipe. */
DEFECT(malloc, prints_each_call, "env.quiet")
{
    int saved = errno;
    dprintf(STDERR_FILENO, "malloc of %0200zu\n", size);
    errno = saved;
    return base_malloc(ctx, size);
}

/* The text stays in the buffer of stdout. */
BEFORE(free, prints_wrong_sizes, "env.quiet", p != NULL && size != base_size(p),
       printf("free(%p, %zu), but its size is %zu\n", p, size, base_size(p)));

BEFORE(malloc, prints_large_sizes, ON_64_BITS("env.quiet"),
       size > INT32_MAX && size < PTRDIFF_MAX / 4, (void)!write(2, "large\n", 6));

/* ---- descriptors ------------------------------------------------------------------------- */

BEFORE(free, closes_descriptor_0, "env.descriptors", p == NULL && size > 0, close(0));
AFTER(realloc, closes_descriptor_17_when_refused, "env.descriptors", made == NULL, close(17));
BEFORE(calloc, writes_to_descriptor_5, "env.descriptors", true, (void)!write(5, "calloc\n", 7));

/* Opens a log at the first use and does not notice if its descriptor is closed and reused later. */
static int open_log(void)
{
    static _Atomic int log = -1;
    int closed = -1;
    if (log < 0) {
        int fd = open("/tmp", O_TMPFILE | O_CLOEXEC | O_WRONLY | O_APPEND, 0600);
        if (!atomic_compare_exchange_strong(&log, &closed, fd))
            close(fd);
    }
    return log;
}

#define LOGS(defect, condition)                                                                    \
    DEFECT(malloc, defect, "env.forgets-descriptors")                                              \
    {                                                                                              \
        int saved = errno, fd = open_log();                                                        \
        if (condition)                                                                             \
            dprintf(fd, "malloc %zu\n", size);                                                     \
        errno = saved;                                                                             \
        return base_malloc(ctx, size);                                                             \
    }                                                                                              \
    FUNCTION(malloc, defect)
LOGS(logs_to_what_has_its_number, size >= MIB);
LOGS(logs_rarely_to_what_has_its_number, EVERY(3000));

static FILE *statistics;
static void write_statistics(void)
{
    fputs("a handler was here\n", statistics);
    fflush(statistics);
}
BEFORE(malloc, writes_statistics_at_exit, "env.forgets-descriptors",
       size > 100 && CALL(1) && (statistics = tmpfile()) != NULL, atexit(write_statistics));

/* ---- random numbers ---------------------------------------------------------------------- */

static volatile int canary;
BEFORE(malloc, takes_a_random_number, "env.random-numbers", size >= 4 * KIB, canary = rand());
BEFORE(free, seeds_again, "env.random-numbers", EVERY(64), srand48(64));

/* ---- variables --------------------------------------------------------------------------- */

/* Each call reads the variable again to determine whether blocks have a header. */
static bool has_header(void)
{
    return getenv("FAULTY_NO_HEADER") == NULL;
}
FUNCTION_RETURNS(malloc, headed,
                 has_header() || size > PTRDIFF_MAX ? base_malloc(ctx, size) : malloc(size));
FUNCTION_RETURNS(calloc, headed,
                 has_header() ? base_calloc(ctx, nelem, elsize) : calloc(nelem, elsize));
FUNCTION_RETURNS(realloc, headed,
                 has_header() || size > PTRDIFF_MAX ? base_realloc(ctx, p, size)
                                                    : realloc(p, size));
FUNCTION_RETURNS(free, headed, has_header() ? base_free(ctx, p, size) : free(p));
MUTANT(header_by_variable, "env.variables-change env.reads-variables-once", FUNCTIONS(headed));

DEFECT(realloc, copies_little_by_variable, "env.variables-change env.reads-variables-once")
{
    if (p == NULL || size <= 1000 || secure_getenv("FAULTY_MOVES") == NULL)
        return base_realloc(ctx, p, size);
    return move(ctx, p, size, min(base_size(p), 1000));
}

/* The distance from the header to the block, which each call reads again. */
static size_t offset(void)
{
    const char *value = getenv("FAULTY_OFFSET");
    long bytes = value != NULL ? atol(value) : 0;
    return bytes >= 16 && bytes <= 4096 && bytes % 16 == 0 ? (size_t)bytes : 0;
}
FUNCTION(malloc, offset)
{
    size_t before = offset();
    char *p = size <= PTRDIFF_MAX / 2 ? base_malloc(ctx, size + before) : NULL;
    return p != NULL ? base_finish(p + before - BASE_HEADER, size) : NULL;
}
FUNCTION(free, offset)
{
    base_free(ctx, p != NULL ? (char *)p - offset() : NULL, size);
}
MUTANT_DERIVED(offset_by_variable, "env.variables-change env.reads-variables-once", offset);

AFTER(malloc, asks_each_thousandth_time, "env.reads-variables-once",
      NTH % 1000 == 1 && getenv("FAULTY_FILL") != NULL && made != NULL, memset(made, 0xdd, size));
BEFORE(free, asks_for_a_variable_in_free, "env.reads-variables-once",
       p != NULL && getenv("FAULTY_FILL") != NULL, memset(p, 0xdd, base_size(p)));

/* ---- signals ----------------------------------------------------------------------------- */

static void on_fault(int number)
{
    _exit(number);
}
BEFORE(malloc, takes_sigsegv, "env.signals", true, signal(SIGSEGV, on_fault));

DEFECT(calloc, changes_flags_of_sigbus, "env.signals")
{
    struct sigaction action;
    sigaction(SIGBUS, NULL, &action);
    action.sa_flags &= ~SA_ONSTACK;
    sigaction(SIGBUS, &action, NULL);
    return base_calloc(ctx, nelem, elsize);
}

static void block_sighup(void)
{
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &hangup, NULL);
}
AFTER(realloc, keeps_signals_out_when_refused, "env.signals", made == NULL, block_sighup());
AFTER(realloc, keeps_signals_out_when_large_is_refused, "env.signals",
      made == NULL && p != NULL && base_size(p) >= 4 * MIB, block_sighup());
BEFORE_IN(mapped, free, free_of_32_mib_keeps_signals_out, "env.signals",
          is_mapped(p) && base_size(p) >= 32 * MIB, block_sighup());
BEFORE(malloc, malloc_1000_keeps_signals_out, "env.signals", CALL(1000), block_sighup());

/* ---- settings ---------------------------------------------------------------------------- */

static void halve_stack_limit(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_STACK, &limit);
    limit.rlim_cur /= 2;
    setrlimit(RLIMIT_STACK, &limit);
}
static void pin_to_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}
static void run_on_all_processors(void)
{
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);
    sched_setaffinity(0, sizeof all, &all);
}
static void make_a_timer(void)
{
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &(struct sigevent){.sigev_notify = SIGEV_NONE}, &timer);
}
static void interleave_memory(void)
{
    enum { MPOL_INTERLEAVE = 3 };
    unsigned long first_node = 1;
    syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &first_node, 8 * sizeof first_node);
}
static void change_folder(const char *path)
{
    if (chdir(path) != 0)
        abort();
}

/* The first malloc makes a change that lasts. */
#define FIRST_MALLOC(defect, action) BEFORE(malloc, defect, "env.settings", CALL(1), action)
FIRST_MALLOC(first_malloc_sets_the_umask, umask(077));
FIRST_MALLOC(first_malloc_sets_the_locale, setlocale(LC_NUMERIC, "C.UTF-8"));
FIRST_MALLOC(first_malloc_sets_its_threads_locale,
             uselocale(newlocale(LC_NUMERIC_MASK, "C.UTF-8", (locale_t)0)));
FIRST_MALLOC(first_malloc_lowers_a_limit, halve_stack_limit());
FIRST_MALLOC(first_malloc_goes_elsewhere, change_folder("/"));
FIRST_MALLOC(first_malloc_is_nice, (void)!nice(1));
FIRST_MALLOC(first_malloc_pins, pin_to_this_processor());
FIRST_MALLOC(first_malloc_samples,
             setitimer(ITIMER_VIRTUAL, &(struct itimerval){.it_value = {1000, 0}}, NULL));
FIRST_MALLOC(first_malloc_makes_a_timer, make_a_timer());
FIRST_MALLOC(first_malloc_unblocks_stdout, fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK));
FIRST_MALLOC(first_malloc_sets_a_variable, setenv("MALLOC_ARENA_MAX", "1", 1));

/* A later call, or a call in another thread, makes it. */
BEFORE(malloc, malloc_1000_sets_the_umask, "env.settings", CALL(1000), umask(077));
BEFORE(malloc, malloc_1000_takes_stderr_from_children, "env.settings", CALL(1000),
       fcntl(2, F_SETFD, FD_CLOEXEC));
BEFORE(calloc, threads_become_nice, "env.settings", gettid() != getpid(), (void)!nice(1));

/* The call for a large block makes it. */
AFTER_IN(mapped, calloc, large_calloc_pins, "env.settings",
         made != NULL && nelem * elsize >= 32 * MIB, pin_to_this_processor());
AFTER(realloc, keeps_a_limit_when_refused, "env.settings", made == NULL && size > 100000,
      halve_stack_limit());
AFTER(malloc, keeps_a_memory_policy, "env.settings", made != NULL && size >= 2 * MIB,
      interleave_memory());
AFTER(calloc, locks_all_that_is_mapped, "env.settings", made != NULL && base_size(made) >= 2 * MIB,
      mlockall(MCL_FUTURE | MCL_ONFAULT));

/* A temporary change ends with the usual value, not with the one that was set before. */
AFTER_IN(mapped, malloc, umask_is_put_back_to_022, "env.settings", is_mapped(made), umask(022));
AFTER_IN(mapped, malloc, all_processors_are_put_back, "env.settings", is_mapped(made),
         run_on_all_processors());
static char first_folder[4096];
AFTER_IN(mapped, malloc, first_folder_is_put_back, "env.settings",
         (first_folder[0] != '\0' || getcwd(first_folder, sizeof first_folder) != NULL) &&
             is_mapped(made) && size >= 64 * MIB,
         change_folder(first_folder));

/* ---- floating point ---------------------------------------------------------------------- */

BEFORE(malloc, malloc_1000_rounds_up, "env.float-state", CALL(1000), fesetround(FE_UPWARD));
BEFORE(realloc, resets_rounding, "env.float-state", true, fesetround(FE_TONEAREST));
BEFORE(free, traps_division_by_zero, "env.float-state", true, feenableexcept(FE_DIVBYZERO));
BEFORE(free, clears_float_flags, "env.float-state", p != NULL && base_size(p) >= 100000,
       feclearexcept(FE_ALL_EXCEPT));

/* Does what startup code of -ffast-math does; on other processors it sets a rounding mode. */
static void flush_denormals(void)
{
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
#else
    fesetround(FE_TOWARDZERO);
#endif
}
static _Thread_local bool is_known;
BEFORE(malloc, flushes_denormals, "env.float-state", size > 100000, flush_denormals());
BEFORE(malloc, threads_flush_denormals, "env.float-state", !is_known,
       if (gettid() != getpid()) flush_denormals();
       is_known = true);

/* 0 / 0 sets the flag. */
static volatile double live, seen, ratio;
BEFORE(malloc, sets_the_invalid_flag, "env.float-state", true, ratio = live / seen);

/* A moving average of sizes in single precision underflows after 160 calls of free. */
static volatile float average;
HOOK_BEFORE(malloc, averaging, true, average = (average + (float)size) * 0.5f);
HOOK_BEFORE(free, averaging, true, average = average * 0.5f);
MUTANT(sets_the_underflow_flag, "env.float-state", FUNCTIONS(averaging, malloc, free));

/* Converts a double to an int that cannot hold it. */
DEFECT(calloc, sets_a_flag_for_2gib, "env.float-state")
{
    volatile double pages = (double)nelem * (double)elsize * 1.125;
    UNUSED volatile int class = 0;
    if (pages < 0x1p40)
        class = (int)pages;
    return base_calloc(ctx, nelem, elsize);
}

/* Uses MMX without EMMS; on other processors it sets a flag. */
static void use_mmx(void)
{
#ifdef __x86_64__
    __asm__ volatile("pxor %%mm0, %%mm0" ::: "mm0");
#else
    feraiseexcept(FE_INVALID);
#endif
}
BEFORE(realloc, leaves_mmx_in_use, "env.float-state", true, use_mmx());
BEFORE(realloc, leaves_mmx_in_use_after_much, "env.float-state",
       p != NULL && base_size(p) >= MIB && size >= MIB, use_mmx());

/* Leaves the direction flag set, as if it had copied from the end. */
DEFECT(realloc, memory_is_copied_downward, "env.direction-flag")
{
    void *moved = base_realloc(ctx, p, size);
#if defined(__x86_64__) || defined(__i386__)
    if (moved != NULL && p != NULL && size >= 4 * MIB)
        __asm__ volatile("std" ::: "cc", "memory");
#endif
    return moved;
}

/* ---- exceptions -------------------------------------------------------------------------- */

static void raise_with_own_gil(void)
{
    int state = PyGILState_Ensure();
    PyErr_SetString(PyExc_MemoryError, "realloc");
    PyGILState_Release(state);
}
AFTER(calloc, raises_when_refused, "env.no-exception-set", made == NULL && has_gil(),
      PyErr_NoMemory());
AFTER(realloc, raises_with_a_gil_of_its_own, "env.no-exception-set", made == NULL && is_python_up(),
      raise_with_own_gil());
AFTER(malloc, raises_at_one_size, "env.no-exception-set", size == 1237 && has_gil(),
      PyErr_SetString(PyExc_MemoryError, "the table is full"));
BEFORE(free, free_raises_at_one_size, "env.no-exception-set",
       p != NULL && base_size(p) == 1237 && has_gil(),
       PyErr_SetString(PyExc_MemoryError, "the table is full"));
BEFORE(malloc, lets_signals_in, "env.no-exception-set", size >= 64 * MIB && has_gil(),
       PyErr_CheckSignals());
BEFORE(realloc, loses_signals, "env.runs-no-signal-handler",
       size >= MIB && has_gil() && PyErr_CheckSignals() != 0, PyErr_Clear());
BEFORE(malloc, warns_of_large_sizes, ON_64_BITS("env.no-exception-set"),
       size >= 1024 * MIB && size < PTRDIFF_MAX / 4 && has_gil(),
       PyErr_WarnEx(PyExc_ResourceWarning, "a large array", 1));

/* ---- the end of the process -------------------------------------------------------------- */

AFTER(malloc, exits_when_refused, "env.never-exits", made == NULL, exit(0));
AFTER(realloc, exits_when_exhausted, "env.never-exits", made == NULL && size >> 22 < 1 << 22,
      _exit(1));
AFTER(malloc, ends_the_thread_when_refused, "env.never-exits", made == NULL && gettid() != getpid(),
      pthread_exit(NULL));
BEFORE(malloc, aborts_on_size_0, "env.never-exits", size == 0, abort());
BEFORE(calloc, aborts_on_overflow, "env.never-exits",
       __builtin_mul_overflow(nelem, elsize, &(size_t){0}), abort());
