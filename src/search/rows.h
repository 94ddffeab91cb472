/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of scenarios executed in this process, one after the other, so that what one row leaves in
 * the handler is there for the next.
 */
#ifndef CONFORM_ROWS_H
#define CONFORM_ROWS_H

#include "search/coverage.h"
#include "search/execute.h"
#include "search/scenario.h"

struct rows_options {
    size_t alignment;                 /* that the handler claims, or 0 */
    const PyDataMem_Handler *watched; /* the struct that must not change */
    struct random random;
    double cost;          /* of all rows together, see scenario_cost() */
    double seconds;       /* of processor time, after which no further list begins */
    double least_cost;    /* before which more time is taken */
    double longest;       /* seconds of real time, after which the list is cut */
    size_t most_resident; /* bytes of this process, beyond which no further list begins */
    void (*refuse)(size_t nth, enum refusal how); /* see struct execute_options */
    void (*jump)(unsigned seconds);
    struct scenario_limits limits;
    struct coverage *coverage; /* to which the rows are added */
};

/* A row that showed a violation, and what it takes to write it again.  It has no pointer, as the
 * record of a property hands it on. */
struct found_row {
    enum heap_rule rule; /* HEAP_NO_RULE: there is none */
    struct scenario scenario;
    size_t size; /* of most of its blocks */
    size_t alignment, most_bytes;
    struct random random; /* of the writer, when it began */
    struct fill_rules fill;
    struct size_dict size_dict;
};

struct rows_result {
    enum execution_state state;      /* EXECUTION_PASSED if all holds */
    struct heap_violation violation; /* or the first warning, if the state is EXECUTION_PASSED */
    struct step step;                /* that found it; its kind may be one without a call */
    bool at_end;                     /* found behind the last step */
    struct found_row found;
    uint64_t rows, calls;
    double cost; /* of them, see scenario_cost() */
};

/* Blocks that are live when something does not hold stay so. */
void rows_run(PyDataMem_Handler *handler, const struct rows_options *options,
              struct rows_result *result);

#endif
