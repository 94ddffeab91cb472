/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measuring growth over phases, each twice as long as the one before.
 */
#include "harness/leak_check.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/proc_count.h"
#include "harness/property_child.h"
#include "harness/test_process.h"
#include "repro/call_log.h"

enum {
    PHASES = 6,
    CONFIRMING = 3, /* more of them, each with a pause before it is measured */
    IF_BUSY = 7,    /* for whoever keeps memory for a time keeps by chance more than before there */
    MAPPED_SLACK = 256 << 10,
    RESIDENT_SLACK = 1 << 20, /* kernels since 6.2 tell it from counters that lag behind */
    TOO_MUCH = 256 << 20,
};

struct size_now {
    size_t mapped, resident;
};

static struct size_now measure(void)
{
    return (struct size_now){mapped_bytes(), resident_bytes()};
}

static size_t above(size_t now, size_t before)
{
    return now > before ? now - before : 0;
}

/* True where that thread of this process waits for something, or has ended. */
static bool thread_sleeps(const char *number)
{
    char line[512] = "";
    FILE *file = fopen(text("/proc/self/task/%s/stat", number), "re");
    if (file == NULL)
        return true;
    const char *state = fgets(line, sizeof line, file) != NULL ? strrchr(line, ')') : NULL;
    fclose(file);
    return state == NULL || strchr("SZX", state[2]) != NULL;
}

static bool other_threads_sleep(void)
{
    bool sleep = true;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *entry; threads != NULL && sleep && (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] != '.' && strtol(entry->d_name, NULL, 10) != gettid())
            sleep = thread_sleeps(entry->d_name);
    }
    if (threads != NULL)
        closedir(threads);
    return sleep;
}

/* For a thread of the handler's that frees later, and falls behind in a loop that does nothing
 * else: until it has caught up, which on a busy machine takes as long as it gets no processor. */
static void wait_for_other_threads(void)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        if (other_threads_sleep())
            return;
    }
}

/* `parts` times `cycles`, or as many as there is time for; how many.  The first phase, after which
 * most handlers have shown that they do not grow, may take a fifth of the property's time.  Once
 * growth was seen the handler's threads have their turn between the parts. */
static size_t run_phase(size_t parts, size_t cycles, void (*cycle)(void *data), void *data)
{
    uint64_t begun = clock_now();
    double most = time_limit() > 0 ? time_limit() / (parts == 1 ? 5 : 15) : 1;
    size_t done = 0;
    for (size_t part = 0; part < parts; part++) {
        if (clock_since(begun) >= most)
            break;
        for (size_t i = 0; i < cycles && clock_since(begun) < most; i++, done++)
            cycle(data);
        if (parts > 1)
            wait_for_other_threads();
    }
    return done;
}

/* What is kept for a time, not for good, is given back by the calls that come after that time; how
 * much it was hangs on how fast the machine is just then. */
static void pause_after(void (*cycle)(void *data), void *data)
{
    enum { FEW = 2, MILLISECONDS = 450 };
    nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
    for (int i = 0; i < FEW; i++)
        cycle(data);
}

/* The most memory before the last phase, and that after it. */
struct growth {
    struct size_now begun, before, after;
    size_t done, done_before;
};

static void measure_phase(struct growth *g, size_t parts, size_t cycles, bool confirming,
                          void (*cycle)(void *data), void *data)
{
    g->before.mapped = MAX(g->before.mapped, g->after.mapped);
    g->before.resident = MAX(g->before.resident, g->after.resident);
    g->done_before += g->done;
    g->done = run_phase(parts, cycles, cycle, data);
    if (confirming)
        pause_after(cycle, data);
    g->after = measure();
}

/* In the last phase by more than chance, and where there were others, not much less for each cycle
 * than in those: what only once gets further behind than ever before does not go on growing. */
static bool grows(const struct growth *g, size_t begun, size_t before, size_t after, size_t slack)
{
    enum { MUCH_LESS = 4 };
    double last = (double)above(after, before) * (double)g->done_before;
    double earlier = (double)above(before, begun) * (double)g->done;
    return above(after, before) > slack && last >= earlier / MUCH_LESS;
}

static bool still_grows(const struct growth *g)
{
    return grows(g, g->begun.mapped, g->before.mapped, g->after.mapped, MAPPED_SLACK) ||
           grows(g, g->begun.resident, g->before.resident, g->after.resident, RESIDENT_SLACK);
}

static bool has_grown_a_lot(const struct growth *g)
{
    return above(g->after.mapped, g->begun.mapped) > TOO_MUCH ||
           above(g->after.resident, g->begun.resident) > TOO_MUCH / 4;
}

/* What growth_over() says, with so many confirming phases. */
static const char *growth_confirmed(int confirming_phases, size_t cycles, void (*cycle)(void *data),
                                    void *data)
{
    run_phase(1, is_instrumented() ? cycles / 16 + 1 : cycles, cycle, data);
    if (is_instrumented())
        return NULL;
    struct growth g = {.begun = measure()};
    g.before = g.after = g.begun;
    for (int phase = 0; phase < PHASES + confirming_phases; phase++) {
        bool confirming = phase >= PHASES;
        size_t parts = (size_t)1 << (confirming ? PHASES / 2 : phase);
        measure_phase(&g, parts, cycles, confirming, cycle, data);
        if (!still_grows(&g)) {
            if (g.done < cycles)
                stopped_short(
                    "it came to %zu rounds of %zu in its part of %g s; give it more by --timeout",
                    g.done, cycles, time_limit());
            return NULL;
        }
        if (phase < PHASES - 1 && has_grown_a_lot(&g))
            phase = PHASES - 1;
    }
    return text("%zu KiB more mapped and %zu KiB more resident after the last %zu times, %zu KiB "
                "and %zu KiB since the first %zu",
                above(g.after.mapped, g.before.mapped) >> 10,
                above(g.after.resident, g.before.resident) >> 10, g.done,
                above(g.after.mapped, g.begun.mapped) >> 10,
                above(g.after.resident, g.begun.resident) >> 10, cycles);
}

const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data)
{
    return growth_confirmed(clock_slowness() > 2 ? IF_BUSY : CONFIRMING, cycles, cycle, data);
}

/* A control only says whose the growth is, of which there is no doubt any more: one phase of
 * confirming is enough.  Were it wrong, free.reclaims would not fail, and this property would. */
static const char *growth_in_control(size_t cycles, void (*control)(void *data), void *data)
{
    return growth_confirmed(1, cycles, control, data);
}

void expect_no_growth_at(int line, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what)
{
    const char *growth = growth_over(cycles, cycle, data);
    if (growth == NULL)
        return;
    own.setup.record->growing = 1;
    call_log_to(NULL); /* what has shown it comes last there */
    const char *without = control != NULL ? growth_in_control(cycles, control, data) : NULL;
    if (without != NULL) {
        static const char when[] = "without what this is about";
        attribute_to(property_about(TOPIC_MEMORY_GROWS), &(struct call){.function = OUTSIDE});
        if (running_property()->level !=
            MUST) /* the property that it is attributed to is a SHOULD */
            fail_at(line, "memory to stop growing", "%s; it is so already %s", without, when);
        control_begin(when);
        fail_at(line, "memory to stop growing", "%s", without);
    }
    fail_at(line, text("memory to stop growing while %s", what), "%s", growth);
}
