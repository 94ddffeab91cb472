/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a subject can do to the process that it is in, and to those around it.  The act that
 * HOSTILE_ACT in the environment names is done while the object is loaded (early.c) or in its
 * calloc (late.c); tests/hostile.py says which there are, as -DACTS='ACT_NAMED(exits) ...', holds
 * the verdicts that each may cost, and sees to it that it costs nothing else.
 */
#ifndef CONFORM_HOSTILE_ACTS_H
#define CONFORM_HOSTILE_ACTS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "nep49.h"

#define ACT __attribute__((unused)) static

/* ---- ending -------------------------------------------------------------------------------- */

ACT void exits(void)
{
    _exit(0);
}

ACT void exits_in_order(void)
{
    exit(0);
}

ACT void exits_with_3(void)
{
    _exit(3);
}

ACT void aborts(void)
{
    abort();
}

ACT void writes_to_null(void)
{
    *(volatile int *)16 = 1;
}

ACT void kills_itself(void)
{
    kill(getpid(), SIGKILL);
}

ACT void kills_itself_namelessly(void)
{
    kill(getpid(), SIGRTMIN + 5);
}

ACT void becomes_another_program(void)
{
    execl("/bin/true", "true", (char *)NULL);
}

__attribute__((noinline)) static int deeper(volatile char *above)
{
    volatile char frame[4096];
    frame[0] = above[0];
    return deeper(frame) + frame[0];
}

ACT void overflows_the_stack(void)
{
    char first = 1;
    exit(deeper(&first));
}

static jmp_buf gone;

__attribute__((noinline)) static int sets_the_mark(void)
{
    return setjmp(gone);
}

/* Back into a frame that has ended: where that leads, nobody knows. */
ACT void jumps(void)
{
    if (sets_the_mark() == 0)
        longjmp(gone, 1);
}

/* A C++ exception, thrown as a C++ compiler would have it, with nobody above to catch it. */
ACT void throws_an_exception(void)
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

/* Unwinds as far as the thread goes. */
ACT void ends_its_thread(void)
{
    pthread_exit(NULL);
}

/* ---- not ending ------------------------------------------------------------------------------ */

ACT void hangs(void)
{
    for (;;)
        pause();
}

ACT void spins(void)
{
    for (volatile unsigned i = 0;; i++)
        continue;
}

ACT void stops_itself(void)
{
    kill(getpid(), SIGSTOP);
}

ACT void hangs_deaf(void)
{
    sigset_t all;
    sigfillset(&all);
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        sleep(1000);
}

static void returns(int number)
{
    (void)number;
}

/* The faulting instruction runs again, and again. */
ACT void crashes_for_ever(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, returns);
    *(volatile int *)16 = 1;
}

/* Out of the group that the time limit kills. */
ACT void hides_in_its_parents_group(void)
{
    setpgid(0, getpgid(getppid()));
    for (;;)
        pause();
}

/* ---- going on -------------------------------------------------------------------------------- */

static const char forged[] = "\nok 1 - forged\n</testcase>\",\033[2J\xff\n";

ACT void floods(void)
{
    for (int i = 0; i < 100000; i++) {
        if (write(1, forged, sizeof forged) < 0 && write(2, forged, sizeof forged) < 0)
            continue;
    }
}

ACT void floods_until_taken(void)
{
    for (size_t left = 1 << 20; left > 0;)
        left -= write(1, forged, 1) == 1;
}

ACT void floods_stdio(void)
{
    for (int i = 0; i < 20000; i++)
        fputs(forged, i % 2 != 0 ? stdout : stderr);
}

ACT void prints_a_gigabyte(void)
{
    static char much[1 << 16];
    memset(much, 'x', sizeof much);
    memcpy(much, forged, sizeof forged - 1);
    for (int i = 0; i < 1 << 14; i++) {
        if (write(1, much, sizeof much) < 0)
            (void)!write(2, much, sizeof much);
    }
}

ACT void closes_descriptors(void)
{
    for (int fd = 0; fd <= 20; fd++)
        close(fd);
}

ACT void replaces_descriptors(void)
{
    int other = open("/dev/full", O_RDWR);
    for (int fd = 0; fd <= 20; fd++)
        dup2(other, fd);
}

ACT void closes_all_descriptors(void)
{
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
}

ACT void takes_the_signals(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, SIG_IGN);
    alarm(0);
}

ACT void answers_the_signals(void)
{
    for (int number = 1; number < 65; number++)
        signal(number, returns);
    alarm(1);
}

/* All addresses that it may have, in pieces that become smaller. */
ACT void eats_all_memory(void)
{
    for (size_t size = 1 << 26; size >= 16;) {
        volatile char *p = malloc(size);
        if (p != NULL)
            *p = 1;
        else
            size /= 2;
    }
}

ACT void forks_and_both_return(void)
{
    fork();
}

ACT void leaves_a_process(void)
{
    if (fork() != 0)
        return;
    setsid();
    prctl(PR_SET_PDEATHSIG, 0);
    hangs_deaf();
}

/* Processes that are gone from their parents before anybody can look. */
ACT void leaves_a_chain(void)
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

/* Everything that is shared and can be written, the property's own record among it. */
ACT void scribbles_over_shared_memory(void)
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

ACT void scribbles_and_exits(void)
{
    scribbles_over_shared_memory();
    _exit(0);
}

ACT void leaves_a_process_that_scribbles(void)
{
    if (fork() != 0)
        return;
    setsid();
    for (;;)
        scribbles_over_shared_memory();
}

/* ---- under another name ---------------------------------------------------------------------- */

extern PyDataMem_Handler nep49_handler;

ACT void renames(const char *name, size_t length)
{
    memset(nep49_handler.name, 0, sizeof nep49_handler.name);
    memcpy(nep49_handler.name, name, length);
}

ACT void renames_itself_with_controls(void)
{
    static const char name[] = "\033[2J\033]0;owned\007\r\b\177\001\302\205";
    renames(name, sizeof name);
}

ACT void renames_itself_with_markup(void)
{
    static const char name[] = "\"><!--</testsuites><![CDATA[&amp;]]>&\\\",{}";
    renames(name, sizeof name);
}

ACT void renames_itself_with_a_point(void)
{
    renames(forged, sizeof forged);
}

ACT void renames_itself_with_broken_utf8(void)
{
    static const char name[] = "\377\376\300\200\355\240\200\364\220\200\200\342\202";
    renames(name, sizeof name);
}

ACT void renames_itself_without_end(void)
{
    char name[sizeof nep49_handler.name];
    memset(name, '\n', sizeof name);
    renames(name, sizeof name);
}

/* ---- against the parent ---------------------------------------------------------------------- */

ACT void kills_its_parent(void)
{
    kill(getppid(), SIGKILL);
}

ACT void kills_its_parent_and_stays(void)
{
    prctl(PR_SET_PDEATHSIG, 0);
    setsid();
    kill(getppid(), SIGKILL);
    hangs_deaf();
}

ACT void stops_its_parent(void)
{
    kill(getppid(), SIGSTOP);
}

ACT void kills_its_group(void)
{
    kill(0, SIGKILL);
}

ACT void kills_its_parents_group(void)
{
    kill(-getpgid(getppid()), SIGKILL);
}

/* ---- choosing ------------------------------------------------------------------------------ */

#define ACT_NAMED(name) {#name, name},

static void do_act(void)
{
    static const struct {
        const char *name;
        void (*does)(void);
    } acts[] = {ACTS};
    const char *wanted = getenv("HOSTILE_ACT");
    for (size_t i = 0; wanted != NULL && i < sizeof acts / sizeof *acts; i++) {
        if (strcmp(acts[i].name, wanted) == 0) {
            acts[i].does();
            return;
        }
    }
    abort(); /* many acts are to show nowhere: it would not show either that there is none */
}

#endif
