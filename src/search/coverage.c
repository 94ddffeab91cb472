/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters, of this process.
 */
#include "search/coverage.h"

#include <stddef.h>
#include <stdint.h>

#define CALLED __attribute__((visibility("default")))

enum { EDGES = 1 << 16, MOST_RANGES = 16 };

static uint8_t taken[EDGES];
static uint32_t edges;
static struct range {
    uint8_t *from, *to;
} ranges[MOST_RANGES];
static unsigned range_count;

CALLED void __sanitizer_cov_trace_pc_guard_init(uint32_t *from, uint32_t *to);
CALLED void __sanitizer_cov_trace_pc_guard(uint32_t *guard);
CALLED void __sanitizer_cov_8bit_counters_init(uint8_t *from, uint8_t *to);
CALLED void __sanitizer_cov_pcs_init(const uintptr_t *from, const uintptr_t *to);
CALLED void __sanitizer_cov_trace_pc(void);

static void count(uint8_t *counter)
{
    if (*counter < UINT8_MAX)
        ++*counter;
}

void __sanitizer_cov_trace_pc_guard_init(uint32_t *from, uint32_t *to)
{
    for (; from < to && *from == 0; from++)
        *from = edges = edges % (EDGES - 1) + 1;
}

void __sanitizer_cov_trace_pc_guard(uint32_t *guard)
{
    count(&taken[*guard % EDGES]);
}

void __sanitizer_cov_8bit_counters_init(uint8_t *from, uint8_t *to)
{
    if (range_count < MOST_RANGES)
        ranges[range_count++] = (struct range){from, to};
}

void __sanitizer_cov_pcs_init(const uintptr_t *from, const uintptr_t *to)
{
    (void)from, (void)to;
}

/* By the lower bits of where it was called from. */
void __sanitizer_cov_trace_pc(void)
{
    count(&taken[(uintptr_t)__builtin_return_address(0) % EDGES]);
}

static void tell(struct novelty *novelty, const uint8_t *from, const uint8_t *to, uint64_t range)
{
    for (const uint8_t *counter = from; counter < to; counter++) {
        if (*counter == 0)
            continue;
        uint64_t times = 8 - (uint64_t)(__builtin_clz(*counter) - 24);
        novelty->branches +=
            novelty_meet(novelty, (range + 1) << 48 | (uint64_t)(counter - from) << 8 | times);
    }
}

void coverage_tell(struct novelty *novelty)
{
    tell(novelty, taken, taken + EDGES, 0);
    for (unsigned i = 0; i < range_count; i++)
        tell(novelty, ranges[i].from, ranges[i].to, i + 1);
}
