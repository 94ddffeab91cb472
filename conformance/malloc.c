/* SPDX-License-Identifier: BSD-3-Clause
 *
 * malloc: what it hands out.
 */
#include "battery.h"

GROUP(malloc, 2, "What malloc hands out, and what it does when it cannot.");

PROPERTY(malloc_extent,
    .id     = "malloc.extent",
    .level  = MUST, .basis = BASIS_C, .judge = JUDGE_HANDLER,
    .clause = "every byte that was asked for can be written and read back",
    .source = "C17 7.22.3.4; NEP 49, the malloc function",
    .why    = "NumPy writes all of an array's data into the block",
    .hint   = "pass on the size that was asked for, plus what the handler itself needs",
    .looks  = "CRASH: SIGSEGV, or a byte that is not what was written")
{
    for_each_size (size, 1 << 20) {
        unsigned char *p = must_malloc(size);
        pattern_fill(p, size, size);
        expect_pattern(p, size, size, "after malloc(%zu)", size);
        subject_free(p, size);
    }
}
