/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generated situations.  src/search/scenario.c has the factors and their levels; src/heap/heap.c
 * has the oracles, each of which checks every call.  What an oracle finds is reported by the
 * property that states the requirement; what ends the process is reported here.
 */
#include "scenarios.h"

#include <pthread.h>

#include "harness/breakpoint.h"
#include "harness/harness.h"
#include "harness/interpose.h"
#include "harness/test_process.h"
#include "harness/threads.h"
#include "python/python.h"
#include "search/show.h"

GROUP(scenarios, 18, "Random combinations from a table of factors; each call is checked.",
      .rank = {RANK_AT_LENGTH, RANK_AT_LENGTH, 18});

/* The processor time that a slow handler may take is several times that of a fast one. */
static const double seconds_per_cost = 4e-6, least_seconds = 0.1, of_one_row = 0.5,
                    of_rows_instrumented = 2;
enum { LEAST_PERCENT = 2 }; /* of the cost, below which a property is INCOMPLETE */
/* Under valgrind a call takes 40 times as long; a cost of 2000 has some rows with threads. */
enum { COST_INSTRUMENTED = 40, LEAST_INSTRUMENTED = 2000 };

/* The recorded calls alone: the heap model looks at zeros, and at the handler's own struct. */
static void *call_malloc(void *ctx, size_t size)
{
    (void)ctx;
    return subject_malloc(size);
}

static void *call_calloc(void *ctx, size_t nelem, size_t elsize)
{
    (void)ctx;
    return subject_calloc(nelem, elsize);
}

static void *call_realloc(void *ctx, void *p, size_t size)
{
    (void)ctx;
    return subject_realloc(p, size);
}

static void call_free(void *ctx, void *p, size_t size)
{
    (void)ctx;
    subject_free(p, size);
}

static PyDataMem_Handler recorded = {
    .allocator = {NULL, call_malloc, call_calloc, call_realloc, call_free}};

PyDataMem_Handler *scenarios_handler(void)
{
    return &recorded;
}

/* True if a violation of the rule shows in the call alone, whatever was called before. */
static bool is_call_alone(enum heap_rule rule)
{
    return rule == HEAP_TOO_LARGE || rule == HEAP_FAILURE_KEEPS_BLOCK || rule == HEAP_OVERFLOW;
}

/* Returns the property that reports a violation of the rule: `owner` unless it is NULL. */
static const struct property *reports(const struct property *owner, enum heap_rule rule)
{
    return owner == NULL || is_call_alone(rule) ? property_of_rule(rule) : owner;
}

/* `owner` is as for reports(). */
static void check(PyDataMem_Handler *handler, double cost, const struct scenario_limits *limits,
                  const struct property *owner)
{
    const struct property *property = running_property();
    static size_t most_resident;
    if (most_resident == 0)
        most_resident = steps_bytes(true) + free_memory() / 4; /* others run beside this one */
    struct rows_result result;
    struct rows_options options = {
        .alignment = subject_claims().alignment,
        .watched = subject_handler(),
        .random = {random_next(rng())},
        .cost =
            is_instrumented() ? MIN(cost, MAX(cost / COST_INSTRUMENTED, LEAST_INSTRUMENTED)) : cost,
        .seconds = is_instrumented() ? of_rows_instrumented
                   : cost <= ONE_ROW ? of_one_row
                                     : MAX(seconds_per_cost * cost, least_seconds),
        .refuse = interpose_works() ? interpose_refuse_watched : NULL,
        .jump = interpose_works() ? clock_jump : NULL,
        .most_resident = most_resident,
        .limits = *limits,
    };
    static struct coverage coverage;
    options.coverage = &coverage;
    if (limits->level[FACTOR_FREE_SIZE].count == 0) /* properties of their own have the others */
        options.limits.level[FACTOR_FREE_SIZE] = (struct level_range)FROM_TO(TRUE_SIZE, TRUE_SIZE);
    char words[512];
    options.longest = MAX(8 * options.seconds, time_limit() / 16);
    options.least_cost = options.cost * LEAST_PERCENT / 100;
    if (is_instrumented() && cost <= ONE_ROW)
        return;                                          /* a hundred thousand calls */
    bool releases = limits->threads && python_has_gil(); /* as in_threads() does */
    if (releases)
        python_release();
    rows_run(handler, &options, &result);
    if (releases)
        python_acquire();
    bool at_once = result.found.scenario.level[FACTOR_THREADS] >= STOPPED_INSIDE;
    record_rows(&coverage.counts, at_once ? NULL : &result.found, sizeof result.found);
    if (result.state == EXECUTION_NO_MEMORY) {
        mark_incomplete("after %zu rows there was no memory or no thread for more",
                        (size_t)result.rows);
        return;
    }
    /* A SHOULD, such as errno, is not the owner's: a handler may print, and fill our pipe. */
    if (result.state == EXECUTION_PASSED &&
        (result.violation.rule == HEAP_NO_RULE || owner != NULL)) {
        if (!is_instrumented() && !in_control() && cost > ONE_ROW &&
            result.cost < options.least_cost)
            mark_incomplete("%zu rows of scenarios were run, %.0f %% of the rows of this seed, "
                            "because the handler is slow, or takes more memory than a quarter of "
                            "what is free; pass a larger --timeout",
                            (size_t)result.rows, 100 * result.cost / options.cost);
        return;
    }
    char stopped[128] = "";
    if (result.found.scenario.level[FACTOR_THREADS] == STOPPED_INSIDE && breakpoint_where() != 0)
        snprintf(stopped, sizeof stopped, "one was stopped at %s; ",
                 breakpoint_name(breakpoint_where()));
    bool is_call = result.step.kind <= STEP_FREE && !result.at_end;
    if (result.violation.rule == HEAP_ZEROED) /* so that all that met it have one cause */
        suspect_not_zero(result.step.first, result.step.second);
    const struct finding finding = {
        .call = is_call ? &result.step : NULL,
        .words = result.at_end ? "when all live blocks were checked" : show_step(&result.step),
        .is_definite = is_call_alone(result.violation.rule),
        .expected = heap_rule_expected(result.violation.rule),
        .past = result.violation.history,
        .situation = fmt("%srow %zu of %s: %s", stopped, (size_t)result.rows, property->id,
                         scenario_words(&result.found.scenario, words, sizeof words)),
    };
    const struct property *reported_by = reports(owner, result.violation.rule);
    if (reported_by->level == SHOULD && reported_by != property)
        warn_for(reported_by, &finding, result.violation.seen);
    else
        fail_for(reported_by, &finding, "%s", result.violation.seen);
}

/* Impossible requests have properties of their own. */
static struct scenario_limits of_property(const struct scenario_limits *limits)
{
    struct scenario_limits own = *limits;
    if (own.level[FACTOR_PRESSURE].count == 0)
        own.level[FACTOR_PRESSURE] = (struct level_range)FROM_TO(NO_PRESSURE, ERRNO_SET);
    return own;
}

void check_scenarios(double cost, const struct scenario_limits *limits)
{
    check_scenarios_through(&recorded, cost, limits);
}

void check_scenarios_through(PyDataMem_Handler *handler, double cost,
                             const struct scenario_limits *limits)
{
    struct scenario_limits own = of_property(limits);
    check(handler, cost, &own, NULL);
}

struct checking {
    double cost;
    const struct scenario_limits *limits;
};

static void thread_was_ended(void *unused)
{
    (void)unused;
    fail("calls in a thread to return", "the thread is ended from inside one");
}

static void check_here(void *data)
{
    const struct checking *checking = data;
    pthread_cleanup_push(thread_was_ended, NULL);
    check_scenarios(checking->cost, checking->limits);
    pthread_cleanup_pop(0);
}

void check_scenarios_about(enum factor factor, double cost, const struct scenario_limits *limits)
{
    struct scenario_limits without = *limits;
    without.level[factor] = (struct level_range)FROM_TO(0, 0);
    control_run(check_here, &(struct checking){MAX(cost / 4, ONE_ROW), &without},
                fmt("with \"%s: %s\"", scenario_factors[factor].name,
                    scenario_factors[factor].level[0].name));
    struct scenario_limits own = of_property(limits);
    check(&recorded, cost, &own, running_property());
}

void check_scenarios_in_thread(double cost, const struct scenario_limits *limits)
{
    in_threads(1, check_here, &(struct checking){cost, limits}, sizeof(struct checking));
}

PROPERTY(scenarios_blocks,
    .id     = "scenarios.blocks", .level = MUST, .basis = BASIS_C, .rule = HEAP_RETURNS,
    .fixture = FIXTURE_BARE, .scenarios = true, .ends_process = true, .slow_ms = 150,
    .title  = "every call returns",
    .clause = "Every call returns, regardless of earlier calls: it does not crash, exit or hang.",
    .source = "C17 7.22.3; NEP 49: \"The PyDataMem_Handler structure\"",
    .why    = "Programs call in orders that a test author does not foresee.",
    .hint   = "Shrink the call sequence with conform search -H HANDLER.",
    .looks  = "CRASH: SIGSEGV in realloc(p, 5000)")
{
    const struct scenario_limits limits = {.most_size = 128 << 10,
                                           .most_bytes = 64 << 20,
                                           .level[FACTOR_PRESSURE] =
                                               FROM_TO(NO_PRESSURE, PAGES_LOCKED)};
    check(&recorded, 50000, &limits, NULL);
}

PROPERTY(scenarios_large_blocks,
    .id     = "scenarios.large-blocks", .level = MUST, .basis = BASIS_C,
    .fixture = FIXTURE_BARE, .scenarios = true, .ends_process = true, .slow_ms = 100,
    .title  = "calls for large blocks return",
    .clause = "Every call for a large block returns, regardless of earlier calls.",
    .source = "C17 7.22.3; NEP 49: \"The PyDataMem_Handler structure\"",
    .why    = "Large blocks usually take a separate and less tested path in a handler.",
    .hint   = "Shrink the call sequence with conform search -H HANDLER.",
    .looks  = "CRASH: SIGSEGV in realloc(p, 5000000)")
{
    const size_t most = (size_t)512 << 20, little = 32 << 20;
    const struct scenario_limits limits = {
        .least_size = 64 << 10,
        .most_bytes = lacking_memory(2 * most) == NULL ? most : little,
        .level = {[FACTOR_PRESSURE] = FROM_TO(NO_PRESSURE, PAGES_LOCKED),
                  [FACTOR_REPETITION] = FROM_TO(0, 1),
                  [FACTOR_LIVE_BLOCKS] = FROM_TO(0, 2)}};
    check(&recorded, 60000, &limits, NULL);
}

PROPERTY(scenarios_threads,
    .id     = "scenarios.threads", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_BARE, .scenarios = true, .ends_process = true, .threads = true,
    .slow_ms = 100,
    .title  = "calls on blocks of other threads return",
    .clause = "Every call returns, for blocks made by any thread, running or ended.",
    .source = "NumPy calls the handler from any thread; no thread has to end before its arrays",
    .why    = "Arrays outlive the pool threads that made them.",
    .hint   = "Shrink the call sequence with conform search -H HANDLER.",
    .looks  = "CRASH: SIGSEGV in free(p, 100)")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 64 << 20,
                                           .threads = true,
                                           .level[FACTOR_THREADS] =
                                               FROM_TO(FREED_THERE, IN_DESTRUCTOR)};
    check(&recorded, 60000, &limits, NULL);
}

PROPERTY(scenarios_processes,
    .id     = "scenarios.processes", .level = MUST, .basis = BASIS_CALLER,
    .fixture = FIXTURE_BARE, .scenarios = true, .ends_process = true, .slow_ms = 100,
    .title  = "calls after a fork return",
    .clause = "After a fork, every call returns in the parent and in the child.",
    .source = "os.fork and multiprocessing, which go on with the arrays there are",
    .why    = "A child shares the parent's arrays, and both continue to make and free arrays.",
    .hint   = "Shrink the call sequence with conform search -H HANDLER.",
    .looks  = "CRASH: SIGSEGV in free(p, 100)")
{
    const struct scenario_limits limits = {.most_size = 1 << 20,
                                           .most_bytes = 32 << 20,
                                           .forks = true,
                                           .level[FACTOR_PROCESS] =
                                               FROM_TO(FORK_IN_TURNS, AT_EXIT)};
    check(&recorded, 60000, &limits, NULL);
}

PROPERTY(scenarios_pressure,
    .id     = "scenarios.pressure", .level = MUST, .basis = BASIS_C,
    .fixture = FIXTURE_BARE, .scenarios = true, .ends_process = true, .slow_ms = 80,
    .title  = "calls return if memory is refused",
    .clause = "If memory is refused, every call returns and leaves the blocks as they were.",
    .source = "C17 7.22.3: \"If the space cannot be allocated, a null pointer is returned\"",
    .why    = "NumPy raises MemoryError and continues with all other arrays.",
    .hint   = "Shrink the call sequence with conform search -H HANDLER.",
    .looks  = "CRASH: SIGSEGV in malloc(65536)")
{
    const struct scenario_limits limits = {.most_size = 8 << 20,
                                           .most_bytes = 64 << 20,
                                           .address_limits = !is_instrumented(),
                                           .level[FACTOR_PRESSURE] =
                                               FROM_TO(ERRNO_SET, ADDRESS_LIMIT)};
    check(&recorded, 40000, &limits, NULL);
}
