/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads that a property starts and waits for.
 */
#include "harness/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
