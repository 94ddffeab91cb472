/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The beginning of every reproducer: how it tells what it sees, from a process of its own.  It
 * needs nothing but a C compiler and POSIX.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
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

/* ---- what is told -------------------------------------------------------------------------- */

/* What is done at the moment, for the process that waits to see as well. */
enum shape { WITHOUT_NUMBERS, SIZE, TWO_SIZES, BLOCK_AND_SIZE, NULL_AND_SIZE };
static struct {
    unsigned long number;
    const char *what;
    enum shape shape;
    size_t first, second;
    bool is_told, is_reproduced; /* what came of it */
} * now;

/* Of two processes each makes so many calls in turn, until the other is gone or takes long over its
 * own.  The descriptor of each, a pair of sockets, is -1 where there is none to wait for. */
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

static void begin(const char *what, enum shape shape, size_t first, size_t second)
{
    if (calls_left-- == 0)
        end_turn();
    now->number++;
    now->what = what;
    now->shape = shape;
    now->first = first;
    now->second = second;
}

static void describe(char *to, size_t room)
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

/* Also where a signal has come. */
_Noreturn __attribute__((format(printf, 2, 3))) static void reproduced(const char *what,
                                                                       const char *format, ...)
{
    char doing[96], seen[160], line[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(seen, sizeof seen, format, arguments);
    va_end(arguments);
    describe(doing, sizeof doing);
    int length = snprintf(line, sizeof line, "reproduced: %s: call %lu, %s%s%s\n", what,
                          now->number, doing, *seen != '\0' ? ": " : "", seen);
    if (__atomic_exchange_n(&now->is_reproduced, true, __ATOMIC_SEQ_CST))
        _exit(1); /* another process has told it first */
    now->is_told = true;
    if (write(STDOUT_FILENO, line, (size_t)length) < 0)
        perror("stdout");
    _exit(1);
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

/* A process that hangs is told, and does not outlive who waits for it. */
static void bound_process(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(SECONDS);
}

/* What depends on where memory lies is seen in one program and not in the next. */
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

/* Goes on in a process of its own, for nobody sees from inside of it that it ends by _exit(). */
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
        perror("there is no process to be had");
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
