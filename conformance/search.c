/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histories that nobody thought of.
 */
#include "harness/harness.h"
#include "search/inproc.h"
#include "search/show.h"

GROUP(search, 18, "Calls that are made up, in an order that nobody thought of.");

enum { STEPS = 1000000, STEPS_IF_INSTRUMENTED = 1500 };

static void judge(const struct inproc_result *result, uint64_t seed)
{
    const struct property *property = property_of_rule(result->violation.rule);
    if (result->state == EXECUTION_NO_MEMORY)
        harness_broke("no memory for the tables of the search");
    if (result->state != EXECUTION_VIOLATED)
        return;
    attribute_to(property->id, result->step.kind <= STEP_FREE ? &result->step : NULL);
    fail(text("%s (%s)", property->clause, property->id),
         "in history %zu, %s: %s%s%s; again with --run=search.model --seed=%zu, and a few calls "
         "that show it may come of --search",
         (size_t)result->histories, show_step(&result->step), result->violation.seen,
         result->violation.history[0] != '\0' ? "; " : "", result->violation.history, (size_t)seed);
}

PROPERTY(search_model,
    .id     = "search.model", .level = MUST, .basis = BASIS_C, .rule = HEAP_RETURNS,
    .fixture = FIXTURE_BARE, .daily = true,
    .clause = "for any calls in any order, each block is whole, aligned, apart from all others, "
              "and keeps its contents",
    .source = "C17 7.22.3; NEP 49: \"The PyDataMem_Handler structure\"",
    .why    = "programs call in orders that no author of a test thought of",
    .hint   = "shrink it with conform --handler HANDLER --search; the seed changes each day",
    .looks  = "FAIL: expected a block is aligned (malloc.alignment), saw in history 12, malloc(24)")
{
    uint64_t seed = run_seed();
    struct inproc_result result;
    struct inproc_options options = {
        .alignment = subject_claims().alignment,
        .seed = seed,
        .seconds = 0.12,
        .most_steps = is_instrumented() ? STEPS_IF_INSTRUMENTED : STEPS,
        .threads = true,
    };
    program_part("what is made up from seed %zu", (size_t)seed);
    inproc_search(subject_traced(), &options, &result);
    judge(&result, seed);
}
