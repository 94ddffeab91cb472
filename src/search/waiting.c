/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blocks of all sizes come and go, some of them come again, and for a second or two nobody calls:
 * handlers that give memory back when nothing has used it for long do so now, or in the first call
 * behind it.
 */
#include "search/waiting.h"

#include <sys/param.h>

static size_t below(struct writer *writer, size_t bound)
{
    return (size_t)random_below(&writer->random, bound);
}

/* Each power of two is as likely as any other. */
static size_t a_size(struct writer *writer)
{
    enum { MOST_LOG2 = 23, SMALL = 1 << 20 };
    size_t power = (size_t)1 << below(writer, MOST_LOG2);
    if (below(writer, 2) == 0)
        return palette_size(writer->palette, &writer->random, SMALL);
    return power + below(writer, power);
}

void waiting_write(struct writer *writer)
{
    enum { SIZES = 24, EACH = 4, SHORT = 100, LONG = 1100, LONGEST = 1000, BEHIND = 8 };
    static const size_t longer[] = {0, 0, 0, LONGEST};
    size_t size[SIZES];
    uint32_t slot[SIZES][EACH];
    for (size_t i = 0; i < SIZES; i++) {
        size[i] = a_size(writer);
        for (size_t k = 0; k < EACH; k++)
            slot[i][k] = write_made(writer, size[i]);
    }
    for (size_t i = 0; i < SIZES; i++) {
        for (size_t k = below(writer, EACH); k < EACH; k++) {
            if (slot[i][k] != NO_SLOT)
                write_free(writer, slot[i][k]);
        }
    }
    if (below(writer, 2) == 0)
        write_other(writer, STEP_PAUSE, 1 + below(writer, SHORT), 0);
    for (size_t i = 0; i < SIZES; i++) {
        if (below(writer, 4) != 0)
            write_malloc(writer, size[i]);
        if (below(writer, 2) == 0)
            write_made(writer, size[i]);
    }
    write_other(writer, STEP_PAUSE, LONG + longer[below(writer, sizeof longer / sizeof *longer)],
                0);
    for (size_t i = 0; i < BEHIND * SIZES; i++) {
        uint32_t any = writer_any(writer);
        if (any != NO_SLOT && below(writer, 2) == 0)
            write_free(writer, any);
        else
            write_made(writer, size[below(writer, SIZES)]);
    }
}
