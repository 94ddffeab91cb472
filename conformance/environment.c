/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env: what a handler leaves alone in its process.  The parts of the state that are read before and
 * after calls are in src/harness/process_state.c.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sanitizer_detect.h"
#include "harness/harness.h"
#include "harness/interpose.h"
#include "harness/process_state.h"
#include "ordinary_use.h"
#include "python/api.h"
#include "python/python.h"
#include "scenarios.h"
#include "subject/subject.h"

GROUP(env, 8, "What a handler does not change: output, descriptors, signals, floats, exceptions.",
      .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 3});

/* ---- the state of the process and of its threads --------------------------------------------- */

enum { ROWS = 2000 };

/* Rows with sizes that NumPy is known to pass wrongly, by this thread and by a new one. */
static void use_ordinarily(void)
{
    const struct scenario_limits limits = {
        .most_size = 512 << 10,
        .most_bytes = 8 << 20,
        .level = {[FACTOR_FREE_SIZE] = FROM_TO(TRUE_SIZE, NULL_OF_ANY_SIZE)}};
    check_scenarios(ROWS, &limits);
    check_scenarios_in_thread(ROWS, &limits);
}

/* For what happens once in thousands of calls. */
static void use_for_long(void)
{
    const struct scenario_limits limits = {
        .most_size = 4096,
        .most_bytes = 1 << 20,
        .level = {[FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                  [FACTOR_REPETITION] = FROM_TO(5, 5)}};
    check_scenarios(ONE_ROW, &limits);
}

/* Large blocks too, and impossible requests, also for a block of some MiB. */
static void use_in_every_way(void)
{
    enum { LARGE = 5 << 20 };
    const struct scenario_limits refused = {.most_size = 64 << 10,
                                            .most_bytes = 4 << 20,
                                            .level[FACTOR_PRESSURE] =
                                                FROM_TO(REFUSED_BEFORE, REFUSED_BEFORE)};
    use_ordinarily();
    check_scenarios(ROWS, &refused);
    resize_and_free(subject_malloc(LARGE), LARGE, SIZE_MAX - LARGE, LARGE);
    use_large_blocks();
}

static void keep_state(unsigned parts, void (*use)(void))
{
    calls_watch(parts);
    use();
    calls_watch(0);
}

PROPERTY(env_quiet,
    .id     = "env.quiet", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .title  = "no output on stdout or stderr",
    .clause = "Ordinary calls print nothing on stdout or stderr.",
    .tests  = "The calls include free with the wrong sizes that NumPy passes.",
    .source = "good practice",
    .why    = "An extra line of output breaks programs that parse it, above all test suites.",
    .hint   = "Count instead, or write to a file that an environment variable names.",
    .looks  = "expected what was printed to stay 0 bytes, after malloc of 100; seen 61 bytes")
{
    calls_watch(STATE_OUTPUT);
    use_ordinarily();
    use_large_blocks();
    calls_watch(0);
}

PROPERTY(env_descriptors,
    .id     = "env.descriptors", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "the program's descriptors stay open",
    .clause = "No call closes, replaces, reads or writes a descriptor of the program.",
    .source = "good practice",
    .why    = "A stray close(0) takes a file from the program, and the next open gets its number.",
    .wrong  = "static int fd; /* 0 is stdin */",
    .right  = "static int fd = -1;",
    .hint   = "Mark a closed descriptor by -1, not 0, and forget its number when you close it.",
    .looks  = "expected descriptor 0 to stay open, after free of 40; seen closed")
{
    keep_state(STATE_DESCRIPTORS, use_in_every_way);
}

PROPERTY(env_signals,
    .id     = "env.signals", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "signal handling stays the same",
    .clause = "Signal dispositions, the signal mask and the alternate stack are the same after "
              "each call.",
    .source = "good practice",
    .why    = "Python handles SIGINT, and faulthandler SIGSEGV: a change causes failures "
              "elsewhere.",
    .hint   = "Install no handler for SIGSEGV. Restore the signal mask on every path.",
    .looks  = "expected the blocked signals to stay none, after realloc of 100; seen SIGHUP")
{
    keep_state(STATE_SIGNALS, use_in_every_way);
}

/* The runner's pipe does not block; a program's output may, so that a handler that changes it is
 * seen to.  One that prints is not to wait for a reader, whom that pipe has at the end alone. */
static void let_output_block(void)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    for (int fd = 1; fd <= 2; fd++) {
        int flags = fcntl(fd, F_GETFL);
        if (nowhere >= 0 && flags >= 0 && (flags & O_NONBLOCK) != 0) /* not with --no-fork */
            dup2(nowhere, fd);
    }
    close(nowhere);
}

/* A program that has other settings than most, and one processor. */
static void live_unusually(void)
{
    cpu_set_t one;
    umask(027);
    if (chdir("/proc") != 0)
        harness_broke("/proc: %s", strerror(errno));
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

PROPERTY(env_settings,
    .id     = "env.settings", .level = SHOULD, .basis = BASIS_QOI, .fixture = FIXTURE_UNLOADED,
    .title  = "process settings stay the same",
    .clause = "No call changes settings of the process or thread.",
    .tests  = "The settings are locale, umask, limits, scheduling, locked memory, descriptor "
              "flags, the environment and others.",
    .source = "good practice",
    .why    = "Settings belong to the program and its children: LD_PRELOAD affects every child.",
    .hint   = "Restore settings before the call returns, or use a thread of your own.",
    .looks  = "expected the umask to stay 022, after malloc of 100; seen 077")
{
    let_output_block();
    python_subject_prepare(subject_place()); /* readline puts LINES into the environment */
    struct state *unloaded = state_note(STATE_OTHER_SETTINGS);
    load_subject();
    state_expect_same(unloaded, "after loading");
    keep_state(STATE_SETTINGS, use_in_every_way);
    live_unusually();
    keep_state(STATE_SETTINGS, use_in_every_way);
}

PROPERTY(env_random_numbers,
    .id     = "env.random-numbers", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "libc's random sequences stay the same",
    .clause = "No call draws from libc's sequences of random numbers or seeds them.",
    .source = "C17 7.22.2.1 paragraph 2, of libc's own functions: as if none called rand",
    .why    = "A program that seeds rand or drand48 no longer computes the same results.",
    .wrong  = "victim = rand() % count;",
    .right  = "victim = rand_r(&cache->seed) % count;",
    .hint   = "Keep your own state: use rand_r, erand48 or xorshift.",
    .looks  = "expected the next of rand, random and lrand48 to stay 1, 2 and 3, after calloc of "
              "100; seen 2, 5 and 3")
{
    keep_state(STATE_RANDOM_NUMBERS, use_in_every_way);
}

/* A handler that averages sizes over many calls of one function comes to the least number there is.
 */
static void call_one_function_often(void)
{
    const struct scenario_limits limits = {
        .most_size = 4096,
        .most_bytes = 8 << 20,
        .level = {[FACTOR_FREE_ORDER] = FROM_TO(LIFO, FIFO), [FACTOR_LIVE_BLOCKS] = FROM_TO(4, 5)}};
    check_scenarios(ROWS, &limits);
}

static void keep_float_flags(int rounding, bool raised)
{
    if (fesetround(rounding) != 0)
        return;
    set_float_flags(raised);
    calls_watch(STATE_ARITHMETIC | STATE_FLOAT_FLAGS);
    call_one_function_often();
    use_in_every_way();
    calls_watch(0);
    set_float_flags(false);
    fesetround(FE_TONEAREST);
}

PROPERTY(env_float_state,
    .id     = "env.float-state", .level = MUST, .basis = BASIS_CALLER, .rule = HEAP_FLOAT_STATE,
    .title  = "the floating-point state stays the same",
    .clause = "Floating-point modes and exception flags, except inexact, are the same after each "
              "call.",
    .tests  = "Checked are rounding mode, traps, denormals, exception flags, and that the x87 "
              "registers are empty.",
    .source = "NumPy 1.22 to 2.5: umath, npy_get_floatstatus; C17 7.6: a function changes no mode",
    .why    = "A flag that is set causes a RuntimeWarning about a division that the program did "
              "not make.",
    .hint   = "Link without -ffast-math. Compute sizes in integers, or restore the state with "
              "fesetenv.",
    .looks  = "expected the rounding mode to stay 0x800, after realloc of 100; seen 0")
{
    if (is_instrumented()) { /* valgrind knows no flags, traps, or flushing of subnormals */
        keep_state(STATE_ARITHMETIC, use_ordinarily);
        return;
    }
    keep_float_flags(FE_TONEAREST, false);
    keep_float_flags(FE_UPWARD, true);
#ifdef __SSE__
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
    keep_state(STATE_ARITHMETIC, use_ordinarily);
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
#endif
    if (feenableexcept(FE_DIVBYZERO | FE_INVALID) != -1)
        keep_state(STATE_ARITHMETIC, use_ordinarily);
}

PROPERTY(env_direction_flag,
    .id     = "env.direction-flag", .level = MUST, .basis = BASIS_CALLER,
    .answers_for = ABOUT(DIRECTION_FLAG_SET),
    .title  = "the direction flag is clear (x86)",
    .clause = "On x86 the direction flag is clear after each call.",
    .source = "System V ABI for AMD64, 3.2.1: clear on entry to a function and upon return",
    .why    = "The next memcpy or memset runs backward and overwrites memory before its block.",
    .hint   = "Execute cld after each std, on every path, or use memmove.",
    .looks  = "expected the direction flag to be clear after realloc of 8388608; seen a set flag")
{
#ifndef __x86_64__
    skip("only x86-64 has this flag");
#endif
    use_in_every_way(); /* calls.c checks the flag after each call */
}

/* ---- exceptions -------------------------------------------------------------------------- */

/* While a signal waits for its Python handler, which raises, and each warning raises as well.
 * Returns true if it waits still. */
static bool use_with_signal_waiting(void)
{
    python_call("environment", "be_strict");
    raise(SIGUSR1);
    use_in_every_way();
    bool waits = PyErr_CheckSignals() != 0;
    PyErr_Clear();
    return waits;
}

/* malloc and free of each size up to a page. */
static void use_each_size(void)
{
    struct scenario_limits limits = {.most_bytes = 8 << 20,
                                     .level = {[FACTOR_SIZES] = FROM_TO(EACH_IN_TURN, EACH_IN_TURN),
                                               [FACTOR_MADE_BY] = FROM_TO(BY_MALLOC, BY_MALLOC),
                                               [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 0),
                                               [FACTOR_FREE_ORDER] = FROM_TO(LIFO, FIFO),
                                               [FACTOR_REPETITION] = FROM_TO(4, 4),
                                               [FACTOR_RESIZES] = FROM_TO(AS_MADE, AS_MADE)}};
    for (uint8_t level = 0; level < SIZE_4096; level++) {
        limits.level[FACTOR_SIZE] = (struct level_range)FROM_TO(level, level);
        check_scenarios(ONE_ROW, &limits);
    }
}

PROPERTY(env_no_exception_set,
    .id     = "env.no-exception-set", .level = MUST, .basis = BASIS_CALLER,
    .answers_for = ABOUT(EXCEPTION_SET),
    .title  = "no call sets a Python exception",
    .clause = "No call sets a Python exception, even if it fails.",
    .tests  = "The calls run with and without the GIL, with a signal pending, and with warnings as "
              "errors.",
    .source = "NumPy 1.22 to 2.5: ctors.c, shape.c, item_selection.c raise MemoryError on NULL",
    .why    = "Python reports \"returned a result with an exception set\" in an unrelated line.",
    .wrong  = "return PyErr_NoMemory();",
    .right  = "return NULL; /* NumPy raises MemoryError */",
    .hint   = "Return NULL without an exception. Do not call PyErr_CheckSignals or PyErr_WarnEx. "
              "Clear exceptions that Python calls raise.",
    .looks  = "expected no Python exception to be set, after calls that were refused; seen "
              "MemoryError")
{
    use_ordinarily(); /* calls.c checks after each call */
    python_release();
    use_in_every_way();
    python_acquire();
    use_each_size();
    use_with_signal_waiting();
}

PROPERTY(env_runs_no_signal_handler,
    .id     = "env.runs-no-signal-handler", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "no call runs Python signal handlers",
    .clause = "No call runs the Python handler of a pending signal.",
    .source = "CPython, signal: handlers run between bytecode instructions, not inside C functions",
    .why    = "Ctrl-C and timeouts are exceptions; a call that clears exceptions loses them.",
    .hint   = "Do not call PyErr_CheckSignals or anything else that runs Python code in any of the "
              "four functions.",
    .looks  = "expected the Python handler of a signal to wait until the calls have returned; seen "
              "it ran inside one of them")
{
    expect(use_with_signal_waiting(),
           "the Python handler of a signal to wait until the calls have returned",
           "it ran inside one of them");
}

/* ---- descriptors of its own -------------------------------------------------------------- */

static bool is_regular_file(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
}

/* As a program does that closes what it does not know, and then opens files of its own.  Other
 * kinds of descriptors, an eventfd say, are left alone: nobody looks before each of their uses. */
static void take_descriptors_over(void *data)
{
    enum { LAST_FD = 199 };
    bool was_open[LAST_FD + 1];
    int program_file = *(int *)data;
    python_subject_prepare(subject_place());
    for (int fd = 0; fd <= LAST_FD; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    load_subject();
    use_in_every_way();
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if (!was_open[fd] && is_regular_file(fd))
            dup2(program_file, fd);
    }
    use_in_every_way();
    use_for_long();
}

PROPERTY(env_forgets_descriptors,
    .id     = "env.forgets-descriptors", .level = SHOULD, .basis = BASIS_QOI,
    .fixture = FIXTURE_UNLOADED,
    .title  = "no write to a reused descriptor number",
    .clause = "The handler writes nothing to a descriptor number that the program closed and "
              "opened again.",
    .source = "good practice; os.closerange and daemons of PEP 3143 close whatever is open",
    .why    = "Log lines end up in the program's data.",
    .wrong  = "dprintf(log_fd, \"malloc %zu\\n\", size);",
    .right  = "if (fstat(log_fd, &now) == 0 && now.st_dev == log_dev &&\n"
              "    now.st_ino == log_ino)\n"
              "    dprintf(log_fd, \"malloc %zu\\n\", size);",
    .hint   = "Open the file for each write, or compare st_dev and st_ino of fstat before you "
              "write.",
    .looks  = "expected nothing to be written to a file that has the number of the handler's "
              "closed file; seen malloc 100")
{
    char written[80];
    if (sanitizer_is_running())
        skip("a sanitizer writes its reports to files of its own");
    int file = memfd_create("conform", MFD_CLOEXEC);
    if (file < 0)
        harness_broke("memfd_create: %s", strerror(errno));
    program_survives(take_descriptors_over, &file); /* others test how it ends */
    ssize_t length = pread(file, written, sizeof written - 1, 0);
    written[MAX(length, 0)] = '\0';
    written[strcspn(written, "\n")] = '\0';
    expect(length <= 0,
           "nothing to be written to a file that has the number of the handler's closed file", "%s",
           written[0] != '\0' ? escape(written) : "bytes that are no text");
}

/* ---- variables --------------------------------------------------------------------------- */

/* By code of its own object, again after its first calls: what it learns in the first call that
 * needs it, it may ask for there. */
static bool is_asked_again(const struct asked_variable *variable)
{
    Dl_info asking, freeing;
    return variable->times > 1 && dladdr(variable->by, &asking) != 0 &&
           dladdr((const void *)subject_handler()->allocator.free, &freeing) != 0 &&
           asking.dli_fbase == freeing.dli_fbase;
}

/* A variable that is asked for again, or NULL. */
static const struct asked_variable *asked_again(void)
{
    use_in_every_way();
    if (!getenv_watch())
        skip("getenv cannot be watched here");
    use_in_every_way();
    use_for_long();
    const struct asked_variable *variable = getenv_asked();
    while (variable->times > 0 && !is_asked_again(variable))
        variable++;
    return variable->times > 0 ? variable : NULL;
}

PROPERTY(env_reads_variables_once,
    .id     = "env.reads-variables-once", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "variables are read once, at load",
    .clause = "No call reads an environment variable again with getenv or secure_getenv.",
    .source = "POSIX.1-2024, getenv(): not thread-safe; NumPy 1.22 to 2.5 calls without the GIL",
    .why    = "getenv can crash while another thread is in setenv, and it costs time.",
    .wrong  = "if (getenv(\"MINE_DISABLE\") != NULL)",
    .right  = "static bool disabled; /* set in a constructor */\n"
              "if (disabled)",
    .hint   = "Read the environment when the handler is loaded, and keep the values.",
    .looks  = "expected no call to read the variable MINE_DISABLE again; seen 544 times in the "
              "same calls")
{
    const struct asked_variable *asked = asked_again();
    if (asked != NULL)
        fail(fmt("no call to read the variable %s again", escape(asked->name)),
             "%zu times in the same calls as before", asked->times);
}

/* Those that it asks for again are set to that where they are not, and not where they are. */
static void change_variables(const char *to)
{
    for (const struct asked_variable *asked = getenv_asked(); asked->times > 0; asked++) {
        const char *name = asked->name;
        if (!is_asked_again(asked))
            continue;
        if (getenv(name) != NULL ? unsetenv(name) != 0 : setenv(name, to, 1) != 0)
            harness_broke("%s in the environment: %s", name, strerror(errno));
    }
}

/* As many as it gives, which the variables may decide. */
static void add_of_each_size(struct blocks *blocks)
{
    static const size_t sizes[] = {40, 1000, 70000, 300000, 1 << 20};
    for (size_t i = 0; i < 4 * LENGTH(sizes); i++) {
        size_t size = sizes[i / 4];
        void *p = i % 2 == 0 ? subject_malloc(size) : subject_calloc(1, size);
        if (p != NULL)
            blocks_add(blocks, p, size);
    }
}

/* Each is resized, and every other freed. */
static void resize_and_free_blocks(struct blocks *blocks)
{
    for (size_t i = 0; i < blocks->count; i++) {
        struct block *b = &blocks->at[i];
        void *moved = subject_realloc(b->p, 2 * b->size);
        if (moved == NULL)
            continue;
        expect_pattern(moved, b->size, b->number, "after realloc with another environment");
        *b = (struct block){moved, 2 * b->size, b->number};
        pattern_fill(b->p, b->size, b->number);
    }
    for (size_t i = blocks->count; i > 0; i -= MIN(i, 2))
        blocks_free(blocks, i - 1);
}

PROPERTY(env_variables_change,
    .id     = "env.variables-change", .level = MUST, .basis = BASIS_C, .ends_process = true,
    .title  = "changed variables affect no live block",
    .clause = "If an environment variable changes, live blocks keep their contents, and realloc "
              "and free still accept them.",
    .tests  = "Each variable that the handler reads is changed.",
    .source = "C17 7.22.3.3, 7.22.3.5; NEP 49: the handler that made a block frees it",
    .why    = "Setting os.environ between two allocations makes free use a different allocator "
              "than malloc did.",
    .hint   = "Read the environment at load. Store in each block whatever may change later.",
    .looks  = "CRASH: SIGABRT, inside free(0x7f12a0, 40)")
{
    static const char *const values[] = {"1", "64"};
    struct blocks blocks = {0};
    if (asked_again() == NULL)
        return;
    if (chdir("/proc") != 0) /* where no file called 1 or 64 is made */
        harness_broke("/proc: %s", strerror(errno));
    add_of_each_size(&blocks);
    for (int i = 0; i < 4; i++) {
        program_part("a program that changes what the handler asks the environment for");
        change_variables(values[i / 2]);
        blocks_verify(&blocks, "with another environment");
        resize_and_free_blocks(&blocks);
        add_of_each_size(&blocks);
    }
    blocks_verify(&blocks, "with the environment that it had");
    blocks_free_all(&blocks);
}

/* ---- the end of everything --------------------------------------------------------------- */

PROPERTY(env_never_exits,
    .id     = "env.never-exits", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_IN_USE, RANK_AT_LENGTH, 2}, .ends_process = true, .quick = true,
    .title  = "no call ends the process",
    .clause = "Every call returns, for every size: none ends the process or thread, or throws an "
              "exception.",
    .source = "C17 7.22.3: a null pointer; NumPy 1.22 to 2.5 calls from C, so no C++ exception",
    .why    = "Programs can catch MemoryError and save their work, but cannot catch an exit.",
    .wrong  = "if (p == NULL)\n"
              "    abort();",
    .right  = "if (p == NULL)\n"
              "    return NULL;",
    .hint   = "Return NULL if libc returns NULL. In C++ use noexcept functions and std::nothrow.",
    .looks  = "CRASH: the process exited with status 1, inside malloc(18446744073709551615)")
{
    struct scenario_limits limits = {
        .most_size = 1 << 20,
        .most_bytes = 32 << 20,
        .address_limits = !is_instrumented(),
        .level = {[FACTOR_PRESSURE] = FROM_TO(REFUSED_BEFORE, REFUSED_BEFORE),
                  [FACTOR_FREE_SIZE] = FROM_TO(TRUE_SIZE, NULL_OF_ANY_SIZE)}};
    check_scenarios(4 * ROWS, &limits);
    check_scenarios_in_thread(4 * ROWS, &limits);
    limits.level[FACTOR_PRESSURE] = (struct level_range)FROM_TO(ERRNO_SET, ADDRESS_LIMIT);
    check_scenarios(4 * ROWS, &limits);
}
