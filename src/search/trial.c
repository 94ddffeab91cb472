/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One process after the other.
 */
#include "search/trial.h"

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "supervise/child.h"
#include "supervise/stall.h"

/* ---- in the process -------------------------------------------------------------------------- */

/* As many as that, which libc maps apart: where its heap begins is not to hang on how many slots a
 * history has, or what hangs on addresses would be gone when it is cut. */
static uint32_t slots_of(const struct call_list *list)
{
    enum { LEAST = 1 << 14 };
    uint32_t slots = LEAST;
    for (size_t i = 0; i < list->count; i++)
        slots = MAX(slots, list->at[i].block + list->at[i].times);
    return slots;
}

/* Where libc's heap goes on in each trial; 0: nowhere in particular. */
static uintptr_t heap_from;

void trial_prepare(void)
{
    enum { APART = 128 << 20, PAGE = 4096 }; /* more than whoever makes trials comes to need */
    heap_from = ((uintptr_t)sbrk(0) + APART) / PAGE * PAGE;
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33) /* has mallinfo2 */
enum { HEAD = sizeof(size_t), LEAST = 4 * HEAD };

/* What was freed before the fork. */
static void use_up_holes(void)
{
    enum { LARGEST = 120 << 10, FROM_LISTS = 1040, STEP = 16, MOST = 20000 };
    size_t top = (size_t)(uintptr_t)sbrk(0) - mallinfo2().keepcost, size = LARGEST;
    for (int i = 0; i < MOST && size > 0; i++) {
        void *volatile p = malloc(size);
        if (p != NULL && (uintptr_t)p < top)
            continue;
        if (size > FROM_LISTS)
            free(p);
        size = size > 2 * FROM_LISTS ? size / 2 : size > STEP ? MIN(size, FROM_LISTS) - STEP : 0;
    }
}

/* What is left at the end of the heap, but for so little that no block has room in it. */
static void use_up_end(void)
{
    enum { PIECE = 100 << 10 };
    for (size_t left = mallinfo2().keepcost; left >= 2 * LEAST;) {
        size_t chunk = left > PIECE + 2 * LEAST ? PIECE : left - LEAST;
        void *volatile p = malloc(chunk - HEAD);
        (void)p;
        left -= chunk;
    }
}
#endif

/* The next block is the first one at an address that is the same in each trial: whether a defect
 * shows of one who has his memory from libc is not to hang on what this program did, nor is one
 * that hangs on addresses to be gone when the calls are cut. */
static void begin_heap(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    use_up_holes();
    use_up_end();
    uintptr_t end = (uintptr_t)sbrk(0);
    if (heap_from > end)
        sbrk((intptr_t)(heap_from - end));
#endif
}

/* The kernel clears a huge page for each few bytes that are written. */
static void forgo_huge_pages(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

static void be_quiet(void)
{
    struct rlimit no_core = {0, 0};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    setrlimit(RLIMIT_CORE, &no_core);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(nothing, fd);
}

/* Seconds for the edges.  One who hangs there hangs in a history as well, which then tells it. */
static const double learning = 0.5;

static _Noreturn void be_tried(const struct trial *trial, const struct call_list *list)
{
    be_quiet();
    if (list == NULL || !trial->room->huge_pages)
        forgo_huge_pages();
    begin_heap();
    atexit(execute_at_exit);
    PyDataMem_Handler *handler = trial->get(trial->get_data);
    if (handler == NULL)
        _exit(0);
    if (list == NULL) {
        size_dict_learn(&trial->room->size_dict, handler, true,
                        clock_now() + (uint64_t)(learning / 2 * 1e9));
        trial->room->learnt = 1;
        _exit(0);
    }
    struct execute_options options = trial->options; /* `get` may have changed them */
    options.until = UINT64_MAX;
    options.slots = slots_of(list);
    options.rules.watched = handler;
    execute_use_memory(20000, 4);
    uint64_t begun = clock_now();
    execute(list, handler, &options, &trial->room->executions);
    trial->room->seconds = clock_since(begun);
    _exit(0);
}

/* ---- around it ------------------------------------------------------------------------------- */

struct watching {
    const struct trial *trial;
    pid_t pid;
    uint64_t begun, calls;
    struct stall stall;
    bool hangs;
};

/* Seconds in one call after which it may be one that hangs. */
static const double long_call = 1;

static bool is_over(struct watching *watching)
{
    const struct trial *trial = watching->trial;
    bool is_late = (trial->is_late != NULL && trial->is_late(trial->data)) ||
                   (trial->longest > 0 && clock_since(watching->begun) > trial->longest);
    return (trial->is_over != NULL && trial->is_over(trial->data)) ||
           (is_late && clock_since(watching->stall.since) < long_call);
}

/* It hangs if it makes no call for so long, and others do not have the machine meanwhile.  What is
 * huge may all be touched. */
static bool is_to_end(void *data)
{
    static const double bytes_a_second = 256 << 20;
    struct watching *watching = data;
    const struct trial *trial = watching->trial;
    uint64_t huge = 0, pause = 0, calls = 0;
    for (int i = 0; i <= MOST_FORKS; i++) {
        const struct execution *side = &trial->room->executions.side[i];
        huge = MAX(huge, side->huge);
        pause = MAX(pause, side->pause);
        calls += side->calls;
    }
    if (calls != watching->calls)
        stall_begin(&watching->stall, watching->pid);
    watching->calls = calls;
    watching->hangs =
        stall_lasts(&watching->stall, watching->pid,
                    trial->hangs + (double)huge / bytes_a_second + (double)pause / 1000);
    return watching->hangs || is_over(watching);
}

/* What one process shows.  SIGKILL comes from the kernel, which is out of memory, or from a person;
 * and a thread that blocks all signals cannot be stopped in turns, see breakpoint.h. */
static enum trial_outcome side_outcome(const struct execution *side, int status, bool in_turns,
                                       struct found *found)
{
    int state = side->state, number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (state == EXECUTION_PASSED)
        return TRIAL_PASSED;
    if (state == EXECUTION_VIOLATED) {
        found->kind = FOUND_WRONG;
        found->rule = side->violation.rule;
        snprintf(found->seen, sizeof found->seen, "%.255s", side->violation.seen);
        snprintf(found->history, sizeof found->history, "%.319s", side->violation.history);
    } else if (state != EXECUTION_UNDER_WAY || number == SIGKILL ||
               (number == SIGTRAP && in_turns)) {
        return TRIAL_BROKEN;
    } else {
        found->kind = FOUND_DIES;
        found->rule = HEAP_RETURNS;
        snprintf(found->seen, sizeof found->seen, "%s",
                 number != 0 ? child_signal_name(number)
                             : fmt("the process exits with %d", WEXITSTATUS(status)));
    }
    found->at = side->at;
    found->calls = side->calls;
    return TRIAL_WRONG;
}

enum trial_outcome trial_run(const struct trial *trial, const struct call_list *list,
                             struct found *found)
{
    struct watching watching = {.trial = trial, .begun = clock_now()};
    struct executions *executions = &trial->room->executions;
    enum trial_outcome outcome = TRIAL_BROKEN;
    int status = 0;
    memset(executions, 0, sizeof *executions);
    memset(found, 0, sizeof *found);
    pid_t pid = child_fork(true);
    watching.pid = pid;
    if (pid == 0)
        be_tried(trial, list);
    int given_up = pid > 0 ? child_wait(pid, is_to_end, &watching, &status) : -1;
    if (given_up < 0 || list == NULL)
        return TRIAL_BROKEN;
    if (given_up > 0 && !watching.hangs)
        return TRIAL_OVER;
    if (watching.hangs) {
        *found = (struct found){.kind = FOUND_HANGS,
                                .rule = HEAP_RETURNS,
                                .at = executions->side[0].at,
                                .calls = executions->side[0].calls};
        snprintf(found->seen, sizeof found->seen, "no end after %.3g s", trial->hangs);
        outcome = TRIAL_WRONG;
    }
    for (int i = 0; i <= MOST_FORKS && outcome != TRIAL_WRONG; i++) {
        const struct execution *side = &executions->side[i];
        enum trial_outcome here =
            i > 0 && side->state == EXECUTION_NONE
                ? TRIAL_PASSED
                : side_outcome(side, i == 0 ? status : side->status, list->in_turns, found);
        found->in_fork = i > 0;
        outcome = i == 0 || here == TRIAL_WRONG ? here : outcome;
    }
    if (list->at_once && found->kind != FOUND_WRONG)
        found->at = list->count; /* whose step it was is not known */
    return outcome;
}

void trial_learn(const struct trial *trial)
{
    struct trial short_one = *trial;
    struct size_dict *learnt = &trial->room->size_dict;
    struct found unused;
    short_one.hangs = MIN(trial->hangs, learning); /* of which no call is counted */
    learnt->count = 0;
    trial_run(&short_one, NULL, &unused);
    if (learnt->count > MOST_EDGES || !trial->room->learnt)
        learnt->count = 0;
}

static bool is_same(const struct trial *trial, const struct found *a, const struct found *b)
{
    if (!trial->is_exact)
        return (a->kind == FOUND_HANGS) == (b->kind == FOUND_HANGS);
    return a->kind == b->kind && a->rule == b->rule &&
           (a->kind != FOUND_DIES || strcmp(a->seen, b->seen) == 0);
}

bool trial_shows(const struct trial *trial, const struct call_list *list, struct found *found)
{
    struct found now;
    enum trial_outcome outcome = TRIAL_PASSED;
    for (unsigned i = 0; i < trial->tries && list->count > 0 && outcome == TRIAL_PASSED; i++)
        outcome = trial_run(trial, list, &now);
    if (outcome != TRIAL_WRONG || !is_same(trial, &now, found) ||
        (trial->lacks_python && now.kind == FOUND_DIES && now.at < list->count &&
         list->at[now.at].returned))
        return false;
    *found = now;
    return true;
}
