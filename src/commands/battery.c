/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery: what is to be run, its rounds, and what is told of them.
 */
#include "commands/commands.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reexec.h"
#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "commands/launch.h"
#include "commands/reproducers.h"
#include "harness/interpose.h"
#include "harness/limits.h"
#include "model/attribution.h"
#include "python/interpreter.h"
#include "report/present.h"
#include "report/report.h"
#include "report/report_files.h"
#include "runner/scheduler.h"
#include "runner/worker.h"
#include "search/characterize.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

struct coordinator {
    const struct options *options;
    struct launch launch;
    struct subject_place *places; /* of the handlers */
    struct plan plan;             /* its first property is the one that all others wait for */
    bool first_is_implied;        /* it was not asked for */
    struct run run;
    struct report_files *files;
    json_t *reports; /* of several handlers: those so far */
    struct scheduler scheduler;
    struct record *kept;      /* for each property, the record of its worst round so far */
    struct outcome *outcomes; /* and the outcome of that round */
    struct outcome *latest;   /* of the round that just ended */
    size_t rounds;
    uint64_t begin;
};

static bool has_several(const struct coordinator *c)
{
    return c->options->handler_count > 1;
}

/* That of the handler in hand. */
static const struct subject_place *place_of(const struct coordinator *c)
{
    return &c->places[atomic_load(&c->plan.shared->handler)];
}

/* ---- what to run ------------------------------------------------------------------------ */

static void choose_properties(struct coordinator *c)
{
    size_t count, used = 1;
    const struct property **chosen = options_properties(c->options, &count);
    const struct property **properties = allocate(count + 1, sizeof *properties);
    properties[0] = property_first();
    if (properties[0] == NULL)
        die(EXIT_HARNESS_BROKE, "no property has .first");
    c->first_is_implied = !options_take(c->options, properties[0]->id);
    for (size_t i = 0; i < count; i++) {
        if (chosen[i] != properties[0])
            properties[used++] = chosen[i];
    }
    free(chosen);
    c->plan.properties = properties;
    c->plan.count = used;
}

/* Those first that take longest, so that none is alone at the end. */
static void sort_by_cost(const struct plan *plan, size_t *queue, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        size_t index = queue[i], k = i;
        unsigned slow_ms = plan->properties[index]->slow_ms;
        for (; k > 0 && plan->properties[queue[k - 1]]->slow_ms < slow_ms; k--)
            queue[k] = queue[k - 1];
        queue[k] = index;
    }
}

static void make_queues(struct plan *plan)
{
    for (size_t i = 1; i < plan->count; i++)
        plan->fresh_count += plan->properties[i]->fixture == FIXTURE_FRESH;
    plan->fresh = plan->shared->queue;
    plan->python = plan->fresh + plan->fresh_count;
    size_t fresh = 0;
    for (size_t i = 1; i < plan->count; i++) {
        if (plan->properties[i]->fixture == FIXTURE_FRESH)
            plan->fresh[fresh++] = i;
        else
            plan->python[plan->python_count++] = i;
    }
    sort_by_cost(plan, plan->fresh, plan->fresh_count);
    sort_by_cost(plan, plan->python, plan->python_count);
}

/* A worker beside the first is forked off it, which costs about as much as a property or two; it
 * stays for all. */
static size_t choose_jobs(const struct coordinator *c)
{
    cpu_set_t set;
    size_t cores = sched_getaffinity(0, sizeof set, &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
    size_t jobs = c->options->jobs != 0 ? c->options->jobs : cores;
    size_t rounds = MAX(c->options->repeat, 1) * c->options->handler_count;
    size_t useful = 1 + c->plan.python_count * rounds / 8;
    if (useful == 1 && c->plan.fresh_count > 0 && c->plan.python_count > 0)
        useful = 2;
    return MIN(MIN(jobs, useful), (size_t)MOST_WORKERS);
}

/* ---- the end ---------------------------------------------------------------------------- */

/* Draws the conclusions of a round.  If the handler did not survive the first property, the others
 * are a SKIP, also those that had begun before that was known. */
static void conclude_round(struct coordinator *c)
{
    const struct record *first = results_record(c->plan.shared, 0);
    bool interrupted = c->run.interrupted;
    bool lives = worker_subject_lives(c->plan.shared) || interrupted ||
                 first->verdict == VERDICT_NONE; /* no worker was left to run it */
    attribution_settle(c->plan.properties, lives ? c->plan.count : 1, c->plan.shared, c->latest);
    for (size_t i = 0; i < c->plan.count; i++) {
        struct outcome *outcome = &c->latest[i];
        bool is_dead = i > 0 && !lives;
        if (is_dead || results_record(c->plan.shared, i)->verdict == VERDICT_NONE) {
            *outcome = (struct outcome){
                .verdict = interrupted ? INCOMPLETE
                           : is_dead   ? SKIP
                                       : BROK,
                .not_run = interrupted,
            };
            snprintf(outcome->note, sizeof outcome->note, "%s%s",
                     interrupted ? "not run: interrupted"
                     : is_dead   ? "not run: the handler did not survive "
                                 : "no worker was left to run it",
                     is_dead ? c->plan.properties[0]->id : "");
        }
        expectations_apply(c->run.expectations, c->plan.properties[i], &c->plan.shared->environment,
                           outcome);
    }
}

static void fill_run(struct coordinator *c)
{
    struct shared_results *shared = c->plan.shared;
    enum verdict first = c->outcomes[0].verdict;
    /* asked for or not, a first property that ended and did not pass is in the report */
    bool is_told = first != PASS && !(c->run.interrupted && first == INCOMPLETE);
    size_t from = c->first_is_implied && !is_told ? 1 : 0;
    struct run *run = &c->run;
    run->options = c->options;
    run->place = place_of(c);
    load_make_sound(results_load(shared));
    run->load = results_load(shared);
    run->environment = &shared->environment;
    run->python = c->plan.python_path;
    /* of several nobody knows which wants it, and alone each gets it again */
    run->tunables = static_tls_is_wide() && !has_several(c) ? STATIC_TLS_TUNABLE : NULL;
    run->machine = machine_here();
    const char *allocator = interpose_preloaded();
    snprintf(run->allocator, sizeof run->allocator, "%s", allocator != NULL ? allocator : "");
    run->properties = c->plan.properties + from;
    run->count = c->plan.count - from;
    free(run->records);
    run->records = allocate(run->count, sizeof *run->records);
    for (size_t i = 0; i < run->count; i++)
        run->records[i] = &c->kept[from + i];
    run->outcomes = c->outcomes + from;
    free(run->characterized);
    run->characterized = allocate(run->count, sizeof *run->characterized);
    run->rounds = c->rounds;
    run->seconds = clock_since(c->begin);
    run_symbolize(run);
    run_conclude(run);
}

static void write_reports(struct coordinator *c)
{
    const char *const words[] = {"--run", c->options->with_subject ? "--with-handler" : NULL, NULL};
    json_t *value = has_several(c) ? json_incref(c->reports) : report_value(&c->run);
    report_files_write(c->files, value, words);
    json_decref(value);
}

/* Compares the run with --baseline, if there is one. */
static void compare_with_baseline(struct run *run)
{
    const struct options *options = run->options;
    const char *words[] = {"--run", "--baseline", options->baseline, NULL, NULL, NULL};
    size_t count = 3;
    if (options->baseline == NULL)
        return;
    if (options->strict)
        words[count++] = "--strict";
    if (options->quiet)
        words[count++] = "--quiet";
    json_t *report = report_value(run), *answer = present_answer(words, report); /* it stays */
    run->baseline = json_object_get(answer, "baseline");
    run->baseline_text = json_string_value(json_object_get(answer, "text"));
    json_decref(report);
    struct conclusion *c = &run->conclusion;
    if (options->fail_on_new && c->stale == 0 &&
        (c->code == EXIT_CONFORMANT || c->code == EXIT_NOT_CONFORMANT))
        c->status = (enum exit_code)json_integer_value(json_object_get(answer, "status"));
}

/* True if that is a terminal on which lines can be overwritten and colored. */
static bool is_smart_terminal(int fd)
{
    const char *term = getenv("TERM");
    return isatty(fd) && term != NULL && strcmp(term, "dumb") != 0;
}

/* Prints the report unless another format goes to stdout.  False if stdout cannot be written. */
static bool print_report(const struct run *run)
{
    const char *no_color = getenv("NO_COLOR");
    enum color color = run->options->color;
    if (report_files_take_stdout(run->options))
        return true;
    bool is_colored =
        color == COLOR_ALWAYS || (color == COLOR_AUTO && is_smart_terminal(STDOUT_FILENO) &&
                                  (no_color == NULL || *no_color == '\0'));
    bool told = report_text(stdout, run, is_colored) == 0;
    if (run->baseline_text != NULL)
        fputs(run->baseline_text, stdout);
    return told;
}

static enum exit_code report(struct coordinator *c)
{
    const char *argument = place_of(c)->argument;
    int state = atomic_load(&c->run.load->state);
    if (state == LOAD_CONTRADICTED) /* wrong usage, with no report */
        loaded_or_leave(argument, state, c->run.load->why);
    compare_with_baseline(&c->run);
    if (has_several(c))
        json_array_append_new(c->reports, report_value(&c->run));
    if (!has_several(c) || c->run.interrupted)
        write_reports(c);
    if (!has_several(c))
        loaded_or_leave(argument, state, c->run.load->why);
    bool told = print_report(&c->run);
    if (c->run.interrupted || ((!told || c->options->repro != NULL) && interrupt_came() != 0))
        interrupt_die();
    if (!told)
        die(EXIT_HARNESS_BROKE, "stdout cannot be written: %s", strerror(errno));
    return c->run.conclusion.status;
}

/* Does not come back where that lets the subject load. */
static void start_again_for_static_tls(struct coordinator *c)
{
    struct load *load = results_load(c->plan.shared);
    int state = atomic_load(&load->state);
    load_make_sound(load);
    if (static_tls_was_short(load->why))
        report_files_pass_on(c->files);
    launch_again(&c->launch, state, load->why);
}

static void make_room(struct coordinator *c)
{
    c->kept = allocate(c->plan.count, sizeof *c->kept);
    c->outcomes = allocate(c->plan.count, sizeof *c->outcomes);
    c->latest = allocate(c->plan.count, sizeof *c->latest);
}

static struct coordinator *here; /* of --no-fork: for at_end, which gets no argument */

static void end_here(void)
{
    struct record *record = results_record(here->plan.shared, 0);
    start_again_for_static_tls(here);
    record->verdict = record->reached;
    make_room(here);
    here->kept[0] = *record;
    here->outcomes[0] = outcome_of(record);
    expectations_apply(here->run.expectations, here->plan.properties[0],
                       &here->plan.shared->environment, &here->outcomes[0]);
    here->first_is_implied = false;
    here->rounds = 1;
    fill_run(here);
    fflush(stdout);
    enum exit_code code = report(here);
    fflush(NULL);
    _exit(code);
}

static _Noreturn void run_here(struct coordinator *c)
{
    size_t first = c->first_is_implied ? 1 : 0;
    if (c->plan.count - first != 1)
        die(EXIT_USAGE, "--no-fork runs one property, and %zu are chosen; say --run=ID",
            c->plan.count - first);
    c->plan.properties += first;
    c->plan.count = 1;
    here = c;
    interrupt_reset();
    if (interrupt_came() != 0)
        interrupt_die();
    if (!c->options->quiet && !report_files_take_stdout(c->options))
        printf("%s on %s, in this process\n", c->plan.properties[0]->id,
               escape(place_of(c)->argument));
    fflush(stdout); /* it may not come to a report */
    c->begin = clock_now();
    worker_run_here(&c->plan, 0, end_here);
}

static void find_handlers(struct coordinator *c)
{
    c->places = allocate(c->options->handler_count, sizeof *c->places);
    for (size_t i = 0; i < c->options->handler_count; i++) {
        const char *wrong = subject_find(c->options->handlers[i], &c->places[i]);
        if (wrong != NULL)
            die(EXIT_CANNOT_LOAD, "%s", wrong);
        if (c->places[i].module == NULL)
            check_not_overwriting(c->options, c->places[i].path, "the handler");
        if (c->places[i].module != NULL && c->options->with_subject)
            die(EXIT_USAGE, "--with-subject: a handler from Python is no file; leave it out");
        c->places[i].claims = c->options->claims;
    }
}

static void hash_handler(struct coordinator *c)
{
    const struct subject_place *place = place_of(c);
    c->run.sha256[0] = '\0';
    if (place->module == NULL && object_file_sha256(place->path, c->run.sha256) != 0)
        die(EXIT_CANNOT_LOAD, "%s: %s", escape(place->argument), strerror(errno));
}

/* A start of Python takes longer than all that --quick runs. */
static bool can_do_without_python(const struct coordinator *c)
{
    bool can = c->options->quick && c->options->python == NULL && reexec_host() == NULL;
    for (size_t i = 0; i < c->options->handler_count; i++)
        can = can && c->places[i].module == NULL && !object_file_wants_python(c->places[i].path);
    return can;
}

static void set_up(struct coordinator *c, char **argv)
{
    find_handlers(c);
    choose_properties(c);
    c->plan.without_python = can_do_without_python(c);
    c->plan.shows_progress = is_smart_terminal(STDERR_FILENO) && !c->options->quiet;
    c->launch = (struct launch){
        .options = c->options,
        .argv = argv,
        .places = c->places,
        .count = c->options->handler_count,
        .python = c->plan.without_python ? WITHOUT_PYTHON : WITH_NUMPY,
        .static_tls = has_several(c), /* it is too late once one of them needs it */
        .shows_progress = c->plan.shows_progress,
    };
    c->plan.python_path = launch(&c->launch);
    if (*c->plan.python_path != '\0')
        present_with(c->plan.python_path);
    if (*reexec_word(REEXEC_REPORTS) != '\0')
        c->plan.memcheck_folder = reexec_word(REEXEC_REPORTS);
    if (c->options->expect != NULL)
        c->run.expectations = expectations_read(c->options->expect);
    const char *const words[] = {"--baseline", c->options->baseline, NULL};
    if (c->options->baseline != NULL) /* this leaves if the file is not one report */
        json_decref(present_answer(words, NULL));
    c->plan.options = c->options;
    scratch_name(c->plan.scratch);
    c->plan.places = c->places;
    c->plan.data_races = tsan_is_running(); /* also where the user preloaded it */
    c->plan.shared = results_create(c->plan.count);
    if (c->plan.shared == NULL)
        die(EXIT_HARNESS_BROKE, "no memory to share with the workers: %s", strerror(errno));
    make_queues(&c->plan);
    hash_handler(c);
    c->files = report_files_open(c->options);
    reproducers_prepare(c->options);
    c->reports = json_array();
    c->scheduler = (struct scheduler){.plan = &c->plan, .jobs = choose_jobs(c)};
}

/* Returns how much an outcome says against the handler.  What is waived weighs less than what
 * decides, and more than anything else. */
static int weight(const struct coordinator *c, size_t i, const struct outcome *outcome)
{
    enum { WAIVED = VERDICT_COUNT, DECIDES = 2 * VERDICT_COUNT };
    int own = verdict_facts[outcome->verdict].severity;
    if (!outcome_would_decide(outcome, c->plan.properties[i], c->options->strict))
        return own;
    return own + (outcome->waiver != NULL ? WAIVED : DECIDES);
}

/* What the latest outcome is about. */
static const struct record *record_of(const struct coordinator *c, size_t i)
{
    const struct property *found_by = c->latest[i].found_by;
    while (found_by != NULL && c->plan.properties[i] != found_by)
        i = (i + 1) % c->plan.count;
    return results_record(c->plan.shared, i);
}

/* Keeps the worst round of each property.  True if the round was bad. */
static bool keep_round(struct coordinator *c)
{
    bool bad = false;
    for (size_t i = 0; i < c->plan.count; i++) {
        const struct outcome *latest = &c->latest[i];
        struct outcome *worst = &c->outcomes[i];
        enum verdict verdict = latest->verdict;
        if (c->run.interrupted && c->rounds > 0 && verdict == INCOMPLETE)
            continue; /* the result of the rounds before stands */
        size_t bad_rounds = worst->bad_rounds + (verdict != PASS && verdict != SKIP);
        size_t skipped_rounds = worst->skipped_rounds + (verdict == SKIP);
        bool is_bad = verdict_facts[verdict].severity > verdict_facts[WARN].severity ||
                      (verdict == WARN && c->options->strict);
        bad = bad || (is_bad && latest->waiver == NULL &&
                      (c->plan.properties[i]->target == TARGET_HANDLER || verdict == BROK));
        if (c->rounds == 0 || weight(c, i, latest) > weight(c, i, worst)) {
            /* no call is in progress any more */
            memcpy(&c->kept[i], record_of(c, i), offsetof(struct record, calls));
            *worst = *latest;
        }
        worst->bad_rounds = bad_rounds;
        worst->skipped_rounds = skipped_rounds;
    }
    c->rounds++;
    return bad;
}

static void clear_board(struct coordinator *c, size_t handler)
{
    results_clear(c->plan.shared);
    atomic_store(&c->plan.shared->handler, handler);
}

/* All rounds that were asked for.  The load report and the environment are those of the last. */
static void run_rounds(struct coordinator *c)
{
    const struct options *options = c->options;
    size_t most = options->repeat != 0 ? options->repeat : options->until_fail ? SIZE_MAX : 1;
    for (;;) {
        c->run.interrupted = !scheduler_run(&c->scheduler);
        scratch_remove(c->plan.scratch); /* whoever made it may have been killed */
        if (c->plan.shared->python_error[0] != '\0')
            return;
        conclude_round(c);
        bool bad = keep_round(c);
        if (c->rounds >= most || (bad && options->until_fail) || c->run.interrupted ||
            atomic_load(&results_load(c->plan.shared)->state) != LOAD_DONE)
            return;
        clear_board(c, atomic_load(&c->plan.shared->handler));
    }
}

/* The place in the plan of the property whose record the outcome is about. */
static size_t found_at(const struct coordinator *c, size_t i)
{
    const struct property *found_by = c->outcomes[i].found_by;
    size_t at = i;
    while (found_by != NULL && c->plan.properties[at] != found_by)
        at = (at + 1) % c->plan.count;
    return at;
}

static bool is_to_repeat(const struct coordinator *c, size_t i)
{
    enum { MOST_SECONDS = 1 };
    size_t from = c->plan.count - c->run.count;
    enum verdict verdict = c->outcomes[i].verdict;
    return i >= from && (verdict == FAIL || verdict == CRASH) &&
           c->run.leads[i - from] == i - from && c->plan.properties[i]->target == TARGET_HANDLER &&
           c->kept[i].seconds < MOST_SECONDS;
}

/* Runs what failed, and is reported in full, twice more: it may be intermittent. */
static void repeat_failures(struct coordinator *c)
{
    enum { MORE = 2, MOST_FAILURES = 8 };
    struct plan *plan = &c->plan;
    size_t failures = 0, length = plan->count - 1;
    bool *wanted = allocate(plan->count, sizeof *wanted);
    size_t *queue = allocate(length, sizeof *queue);
    for (size_t i = 0; i < plan->count && failures < MOST_FAILURES; i++) {
        if (!is_to_repeat(c, i))
            continue;
        failures++;
        c->outcomes[i].runs = c->outcomes[i].failed_runs = 1;
        wanted[i] = wanted[found_at(c, i)] = true;
    }
    memcpy(queue, plan->fresh, length * sizeof *queue);
    for (size_t k = 0; k < length; k++)
        plan->fresh[k] = wanted[queue[k]] ? queue[k] : LEFT_OUT;
    for (int times = 0; times < MORE && failures > 0 && !c->run.interrupted; times++) {
        clear_board(c, atomic_load(&plan->shared->handler));
        c->run.interrupted = !scheduler_run(&c->scheduler);
        scratch_remove(plan->scratch);
        conclude_round(c);
        for (size_t i = 0; i < plan->count && !c->run.interrupted; i++) {
            if (c->outcomes[i].runs == 0)
                continue;
            c->outcomes[i].runs++;
            c->outcomes[i].failed_runs +=
                verdict_facts[c->latest[i].verdict].decides || c->latest[i].cause != NULL;
        }
    }
    memcpy(plan->fresh, queue, length * sizeof *queue);
    free(wanted);
    free(queue);
}

/* The handler in the shared results. */
static enum exit_code run_handler(struct coordinator *c, bool is_last)
{
    c->begin = clock_now();
    run_rounds(c);
    if (c->plan.shared->python_error[0] != '\0') {
        const char *advice = interpreter_advice();
        die(EXIT_USAGE, "%s cannot be embedded: %s%s%s name another by --python",
            escape(c->plan.python_path), c->plan.shared->python_error, advice,
            *advice != '\0' ? ", or" : ";");
    }
    start_again_for_static_tls(c);
    fill_run(c);
    if (c->rounds == 1 && !c->options->quick && !is_instrumented() && !c->plan.data_races)
        repeat_failures(c);
    if (is_last)
        scheduler_end(&c->scheduler);
    if (c->run.interrupted)
        run_conclude(&c->run);
    reproducers_write(&c->run, &c->plan);
    c->run.seconds = clock_since(c->begin);
    return report(c);
}

static enum exit_code run_handlers(struct coordinator *c)
{
    size_t count = c->options->handler_count, conformant = 0, waived = 0;
    enum exit_code worst = EXIT_CONFORMANT;
    bool tells = !c->options->quiet && !report_files_take_stdout(c->options);
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            c->rounds = 0;
            memset(c->kept, 0, c->plan.count * sizeof *c->kept);
            memset(c->outcomes, 0, c->plan.count * sizeof *c->outcomes);
            c->scheduler.restarts = 0;
            clear_board(c, i);
            hash_handler(c);
        }
        enum exit_code code = run_handler(c, i + 1 == count);
        conformant += code == EXIT_CONFORMANT;
        waived += code == EXIT_CONFORMANT && c->run.conclusion.waived > 0;
        worst = exit_code_worse(worst, code);
        if (tells && has_several(c))
            putchar('\n');
    }
    if (has_several(c))
        write_reports(c);
    if (tells && has_several(c))
        printf("%s: %zu of %zu handlers%s\n",
               c->options->quick ? "nothing failed, and nothing is proved" : "conformant",
               conformant, count, waived > 0 ? fmt(", %zu of them with waivers", waived) : "");
    return worst;
}

enum exit_code battery_run(const struct options *options, char **argv)
{
    static struct coordinator coordinator;
    struct coordinator *c = &coordinator;
    c->options = options;
    child_prepare();
    interrupt_catch();
    signal(SIGXFSZ, SIG_IGN); /* a report that gets too long cannot be written, and that is told */
    signal(SIGPIPE, SIG_IGN); /* whoever closes stdout is told, and the other reports are written */
    set_up(c, argv);
    if (options->command == COMMAND_NO_FORK)
        run_here(c);
    make_room(c);
    return run_handlers(c);
}
