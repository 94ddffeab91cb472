/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clauses that hold for a handler and that nothing here can test, for docs/clauses.md.
 */
#include "model/property.h"

UNTESTED(outlives_its_blocks,
         .clause = "The handler, its ctx and its code stay in place until the last array, context "
                   "and variable that holds its capsule is gone.",
         .source = "NEP 49, PyDataMem_Handler thread safety and lifetime",
         .why = "a test cannot see whether anything still refers to a freed struct. conform never "
                "unloads a handler, and process.late-free covers the end of the interpreter.")

UNTESTED(no_race_at_all,
         .clause =
             "With regard to data races, the functions behave as if they accessed only memory "
             "reachable through their arguments, and no static storage.",
         .source = "C17 7.22.3 paragraph 2",
         .why = "a test run without a race does not prove that there is none. threads.* provoke "
                "races, and --tsan sees each race in the calls that run, in a handler that was "
                "compiled for it.")

UNTESTED(contents_unspecified,
         .clause = "The bytes of a block from malloc, and those that realloc adds, are "
                   "indeterminate.",
         .source = "C17 7.22.3.4, 7.22.3.5",
         .why = "any contents are allowed. memcheck detects a caller that relies on them.")

UNTESTED(order_unspecified,
         .clause = "The order and contiguity of blocks from successive calls is unspecified.",
         .source = "C17 7.22.3 paragraph 1", .why = "any order is allowed.")

UNTESTED(called_with_own_blocks,
         .clause = "NumPy passes realloc and free only live blocks of this handler.",
         .source = "C17 7.22.3.3, 7.22.3.5; NEP 49, High level design",
         .why = "this binds the caller. numpy.* and conform exec check that NumPy does so.")

UNTESTED(every_size, .clause = "All requirements hold for every size and every call sequence.",
         .source = "C17 7.22.3",
         .why = "the number of sequences is unlimited. The test suite tries the sizes at which "
                "bugs are likely, and random sequences from a seed.")
