/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a failed property once more and records its calls.  If the calls show a defect without
 * Python, and libc's allocator does not show it, they are shrunk and printed as C.  Also finds the
 * levels of factors that reproduce what a row of scenarios has shown.
 */
#include "commands/reproducers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "harness/interpose.h"
#include "harness/limits.h"
#include "report/atomic_file.h"
#include "repro/call_log.h"
#include "search/characterize.h"
#include "search/search.h"
#include "search/show.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

static const double seconds_to_shrink = 4;

enum { MOST_LINES = 4000 }; /* of calls, in a file that is to be read */

enum { USUAL_SECONDS = 10 }; /* until a call hangs, as in the file */

/* In memory that the processes of trials share. */
struct loaded_handler {
    struct trial_room room;
    int state; /* enum load_state */
    char why[256];
    bool is_getter;
    size_t alignment; /* that it claims, or 0 */
};

struct maker {
    struct run *run;
    const struct plan *plan;
    struct trial trial;
    struct loaded_handler *loaded;
    struct call_log *log;
    struct shared_results *shared; /* for the records of what is run once more */
};

/* ---- the folder ---------------------------------------------------------------------------- */

void reproducers_prepare(const struct options *options)
{
    struct stat status;
    const char *folder = options->repro;
    if (folder == NULL)
        return;
    bool made = mkdir(folder, 0777) == 0 || errno == EEXIST;
    if (made && stat(folder, &status) == 0 && !S_ISDIR(status.st_mode))
        errno = ENOTDIR;
    else if (made && access(folder, W_OK | X_OK) == 0)
        return;
    die(EXIT_USAGE, "--repro=%s: %s; name another folder", escape(folder), strerror(errno));
}

/* ---- once more ----------------------------------------------------------------------------- */

/* Where the property is, by the log. */
struct watch {
    const struct call_log *log;
    uint64_t since, until;
    uint32_t count;
};

/* One that is in a call for so long will not come back. */
static bool is_to_end(void *data)
{
    struct watch *watch = data;
    uint64_t now = clock_now();
    uint32_t count = watch->log->count;
    double hangs = 2 * clock_slowness();
    if (count != watch->count)
        watch->since = now;
    watch->count = count;
    bool is_in_call =
        count > 0 && count <= MOST_STEPS && watch->log->calls[count - 1].step.returned == 0;
    return interrupt_came() != 0 || now > watch->until ||
           (is_in_call && clock_since(watch->since) > hangs);
}

/* What is printed goes where the property can measure it, and nobody reads it. */
static void be_quiet(void)
{
    int output[2], nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (pipe2(output, O_NONBLOCK | O_CLOEXEC) != 0)
        output[0] = output[1] = nothing;
    dup2(nothing, STDIN_FILENO);
    dup2(output[1], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    dup2(output[0], OUTPUT_FD);
}

static void run_logged(const struct maker *m, size_t index)
{
    struct watch watch = {.log = m->log,
                          .since = clock_now(),
                          .until = clock_now() + (uint64_t)(2 * m->run->options->timeout * 1e9)};
    int status;
    call_log_clear(m->log);
    results_clear(m->shared);
    pid_t pid = child_fork(true);
    if (pid == 0) {
        be_quiet();
        worker_run_logged(m->plan, index, results_record(m->shared, 0), m->log);
    }
    if (pid > 0)
        child_wait(pid, is_to_end, &watch, &status);
    scratch_remove(m->plan->scratch);
}

/* ---- one failure --------------------------------------------------------------------------- */

static void put_first(struct call_list *list, struct step step)
{
    memmove(list->at + 1, list->at, list->count * sizeof *list->at);
    list->at[0] = step;
    list->count++;
}

/* Adds what no call of a property shows, and a look before the first call does, and what the
 * property checks besides what any call has to keep. */
static void add_checks(struct maker *m, struct call_list *list, enum heap_rule rule,
                       const struct record *record)
{
    struct step look = {.kind = STEP_LOOK_AT_STRUCT, .times = 1};
    struct step ask = {.kind = STEP_ASK_GETTER, .times = 1, .thread = 1};
    if (rule == HEAP_FUNCTIONS_PRESENT || rule == HEAP_NAME_TERMINATED || rule == HEAP_NAME_UTF8 ||
        rule == HEAP_VERSION)
        put_first(list, look);
    if (rule == HEAP_GETTER_STABLE)
        put_first(list, ask);
    ask.thread = 0;
    if (rule == HEAP_GETTER_STABLE || rule == HEAP_STRUCT_CONSTANT)
        put_first(list, ask);
    list->of_growth = record->growing != 0;
    m->trial.options.rules.strict = rule == HEAP_KEEPS_ERRNO;
    m->trial.options.rules.alignment = rule == HEAP_CLAIMED_ALIGNMENT ? m->loaded->alignment : 0;
}

/* The calls of what is run over and over come last, and a part of them is enough. */
static void keep_last(struct call_list *list)
{
    enum { ENOUGH = 2000 };
    size_t gone = list->of_growth && list->count > ENOUGH ? list->count - ENOUGH : 0;
    list->count -= gone;
    memmove(list->at, list->at + gone, list->count * sizeof *list->at);
    if (list->of_growth)
        call_list_close(list);
}

/* True if libc's allocator shows something as well: then it says nothing of the handler. */
static bool plain_shows_it(const struct maker *m, const struct call_list *list)
{
    struct trial plain = m->trial;
    struct found found;
    plain.get = plain_handler;
    plain.options.rules.alignment = 0;
    return trial_run(&plain, list, &found) != TRIAL_PASSED;
}

/* What is tried one after the other: the calls of the process that made the last one; those of a
 * forked one behind a fork, made by both sides by turns; those of the first, with a pause behind.
 */
enum way { LAST_PROCESS, FORKED_PROCESS, FIRST_PROCESS, WAYS };

/* False if that list does not show it, with the reason in `why`. */
static bool try_way(struct maker *m, size_t i, enum way way, struct call_list *list,
                    struct found *found, const char **why)
{
    enum { MILLISECONDS = 50 };
    static const enum list_of of[WAYS] = {OF_LAST_PROCESS, OF_FORKED_PROCESS, OF_FIRST_PROCESS};
    bool has_fork = false;
    *list = call_list_of(m->log, of[way]);
    for (size_t k = 0; k < list->count; k++)
        has_fork = has_fork || list->at[k].kind == STEP_FORK;
    if (list->at == NULL || (way == FORKED_PROCESS && !has_fork))
        return false;
    add_checks(m, list, m->run->properties[i]->rule, m->run->records[i]);
    keep_last(list);
    if (way == FIRST_PROCESS)
        list->at[list->count++] =
            (struct step){.kind = STEP_PAUSE, .times = 1, .first = MILLISECONDS};
    m->trial.hangs = USUAL_SECONDS;
    m->trial.longest = USUAL_SECONDS + 2;
    m->trial.options.growth_seconds = USUAL_SECONDS / 2.0;
    enum trial_outcome outcome = trial_run(&m->trial, list, found);
    *why = outcome == TRIAL_BROKEN ? "it could not be tried"
           : outcome == TRIAL_OVER ? "the calls take too long"
                                   : *why;
    if (outcome != TRIAL_WRONG)
        return false;
    *why = "libc's allocator shows it as well";
    return !plain_shows_it(m, list);
}

/* True if the list, as it is printed, shows the same whenever it is tried. */
static bool shows_each_time(struct maker *m, const struct call_list *list, struct found *found,
                            const char **why)
{
    int times = found->kind == FOUND_HANGS ? 1 : 3;
    m->trial.hangs = USUAL_SECONDS;
    m->trial.longest = USUAL_SECONDS + 2;
    *why = fmt("\"%s\" does not show each time", show_found(list, found));
    while (times > 0 && trial_shows(&m->trial, list, found))
        times--;
    if (times == 0 && list->count > MOST_LINES)
        *why = fmt("no fewer than %zu show it", list->count);
    return times == 0 && list->count <= MOST_LINES && !plain_shows_it(m, list);
}

/* Finds the list that is to be printed.  False, with the reason, if there is none. */
static bool find_list(struct maker *m, size_t i, enum way way, struct call_list *list,
                      struct found *found, const char **why)
{
    uint64_t begun = clock_now();
    if (!try_way(m, i, way, list, found, why))
        return false;
    double factor = list->of_growth ? 2.5 : 1;
    m->trial.hangs = found->kind == FOUND_HANGS ? 1 : 1 + 2 * clock_since(begun);
    m->trial.longest = list->of_growth ? USUAL_SECONDS : m->trial.hangs + 1;
    m->trial.options.growth_seconds = 2;
    shrink(&m->trial, list, found, factor * seconds_to_shrink);
    call_list_tidy(list);
    return shows_each_time(m, list, found, why);
}

char *reproducer_write(const struct options *options, const struct subject_place *place,
                       bool is_getter, size_t alignment, const struct property *property,
                       const struct call_list *list, const struct found *found)
{
    struct reproducer reproducer = {
        .id = property->id,
        .clause = fmt("The requirement: %s", property->clause),
        .seen = fmt("Seen here: %s.", escape(show_found(list, found))),
        .path = place->path,
        .entry = place->symbol != NULL ? place->symbol
                 : is_getter           ? "nep49_get_handler"
                                       : "nep49_handler",
        .is_getter = is_getter,
        .list = list,
        .alignment = alignment,
        .checks_errno = property->rule == HEAP_KEEPS_ERRNO,
    };
    struct atomic_file file = {.file = NULL};
    char *folder = realpath(options->repro, NULL), *path = NULL;
    if (folder == NULL || asprintf(&path, "%s/%s.c", folder, property->id) < 0 ||
        atomic_file_open(&file, path) != 0)
        die(EXIT_HARNESS_BROKE, "--repro=%s: %s; name another folder", escape(options->repro),
            strerror(errno));
    reproducer_print(file.file, &reproducer);
    if (atomic_file_close(&file, true) != 0)
        die(EXIT_HARNESS_BROKE, "--repro=%s: %s; name another folder", escape(options->repro),
            strerror(errno));
    free(folder);
    return path;
}

static void reproduce(struct maker *m, size_t i, struct run_reproducer *made)
{
    const char *why = "each call meets the requirements, and the property also checks what is in "
                      "no call";
    struct call_list list = {.at = NULL};
    struct found found;
    run_logged(m, (size_t)(m->plan->count - m->run->count) + i);
    for (enum way way = LAST_PROCESS; way < WAYS && made->file == NULL; way++) {
        if (find_list(m, i, way, &list, &found, &why))
            made->file = reproducer_write(m->run->options, m->run->place, m->loaded->is_getter,
                                          m->trial.options.rules.alignment, m->run->properties[i],
                                          &list, &found);
        call_list_free(&list);
    }
    snprintf(made->why, sizeof made->why, "not reproduced by calls alone: %s", escape(why));
}

/* Whether a row showed it, and no failure before it has a violation of the same rule. */
static bool is_first_of_rule(const struct run *run, size_t i, bool *is_done)
{
    const struct found_row *row = (const void *)run->records[i]->found_row;
    if (row->rule == HEAP_NO_RULE || row->rule >= HEAP_RULES || is_done[row->rule] ||
        run->options->quick || is_instrumented())
        return false;
    is_done[row->rule] = true;
    return true;
}

static void find_when(const struct maker *m, size_t i)
{
    struct trial trial = m->trial;
    double seconds = seconds_to_shrink * MIN(clock_slowness(), 2);
    trial.hangs = trial.longest = 1;
    trial.options.refuse = interpose_works() ? interpose_refuse_watched : NULL;
    trial.options.jump = interpose_works() ? clock_jump : NULL;
    characterize(&trial, (const void *)m->run->records[i]->found_row, seconds,
                 &m->run->characterized[i]);
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool is_wanted(const struct run *run, size_t i)
{
    enum verdict verdict = run->outcomes[i].verdict;
    return run->properties[i]->target != TARGET_RUNTIME &&
           (verdict == FAIL || verdict == WARN || verdict == CRASH || verdict == TIMEOUT);
}

static PyDataMem_Handler *load(void *data)
{
    struct maker *m = data;
    struct subject subject;
    struct loaded_handler *loaded = m->loaded;
    loaded->state = (int)subject_load(m->run->place, &subject, loaded->why, sizeof loaded->why);
    if (loaded->state != LOAD_DONE)
        return NULL;
    loaded->is_getter = subject.getter != NULL;
    loaded->alignment = subject_all_claims(m->run->place, &subject).alignment;
    m->trial.options.getter = subject.getter;
    return subject.handler;
}

/* Loads the handler for the first time.  Returns what hinders all reproducers; or NULL. */
static const char *prepare(struct maker *m)
{
    static struct call_list nothing;
    const struct subject_place *place = m->run->place;
    struct found found;
    if (place->module != NULL)
        return "the handler comes from a Python module";
    m->log = call_log_create();
    m->shared = results_create(1);
    m->loaded =
        mmap(NULL, sizeof *m->loaded, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (m->log == NULL || m->shared == NULL || m->loaded == MAP_FAILED)
        return strerror(errno);
    m->trial = (struct trial){
        .get = load,
        .get_data = m,
        .options = {.rules = {.fill = {.whole = 128 << 10, .marks = true}, .in_each_call = true},
                    .most_bytes = SIZE_MAX},
        .room = &m->loaded->room,
        .hangs = USUAL_SECONDS,
        .is_over = is_interrupted,
        .is_exact = true,
        .lacks_python = object_file_wants_python(place->path),
        .tries = 1,
    };
    trial_prepare();
    trial_run(&m->trial, &nothing, &found);
    m->loaded->why[sizeof m->loaded->why - 1] = '\0';
    return m->loaded->state == LOAD_DONE ? NULL
           : m->loaded->why[0] != '\0'   ? escape(m->loaded->why)
                                         : "it cannot be loaded in a process of its own";
}

void reproducers_write(struct run *run, const struct plan *plan)
{
    struct maker m = {.run = run, .plan = plan};
    uint64_t begin = clock_now(); /* all of them have as long as the test suite had */
    const char *hindered = NULL;
    bool is_prepared = false;
    bool is_done[HEAP_RULES] = {false}, has_repro = run->options->repro != NULL;
    if (has_repro)
        run->reproducers = allocate(run->count, sizeof *run->reproducers);
    for (size_t i = 0; i < run->count; i++) {
        if (!is_wanted(run, i))
            continue;
        bool is_first = is_first_of_rule(run, i, is_done);
        if (!has_repro && !is_first)
            continue;
        if (plan->shows_progress)
            fprintf(stderr, "\r\033[K%s: shrinking", run->properties[i]->id);
        if (!is_prepared)
            hindered = prepare(&m);
        is_prepared = true;
        if (interrupt_came() != 0)
            hindered = "interrupted";
        if (hindered == NULL && is_past_max_time(run->options, begin))
            hindered = "those before it took all the time that there was; see --max-time";
        if (hindered == NULL && is_first)
            find_when(&m, i);
        if (!has_repro)
            continue;
        struct run_reproducer *made = &run->reproducers[i];
        if (hindered == NULL)
            reproduce(&m, i, made);
        else
            snprintf(made->why, sizeof made->why, "%s", hindered);
    }
    if (plan->shows_progress && is_prepared)
        fputs("\r\033[K", stderr);
}
