/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Noting and comparing what a handler leaves alone.
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

#if defined(__x86_64__) || defined(__i386__)
static unsigned x87_registers_in_use(void)
{
    enum { TAGS = 4 };
    _Alignas(16) unsigned char area[512] = {0};
    __asm__ volatile("fxsave %0" : "=m"(area));
    return area[TAGS];
}
#endif

struct arithmetic note_arithmetic(void)
{
    static volatile double smallest_normal = DBL_MIN, subnormal = DBL_MIN / 1024;
    struct arithmetic s = {.rounding = fegetround(), .traps = fegetexcept()};
    s.makes_subnormals = smallest_normal / 2 != 0;
    s.reads_subnormals = subnormal * 1024 != 0;
#if defined(__x86_64__) || defined(__i386__)
    unsigned short word;
    __asm__ volatile("fnstcw %0" : "=m"(word));
    s.stack = word;
    s.in_use = x87_registers_in_use();
#ifdef __SSE__
    s.vector = __builtin_ia32_stmxcsr() & ~0x3fu;
#endif
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(s.control));
#endif
    return s;
}

void expect_same_arithmetic(const struct arithmetic *before, const char *when)
{
    struct arithmetic now = note_arithmetic();
    expect(now.rounding == before->rounding,
           fmt("the rounding mode to be %#x still, %s", (unsigned)before->rounding, when), "%#x",
           (unsigned)now.rounding);
    expect(now.traps == before->traps,
           fmt("the floating-point traps to be %#x still, %s", (unsigned)before->traps, when),
           "%#x", (unsigned)now.traps);
    expect(now.makes_subnormals == before->makes_subnormals,
           fmt("results to be as subnormal as before, %s", when), "%s",
           now.makes_subnormals ? "they are no longer flushed to 0" : "they are flushed to 0");
    expect(now.reads_subnormals == before->reads_subnormals,
           fmt("subnormal operands to count as before, %s", when), "%s",
           now.reads_subnormals ? "they no longer count as 0" : "they count as 0");
    expect(now.vector == before->vector && now.stack == before->stack &&
               now.control == before->control,
           fmt("the floating-point control registers to be %#x, %#x, %#lx still, %s",
               before->vector, before->stack, before->control, when),
           "%#x, %#x, %#lx", now.vector, now.stack, now.control);
    expect(now.in_use == before->in_use,
           fmt("the x87 to have as many registers empty as before (EMMS), %s", when),
           "%d are in use that were empty", __builtin_popcount(now.in_use & ~before->in_use));
}

enum { FLAGS = FE_ALL_EXCEPT & ~FE_INEXACT };

static const char *flags_in_words(int flags)
{
    const char *words = fmt("%s%s%s%s", (flags & FE_INVALID) != 0 ? ", invalid operation" : "",
                            (flags & FE_DIVBYZERO) != 0 ? ", division by zero" : "",
                            (flags & FE_OVERFLOW) != 0 ? ", overflow" : "",
                            (flags & FE_UNDERFLOW) != 0 ? ", underflow" : "");
    return words[0] != '\0' ? words + 2 : "none";
}

void set_float_flags(bool raised)
{
    feclearexcept(FE_ALL_EXCEPT);
    if (raised)
        feraiseexcept(FLAGS);
}

void expect_float_flags(bool raised, const char *when)
{
    int now = fetestexcept(FLAGS);
    expect(now == (raised ? FLAGS : 0),
           fmt("the floating-point status flags to be %s, %s: %s",
               raised ? "set still" : "clear still", when,
               raised ? "a program reads there what went wrong in its arithmetic"
                      : "NumPy reads there whether its own arithmetic went wrong, and warns"),
           "set: %s", flags_in_words(now));
}

/* ---- signals ----------------------------------------------------------------------------- */

void note_signals(struct signals *signals)
{
    memset(signals, 0, sizeof *signals);
    for (int number = 1; number < NSIG; number++)
        signals->known[number] = sigaction(number, NULL, &signals->actions[number]) == 0;
    pthread_sigmask(SIG_SETMASK, NULL, &signals->mask);
    sigaltstack(NULL, &signals->stack);
}

static const char *signal_name(int number)
{
    const char *name = sigabbrev_np(number);
    return name != NULL ? fmt("SIG%s", name) : fmt("signal %d", number);
}

static const char *action_in_words(const struct sigaction *action)
{
    return action->sa_handler == SIG_DFL   ? "the default action"
           : action->sa_handler == SIG_IGN ? "to ignore it"
                                           : fmt("a handler at %p", (void *)action->sa_handler);
}

void expect_same_signals(const struct signals *before, const char *when)
{
    struct signals now;
    note_signals(&now);
    for (int number = 1; number < NSIG; number++) {
        const struct sigaction *was = &before->actions[number], *is = &now.actions[number];
        if (!before->known[number])
            continue;
        const char *name = signal_name(number);
        expect(is->sa_handler == was->sa_handler,
               fmt("the disposition of %s to stay %s, %s", name, action_in_words(was), when), "%s",
               action_in_words(is));
        expect(is->sa_flags == was->sa_flags,
               fmt("the flags of the handler of %s to be %#x still, %s", name,
                   (unsigned)was->sa_flags, when),
               "%#x", (unsigned)is->sa_flags);
        bool blocked = sigismember(&before->mask, number);
        expect(sigismember(&now.mask, number) == blocked,
               fmt("%s to be %s still, %s", name, blocked ? "blocked" : "let through", when), "%s",
               blocked ? "it is let through" : "it is blocked");
    }
    expect(now.stack.ss_sp == before->stack.ss_sp && now.stack.ss_flags == before->stack.ss_flags,
           fmt("the alternate signal stack to be at %p still, %s", before->stack.ss_sp, when),
           "at %p", now.stack.ss_sp);
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

static const struct kind {
    const char *name;
    const char *(*show)(int number);
    int count; /* of them; where there is one it has no number */
    bool named_at_load;
} kinds[] = {
    {"the locale", show_locale, 1, true},
    {"the umask", show_umask, 1, true},
    {"resource limit", show_limit, RLIM_NLIMITS, true},
    {"the working directory", show_folder, 1, true},
    {"the niceness", show_niceness, 1, false},
    {"the scheduling policy", show_policy, 1, false},
    {"the processors that it may use", show_affinity, 1, false},
    {"interval timer", show_interval_timer, 3, false},
    {"the number of timers", show_timers, 1, false},
    {"the flags of descriptor", show_flags, 3, false},
    {"the process", show_ids, 1, false},
    {"the user and group", show_user, 1, false},
    {"whether core files are written (PR_SET_DUMPABLE)", show_dumpable, 1, false},
    {"the memory policy of a thread", show_memory_policy, 1, false},
    {"what is mapped next", show_locking, 1, false},
};

static char *copy(const char *words)
{
    char *made = strdup(words);
    if (made == NULL)
        harness_broke("out of memory for what surrounds the handler");
    return made;
}

/* A copy of the environment, NULL at its end. */
static char **copy_environment(void)
{
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char **made = calloc(count + 1, sizeof *made);
    for (size_t i = 0; made != NULL && i < count; i++)
        made[i] = copy(environ[i]);
    return made;
}

void note_settings(struct settings *settings)
{
    size_t place = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        for (int number = 0; number < kinds[k].count; number++)
            settings->values[place++] = copy(kinds[k].show(number));
    }
    settings->environment = copy_environment();
}

/* The variable in `here`, NAME=VALUE, that is not in `there`, or NULL. */
static const char *missing_variable(char **here, char **there)
{
    for (; here != NULL && *here != NULL; here++) {
        char **same = there;
        while (same != NULL && *same != NULL && strcmp(*same, *here) != 0)
            same++;
        if (same == NULL || *same == NULL)
            return *here;
    }
    return NULL;
}

static void expect_same_environment(char **before, const char *when)
{
    const char *gone = missing_variable(before, environ), *new = missing_variable(environ, before);
    const char *either = new != NULL ? new : gone;
    if (either == NULL)
        return;
    int length = (int)strcspn(either, "=");
    fail(fmt("%.*s in the environment to stay as it was, %s", length, either, when), "%s",
         new != NULL ? escape(new) : "it is gone");
}

void expect_same_settings(const struct settings *before, enum which_settings which,
                          const char *when)
{
    size_t place = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        bool wanted =
            which == ALL_SETTINGS || kinds[k].named_at_load == (which == SETTINGS_NAMED_AT_LOAD);
        for (int number = 0; number < kinds[k].count; number++, place++) {
            const char *was = before->values[place], *is = wanted ? kinds[k].show(number) : was;
            expect(strcmp(was, is) == 0,
                   fmt("%s%s to stay %s, %s", kinds[k].name,
                       kinds[k].count > 1 ? fmt(" %d", number) : "", escape(was), when),
                   "%s", escape(is));
        }
    }
    if (which != SETTINGS_NAMED_AT_LOAD)
        expect_same_environment(before->environment, when);
}
