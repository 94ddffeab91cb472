/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A sound handler, except for the act that HOSTILE_ACT names: its constructor performs it, or, with
 * -DLATE, its first calloc.  tests/hostile.py lists the acts, as -DACTS='ACT_NAMED(exits) ...', and
 * the verdicts that each may cost.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../mapped.h"

NEP49_EXPORT extern PyDataMem_Handler nep49_handler;

#define ACT(name, ...)                                                                             \
    UNUSED static void name(void)                                                                  \
    {                                                                                              \
        __VA_ARGS__;                                                                               \
    }                                                                                              \
    _Static_assert(1, "")

/* ---- ending ---------------------------------------------------------------------------------- */

ACT(exits, _exit(0));
ACT(exits_in_order, exit(0));
ACT(aborts, abort());
ACT(writes_to_null, *(volatile int *)16 = 1);
ACT(kills_itself, kill(getpid(), SIGKILL));
ACT(kills_itself_namelessly, kill(getpid(), SIGRTMIN + 5));
ACT(becomes_another_program, execl("/bin/true", "true", (char *)NULL));
ACT(ends_its_thread, pthread_exit(NULL));

__attribute__((noinline)) static int deeper(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above[0];
    return deeper(frame) + frame[0];
}
ACT(overflows_the_stack, char first = 1; exit(deeper(&first)));

/* A C++ exception that nothing catches. */
UNUSED static void throws_an_exception(void)
{
    void *library = dlopen("libstdc++.so.6", RTLD_NOW);
    void *(*allocate)(size_t);
    void (*throw)(void *, void *, void (*)(void *));
    if (library == NULL)
        abort(); /* as it would end */
    *(void **)&allocate = dlsym(library, "__cxa_allocate_exception");
    *(void **)&throw = dlsym(library, "__cxa_throw");
    throw(allocate(sizeof(int)), dlsym(library, "_ZTIi"), NULL);
}

/* ---- not ending ------------------------------------------------------------------------------ */

static void returns(UNUSED int number)
{
}
static void set_all_signals(void (*action)(int))
{
    for (int number = 1; number < 65; number++)
        signal(number, action);
}
ACT(hangs, for (;;) pause());
ACT(spins, for (volatile unsigned i = 0;; i++));
ACT(stops_itself, kill(getpid(), SIGSTOP));
ACT(hangs_deaf, sigset_t all; sigfillset(&all); set_all_signals(SIG_IGN);
    sigprocmask(SIG_BLOCK, &all, NULL); for (;;) sleep(1000));
/* The faulting instruction is executed again and again. */
ACT(crashes_for_ever, set_all_signals(returns); *(volatile int *)16 = 1);
/* The time limit kills another group. */
ACT(hides_in_its_parents_group, setpgid(0, getpgid(getppid())); for (;;) pause());

/* ---- going on -------------------------------------------------------------------------------- */

static const char forged[] = "\nok 1 - forged\n</testcase>\",\033[2J\xff\n";

ACT(
    floods, for (int i = 0; i < 100000; i++) {
        if (write(1, forged, sizeof forged) < 0 && write(2, forged, sizeof forged) < 0)
            continue;
    });
ACT(floods_until_taken, for (size_t left = 1 << 20; left > 0;) left -= write(1, forged, 1) == 1);
UNUSED static void prints_a_gigabyte(void)
{
    static char much[1 << 16];
    memset(much, 'x', sizeof much);
    memcpy(much, forged, sizeof forged - 1);
    for (int i = 0; i < 1 << 14; i++) {
        if (write(1, much, sizeof much) < 0)
            (void)!write(2, much, sizeof much);
    }
}

ACT(closes_all_descriptors, for (int fd = 0; fd < 1024; fd++) close(fd));
ACT(replaces_descriptors, int other = open("/dev/full", O_RDWR);
    for (int fd = 0; fd <= 20; fd++) dup2(other, fd));
ACT(takes_the_signals, set_all_signals(SIG_IGN); alarm(0));

/* All addresses that the process may have, in pieces that become smaller. */
ACT(
    eats_all_memory, for (size_t size = 1 << 26; size >= 16;) {
        volatile char *p = malloc(size);
        if (p != NULL)
            *p = 1;
        else
            size /= 2;
    });

ACT(forks_and_both_return, fork());
/* Each parent ends before another process can see it. */
UNUSED static void leaves_a_chain(void)
{
    if (fork() != 0)
        return;
    for (int i = 0; i < 20; i++) {
        setsid();
        if (fork() != 0)
            _exit(0);
    }
    hangs_deaf();
}

/* Overwrites all shared memory, with the record of the property. */
static void scribbles_over_shared_memory(void)
{
    char line[512], rights[8];
    unsigned long from, to;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[1] == 'w' &&
            rights[3] == 's')
            memset((void *)from, 0xff, to - from);
    }
    if (maps != NULL)
        fclose(maps);
}
ACT(scribbles_and_exits, scribbles_over_shared_memory(); _exit(0));
ACT(leaves_a_process_that_scribbles, if (fork() != 0) return; setsid();
    for (;;) scribbles_over_shared_memory());

/* ---- another name ---------------------------------------------------------------------------- */

static void rename_to(const char *name, size_t length)
{
    memset(nep49_handler.name, 0, sizeof nep49_handler.name);
    memcpy(nep49_handler.name, name, length);
}
#define RENAMES(act, ...)                                                                          \
    ACT(act, static const char name[sizeof nep49_handler.name] = __VA_ARGS__;                      \
        rename_to(name, sizeof name))
RENAMES(renames_itself_with_controls, "\033[2J\033]0;owned\007\r\b\177\001\302\205");
RENAMES(renames_itself_with_markup, "\"><!--</testsuites><![CDATA[&amp;]]>&\\\",{}");
RENAMES(renames_itself_with_broken_utf8, "\377\376\300\200\355\240\200\364\220\200\200\342\202");
RENAMES(renames_itself_without_end, {[0 ... sizeof nep49_handler.name - 1] = '\n'});
ACT(renames_itself_with_a_point, rename_to(forged, sizeof forged));

/* ---- against the parent ---------------------------------------------------------------------- */

ACT(kills_its_parent, kill(getppid(), SIGKILL));
ACT(kills_its_parent_and_stays, prctl(PR_SET_PDEATHSIG, 0); setsid(); kill(getppid(), SIGKILL);
    hangs_deaf());
ACT(stops_its_parent, kill(getppid(), SIGSTOP));
ACT(kills_its_group, kill(0, SIGKILL));
ACT(kills_its_parents_group, kill(-getpgid(getppid()), SIGKILL));

/* ---- choosing -------------------------------------------------------------------------------- */

#define ACT_NAMED(name) {#name, name},
static void do_act(void)
{
    static const struct {
        const char *name;
        void (*function)(void);
    } acts[] = {ACTS};
    const char *wanted = getenv("HOSTILE_ACT");
    for (size_t i = 0; wanted != NULL && i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(acts[i].name, wanted) == 0)
            return acts[i].function();
    }
    abort(); /* many acts show nowhere: without this nothing would show that one is missing */
}

#ifdef LATE
FUNCTION(calloc, hostile)
{
    static bool is_done;
    if (!is_done) {
        is_done = true;
        do_act();
    }
    return base_calloc(ctx, nelem, elsize);
}
PyDataMem_Handler nep49_handler = {
    .name = "late", .version = 1, .allocator = {FUNCTIONS(base), FUNCTIONS(hostile, calloc)}};
#else
__attribute__((constructor)) static void load(void)
{
    do_act();
}
PyDataMem_Handler nep49_handler = {.name = "early", .version = 1, .allocator = {FUNCTIONS(base)}};
#endif
