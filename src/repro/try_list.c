/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Trying a list of calls with the runtime that its reproducer has.
 */
#include "heap/heap.h"
#include "repro/attempt.h"
#include "subject/subject.h"

static const struct call_list *list;
static size_t *at; /* the step that is under way */
static int seconds;

#define ALIGNMENT list->checks.alignment
#define CHECKS_ERRNO list->checks.of_errno
#define MILLISECONDS (size_t) list->checks.milliseconds
#define PROGRAMS 1
#define SECONDS seconds
#include "repro/runtime.c"

static void do_once(const struct step *step, size_t block)
{
    size_t first = (size_t)step->first, second = (size_t)step->second;
    if (step->error != 0)
        errno = step->error;
    switch ((enum step_kind)step->kind) {
    case STEP_MALLOC:
        do_malloc(block, first);
        break;
    case STEP_CALLOC:
        do_calloc(block, first, second);
        break;
    case STEP_REALLOC:
        do_realloc(block, first);
        break;
    case STEP_FREE:
        do_free(block, first);
        break;
    case STEP_MALLOC_FREE:
        do_malloc(step->block, first);
        do_free(step->block, first);
        break;
    case STEP_CALLOC_FREE:
        do_calloc(step->block, first, second);
        do_free(step->block, first * second);
        break;
    case STEP_FREE_NULL:
        do_free_null(first);
        break;
    case STEP_FILL:
        do_fill(block, step->first);
        break;
    case STEP_LIMIT:
        do_limit(first);
        break;
    case STEP_PAUSE:
        do_pause(first);
        break;
    case STEP_FORK:
        do_fork(first);
        break;
    case STEP_ASK_GETTER:
        do_ask_getter();
        break;
    case STEP_LOOK_AT_NAME:
        do_look_at_name();
        break;
    case STEP_LOOK_AT_VERSION:
        do_look_at_version();
        break;
    case STEP_LOOK_AT_FUNCTIONS:
        do_look_at_functions();
        break;
    case STEP_STOP: /* for interleaved.c */
        break;
    }
}

static size_t thread_end; /* of the steps of one thread in a row */

static void *do_thread(void *unused)
{
    for (; *at < thread_end; ++*at) {
        const struct step *step = &list->at[*at];
        for (uint32_t i = 0; i < step->times; i++)
            do_once(step, step->block + i);
    }
    return unused;
}

static void do_steps(void)
{
    for (*at = 0; *at < list->count;) {
        unsigned thread = list->at[*at].thread;
        thread_end = *at;
        while (thread_end < list->count && list->at[thread_end].thread == thread)
            thread_end++;
        if (thread == 0)
            do_thread(NULL);
        else
            in_thread(do_thread);
    }
}

static void do_again_and_again(void)
{
    repeat(do_steps);
}

void try_list(const struct tried *tried, const struct call_list *to_try, size_t *shared_at)
{
    char *no_arguments[] = {NULL};
    list = to_try;
    at = shared_at;
    seconds = tried->seconds;
    begin_watched(no_arguments);
    if (*tried->path == '\0')
        handler = plain_handler();
    else if (load(tried->path, tried->entry, tried->is_getter) != 0)
        _exit(2);
    run_calls(list->checks.of_growth ? do_again_and_again : do_steps);
}
