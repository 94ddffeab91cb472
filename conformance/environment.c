/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env: what a handler leaves alone in its process.
 */
#define CONFORM_WANTS_PYTHON_API
#include "python/python.h"

#include <fcntl.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/harness.h"

GROUP(env, 8, "What a handler leaves alone: output, descriptors, signals, floats, exceptions.");

/* ---- ways to use the subject ------------------------------------------------------------- */

enum { MOST_TOUCHED = 1 << 20, MOST_ROOM = 64 << 20 };

/* What comes back of these calls is for other properties to judge. */

static void give_back(void *p, size_t size)
{
    if (p != NULL)
        subject_free(p, size);
}

/* A block that is resized, or as it was, and freed. */
static void resize_and_free(void *p, size_t old, size_t new, size_t given)
{
    void *q = p != NULL ? subject_realloc(p, new) : NULL;
    give_back(q != NULL ? q : p, q != NULL ? given : old);
}

/* What any program does, NumPy's wrong sizes included, and nothing that is refused. */
static void use_ordinarily(void)
{
    static const size_t sizes[] = {1, 8, 24, 100, 1000, 4096, 5000, 40000, 131072, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        void *p = subject_malloc(size), *q = subject_calloc(size, 1);
        void *r = subject_calloc(1, 3 * size);
        resize_and_free(p, size, 2 * size, 2 * size);
        subject_free(NULL, 0);
        subject_free(NULL, size);
        resize_and_free(q, size, size / 2 + 1, 1);
        give_back(r, 3 * size);
    }
    give_back(subject_malloc(65536), 32768);
    give_back(subject_malloc(0), 0);
    give_back(subject_calloc(0, 8), 0);
}

/* Around what is refused anyway: a handler that cuts a size to 32 bits gets no gigabytes to fill.
 */
static void limit_room(void)
{
    if (!is_instrumented()) /* memcheck and the sanitizers refuse them */
        limit_mapped_bytes(MOST_ROOM);
}

static void lift_room(void)
{
    if (!is_instrumented())
        lift_limit();
}

/* What nobody can be given.  Where a block comes all the same, that is for malloc.too-large,
 * calloc.overflow and realloc.failure-keeps-block to say, and it is left alone here. */
static void ask_too_much(void)
{
    limit_room();
    static const size_t sizes[] = {SIZE_MAX,        SIZE_MAX - 15,    SIZE_MAX - 4096,
                                   PTRDIFF_MAX,     PTRDIFF_MAX - 63, (size_t)PTRDIFF_MAX + 1,
                                   (size_t)1 << 60, (size_t)1 << 50};
    void *p = subject_malloc(100);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        size_t size = sizes[i];
        subject_malloc(size);
        subject_calloc(size, 1);
        subject_calloc(size / 4, 8);
        if (p != NULL && subject_realloc(p, size) != NULL)
            p = NULL;
        subject_free(NULL, size);
    }
    subject_calloc((size_t)1 << 33, (size_t)1 << 33);
    give_back(p, 100);
    lift_room();
}

static void use_in_every_way(void)
{
    use_ordinarily();
    ask_too_much();
    use_ordinarily();
}

/* Bodies for in_threads: whatever follows from use in a thread that ends. */
static void use_ordinarily_in_thread(void *data)
{
    (void)data;
    use_ordinarily();
}

static void use_in_thread(void *data)
{
    (void)data;
    use_in_every_way();
}

/* ---- output ------------------------------------------------------------------------------ */

/* A number of bytes that does not fit in an int.  It is not touched. */
static void use_large(void)
{
    size_t large = ((size_t)1 << 31) + 8;
    if (is_instrumented() || lacking_memory(large) != NULL || subject_fills_blocks())
        return;
    void *p = subject_malloc(large);
    subject_free(p, large);
}

PROPERTY(env_quiet,
    .id     = "env.quiet",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "ordinary use, NumPy's wrong sizes included, prints nothing on stdout or stderr",
    .source = "good practice",
    .why    = "a program's output is its own: a line too many breaks whoever reads it, a test "
              "suite above all",
    .hint   = "count, or write to a file that a variable of the environment names",
    .looks  = "WARN: nothing to be printed in ordinary use; 61 bytes were")
{
    size_t before = output_so_far();
    use_ordinarily();
    for (size_t i = 0; i < (is_instrumented() ? 100 : 2000); i++)
        resize_and_free(subject_malloc(1 + i), 1 + i, 100, 100);
    use_ordinarily();
    use_large();
    char nothing;
    in_threads(1, use_ordinarily_in_thread, &nothing, sizeof nothing);
    size_t after = output_so_far();
    expect(after == before, "nothing to be printed in ordinary use", "%zu bytes were",
           after - before);
}

/* ---- descriptors ------------------------------------------------------------------------- */

/* Files of one byte each behind every free descriptor up to 24 and some above, and what stands
 * behind 0, 1 and 2. */
enum { LAST_LOW = 24, LAST_FD = 199 };
struct open_file {
    bool is_ours, is_open;
    struct stat stat;
    int flags, status;
    off_t offset;
};

static struct open_file look_at(int fd)
{
    struct open_file file = {0};
    file.flags = fcntl(fd, F_GETFD);
    file.is_open = file.flags >= 0 && fstat(fd, &file.stat) == 0;
    file.status = file.is_open ? fcntl(fd, F_GETFL) : 0;
    file.offset = file.is_open ? lseek(fd, 0, SEEK_CUR) : 0;
    return file;
}

static void open_files(struct open_file files[LAST_FD + 1])
{
    static const int high[] = {31, 32, 63, 64, 100, 127, 128, LAST_FD};
    int fd = memfd_create("conform", 0);
    for (; fd >= 0 && fd <= LAST_LOW; fd = memfd_create("conform", 0))
        files[fd].is_ours = true;
    if (fd < 0)
        harness_broke("memfd_create: %s", strerror(errno));
    for (size_t i = 0; i < sizeof high / sizeof *high; i++) {
        if (fcntl(high[i], F_GETFD) < 0 && dup2(fd, high[i]) == high[i])
            files[high[i]].is_ours = true;
    }
    if (!files[fd].is_ours)
        close(fd);
    for (int i = 0; i <= LAST_FD; i++) {
        bool is_ours = files[i].is_ours;
        if (is_ours && (ftruncate(i, 1) != 0 || lseek(i, 1, SEEK_SET) != 1))
            harness_broke("a file in memory: %s", strerror(errno));
        files[i] = look_at(i);
        files[i].is_ours = is_ours;
    }
}

static void expect_untouched(int fd, const struct open_file *before)
{
    struct open_file now = look_at(fd);
    expect(now.is_open, text("descriptor %d, which the handler did not open, to stay open", fd),
           "it is closed");
    expect(now.stat.st_ino == before->stat.st_ino && now.stat.st_dev == before->stat.st_dev,
           text("descriptor %d to stay the file that it was", fd), "it is another");
    expect(now.flags == before->flags && now.status == before->status,
           text("the flags of descriptor %d to be %d and %#o still", fd, before->flags,
                before->status),
           "%d and %#o", now.flags, now.status);
    if (fd > 2)
        expect(now.offset == before->offset && now.stat.st_size == before->stat.st_size,
               text("nobody to read or write descriptor %d, which is not the handler's", fd),
               "its offset is %lld for %lld, its size %lld for %lld", (long long)now.offset,
               (long long)before->offset, (long long)now.stat.st_size,
               (long long)before->stat.st_size);
}

PROPERTY(env_descriptors,
    .id     = "env.descriptors",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "no descriptor that was open is closed, exchanged, read or written",
    .source = "good practice",
    .why    = "a stray close(0), or one too many, takes a file from the program; whatever opens "
              "the next one gets its number",
    .hint   = "a descriptor that is not open is -1 and not 0; forget its number when it is closed",
    .looks  = "WARN: descriptor 0, which the handler did not open, to stay open; it is closed")
{
    struct open_file files[LAST_FD + 1] = {0};
    char nothing;
    open_files(files);
    use_in_every_way();
    in_threads(1, use_in_thread, &nothing, sizeof nothing);
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if ((fd <= 2 && files[fd].is_open) || files[fd].is_ours)
            expect_untouched(fd, &files[fd]);
    }
}

/* ---- floating point ---------------------------------------------------------------------- */

/* How the processor computes, without the flags that say what has happened so far. */
struct float_state {
    int rounding, traps;
    unsigned vector;       /* x86: the control bits of MXCSR, flush-to-zero among them */
    unsigned stack;        /* x86: the control word of the x87, its precision among them */
    unsigned long control; /* AArch64: FPCR */
};

static struct float_state float_state(void)
{
    struct float_state s = {.rounding = fegetround(), .traps = fegetexcept()};
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    s.stack = word;
#ifdef __SSE__
    s.vector = __builtin_ia32_stmxcsr() & ~0x3fu;
#endif
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(s.control));
#endif
    return s;
}

static void expect_same_float_state(struct float_state before, const char *when)
{
    struct float_state now = float_state();
    expect(now.rounding == before.rounding,
           text("the rounding mode to be %#x still, %s", before.rounding, when), "%#x",
           now.rounding);
    expect(now.traps == before.traps,
           text("the floating-point traps to be %#x still, %s", before.traps, when), "%#x",
           now.traps);
    expect(now.vector == before.vector && now.stack == before.stack &&
               now.control == before.control,
           text("the floating-point control registers to be %#x, %#x, %#lx still, %s",
                before.vector, before.stack, before.control, when),
           "%#x, %#x, %#lx", now.vector, now.stack, now.control);
}

static void keep_float_state(const char *when)
{
    struct float_state before = float_state();
    use_in_every_way();
    expect_same_float_state(before, when);
}

PROPERTY(env_float_state,
    .id     = "env.float-state",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "rounding mode, traps and the treatment of denormals are after each call what they "
              "were before",
    .source = "NumPy 1.22 to 2.5: the loops of umath compute between calls of the handler; C17 "
              "7.6: a function changes the floating-point control modes only where it says so",
    .why    = "NumPy's results would depend on how often memory was asked for",
    .hint   = "link without -ffast-math, whose start-up code changes the mode, and put back what "
              "has to be changed",
    .looks  = "FAIL: the rounding mode to be 0x800 still, rounding upward; 0")
{
    static const struct {
        int mode;
        const char *when;
    } modes[] = {{FE_TONEAREST, "rounding to nearest"},
                 {FE_UPWARD, "rounding upward"},
                 {FE_DOWNWARD, "rounding downward"},
                 {FE_TOWARDZERO, "rounding toward zero"}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (fesetround(modes[i].mode) != 0)
            continue;
        keep_float_state(modes[i].when);
    }
    fesetround(FE_TONEAREST);
#ifdef __SSE__
    if (!is_instrumented()) { /* valgrind knows no such mode */
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);
        keep_float_state("denormals being flushed to zero");
        __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~0x8040u);
    }
#endif
    if (!is_instrumented() && feenableexcept(FE_DIVBYZERO | FE_INVALID) != -1)
        keep_float_state("division by zero being trapped");
}

/* ---- signals ----------------------------------------------------------------------------- */

struct signal_state {
    struct sigaction actions[NSIG];
    bool known[NSIG];
    sigset_t mask;
    stack_t stack;
};

static void note_signals(struct signal_state *state)
{
    memset(state, 0, sizeof *state);
    for (int number = 1; number < NSIG; number++)
        state->known[number] = sigaction(number, NULL, &state->actions[number]) == 0;
    pthread_sigmask(SIG_SETMASK, NULL, &state->mask);
    sigaltstack(NULL, &state->stack);
}

static const char *signal_name(int number)
{
    const char *name = sigabbrev_np(number);
    return name != NULL ? text("SIG%s", name) : text("signal %d", number);
}

static void expect_same_signals(const struct signal_state *before)
{
    struct signal_state now;
    note_signals(&now);
    for (int number = 1; number < NSIG; number++) {
        const struct sigaction *was = &before->actions[number], *is = &now.actions[number];
        if (!before->known[number])
            continue;
        expect(is->sa_handler == was->sa_handler,
               text("the disposition of %s to stay as it was", signal_name(number)), "it is %s",
               is->sa_handler == SIG_DFL   ? "the default action"
               : is->sa_handler == SIG_IGN ? "to ignore it"
                                           : "a handler");
        expect(is->sa_flags == was->sa_flags,
               text("the flags of the handler of %s to be %#x still", signal_name(number),
                    (unsigned)was->sa_flags),
               "%#x", (unsigned)is->sa_flags);
        expect(sigismember(&now.mask, number) == sigismember(&before->mask, number),
               text("%s to be %s still", signal_name(number),
                    sigismember(&before->mask, number) ? "blocked" : "let through"),
               "it is not");
    }
    expect(now.stack.ss_sp == before->stack.ss_sp && now.stack.ss_flags == before->stack.ss_flags,
           text("the alternate signal stack to be at %p still", before->stack.ss_sp), "at %p",
           now.stack.ss_sp);
}

static void keep_signals(void *data)
{
    struct signal_state before;
    (void)data;
    note_signals(&before);
    use_in_every_way();
    expect_same_signals(&before);
}

PROPERTY(env_signals,
    .id     = "env.signals",
    .level  = SHOULD, .basis = BASIS_QOI, .target = TARGET_HANDLER,
    .clause = "signal dispositions, the signal mask and the alternate stack are after each call "
              "what they were before",
    .source = "good practice",
    .why    = "Python has SIGINT, faulthandler SIGSEGV, and a program whatever it needs: what is "
              "taken from them fails far away",
    .hint   = "no handler for SIGSEGV, however tempting for guard pages; a mask that is changed "
              "is put back on every path",
    .looks  = "WARN: the disposition of SIGSEGV to stay as it was; it is a handler")
{
    char nothing;
    keep_signals(NULL);
    in_threads(1, keep_signals, &nothing, sizeof nothing);
}

/* ---- exceptions -------------------------------------------------------------------------- */

static void expect_no_exception(const char *when)
{
    expect(PyErr_Occurred() == NULL, text("no Python exception to be set, %s", when), "%s",
           python_error());
}

PROPERTY(env_no_exception_set,
    .id     = "env.no-exception-set",
    .level  = MUST, .basis = BASIS_CALLER, .target = TARGET_HANDLER,
    .clause = "no call sets a Python exception, be it refused or not, with the GIL or without it",
    .source = "NumPy 1.22 to 2.5: ctors.c, shape.c and item_selection.c raise MemoryError by "
              "themselves on NULL, and look at nothing after a block; after free, none is expected",
    .why    = "\"returned a result with an exception set\", in a line that has nothing to do with "
              "it",
    .hint   = "return NULL; and PyErr_Clear, or better PyErr_Fetch and PyErr_Restore, round calls "
              "of Python's that can fail",
    .looks  = "FAIL: no Python exception to be set, after calls that were refused; MemoryError",
    .fixture  = FIXTURE_PYTHON)
{
    use_ordinarily();
    expect_no_exception("after ordinary calls");
    ask_too_much();
    expect_no_exception("after calls that were refused");
    python_release();
    use_ordinarily();
    python_acquire();
    expect_no_exception("after ordinary calls without the GIL");
    python_release();
    ask_too_much();
    python_acquire();
    expect_no_exception("after calls without the GIL that were refused");
}

/* ---- the end of everything --------------------------------------------------------------- */

/* A size that may be given. */
static void ask_for(size_t size)
{
    give_back(subject_malloc(size), size);
    give_back(subject_calloc(size, 1), size);
    give_back(subject_calloc(1, size), size);
    if (size != 0) /* which NumPy never asks of realloc */
        resize_and_free(subject_malloc(10), 10, size, size);
    subject_free(NULL, size);
}

/* One that may not, and where it is given all the same that is not touched. */
static void ask_for_absurd(size_t size)
{
    subject_malloc(size);
    subject_calloc(size, 1);
    subject_calloc(1, size);
    void *p = subject_malloc(10);
    if (p != NULL && subject_realloc(p, size) == NULL)
        subject_free(p, 10);
    subject_free(NULL, size);
}

static void ask_for_everything(void)
{
    for (size_t size = 0; size < 300; size++)
        ask_for(size);
    for (unsigned shift = 9; shift < 18; shift++) {
        for (size_t k = 0; k < 3; k++)
            ask_for(((size_t)1 << shift) + k - 1);
    }
    limit_room();
    for (unsigned shift = 50; shift < 64; shift += 4) /* between, it might be given, and touched */
        ask_for_absurd((size_t)1 << shift);
    for (size_t k = 0; k <= 8192; k = k < 100 ? k + 1 : k + k / 8) {
        ask_for_absurd(SIZE_MAX - k);
        ask_for_absurd((size_t)PTRDIFF_MAX - 50 + k);
    }
    /* the product wraps to nelem, or to 0 where nelem is more than a handler that takes it for the
     * size may touch */
    for (size_t nelem = 2; nelem != 0; nelem *= 2)
        subject_calloc(nelem, SIZE_MAX / nelem + (nelem <= MOST_TOUCHED ? 2 : 1));
    lift_room();
}

static void thread_was_ended(void *data)
{
    (void)data;
    fail("calls in a thread to return", "the thread is ended from inside one");
}

static void ask_in_thread(void *data)
{
    (void)data;
    pthread_cleanup_push(thread_was_ended, NULL);
    ask_for_everything();
    pthread_cleanup_pop(0);
}

/* The sizes in between, with no room for them: what is refused here is refused by the kernel. */
static void ask_without_room(void)
{
    limit_mapped_bytes(4 << 20);
    for (unsigned shift = 27; shift < 47; shift++) { /* what is less, libc may have in reserve */
        ask_for((size_t)1 << shift);
    }
    lift_limit();
}

PROPERTY(env_never_exits,
    .id     = "env.never-exits",
    .level  = MUST, .basis = BASIS_C, .target = TARGET_HANDLER,
    .clause = "every call returns, whatever the size: none ends the process or the thread, or "
              "leaves by an exception",
    .source = "C17 7.22.3: a null pointer where space cannot be allocated; NumPy 1.22 to 2.5 "
              "calls from C, through which no C++ exception may pass",
    .why    = "MemoryError can be caught, and work be saved; an exit cannot",
    .hint   = "return NULL where libc does; in C++ noexcept functions and std::nothrow",
    .looks  = "CRASH: the process exited with status 1, inside malloc(18446744073709551615)")
{
    char nothing;
    ask_for_everything();
    in_threads(1, ask_in_thread, &nothing, sizeof nothing);
    if (!is_instrumented())
        ask_without_room();
}
