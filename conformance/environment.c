/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env: what a handler leaves alone in its process.
 */
#include <dlfcn.h>
#include <fcntl.h>
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
#include "subject/subject.h"

GROUP(env, 8, "What a handler leaves alone: output, descriptors, signals, floats, exceptions.",
      .rank = {RANK_BY_ITSELF, RANK_AT_LENGTH, 3});

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
    .id     = "env.quiet", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .clause = "ordinary use, NumPy's wrong sizes included, prints nothing on stdout or stderr",
    .source = "good practice",
    .why    = "an extra line of output breaks programs that read it, test suites above all",
    .hint   = "count, or write to a file that a variable of the environment names",
    .looks  = "WARN: nothing to be printed in ordinary use; 61 bytes were")
{
    size_t before = output_so_far();
    use_ordinarily();
    for (size_t i = 0; i < (is_instrumented() ? 100 : 2000); i++)
        resize_and_free(subject_malloc(1 + i), 1 + i, 100, 100);
    use_ordinarily();
    use_large();
    in_threads(1, use_ordinarily_in_thread, NULL, 0);
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
    for (size_t i = 0; i < LENGTH(high); i++) {
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
    expect(now.is_open, fmt("descriptor %d, which the handler did not open, to stay open", fd),
           "it is closed");
    expect(now.stat.st_ino == before->stat.st_ino && now.stat.st_dev == before->stat.st_dev,
           fmt("descriptor %d to stay the file that it was", fd), "it is another");
    expect(
        now.flags == before->flags && now.status == before->status,
        fmt("the flags of descriptor %d to be %d and %#o still", fd, before->flags, before->status),
        "%d and %#o", now.flags, now.status);
    if (fd > 2)
        expect(now.offset == before->offset && now.stat.st_size == before->stat.st_size,
               fmt("nobody to read or write descriptor %d, which is not the handler's", fd),
               "its offset is %lld for %lld, its size %lld for %lld", (long long)now.offset,
               (long long)before->offset, (long long)now.stat.st_size,
               (long long)before->stat.st_size);
}

PROPERTY(env_descriptors,
    .id     = "env.descriptors", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "no descriptor that was open is closed, exchanged, read or written",
    .source = "good practice",
    .why    = "a stray close(0) takes a file from the program; the next open gets its number",
    .hint   = "a descriptor that is not open is -1 and not 0; forget its number when it is closed",
    .looks  = "WARN: descriptor 0, which the handler did not open, to stay open; it is closed")
{
    struct open_file files[LAST_FD + 1] = {0};
    open_files(files);
    use_in_every_way();
    in_threads(1, use_in_thread, NULL, 0);
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if ((fd <= 2 && files[fd].is_open) || files[fd].is_ours)
            expect_untouched(fd, &files[fd]);
    }
}

/* ---- descriptors of its own -------------------------------------------------------------- */

static bool is_regular_file(int fd)
{
    struct stat stat;
    return fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode);
}

static void use_large_too(void)
{
    enum { LARGE = 8 << 20 };
    use_in_every_way();
    give_back(subject_malloc(LARGE), LARGE);
    give_back(subject_calloc(1, LARGE), LARGE);
    resize_and_free(subject_malloc(100), 100, LARGE, LARGE);
}

/* As a program does that closes what it does not know, and then opens files of its own.  Other
 * kinds of descriptors, an eventfd say, are left alone: nobody looks before each of their uses. */
static void take_descriptors_over(void *data)
{
    bool was_open[LAST_FD + 1];
    int program_file = *(int *)data;
    python_subject_prepare(subject_place());
    for (int fd = 0; fd <= LAST_FD; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    load_subject();
    use_large_too();
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if (!was_open[fd] && is_regular_file(fd))
            dup2(program_file, fd);
    }
    use_large_too();
    use_for_long();
}

PROPERTY(env_forgets_descriptors,
    .id     = "env.forgets-descriptors", .level = SHOULD, .basis = BASIS_QOI,
    .fixture = FIXTURE_UNLOADED,
    .clause = "nothing is written to a descriptor of the handler's that the program closed and "
              "opened again as another file",
    .source = "good practice; os.closerange and daemons of PEP 3143 close whatever is open",
    .why    = "lines of a log end up in the program's data",
    .hint   = "open the file for each write, or compare st_dev and st_ino of fstat",
    .looks  = "WARN: nothing to be written to what has the number of a file of the handler's now")
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
           "nothing to be written to what has the number of a file of the handler's now", "%s",
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
    use_large_too();
    use_for_long();
    if (!getenv_watch())
        skip("getenv cannot be watched here");
    use_large_too();
    use_large_too();
    use_for_long();
    const struct asked_variable *variable = getenv_asked();
    while (variable->times > 0 && !is_asked_again(variable))
        variable++;
    return variable->times > 0 ? variable : NULL;
}

PROPERTY(env_reads_variables_once,
    .id     = "env.reads-variables-once", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "no call asks getenv or secure_getenv for a variable again",
    .source = "POSIX.1-2024, getenv(): not thread-safe; NumPy 1.22 to 2.5 calls without the GIL",
    .why    = "getenv in one thread can crash while another is in setenv, and it costs time",
    .hint   = "read the environment when the handler is loaded, and keep the values",
    .looks  = "WARN: no call to ask for MINE_DISABLE again; 544 times in the same calls")
{
    const struct asked_variable *asked = asked_again();
    if (asked != NULL)
        fail(fmt("no call to ask for %s again", escape(asked->name)),
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
    .clause = "blocks keep their contents, and realloc and free take them, when a variable that "
              "the handler reads changes",
    .source = "C17 7.22.3.3, 7.22.3.5; NEP 49: the handler that made a block frees it",
    .why    = "os.environ[...] = '1' between two arrays sends free to another allocator",
    .hint   = "read the environment at load; write into each block what may change later",
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

/* ---- signals ----------------------------------------------------------------------------- */

static void keep_signals(void *data)
{
    enum { LARGE = 5 << 20 };
    struct signals before;
    (void)data;
    note_signals(&before);
    use_in_every_way();
    resize_and_free(subject_malloc(LARGE), LARGE, 2 * LARGE, LARGE);
    expect_same_signals(&before, "after calls of all four");
    use_for_long();
    expect_same_signals(&before, "after thousands of calls");
}

PROPERTY(env_signals,
    .id     = "env.signals", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "signal dispositions, signal mask and alternate stack are the same after each call",
    .source = "good practice",
    .why    = "Python has SIGINT, faulthandler SIGSEGV: a change fails far away",
    .hint   = "set no handler for SIGSEGV; restore the mask on every path",
    .looks  = "WARN: the disposition of SIGSEGV to stay the default action, after calls; 0x7f12a0")
{
    struct signals before;
    keep_signals(NULL);
    in_threads(1, keep_signals, NULL, 0);
    note_signals(&before);
    use_large_blocks();
    expect_same_signals(&before, "after calls for larger blocks");
}

/* ---- settings ---------------------------------------------------------------------------- */

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

static void use_and_compare(void *data)
{
    enum { LARGE = 16 << 20 };
    use_ordinarily();
    expect_same_settings(data, ALL_SETTINGS, "after the first calls of a thread");
    ask_too_much();
    expect_same_settings(data, ALL_SETTINGS, "after calls that were refused");
    give_back(subject_malloc(LARGE), LARGE);
    give_back(subject_calloc(1, LARGE), LARGE);
    resize_and_free(subject_malloc(100), 100, LARGE, LARGE);
    expect_same_settings(data, ALL_SETTINGS, "after calls for large blocks");
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
    .clause = "no call changes settings of the process or thread, such as locale, umask, limits, "
              "scheduling, locked memory, descriptor flags or the environment",
    .source = "good practice",
    .why    = "they belong to the program and its children: LD_PRELOAD follows into every child",
    .hint   = "restore them before the call returns, or use a thread of your own",
    .looks  = "WARN: the umask to stay 022, after the first calls of a thread; 077")
{
    static struct settings unloaded, loaded;
    let_output_block();
    python_subject_prepare(subject_place()); /* readline puts LINES into the environment */
    note_settings(&unloaded);
    load_subject();
    expect_same_settings(&unloaded, SETTINGS_NOT_NAMED_AT_LOAD, "after loading");
    note_settings(&loaded);
    use_and_compare(&loaded);
    in_threads(1, use_and_compare, &loaded, sizeof loaded);
    expect_same_settings(&loaded, ALL_SETTINGS, "after calls on another thread");
    use_for_long();
    expect_same_settings(&loaded, ALL_SETTINGS, "after thousands of calls");
    use_large_blocks();
    expect_same_settings(&loaded, ALL_SETTINGS, "after calls for larger blocks");
    live_unusually();
    note_settings(&loaded);
    use_and_compare(&loaded);
    use_large_blocks();
    expect_same_settings(&loaded, ALL_SETTINGS, "after calls for larger blocks");
}

/* ---- random numbers ---------------------------------------------------------------------- */

/* What follows in each of libc's three sequences after it was seeded. */
struct drawn {
    long rand, random, lrand48;
};

static void seed_all(void)
{
    srand(49); /* random's seed as well */
    srand48(49);
}

static struct drawn draw(void)
{
    return (struct drawn){rand(), random(), lrand48()};
}

static void use_between_numbers(void *data)
{
    const struct drawn *alone = data;
    seed_all();
    use_in_every_way();
    struct drawn now = draw();
    expect(now.rand == alone->rand && now.random == alone->random && now.lrand48 == alone->lrand48,
           fmt("rand, random and lrand48 to go on with %ld, %ld and %ld after calls", alone->rand,
               alone->random, alone->lrand48),
           "%ld, %ld and %ld", now.rand, now.random, now.lrand48);
}

PROPERTY(env_random_numbers,
    .id     = "env.random-numbers", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "no call draws from libc's sequences of random numbers or seeds them",
    .source = "C17 7.22.2.1 paragraph 2, of libc's own functions: as if none called rand",
    .why    = "a program that seeds rand or drand48 no longer computes the same again",
    .hint   = "keep a state of your own: rand_r, erand48, or xorshift",
    .looks  = "WARN: rand, random and lrand48 to go on with 1, 2 and 3 after calls; 2, 5 and 3")
{
    seed_all();
    struct drawn alone = draw();
    use_between_numbers(&alone);
    in_threads(1, use_between_numbers, &alone, sizeof alone);
}

/* ---- exceptions -------------------------------------------------------------------------- */

static void expect_no_exception(const char *when)
{
    expect(PyErr_Occurred() == NULL, fmt("no Python exception to be set, %s", when), "%s",
           python_error());
}

/* While a signal waits for its Python handler, which raises, and each warning raises as well.
 * Whether it waits still. */
static bool use_with_signal_waiting(void)
{
    python_call("environment", "be_strict");
    raise(SIGUSR1);
    use_ordinarily();
    use_large_blocks();
    ask_too_much();
    bool waits = PyErr_CheckSignals() != 0;
    PyErr_Clear();
    return waits;
}

PROPERTY(env_no_exception_set,
    .id     = "env.no-exception-set", .level = MUST, .basis = BASIS_CALLER,
    .answers_for = ABOUT(EXCEPTION_SET),
    .clause = "no call sets a Python exception: refused or not, with or without the GIL, with a "
              "signal pending, with warnings as errors",
    .source = "NumPy 1.22 to 2.5: ctors.c, shape.c, item_selection.c raise MemoryError on NULL",
    .why    = "\"returned a result with an exception set\", in an unrelated line",
    .hint   = "return NULL; no PyErr_CheckSignals or PyErr_WarnEx; clear what Python's calls raise",
    .looks  = "FAIL: no Python exception to be set, after calls that were refused; MemoryError")
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
    for_each_size (size, 1 << 14) /* calls.c checks after each call */
        resize_and_free(subject_calloc(1, size), size, size, size);
    for_each_size (size, is_instrumented() ? 1 << 14 : 1 << 20)
        give_back(subject_malloc(size), size);
    use_with_signal_waiting(); /* which calls.c detects as well */
}

PROPERTY(env_runs_no_signal_handler,
    .id     = "env.runs-no-signal-handler", .level = SHOULD, .basis = BASIS_QOI,
    .clause = "no call runs the Python handler of a pending signal",
    .source = "CPython, signal: handlers run between bytecode instructions, not inside C functions",
    .why    = "Ctrl-C and timeouts are exceptions, which a call that clears them loses",
    .hint   = "call no PyErr_CheckSignals, and nothing that runs Python code, in any of the four",
    .looks  = "WARN: the Python handler of a signal to wait; it was run inside one of the calls")
{
    expect(use_with_signal_waiting(),
           "the Python handler of a signal to wait until the calls have returned",
           "it was run inside one of them");
}

/* ---- the end of everything --------------------------------------------------------------- */

enum { MOST_TOUCHED = 1 << 20 };

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

/* What comes behind a block that cannot be is undefined, and another crash each time. */
static void expect_refused(const void *p, const char *owner, const char *call)
{
    if (p == NULL)
        return;
    attribute_to(owner, NULL);
    fail(fmt("%s to return NULL, for there can be no such block", call), "%p", p);
}

static void calloc_absurd(size_t nelem, size_t elsize)
{
    expect_refused(subject_calloc(nelem, elsize), "calloc.overflow",
                   fmt("calloc(%zu, %zu)", nelem, elsize));
}

static void ask_for_absurd(size_t size)
{
    expect_refused(subject_malloc(size), "malloc.too-large", fmt("malloc(%zu)", size));
    calloc_absurd(size, 1);
    calloc_absurd(1, size);
    void *p = subject_malloc(10);
    if (p != NULL)
        expect_refused(subject_realloc(p, size), "realloc.failure-keeps-block",
                       fmt("realloc(p, %zu)", size));
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
    absurd_begin();
    /* what lies between might be given, and touched */
    for (unsigned shift = ABSURD_BITS; shift < SIZE_BITS; shift += 4)
        ask_for_absurd((size_t)1 << shift);
    for (size_t k = 0; k <= 8192; k = k < 100 ? k + 1 : k + k / 8) {
        ask_for_absurd(SIZE_MAX - k);
        ask_for_absurd((size_t)PTRDIFF_MAX - 50 + k);
    }
    /* the product wraps to nelem, or to 0 where nelem is more than a handler that takes it for the
     * size may touch */
    for (size_t nelem = 2; nelem != 0; nelem *= 2)
        calloc_absurd(nelem, SIZE_MAX / nelem + (nelem <= MOST_TOUCHED ? 2 : 1));
    absurd_end();
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

/* The sizes in between, with no room for them: what is refused here is refused by the kernel.  Who
 * gives a block all the same has reserved addresses before, and would touch all of it for a calloc.
 */
static void ask_without_room(void)
{
    bool is_refused = true;
    limit_mapped_bytes(4 << 20);
    /* what is less, libc may have in reserve */
    for (unsigned shift = 27; shift < MIN(47, SIZE_BITS) && is_refused; shift++) {
        size_t size = (size_t)1 << shift;
        void *p = subject_malloc(size);
        is_refused = p == NULL;
        give_back(p, size);
        if (is_refused)
            ask_for(size);
    }
    lift_limit();
}

PROPERTY(env_never_exits,
    .id     = "env.never-exits", .level = MUST, .basis = BASIS_C,
    .rank = {RANK_IN_USE, RANK_AT_LENGTH, 2}, .ends_process = true, .quick = true,
    .clause = "every call returns, whatever the size: none ends the process or thread, or throws",
    .source = "C17 7.22.3: a null pointer; NumPy 1.22 to 2.5 calls from C, so no C++ exception",
    .why    = "MemoryError can be caught, and work be saved; an exit cannot",
    .hint   = "return NULL where libc does; in C++ noexcept functions and std::nothrow",
    .looks  = "CRASH: the process exited with status 1, inside malloc(18446744073709551615)")
{
    ask_for_everything();
    in_threads(1, ask_in_thread, NULL, 0);
    if (!is_instrumented())
        ask_without_room();
}
