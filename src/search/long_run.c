/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of any size at any time, as many large ones as small ones: the more there are that come,
 * grow and go, the more they find that was left by another kind.  There are about as many live all
 * the time.
 */
#include "search/long_run.h"

#include <sys/param.h>

static size_t below(struct writer *writer, size_t bound)
{
    return (size_t)random_below(&writer->random, bound);
}

static size_t a_size(struct writer *writer, size_t log2)
{
    size_t power = (size_t)1 << below(writer, log2);
    return power + below(writer, power);
}

void long_run_write(struct writer *writer)
{
    enum { LEAST_LOG2 = 4, MOST_LOG2 = 22, BYTES_LOG2 = 28, FEW_LOG2 = 5, MANY_LOG2 = 12 };
    size_t log2 = LEAST_LOG2 + below(writer, MOST_LOG2 - LEAST_LOG2 + 1);
    size_t room = MAX((size_t)1 << (BYTES_LOG2 - log2), (size_t)1 << MANY_LOG2);
    size_t live = (size_t)1 << (FEW_LOG2 + below(writer, MANY_LOG2 - FEW_LOG2 + 1));
    for (size_t left = MIN(room, writer_left(writer)); left > 0; left--) {
        uint32_t slot = writer_any(writer);
        if (slot == NO_SLOT || below(writer, 2 * live) >= writer->live_count)
            write_made(writer, a_size(writer, log2));
        else if (below(writer, 2) == 0)
            write_realloc(writer, slot, a_size(writer, log2));
        else
            write_free(writer, slot);
    }
}
