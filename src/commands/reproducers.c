/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Runs a failed property once more and records its calls.  If the calls show a defect without
 * Python, and libc's allocator does not show it, they are shrunk and printed as C.
 */
#include "commands/reproducers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "commands/draft.h"
#include "harness/limits.h"
#include "repro/attempt.h"
#include "repro/print.h"
#include "repro/shrink.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

static const double seconds_to_shrink = 4;

enum { MOST_LINES = 4000 }; /* of calls, in a file that is to be read */

enum { USUAL_SECONDS = 10 }; /* until a call hangs, as in the file */

struct maker {
    struct run *run;
    const struct plan *plan;
    struct tried tried;
    struct entry entry;
    struct call_log *log;
    struct board *board; /* for the records of what is run once more */
    uint64_t begin;
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
    leave_with(EXIT_USAGE, "--repro=%s: %s; name another folder", text_safe(folder),
               strerror(errno));
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
                          .until = clock_now() + (uint64_t)(2 * m->plan->timeout * 1e9)};
    int status;
    call_log_clear(m->log);
    board_clear(m->board);
    pid_t pid = child_fork(true);
    if (pid == 0) {
        be_quiet();
        worker_run_logged(m->plan, index, board_record(m->board, 0), m->log);
    }
    if (pid > 0)
        child_wait(pid, is_to_end, &watch, &status);
    scratch_remove(m->plan->scratch);
}

/* ---- one failure --------------------------------------------------------------------------- */

/* What the calls of a property do not show, and a look before the first of them does. */
static void add_look(struct call_list *list, enum step_kind kind, uint16_t thread)
{
    memmove(list->at + 1, list->at, list->count * sizeof *list->at);
    list->at[0] = (struct step){.kind = (uint8_t)kind, .thread = thread, .times = 1};
    list->count++;
}

static void add_looks(struct call_list *list, enum heap_rule rule)
{
    if (rule == HEAP_FUNCTIONS_PRESENT)
        add_look(list, STEP_LOOK_AT_FUNCTIONS, 0);
    if (rule == HEAP_NAME_TERMINATED || rule == HEAP_NAME_UTF8)
        add_look(list, STEP_LOOK_AT_NAME, 0);
    if (rule == HEAP_VERSION)
        add_look(list, STEP_LOOK_AT_VERSION, 0);
    if (rule == HEAP_GETTER_STABLE)
        add_look(list, STEP_ASK_GETTER, 1);
    if (rule == HEAP_GETTER_STABLE || rule == HEAP_STRUCT_CONSTANT)
        add_look(list, STEP_ASK_GETTER, 0);
}

/* What the property looks at beside what any call has to hold. */
static void add_checks(struct maker *m, struct call_list *list, enum heap_rule rule,
                       const struct record *record)
{
    add_looks(list, rule);
    list->checks.of_errno = rule == HEAP_KEEPS_ERRNO;
    list->checks.alignment = rule == HEAP_CLAIMED_ALIGNMENT ? m->entry.alignment : 0;
    list->checks.of_growth = record->growing != 0;
}

/* The calls of what is run over and over come last, and a part of them is enough. */
static void keep_last(struct call_list *list)
{
    enum { ENOUGH = 2000 };
    size_t gone = list->checks.of_growth && list->count > ENOUGH ? list->count - ENOUGH : 0;
    list->count -= gone;
    memmove(list->at, list->at + gone, list->count * sizeof *list->at);
    if (list->checks.of_growth)
        call_list_close(list);
}

/* Whether libc's allocator shows it as well: then it says nothing of the handler. */
static bool plain_shows_it(const struct maker *m, const struct call_list *list)
{
    struct tried plain = m->tried;
    struct call_list without_claim = *list;
    plain.path = "";
    without_claim.checks.alignment = 0;
    return attempt(&plain, &without_claim).outcome != NOT_REPRODUCED;
}

/* What is tried one after the other: the calls of the process that made the last one; those of a
 * forked one behind a fork, made by both sides by turns or by one after the other; those of the
 * first, and these with a pause behind them. */
enum way { LAST_PROCESS, FORKED_BY_TURNS, FORKED_AFTER, FIRST_PROCESS, WITH_PAUSE, WAYS };

static bool has_forked(const struct call_log *log)
{
    size_t i = 0, count = MIN(log->count, (size_t)MOST_STEPS);
    while (i < count && log->calls[i].process == log->process)
        i++;
    return i < count;
}

static struct attempt try_way(struct maker *m, size_t i, enum way way, struct call_list *list)
{
    enum { MILLISECONDS = 50 };
    bool forked = way == FORKED_BY_TURNS || way == FORKED_AFTER;
    *list = call_list_of(m->log, way == LAST_PROCESS ? OF_LAST_PROCESS
                                 : forked            ? OF_FORKED_PROCESS
                                                     : OF_FIRST_PROCESS);
    for (size_t k = 0; k < list->count; k++) {
        if (list->at[k].kind == STEP_FORK)
            list->at[k].first = way == FORKED_AFTER ? MOST_STEPS : 1;
    }
    struct attempt none = {.outcome = NOT_TRIED, .line = "out of memory"};
    if (forked && !has_forked(m->log))
        return (struct attempt){.outcome = NOT_REPRODUCED};
    if (list->at == NULL)
        return none;
    add_checks(m, list, m->run->properties[i]->rule, m->run->records[i]);
    keep_last(list);
    list->checks.milliseconds = way == WITH_PAUSE ? MILLISECONDS : 0;
    m->tried.seconds = USUAL_SECONDS;
    struct attempt seen = attempt(&m->tried, list);
    if (seen.outcome == REPRODUCED && plain_shows_it(m, list)) {
        seen.outcome = NOT_REPRODUCED;
        snprintf(seen.line, sizeof seen.line, "libc's allocator shows it as well");
    }
    return seen;
}

/* As it is printed: it shows the same whenever it is tried, and libc's allocator does not. */
static struct attempt try_last(struct maker *m, const struct call_list *list,
                               const struct attempt *before)
{
    enum { TIMES = 3 };
    struct attempt seen = {.outcome = NOT_REPRODUCED};
    m->tried.seconds = USUAL_SECONDS;
    int times = before->no_end ? 1 : TIMES;
    for (int i = 0; i < times; i++) {
        seen = attempt(&m->tried, list);
        if (seen.outcome != REPRODUCED || strcmp(seen.what, before->what) != 0) {
            snprintf(seen.line, sizeof seen.line, "\"%s\" does not show each time", before->what);
            seen.outcome = NOT_REPRODUCED;
            return seen;
        }
    }
    if (list->count > MOST_LINES)
        snprintf(seen.line, sizeof seen.line, "no fewer than %zu show it", list->count);
    if (list->count > MOST_LINES || plain_shows_it(m, list))
        seen.outcome = NOT_REPRODUCED;
    return seen;
}

/* The list that is to be printed, and what it shows; or the reason why there is none. */
static struct attempt find_list(struct maker *m, size_t i, enum way way, struct call_list *list)
{
    struct attempt seen = try_way(m, i, way, list);
    if (seen.outcome != REPRODUCED)
        return seen;
    m->tried.seconds = list->checks.of_growth ? 4 : 1 + (int)(2 * seen.seconds);
    if (seen.no_end)
        m->tried.seconds = 1;
    double factor = list->checks.of_growth ? 2.5 : 1;
    seen = shrink(attempt, &m->tried, list, seen, factor * seconds_to_shrink * clock_slowness());
    call_list_tidy(list);
    return try_last(m, list, &seen);
}

/* The name of the file (owned), or NULL with what was seen. */
static char *reproduce_in_c(struct maker *m, size_t i, struct attempt *seen)
{
    const struct property *property = m->run->properties[i];
    struct call_list list = {.at = NULL};
    char *file = NULL;
    for (enum way way = LAST_PROCESS; way < WAYS && seen->outcome == NOT_REPRODUCED; way++) {
        call_list_free(&list);
        struct attempt next = find_list(m, i, way, &list);
        *seen = next.line[0] != '\0' || seen->line[0] == '\0' ? next : *seen;
    }
    if (seen->outcome == REPRODUCED) {
        struct reproducer reproducer = {
            .id = property->id,
            .clause = text("The clause: %s.", property->clause),
            .seen = text("Seen here: %s.", text_safe(seen->line)),
            .path = m->tried.path,
            .entry = m->tried.entry,
            .is_getter = m->tried.is_getter,
            .list = &list,
        };
        struct draft draft = draft_begin(m->run->options->repro);
        print_reproducer(draft.file, &reproducer);
        file = draft_keep(&draft, text("%s.c", property->id));
    }
    call_list_free(&list);
    return file;
}

static void reproduce(struct maker *m, size_t i, struct run_reproducer *made)
{
    struct attempt seen = {.outcome = NOT_REPRODUCED};
    run_logged(m, (size_t)(m->plan->count - m->run->count) + i);
    made->file = reproduce_in_c(m, i, &seen);
    snprintf(made->why, sizeof made->why, "not reproduced by calls alone: %s",
             seen.line[0] != '\0' ? text_safe(seen.line)
                                  : "each call meets the requirements, and the property also "
                                    "checks what is in no call");
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool is_wanted(const struct run *run, size_t i)
{
    enum verdict verdict = run->outcomes[i].verdict;
    return run->properties[i]->target != TARGET_RUNTIME &&
           (verdict == FAIL || verdict == WARN || verdict == CRASH || verdict == TIMEOUT);
}

const char *reproducer_tried(const struct subject_place *place, struct tried *tried,
                             struct entry *entry)
{
    if (place->module != NULL)
        return "the handler comes from a Python module";
    const char *wrong = entry_find(place, entry);
    if (wrong != NULL)
        return wrong;
    tried->path = place->path;
    tried->is_getter = entry->is_getter;
    tried->names_python = object_file_wants_python(place->path);
    tried->entry = place->symbol != NULL ? place->symbol
                   : entry->is_getter    ? "nep49_get_handler"
                                         : "nep49_handler";
    tried->seconds = USUAL_SECONDS;
    return NULL;
}

/* Whatever hinders all of them; or NULL. */
static const char *prepare(struct maker *m)
{
    const char *hindered = reproducer_tried(m->run->place, &m->tried, &m->entry);
    m->log = call_log_create();
    m->board = board_create(1);
    return hindered != NULL                     ? hindered
           : m->log == NULL || m->board == NULL ? strerror(errno)
                                                : NULL;
}

/* All of them have as long as the battery had. */
static bool took_its_time(const struct maker *m)
{
    double most = m->plan->max_time * (m->plan->max_time_is_given ? 1 : clock_slowness());
    return most > 0 && clock_since(m->begin) > most;
}

void reproducers_write(struct run *run, const struct plan *plan)
{
    struct maker m = {.run = run, .plan = plan, .begin = clock_now()};
    const char *hindered = NULL;
    bool is_prepared = false;
    if (run->options->repro == NULL)
        return;
    run->reproducers = calloc(run->count + 1, sizeof *run->reproducers);
    if (run->reproducers == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    for (size_t i = 0; i < run->count; i++) {
        struct run_reproducer *made = &run->reproducers[i];
        if (!is_wanted(run, i))
            continue;
        if (!is_prepared)
            hindered = prepare(&m);
        is_prepared = true;
        if (interrupt_came() != 0)
            hindered = "interrupted";
        if (hindered == NULL && took_its_time(&m))
            hindered = "those before it took all the time that there was; see --max-time";
        if (hindered == NULL)
            reproduce(&m, i, made);
        else
            snprintf(made->why, sizeof made->why, "%s", hindered);
    }
}
