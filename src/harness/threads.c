/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that a property starts and waits for.
 */
#include "harness/threads.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer_detect.h"
#include "harness/interpose.h"
#include "harness/property_child.h"
#include "harness/verdict.h"
#include "python/python.h"

struct job {
    void (*body)(void *);
    void *data;
    bool with_gil;
};

static void *run_job(void *data)
{
    struct job *job = data;
    if (job->with_gil)
        python_call_with_gil(job->body, job->data);
    else
        job->body(job->data);
    return NULL;
}

/* Many at once get small stacks, and may be more than this machine allows. */
static void start_thread(pthread_t *thread, struct job *job, size_t count)
{
    enum { FEW = 16, SMALL_STACK = 512 << 10 };
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (count > FEW)
        pthread_attr_setstacksize(&attributes, SMALL_STACK);
    int error = pthread_create(thread, &attributes, run_job, job);
    pthread_attr_destroy(&attributes);
    if (error != 0 && count > FEW)
        skip("%zu threads at once cannot be started: %s", count, strerror(error));
    if (error != 0)
        harness_broke("a thread cannot be started: %s", strerror(error));
}

void in_threads(size_t count, void (*body)(void *), void *data, size_t element)
{
    pthread_t *threads = calloc(count, sizeof *threads);
    struct job *jobs = calloc(count, sizeof *jobs);
    if (threads == NULL || jobs == NULL)
        harness_broke("no memory for %zu threads", count);
    bool had_gil = python_has_gil();
    if (had_gil)
        python_release();
    for (size_t i = 0; i < count; i++) {
        jobs[i] = (struct job){body, (char *)data + i * element, had_gil && count == 1};
        start_thread(&threads[i], &jobs[i], count);
    }
    for (size_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    if (had_gil)
        python_acquire();
    free(jobs);
    free(threads);
}

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
} perturbation;

static void set_timer(void)
{
    long after =
        AFTER_NS + (long)(random_mix(perturbation.begun + perturbation.pauses++) % JITTER_NS);
    struct itimerspec once = {.it_value = {0, after}};
    timer_settime(perturbation.timer, 0, &once, NULL);
}

static void pause_inside(int number)
{
    (void)number;
    int saved = errno;
    if (interpose_depth > 0)
        nanosleep(&(struct timespec){0, PAUSE_NS}, NULL);
    if (perturbation.is_set && clock_now() - perturbation.begun < WHOLE_NS)
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
    perturbation.begun = clock_now();
    perturbation.is_set = timer_create(CLOCK_MONOTONIC, &event, &perturbation.timer) == 0;
    if (perturbation.is_set)
        set_timer();
}

void perturb_end(void)
{
    bool was_set = perturbation.is_set;
    perturbation.is_set = false;
    if (was_set)
        timer_delete(perturbation.timer);
}
