/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The requirements that the heap model checks (src/heap/heap.h).  A PROPERTY block names its rule;
 * property_of_rule() in model/property.h returns the property of a rule.
 */
#ifndef CONFORM_HEAP_RULE_H
#define CONFORM_HEAP_RULE_H

enum heap_rule {
    HEAP_NO_RULE,
    HEAP_MALLOC_ALIGNMENT,
    HEAP_CALLOC_ALIGNMENT, /* in the order of enum step_kind */
    HEAP_REALLOC_ALIGNMENT,
    HEAP_CLAIMED_ALIGNMENT,
    HEAP_DISJOINT,
    HEAP_TOO_LARGE,
    HEAP_ZEROED,
    HEAP_OVERFLOW,
    HEAP_LASTS, /* small requests are granted */
    HEAP_NEIGHBORS,
    HEAP_KEEPS_CONTENTS,
    HEAP_FAILURE_KEEPS_BLOCK,
    HEAP_KEEPS_ERRNO,
    HEAP_STRUCT_CONSTANT,
    HEAP_FLOAT_STATE,
    HEAP_RECLAIMS, /* memory does not grow */
    HEAP_GETTER_STABLE,
    HEAP_NAME_TERMINATED,
    HEAP_NAME_UTF8,
    HEAP_VERSION,
    HEAP_FUNCTIONS_PRESENT,
    HEAP_RETURNS, /* a call returns: it does not crash, exit, or hang */
    HEAP_RULES
};

#endif
