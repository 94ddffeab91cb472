/* SPDX-License-Identifier: BSD-3-Clause
 *
 * src/supervise/stall.c: whoever sleeps and whoever spins is at a stall, and whoever
 * others leave no processor is not.
 */
#include "unit.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervise/stall.h"

static const double limit = 0.2;

static void spin(void)
{
    for (volatile unsigned turns = 0;; turns++)
        ;
}

static void sleep_on(void)
{
    for (;;)
        pause();
}

/* Where it shares its processor with one that is always to run, it has three of a thousand. */
static void starve(void)
{
    struct sched_param none = {0};
    if (sched_setscheduler(0, SCHED_IDLE, &none) != 0)
        _exit(77);
    spin();
}

static pid_t begin(void (*act)(void))
{
    pid_t pid = fork();
    if (pid == 0)
        act();
    return pid;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

/* Asked as child_wait does, for so many seconds. */
static bool lasts(struct stall *stall, pid_t pid, double seconds)
{
    const struct timespec twentieth = {0, 50 * 1000 * 1000};
    for (int i = 0; i < seconds * 20; i++) {
        if (stall_lasts(stall, pid, limit))
            return true;
        nanosleep(&twentieth, NULL);
    }
    return false;
}

static bool is_said_of(void (*act)(void), double seconds)
{
    struct stall stall = {0};
    pid_t pid = begin(act);
    bool is = lasts(&stall, pid, seconds);
    end(pid);
    return is;
}

START_TEST(sleeper_stands_still)
{
    ck_assert(is_said_of(sleep_on, 60));
}
END_TEST

START_TEST(spinner_stands_still)
{
    ck_assert(is_said_of(spin, 60));
}
END_TEST

START_TEST(starved_does_not)
{
    cpu_set_t before, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    pid_t busy = begin(spin);
    bool is = is_said_of(starve, 1.5);
    end(busy);
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
    ck_assert(!is);
}
END_TEST

TCase *case_stall(void)
{
    TCase *tcase = tcase_create("stall");
    tcase_set_timeout(tcase, 120);
    tcase_add_test(tcase, sleeper_stands_still);
    tcase_add_test(tcase, spinner_stands_still);
    tcase_add_test(tcase, starved_does_not);
    return tcase;
}
