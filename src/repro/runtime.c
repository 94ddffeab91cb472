/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What every reproducer runs: it makes the calls of a list in a process of its own, checks each by
 * the heap model, and prints the first violation.  conform compiles it too, to try a list.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UNUSED __attribute__((unused)) static /* by some lists of calls */

static PyDataMem_Handler *handler;
static PyDataMem_Handler *(*getter)(const char **why); /* or NULL */
static struct heap model;
static uint64_t block_count;

/* ---- reporting ----------------------------------------------------------------------------- */

/* The call that is under way, in memory that the watching process shares. */
enum shape { WITHOUT_NUMBERS, SIZE, TWO_SIZES, BLOCK_AND_SIZE, NULL_AND_SIZE };
static struct {
    unsigned long number;
    const char *what;
    enum shape shape;
    size_t first, second;
    bool is_told, is_reproduced; /* the result */
} * now;

/* Of two processes each makes so many calls in turn, until the other is gone or takes too long. The
 * descriptor of each is one of a pair of sockets, or -1. */
static int other_process = -1;
static size_t calls_in_turn, calls_left;

static void wait_for_turn(void)
{
    enum { TOO_LONG = 1000 };
    struct pollfd poll_for = {.fd = other_process, .events = POLLIN};
    char byte;
    if (poll(&poll_for, 1, TOO_LONG) == 1 && read(other_process, &byte, 1) == 1)
        return;
    close(other_process);
    other_process = -1;
}

static void end_turn(void)
{
    calls_left = calls_in_turn;
    if (other_process >= 0 && send(other_process, "", 1, MSG_NOSIGNAL) == 1)
        wait_for_turn();
}

static void begin_call(const char *what, enum shape shape, size_t first, size_t second)
{
    if (calls_left-- == 0)
        end_turn();
    model.call = ++now->number;
    model.error = &errno; /* of this thread */
    now->what = what;
    now->shape = shape;
    now->first = first;
    now->second = second;
}

static void call_text(char *to, size_t room)
{
    switch (now->shape) {
    case WITHOUT_NUMBERS:
        snprintf(to, room, "%s", now->what);
        break;
    case SIZE:
        snprintf(to, room, "%s(%zu)", now->what, now->first);
        break;
    case TWO_SIZES:
        snprintf(to, room, "%s(%zu, %zu)", now->what, now->first, now->second);
        break;
    case NULL_AND_SIZE:
        snprintf(to, room, "%s(NULL, %zu)", now->what, now->first);
        break;
    case BLOCK_AND_SIZE:
        snprintf(to, room, "%s(block %zu, %zu)", now->what, now->first, now->second);
        break;
    }
}

/* Also called in a signal handler. */
_Noreturn __attribute__((format(printf, 2, 3))) static void reproduced(const char *what,
                                                                       const char *format, ...)
{
    char doing[96], seen[320], line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(seen, sizeof seen, format, arguments);
    va_end(arguments);
    call_text(doing, sizeof doing);
    int length = snprintf(line, sizeof line, "reproduced: %s: call %lu, %s%s%s\n", what,
                          now->number, doing, *seen != '\0' ? ": " : "", seen);
    if (__atomic_exchange_n(&now->is_reproduced, true, __ATOMIC_SEQ_CST))
        _exit(1); /* another process has told it first */
    now->is_told = true;
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        perror("stdout");
    _exit(1);
}

_Noreturn static void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    now->is_told = true;
    _exit(2);
}

static void check(bool holds)
{
    if (!holds && model.no_memory)
        give_up("out of memory");
    if (!holds)
        reproduced(heap_rule_name(model.violation.rule), "%s", model.violation.seen);
}

static const struct {
    int number;
    const char *name;
} fatal[] = {{SIGSEGV, "SIGSEGV"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
             {SIGILL, "SIGILL"},   {SIGABRT, "SIGABRT"}, {SIGTRAP, "SIGTRAP"}};
enum { FATAL = sizeof fatal / sizeof *fatal };

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (number == SIGSEGV && info->si_code > 0)
        reproduced("SIGSEGV", "at address %p", info->si_addr);
    for (int i = 0; i < FATAL; i++) {
        if (fatal[i].number == number)
            reproduced(fatal[i].name, "%s", "");
    }
    reproduced("no end", "after %d s", SECONDS);
}

static void catch_signals(void)
{
    static char room[64 * 1024];
    stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
    sigaltstack(&stack, NULL);
    struct sigaction action = {.sa_flags = SA_ONSTACK | SA_SIGINFO};
    action.sa_sigaction = on_signal;
    for (int i = 0; i < FATAL; i++)
        sigaction(fatal[i].number, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

/* A process that hangs is reported, and ends with the process that waits for it. */
static void bound_process(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SECONDS);
}

/* What depends on where memory lies may show in one program and not in the next. */
static void try_again(char **argv)
{
    const char *name = "REPRODUCER_TRY", *value = getenv(name);
    int done = value != NULL ? atoi(value) : 0;
    if (++done >= PROGRAMS)
        return;
    char next[16];
    snprintf(next, sizeof next, "%d", done);
    setenv(name, next, 1);
    execv("/proc/self/exe", argv);
}

/* Goes on in a child process: only its parent sees that it ends by _exit(). */
static void begin_watched(char **argv)
{
    int status;
    now = mmap(NULL, sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (now != MAP_FAILED)
        now->what = "loading";
    pid_t pid = now != MAP_FAILED ? fork() : -1;
    if (pid == 0)
        return;
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        perror("no process");
        _exit(2);
    }
    if (WIFEXITED(status) && now->number > 0 && !now->is_told)
        reproduced("the process exits", "with status %d", WEXITSTATUS(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        try_again(argv);
        puts("not reproduced");
        fflush(stdout);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* True if the slot has no block: a call that makes one where one is live is left out. */
static bool is_empty(size_t n)
{
    if (!heap_reserve(&model, (uint32_t)n))
        check(false);
    return model.block[n].p == NULL;
}

static void made(size_t n, enum heap_maker by, void *p, size_t size)
{
    check(p != NULL ? heap_made(&model, (uint32_t)n, ++block_count, by, p, size)
                    : heap_state_holds(&model) && (size == 0 || heap_refused(&model, size)));
}

UNUSED void do_malloc(size_t n, size_t size)
{
    if (!is_empty(n))
        return;
    begin_call("malloc", SIZE, size, 0);
    made(n, HEAP_MALLOC, handler->allocator.malloc(handler->allocator.ctx, size), size);
}

UNUSED void do_calloc(size_t n, size_t nelem, size_t elsize)
{
    size_t size = heap_product(nelem, elsize);
    if (!is_empty(n))
        return;
    begin_call("calloc", TWO_SIZES, nelem, elsize);
    void *p = handler->allocator.calloc(handler->allocator.ctx, nelem, elsize);
    check(size != SIZE_MAX || heap_overflowed(&model, p));
    made(n, HEAP_CALLOC, p, size);
}

UNUSED void do_realloc(size_t n, size_t size)
{
    const PyDataMemAllocator *a = &handler->allocator;
    bool is_new = is_empty(n);
    begin_call("realloc", BLOCK_AND_SIZE, n, size);
    if (is_new) {
        made(n, HEAP_REALLOC, a->realloc(a->ctx, NULL, size), size);
        return;
    }
    check(heap_will_resize(&model, (uint32_t)n, size));
    void *p = a->realloc(a->ctx, model.block[n].p, size);
    check(p != NULL
              ? heap_resized(&model, (uint32_t)n, p, size)
              : heap_kept(&model, (uint32_t)n, size) && (size == 0 || heap_refused(&model, size)));
}

UNUSED void do_free(size_t n, size_t size)
{
    if (is_empty(n))
        return;
    void *p = model.block[n].p;
    begin_call("free", BLOCK_AND_SIZE, n, size);
    check(heap_will_free(&model, (uint32_t)n));
    handler->allocator.free(handler->allocator.ctx, p, size);
    check(heap_freed(&model));
}

UNUSED void do_free_null(size_t size)
{
    begin_call("free", NULL_AND_SIZE, size, 0);
    heap_set_error(&model);
    handler->allocator.free(handler->allocator.ctx, NULL, size);
    check(heap_freed(&model));
}

/* Fills the block with that word, again and again. */
UNUSED void do_fill(size_t n, uint64_t word)
{
    if (!is_empty(n))
        heap_refill(&model, (uint32_t)n, word);
}

/* ---- other steps --------------------------------------------------------------------------- */

static size_t pages_of(int member)
{
    size_t pages[2] = {0, 0};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%zu %zu", &pages[0], &pages[1]) != 2)
        perror("/proc/self/statm");
    if (file != NULL)
        fclose(file);
    return pages[member];
}

/* From now on no more than so many bytes can be mapped; 0: as many as before. */
UNUSED void do_limit(size_t room)
{
    static struct rlimit before;
    if (!model.is_limited)
        getrlimit(RLIMIT_AS, &before);
    struct rlimit limit = before;
    if (room != 0)
        limit.rlim_cur = pages_of(0) * (size_t)sysconf(_SC_PAGESIZE) + room;
    setrlimit(RLIMIT_AS, &limit);
    model.is_limited = room != 0;
}

UNUSED void do_pause(size_t milliseconds)
{
    nanosleep(
        &(struct timespec){(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000},
        NULL);
}

enum { PROCESSES = 4 };
static pid_t processes[PROCESSES]; /* that were forked */
static int process_count;

/* Fills the inherited blocks with other bytes than the first process has. */
static void begin_process(void)
{
    bound_process();
    process_count = PROCESSES;
    for (uint32_t slot = 0; slot < model.room; slot++) {
        struct heap_block *block = &model.block[slot];
        block->number = (block->number & UINT32_MAX) | (uint64_t)getpid() << 32;
        if (block->p != NULL)
            fill_write(block->p, block->size, &model.rules.fill, block->number);
    }
    if (other_process >= 0)
        wait_for_turn();
}

/* From here on two processes do what is left: so many calls in turn, or at once if that is 0. */
UNUSED void do_fork(size_t in_turn)
{
    int pair[2] = {-1, -1};
    if (other_process >= 0)
        close(other_process);
    if (in_turn > 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        perror("socketpair");
    pid_t pid = process_count < PROCESSES ? fork() : -1;
    other_process = pair[pid == 0];
    close(pair[pid != 0]);
    calls_in_turn = calls_left = in_turn;
    if (pid == 0)
        begin_process();
    if (pid > 0)
        processes[process_count++] = pid;
}

static void wait_for_processes(void)
{
    int status;
    for (int i = 0; i < PROCESSES && processes[i] > 0; i++) {
        if (waitpid(processes[i], &status, 0) > 0 && status != 0)
            _exit(1); /* it has said why */
    }
}

UNUSED void do_ask_getter(void)
{
    const char *why = NULL;
    begin_call("the getter", WITHOUT_NUMBERS, 0, 0);
    check(getter == NULL || getter(&why) == handler ||
          heap_violated(&model, HEAP_GETTER_STABLE, "%s", ""));
    check(heap_state_holds(&model));
}

static bool is_utf8(const unsigned char *p)
{
    while (*p != '\0') {
        int more = *p < 0x80 ? 0 : *p >= 0xc2 && *p < 0xe0 ? 1 : *p >= 0xe0 && *p < 0xf0 ? 2 : 3;
        if (*p >= 0xf5 || (*p >= 0x80 && *p < 0xc2) || (*p == 0xe0 && p[1] < 0xa0) ||
            (*p == 0xed && p[1] >= 0xa0) || (*p == 0xf0 && p[1] < 0x90) ||
            (*p == 0xf4 && p[1] >= 0x90))
            return false;
        for (p++; more > 0; more--, p++) {
            if ((*p & 0xc0) != 0x80)
                return false;
        }
    }
    return true;
}

UNUSED void do_look_at_name(void)
{
    begin_call("the struct", WITHOUT_NUMBERS, 0, 0);
    check(memchr(handler->name, '\0', sizeof handler->name) != NULL ||
          heap_violated(&model, HEAP_NAME_TERMINATED, "%s", ""));
    check(is_utf8((const unsigned char *)handler->name) ||
          heap_violated(&model, HEAP_NAME_UTF8, "%s", ""));
}

UNUSED void do_look_at_version(void)
{
    begin_call("the struct", WITHOUT_NUMBERS, 0, 0);
    check(handler->version == 1 ||
          heap_violated(&model, HEAP_VERSION, "it is %d", handler->version));
}

UNUSED void do_look_at_functions(void)
{
    const PyDataMemAllocator *a = &handler->allocator;
    begin_call("the struct", WITHOUT_NUMBERS, 0, 0);
    check((a->malloc != NULL && a->calloc != NULL && a->realloc != NULL && a->free != NULL) ||
          heap_violated(&model, HEAP_FUNCTIONS_PRESENT, "%s", ""));
}

/* Makes the calls on a thread of their own, which then ends. */
UNUSED void in_thread(void *(*calls)(void *))
{
    pthread_t thread;
    void *returned;
    if (pthread_create(&thread, NULL, calls, now) != 0 || pthread_join(thread, &returned) != 0)
        give_up("no thread");
    if (returned != now)
        reproduced("the thread ends", "%s", "");
}

static size_t growth_over(size_t rounds, void (*calls)(void))
{
    size_t before = pages_of(1);
    while (rounds-- > 0)
        calls();
    size_t after = pages_of(1);
    return after > before ? (after - before) * (size_t)sysconf(_SC_PAGESIZE) : 0;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Makes the calls, which free their blocks, again and again: twice as often each time, until they
 * have taken much memory, and as much as ever in the end, or for long enough. */
UNUSED void repeat(void (*calls)(void))
{
    const size_t mib = 1 << 20, much = 16 * mib;
    double begun = seconds_now(), taken = 0;
    size_t grown = 0, rounds = 1;
    calls();
    while (taken < SECONDS / 2.0 && (grown > mib || taken < SECONDS / 16.0)) {
        size_t more = growth_over(rounds, calls);
        if (grown + more > much && more >= grown / 4)
            check(heap_violated(&model, HEAP_RECLAIMS,
                                "%zu KiB in %zu rounds, %zu of it in the second half",
                                (grown + more) >> 10, 2 * rounds, more >> 10));
        grown += more;
        rounds *= 2;
        taken = seconds_now() - begun;
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

/* Finds the handler in the object, under the name or as nep49.h has it.  2 if there is none. */
static int load(const char *path, const char *entry, bool is_getter)
{
    const char *why = "has no handler of that name";
    const char *const names[] = {entry, "nep49_handler", "nep49_get_handler"};
    dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* which any Python has loaded */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
    if (object == NULL)
        why = dlerror();
    for (int i = 0; object != NULL && symbol == NULL && i < 3; i++) {
        symbol = dlsym(object, names[i]);
        is_getter = i == 0 ? is_getter : i == 2;
    }
    handler = symbol;
    if (symbol != NULL && is_getter) {
        memcpy(&getter, &symbol, sizeof getter);
        handler = getter(&why);
    }
    if (handler == NULL) {
        fprintf(stderr, "%s: %s\n", path, why);
        return 2;
    }
    return 0;
}

/* Leaves bytes in libc's heap, as any program has done before its first array, so that memory from
 * there is not zero by chance. */
static void use_memory(void)
{
    enum { EACH = 20, LARGEST = 70000 };
    void *p[EACH];
    for (size_t size = 24; size < LARGEST; size += size / 8 / 16 * 16 + 16) {
        for (int i = 0; i < EACH; i++) {
            if ((p[i] = malloc(size)) != NULL)
                memset(p[i], 0xa5, size);
        }
        void *volatile stays = malloc(size); /* so that not all of it goes back to the kernel */
        (void)stays;
        for (int i = 0; i < EACH; i++)
            free(p[i]);
    }
}

_Noreturn static void run_calls(void (*calls)(void))
{
    struct heap_rules rules = {.alignment = ALIGNMENT,
                               .fill = {.whole = 128 << 10, .marks = true},
                               .watched = handler,
                               .in_each_call = true,
                               .strict = CHECKS_ERRNO};
    use_memory();
    if (!heap_begin(&model, &rules))
        give_up("out of memory");
    catch_signals();
    bound_process();
    calls();
    do_pause(MILLISECONDS);
    end_turn();
    check(heap_look_at_all(&model) && heap_state_holds(&model));
    if (other_process >= 0)
        close(other_process);
    wait_for_processes();
    fflush(stdout);
    now->is_told = true;
    _exit(0);
}
