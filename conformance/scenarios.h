/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rows of scenarios as the check of a property.
 */
#ifndef CONFORM_SCENARIOS_H
#define CONFORM_SCENARIOS_H

#include "search/rows.h"

/* The cost of one row, however long it is. */
enum { ONE_ROW = 1 };

/* Runs rows with the seed of the run until they cost that much together (scenario_cost(): about the
 * number of calls for small blocks), and checks every requirement of the heap model in each.  A
 * violation is reported by the property of that requirement, which may be another one than the
 * running property.  Returns if there is none. */
void check_scenarios(double cost, const struct scenario_limits *limits);

/* The same with calls of that handler.  Each of its functions is that of scenarios_handler(), which
 * calls subject_malloc() and so on, or calls it. */
PyDataMem_Handler *scenarios_handler(void);
void check_scenarios_through(PyDataMem_Handler *handler, double cost,
                             const struct scenario_limits *limits);

/* The same about one factor.  The rows run with its first level before, in a child process.  If no
 * violation is found there, the running property reports each violation of the rows themselves. */
void check_scenarios_about(enum factor factor, double cost, const struct scenario_limits *limits);

/* As check_scenarios(), in a new thread, which holds the GIL if this one does. */
void check_scenarios_in_thread(double cost, const struct scenario_limits *limits);

#endif
