/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is measured, in the order in which it is told.
 */
#include "bench/bench.h"

#include <sys/param.h>
#include <unistd.h>

#include "base/text.h"
#include "harness/limits.h"

enum { KIB = 1 << 10, MIB = 1 << 20 };

static const struct row {
    struct cell cell;
    size_t least, most; /* sizes, by factors of four; 0: one cell */
} rows[] = {
    /* First, as these want a heap that is as new. */
    {{"footprint", "resident memory over what is live", "", WORK_FOOTPRINT, 0, 1, 0}, 0, 0},
    {{"footprint", "page faults for each MiB that is asked for", "", WORK_FOOTPRINT, 0, 1, 1},
     0,
     0},
    {{"footprint", "resident over live, a long replay of programs", "", WORK_LONG_REPLAY, 0, 1, 0},
     0,
     0},
    {{"footprint", "page faults for each MiB of that replay", "", WORK_LONG_REPLAY, 0, 1, 1}, 0, 0},
    {{"malloc", "malloc and free", "s", WORK_MALLOC, 0, 1, 0}, 16, 256 * MIB},
    {{"calloc", "calloc and free", "s", WORK_CALLOC, 0, 1, 0}, 16, 256 * MIB},
    {{"realloc", "realloc to twice the size and back", "s", WORK_REALLOC, 0, 1, 0}, 16, 256 * MIB},
    {{"add", "a + a", "s", WORK_ADD, 0, 1, 0}, 16, 256 * MIB},
    {{"zeros", "numpy.zeros", "s", WORK_ZEROS, 0, 1, 0}, 16, 256 * MIB},
    {{"resize", "a.resize to twice the size and back", "s", WORK_RESIZE, 0, 1, 0}, 16, 256 * MIB},
    {{"threads", "a + a on 1 thread", "s", WORK_THREADS, MIB, 1, 0}, 0, 0},
    {{"threads", "a + a on 2 threads", "s", WORK_THREADS, MIB, 2, 0}, 0, 0},
    {{"threads", "a + a on 4 threads", "s", WORK_THREADS, MIB, 4, 0}, 0, 0},
    {{"threads", "a + a on 8 threads", "s", WORK_THREADS, MIB, 8, 0}, 0, 0},
    {{"threads", "a + a on 16 threads", "s", WORK_THREADS, MIB, 16, 0}, 0, 0},
    {{"threads", "a + a on 32 threads", "s", WORK_THREADS, MIB, 32, 0}, 0, 0},
    {{"threads", "a + a on 64 threads", "s", WORK_THREADS, MIB, 64, 0}, 0, 0},
    {{"handover", "64 made by one thread, dropped by another", "s", WORK_HANDOVER, 4 * KIB, 2, 0},
     0,
     0},
    {{"replay", "the calls of NumPy's whole API", "s", WORK_REPLAY, 0, 1, 0}, 0, 0},
    {{"replay", "the calls of a simulation with NumPy", "s", WORK_REPLAY, 0, 1, 1}, 0, 0},
    {{"replay", "the calls of a program with SciPy", "s", WORK_REPLAY, 0, 1, 2}, 0, 0},
    {{"replay", "the calls of a program with pandas", "s", WORK_REPLAY, 0, 1, 3}, 0, 0},
    {{"replay", "the calls of a program with scikit-learn", "s", WORK_REPLAY, 0, 1, 4}, 0, 0},
    {{"latency", "a call, the median", "s of a call", WORK_LATENCY, 0, 1, 0}, 0, 0},
    {{"latency", "a call, 99 of 100", "s of a call", WORK_LATENCY, 0, 1, 1}, 0, 0},
    {{"latency", "a call, 999 of 1000", "s of a call", WORK_LATENCY, 0, 1, 2}, 0, 0},
    {{"latency", "a call, the worst", "s of a call", WORK_LATENCY, 0, 1, 3}, 0, 0},
};
enum { ROWS = sizeof rows / sizeof *rows };

/* With the array itself, its sum, and one that is twice as long. */
static bool has_memory_for(size_t size)
{
    return lacking_memory(4 * size) == NULL;
}

/* Four threads everywhere, and as many as there are cores. */
static bool has_cores_for(unsigned threads)
{
    enum { ANYWHERE = 4 };
    return threads <= ANYWHERE || (long)threads <= sysconf(_SC_NPROCESSORS_ONLN);
}

size_t bench_cells(struct bench_cell *cells, bool is_quick)
{
    size_t count = 0, factor = is_quick ? 64 : 4, most = is_quick ? 4 * MIB : 256 * MIB;
    for (size_t i = 0; i < ROWS; i++) {
        const struct row *row = &rows[i];
        if (row->least == 0 && has_cores_for(row->cell.threads))
            cells[count++] = (struct bench_cell){.cell = row->cell};
        unsigned number = 0;
        for (size_t size = row->least; size != 0 && size <= MIN(row->most, most); size *= factor) {
            if (!has_memory_for(size))
                break;
            cells[count] = (struct bench_cell){.cell = row->cell,
                                               .turn = number % 2 != 0   ? 2
                                                       : number % 4 != 0 ? 1
                                                                         : 0};
            number++;
            cells[count++].cell.size = size;
        }
    }
    return count;
}

const char *bench_size(size_t size)
{
    return size >= MIB   ? text("%zu MiB", size / MIB)
           : size >= KIB ? text("%zu KiB", size / KIB)
                         : text("%zu B", size);
}

const char *bench_value(const struct cell *cell, double value)
{
    if (cell->unit[0] != 's')
        return text("%.3g", value);
    return value >= 1      ? text("%.3g s", value)
           : value >= 1e-3 ? text("%.3g ms", value * 1e3)
           : value >= 1e-6 ? text("%.3g us", value * 1e6)
                           : text("%.3g ns", value * 1e9);
}
