/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A timer for each thread, and a signal handler that sleeps where the subject was interrupted.
 */
#include "jostle.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "drive.h"
#include "interpose.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { PAUSE_NS = 20000, EVERY_NS = 60000, PRIME_NS = 7919 };

static _Thread_local timer_t timer;
static _Thread_local bool has_timer;

static void pause_inside(int number)
{
    (void)number;
    int saved = errno;
    if (interpose_depth > 0)
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    errno = saved;
}

/* The number-th of the cores that this process may use, going round. */
static void move_to_core(size_t number)
{
    cpu_set_t allowed, one;
    if (sched_getaffinity(getpid(), sizeof allowed, &allowed) != 0)
        return;
    size_t nth = number % (size_t)CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || nth-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one); /* where that is not allowed it stays */
        return;
    }
}

void jostle_begin(size_t number)
{
    if (is_slow())
        return;
    struct sigaction action = {.sa_handler = pause_inside, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1);
    move_to_core(number);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    long every = EVERY_NS + (long)(number % 16) * PRIME_NS; /* so that they do not keep step */
    struct itimerspec often = {{0, every}, {0, every}};
    has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
    if (has_timer && timer_settime(timer, 0, &often, NULL) != 0)
        harness_broke("the timer that interrupts threads: %s", strerror(errno));
}

void jostle_end(void)
{
    if (has_timer)
        timer_delete(timer);
    has_timer = false;
}
