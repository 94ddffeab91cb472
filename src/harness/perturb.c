/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A timer for each thread, and a signal handler that sleeps where the subject was interrupted.
 */
#include "harness/perturb.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/instrumented.h"
#include "harness/drive.h"
#include "harness/interpose.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { PAUSE_NS = 10000, AFTER_NS = 15000, JITTER_NS = 16384, WHOLE_NS = 30000000 };

/* A thread's timer runs out once and is set anew when the pause is over, so that the thread gets
 * on between two; and no more after a while, because on a busy machine a pause can take long. */
static _Thread_local struct {
    timer_t timer;
    bool is_set;
    uint64_t begun;
    uint64_t pauses;
} own;

static void set_timer(void)
{
    long after = AFTER_NS + (long)(random_mix(own.begun + own.pauses++) % JITTER_NS);
    struct itimerspec once = {.it_value = {0, after}};
    timer_settime(own.timer, 0, &once, NULL);
}

static void pause_inside(int number)
{
    (void)number;
    int saved = errno;
    if (interpose_depth > 0)
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    if (own.is_set && clock_now() - own.begun < WHOLE_NS)
        set_timer();
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

void perturb_begin(size_t number)
{
    if (is_instrumented())
        return;
    struct sigaction action = {.sa_handler = pause_inside, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN, &action, NULL);
    prctl(PR_SET_TIMERSLACK, 1);
    move_to_core(number);
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN};
    event.sigev_notify_thread_id = (pid_t)syscall(SYS_gettid);
    own.begun = clock_now();
    own.is_set = timer_create(CLOCK_MONOTONIC, &event, &own.timer) == 0;
    if (own.is_set)
        set_timer();
}

void perturb_end(void)
{
    bool was_set = own.is_set;
    own.is_set = false;
    if (was_set)
        timer_delete(own.timer);
}
