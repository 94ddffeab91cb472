/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of what a handler leaves alone, and how each item is read.
 */
#include "harness/process_state.h"

#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "harness/property_child.h"

/* ---- floating point ---------------------------------------------------------------------- */

static const char *show_rounding(int number __attribute__((unused)))
{
    return fmt("%#x", (unsigned)fegetround());
}

static const char *show_traps(int number __attribute__((unused)))
{
    return fmt("%#x", (unsigned)fegetexcept());
}

static const char *show_subnormals(int number __attribute__((unused)))
{
    static volatile double smallest_normal = DBL_MIN, subnormal = DBL_MIN / 1024;
    fexcept_t flags;
    fegetexceptflag(&flags, FE_ALL_EXCEPT); /* this arithmetic raises some */
    bool are_made = smallest_normal / 2 != 0, are_read = subnormal * 1024 != 0;
    fesetexceptflag(&flags, FE_ALL_EXCEPT);
    return fmt("%s, %s", are_made ? "results" : "results flushed to 0",
               are_read ? "operands" : "operands taken for 0");
}

/* x86: the control word of the x87, its precision among them, and the control bits of MXCSR;
 * AArch64: FPCR. */
static const char *show_control(int number __attribute__((unused)))
{
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word;
    unsigned vector = 0;
    __asm__ volatile("fnstcw %0" : "=m"(word));
#ifdef __SSE__
    vector = __builtin_ia32_stmxcsr() & ~0x3fu;
#endif
    return fmt("%#x and %#x", word, vector);
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return fmt("%#lx", control);
#else
    return "unknown";
#endif
}

static const char *show_x87_in_use(int number __attribute__((unused)))
{
#if defined(__x86_64__) || defined(__i386__)
    enum { TAGS = 4 };
    _Alignas(16) unsigned char area[512] = {0};
    __asm__ volatile("fxsave %0" : "=m"(area));
    return fmt("%d", __builtin_popcount(area[TAGS]));
#else
    return "unknown";
#endif
}

enum { FLAGS = FE_ALL_EXCEPT & ~FE_INEXACT };

void set_float_flags(bool raised)
{
    feclearexcept(FE_ALL_EXCEPT);
    if (raised)
        feraiseexcept(FLAGS);
}

static const char *show_float_flags(int number __attribute__((unused)))
{
    int flags = fetestexcept(FLAGS);
    const char *words = fmt("%s%s%s%s", (flags & FE_INVALID) != 0 ? ", invalid operation" : "",
                            (flags & FE_DIVBYZERO) != 0 ? ", division by zero" : "",
                            (flags & FE_OVERFLOW) != 0 ? ", overflow" : "",
                            (flags & FE_UNDERFLOW) != 0 ? ", underflow" : "");
    return words[0] != '\0' ? words + 2 : "none";
}

/* ---- signals ----------------------------------------------------------------------------- */

static const char *signal_name(int number)
{
    const char *name = sigabbrev_np(number + 1);
    return name != NULL ? fmt(" SIG%s", name) : fmt(" signal %d", number + 1);
}

static const char *show_action(int number)
{
    struct sigaction action;
    if (sigaction(number + 1, NULL, &action) != 0)
        return "unknown";
    return action.sa_handler == SIG_DFL ? "the default action"
           : action.sa_handler == SIG_IGN
               ? "to ignore it"
               : fmt("a handler at %p with flags %#x", (void *)action.sa_handler,
                     (unsigned)action.sa_flags);
}

static const char *show_mask(int number __attribute__((unused)))
{
    static _Thread_local char list[512];
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    size_t used = (size_t)snprintf(list, sizeof list, "those");
    for (int i = 0; i < NSIG - 1 && used + 16 < sizeof list; i++) {
        if (sigismember(&mask, i + 1) == 1)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s", signal_name(i));
    }
    return used > strlen("those") ? list + strlen("those ") : "none";
}

static const char *show_signal_stack(int number __attribute__((unused)))
{
    stack_t stack;
    return sigaltstack(NULL, &stack) == 0
               ? fmt("at %p, flags %#x", stack.ss_sp, (unsigned)stack.ss_flags)
               : "unknown";
}

/* ---- descriptors ------------------------------------------------------------------------- */

/* Files of one byte each behind every free descriptor up to 24 and some above, and what stands
 * behind 0, 1 and 2. */
enum { LAST_LOW = 24, LAST_FD = 199 };
static bool is_watched[LAST_FD + 1];

static void open_files(void)
{
    static const int high[] = {31, 32, 63, 64, 100, 127, 128, LAST_FD};
    int fd = memfd_create("conform", 0);
    for (; fd >= 0 && fd <= LAST_LOW; fd = memfd_create("conform", 0))
        is_watched[fd] = true;
    for (size_t i = 0; i < sizeof high / sizeof *high && fd >= 0; i++) {
        if (fcntl(high[i], F_GETFD) < 0 && dup2(fd, high[i]) == high[i])
            is_watched[high[i]] = true;
    }
    if (fd < 0)
        harness_broke("memfd_create: %s", strerror(errno));
    if (fd > LAST_FD || !is_watched[fd])
        close(fd);
    for (int i = 0; i <= LAST_FD; i++) {
        if (is_watched[i] && (ftruncate(i, 1) != 0 || lseek(i, 1, SEEK_SET) != 1))
            harness_broke("a file in memory: %s", strerror(errno));
        is_watched[i] = is_watched[i] || (i <= 2 && fcntl(i, F_GETFD) >= 0);
    }
}

static const char *show_descriptor(int fd)
{
    struct stat stat;
    if (!is_watched[fd])
        return "";
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fstat(fd, &stat) != 0)
        return "closed";
    const char *file =
        fmt("open, inode %llu of device %llu, flags %d and %#o", (unsigned long long)stat.st_ino,
            (unsigned long long)stat.st_dev, flags, (unsigned)fcntl(fd, F_GETFL));
    return fd <= 2 ? file
                   : fmt("%s, at byte %lld of %lld", file, (long long)lseek(fd, 0, SEEK_CUR),
                         (long long)stat.st_size);
}

/* ---- random numbers, output -------------------------------------------------------------- */

static void seed(void)
{
    srand(49); /* random's seed as well */
    srand48(49);
}

/* What follows in each of libc's three sequences after they were seeded.  Seeds them again. */
static const char *show_random_numbers(int number __attribute__((unused)))
{
    int first = rand();
    long second = random(), third = lrand48();
    seed();
    return fmt("%d, %ld and %ld", first, second, third);
}

static const char *show_output(int number __attribute__((unused)))
{
    return fmt("%zu bytes", output_so_far());
}

/* ---- settings ---------------------------------------------------------------------------- */

/* That of the process, unless this thread has one of its own. */
static const char *show_locale(int number __attribute__((unused)))
{
    const char *name = setlocale(LC_ALL, NULL);
    if (uselocale((locale_t)0) != LC_GLOBAL_LOCALE)
        return "one of the thread's own (uselocale)";
    return name != NULL ? name : "unknown";
}

static const char *show_umask(int number __attribute__((unused)))
{
    mode_t mask = umask(0);
    umask(mask);
    return fmt("%03o", (unsigned)mask);
}

static const char *show_limit(int which)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0)
        return "unknown";
    return fmt("%llu, at most %llu", (unsigned long long)limit.rlim_cur,
               (unsigned long long)limit.rlim_max);
}

static const char *show_folder(int number __attribute__((unused)))
{
    static _Thread_local char folder[PATH_MAX];
    return getcwd(folder, sizeof folder) != NULL ? folder : "unknown";
}

static const char *show_niceness(int number __attribute__((unused)))
{
    return fmt("%d", getpriority(PRIO_PROCESS, 0));
}

static const char *show_policy(int number __attribute__((unused)))
{
    return fmt("%d", sched_getscheduler(0));
}

/* How many, and the numbers of the first of them. */
static const char *show_affinity(int number __attribute__((unused)))
{
    cpu_set_t set;
    char list[256] = "";
    size_t used = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return "unknown";
    for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < sizeof list; cpu++) {
        if (CPU_ISSET(cpu, &set))
            used += (size_t)snprintf(list + used, sizeof list - used, " %d", cpu);
    }
    return fmt("%d:%s", CPU_COUNT(&set), list);
}

static const char *show_interval_timer(int which)
{
    struct itimerval timer;
    if (getitimer((__itimer_which_t)which, &timer) != 0)
        return "unknown";
    return timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 ? "running" : "stopped";
}

/* Those of timer_create, where the kernel lists them. */
static const char *show_timers(int number __attribute__((unused)))
{
    int count = 0;
    char line[256];
    FILE *file = fopen("/proc/self/timers", "re");
    if (file == NULL)
        return "unknown";
    while (fgets(line, sizeof line, file) != NULL)
        count += strncmp(line, "ID:", 3) == 0;
    fclose(file);
    return fmt("%d", count);
}

/* One that exec closes, children do not get. */
static const char *show_flags(int fd)
{
    int flags = fcntl(fd, F_GETFL), own = fcntl(fd, F_GETFD);
    return flags < 0 ? "closed"
                     : fmt("%#o%s", (unsigned)flags,
                           (own & FD_CLOEXEC) != 0 ? ", closed by exec (FD_CLOEXEC)" : "");
}

static const char *show_ids(int number __attribute__((unused)))
{
    return fmt("%d of group %d, session %d", (int)getpid(), (int)getpgrp(), (int)getsid(0));
}

static const char *show_user(int number __attribute__((unused)))
{
    return fmt("%d:%d, effectively %d:%d", (int)getuid(), (int)getgid(), (int)geteuid(),
               (int)getegid());
}

static const char *show_dumpable(int number __attribute__((unused)))
{
    return fmt("%d", prctl(PR_GET_DUMPABLE));
}

static const char *show_memory_policy(int number __attribute__((unused)))
{
    int mode;
    return syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 ? fmt("%d", mode) : "unknown";
}

/* Whether what anybody maps next is locked, as after mlockall(MCL_FUTURE): advice to drop such a
 * page is refused. */
static const char *show_locking(int number __attribute__((unused)))
{
    enum { LITTLE = 4096 };
    void *page = mmap(NULL, LITTLE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return "refused";
    bool is_locked = madvise(page, LITTLE, MADV_DONTNEED) != 0 && errno == EINVAL;
    munmap(page, LITTLE);
    return is_locked ? "locked" : "not locked";
}

/* NULL behind the last one. */
static const char *show_variable(int number)
{
    return environ[number];
}

/* ---- the table --------------------------------------------------------------------------- */

static const struct item {
    const char *name;
    enum state_part part;
    const char *(*show)(int number);
    int count; /* of them, or INT_MAX up to the first NULL; where there is one it has no number */
    const char *(*number)(int number); /* NULL: in digits */
} items[] = {
    {"the locale", STATE_AT_LOAD, show_locale, 1, NULL},
    {"the umask", STATE_AT_LOAD, show_umask, 1, NULL},
    {"resource limit", STATE_AT_LOAD, show_limit, RLIM_NLIMITS, NULL},
    {"the working directory", STATE_AT_LOAD, show_folder, 1, NULL},
    {"the niceness", STATE_OTHER_SETTINGS, show_niceness, 1, NULL},
    {"the scheduling policy", STATE_OTHER_SETTINGS, show_policy, 1, NULL},
    {"the processors that it may use", STATE_OTHER_SETTINGS, show_affinity, 1, NULL},
    {"interval timer", STATE_OTHER_SETTINGS, show_interval_timer, 3, NULL},
    {"the number of timers", STATE_OTHER_SETTINGS, show_timers, 1, NULL},
    {"the flags of descriptor", STATE_OTHER_SETTINGS, show_flags, 3, NULL},
    {"the process", STATE_OTHER_SETTINGS, show_ids, 1, NULL},
    {"the user and group", STATE_OTHER_SETTINGS, show_user, 1, NULL},
    {"whether core files are written (PR_SET_DUMPABLE)", STATE_OTHER_SETTINGS, show_dumpable, 1,
     NULL},
    {"the memory policy of a thread", STATE_OTHER_SETTINGS, show_memory_policy, 1, NULL},
    {"what is mapped next", STATE_OTHER_SETTINGS, show_locking, 1, NULL},
    {"the disposition of", STATE_SIGNALS, show_action, NSIG - 1, signal_name},
    {"the blocked signals", STATE_SIGNALS, show_mask, 1, NULL},
    {"the alternate signal stack", STATE_SIGNALS, show_signal_stack, 1, NULL},
    {"the floating-point status flags", STATE_FLOAT_FLAGS, show_float_flags, 1, NULL},
    {"the rounding mode", STATE_ARITHMETIC, show_rounding, 1, NULL},
    {"the floating-point traps", STATE_ARITHMETIC, show_traps, 1, NULL},
    {"subnormal numbers", STATE_ARITHMETIC, show_subnormals, 1, NULL},
    {"the floating-point control registers", STATE_ARITHMETIC, show_control, 1, NULL},
    {"the number of x87 registers in use (see EMMS)", STATE_ARITHMETIC, show_x87_in_use, 1, NULL},
    {"descriptor", STATE_DESCRIPTORS, show_descriptor, LAST_FD + 1, NULL},
    {"the next of rand, random and lrand48", STATE_RANDOM_NUMBERS, show_random_numbers, 1, NULL},
    {"what was printed", STATE_OUTPUT, show_output, 1, NULL},
    {"variable of the environment", STATE_OTHER_SETTINGS, show_variable, INT_MAX, NULL},
};

/* The items of the parts, one after the other, each with a NUL at its end.  If there is no room for
 * all of a large environment, the rest is not compared. */
struct state {
    unsigned parts;
    size_t used;
    char text[1 << 16];
};

static void expect_same(const struct item *item, int number, const char *was, const char *is,
                        const char *when)
{
    const char *numeral = item->number != NULL ? item->number(number)
                          : item->count > 1    ? fmt(" %d", number)
                                               : "";
    expect(strcmp(was, is) == 0, fmt("%s%s to stay %s, %s", item->name, numeral, escape(was), when),
           "%s", escape(is));
}

/* Reads the items into the state, or if `when` is not NULL compares them with what is in there. */
static void read_items(struct state *state, const char *when)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        bool is_last = (state->parts & items[i].part) == 0;
        for (int number = 0; number < items[i].count && !is_last; number++) {
            const char *shown = items[i].show(number);
            is_last = shown == NULL;
            shown = is_last ? "none" : shown;
            size_t length = strlen(shown) + 1;
            if (when != NULL ? at >= state->used : at + length > sizeof state->text)
                return;
            if (when != NULL)
                expect_same(&items[i], number, state->text + at, shown, when);
            else
                memcpy(state->text + at, shown, length);
            at += length;
            state->used = when != NULL ? state->used : at;
        }
    }
}

struct state *state_note(unsigned parts)
{
    static bool has_files;
    struct state *state = malloc(sizeof *state);
    if (state == NULL)
        harness_broke("out of memory for the state of the process");
    state->parts = parts;
    if ((parts & STATE_DESCRIPTORS) != 0 && !has_files)
        open_files();
    has_files = has_files || (parts & STATE_DESCRIPTORS) != 0;
    if ((parts & STATE_RANDOM_NUMBERS) != 0)
        seed();
    read_items(state, NULL);
    return state;
}

void state_expect_same(struct state *before, const char *when)
{
    read_items(before, when);
}
