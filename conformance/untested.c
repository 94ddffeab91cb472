/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clauses that hold for a handler and that nothing here can test, for docs/clauses.md.
 */
#include "model/property.h"

UNTESTED(
    outlives_its_blocks,
    .clause = "the handler, its ctx and its code stay where they are until the last array, context "
              "and variable that holds its capsule is gone",
    .source = "NEP 49, PyDataMem_Handler thread safety and lifetime",
    .why = "whether anything still refers to a struct that was given back cannot be seen; conform "
           "never unloads a subject, and process.late-free goes as far as the interpreter's end")

UNTESTED(no_race_at_all,
         .clause =
             "calls behave as though they accessed only memory reachable through their arguments, "
             "and not static storage, for the purpose of data races",
         .source = "C17 7.22.3 paragraph 2",
         .why = "threads.* provoke races and often meet one, but that none was met proves nothing; "
                "--tsan sees each that comes up in the calls that are made, in a handler that was "
                "compiled for it")

UNTESTED(
    contents_unspecified,
    .clause = "the bytes of a block from malloc, and those that realloc adds, are indeterminate",
    .source = "C17 7.22.3.4, 7.22.3.5",
    .why = "it allows everything; memcheck sees a caller who relies on them")

UNTESTED(order_unspecified,
         .clause = "the order and contiguity of blocks from successive calls is unspecified",
         .source = "C17 7.22.3 paragraph 1", .why = "it allows everything")

UNTESTED(
    called_with_own_blocks,
    .clause = "realloc and free are handed blocks of this handler that are live, and nothing else",
    .source = "C17 7.22.3.3, 7.22.3.5; NEP 49, High level design",
    .why = "it binds the caller; numpy.* and conform exec watch NumPy keep it")

UNTESTED(every_size, .clause = "all of this holds for every size and every history of calls",
         .source = "C17 7.22.3",
         .why =
             "the battery tries the sizes where bugs live and random histories from a seed; a bug "
             "for one size between them can hide")
