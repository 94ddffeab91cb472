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
    IF_BUSY = 7, /* a handler that keeps memory for a time may by chance keep more on a busy one */
};

/* Bytes mapped, and resident; with what may be chance and what is too much.  Kernels since 6.2
 * report the latter from counters that lag behind. */
enum { MAPPED, RESIDENT, KINDS };
struct memory {
    size_t of[KINDS];
};
static const size_t slack[KINDS] = {256 << 10, 1 << 20}, too_much[KINDS] = {256 << 20, 64 << 20};

static struct memory measure(void)
{
    return (struct memory){{mapped_bytes(), resident_bytes()}};
}

static size_t above(size_t now, size_t before)
{
    return now > before ? now - before : 0;
}

/* True if that thread of this process waits, or has ended. */
static bool thread_sleeps(const char *number)
{
    char line[512] = "";
    FILE *file = fopen(fmt("/proc/self/task/%s/stat", number), "re");
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

/* Lets a thread of the handler that frees later catch up. */
static void wait_for_other_threads(void)
{
    enum { TRIES = 100 };
    for (int i = 0; i < TRIES; i++) {
        nanosleep(&(struct timespec){0, 2000000}, NULL);
        if (other_threads_sleep())
            return;
    }
}

/* Runs `cycles` in each of `parts`, or as many as there is time for, and returns how many.  The
 * first phase, which is enough for most handlers, may take a fifth of the property's time. */
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

/* Lets calls give back what the handler keeps for a time only. */
static void pause_after(void (*cycle)(void *data), void *data)
{
    enum { FEW = 2, MILLISECONDS = 450 };
    nanosleep(&(struct timespec){0, MILLISECONDS * 1000000}, NULL);
    for (int i = 0; i < FEW; i++)
        cycle(data);
}

/* `before` is the most memory before the latest phase. */
struct growth {
    struct memory begun, before, after;
    size_t done, done_before;
};

static void measure_phase(struct growth *g, size_t parts, size_t cycles, bool confirming,
                          void (*cycle)(void *data), void *data)
{
    for (int i = 0; i < KINDS; i++)
        g->before.of[i] = MAX(g->before.of[i], g->after.of[i]);
    g->done_before += g->done;
    g->done = run_phase(parts, cycles, cycle, data);
    if (confirming)
        pause_after(cycle, data);
    g->after = measure();
}

/* True if it grew in the latest phase by more than chance, and not much less for each cycle than in
 * the phases before. */
static bool still_grows(const struct growth *g)
{
    enum { MUCH_LESS = 4 };
    bool grows = false;
    for (int i = 0; i < KINDS; i++) {
        size_t last = above(g->after.of[i], g->before.of[i]);
        double earlier = (double)above(g->before.of[i], g->begun.of[i]) * (double)g->done;
        grows = grows ||
                (last > slack[i] && (double)last * (double)g->done_before >= earlier / MUCH_LESS);
    }
    return grows;
}

static bool has_grown_a_lot(const struct growth *g)
{
    return above(g->after.of[MAPPED], g->begun.of[MAPPED]) > too_much[MAPPED] ||
           above(g->after.of[RESIDENT], g->begun.of[RESIDENT]) > too_much[RESIDENT];
}

static size_t kib(const struct memory *now, const struct memory *before, int kind)
{
    return above(now->of[kind], before->of[kind]) >> 10;
}

/* growth_over() with that many confirming phases. */
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
                mark_incomplete(
                    "it came to %zu rounds of %zu in its part of %g s; give it more by --timeout",
                    g.done, cycles, time_limit());
            return NULL;
        }
        if (phase < PHASES - 1 && has_grown_a_lot(&g))
            phase = PHASES - 1;
    }
    return fmt("%zu KiB more mapped and %zu KiB more resident after the last %zu times, %zu KiB "
               "and %zu KiB since the first %zu",
               kib(&g.after, &g.before, MAPPED), kib(&g.after, &g.before, RESIDENT), g.done,
               kib(&g.after, &g.begun, MAPPED), kib(&g.after, &g.begun, RESIDENT), cycles);
}

const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data)
{
    return growth_confirmed(clock_slowness() > 2 ? IF_BUSY : CONFIRMING, cycles, cycle, data);
}

void expect_no_growth_at(int line, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what)
{
    const char *growth = growth_over(cycles, cycle, data);
    if (growth == NULL)
        return;
    test_process.setup.record->growing = 1;
    call_log_to(NULL); /* what has shown it comes last there */
    /* a control only decides whose the growth is: one confirming phase is enough */
    const char *without = control != NULL ? growth_confirmed(1, cycles, control, data) : NULL;
    if (without != NULL) {
        static const char when[] = "without what this is about";
        attribute_to(property_about(TOPIC_MEMORY_GROWS), NULL);
        if (running_property()->level !=
            MUST) /* the property that it is attributed to is a SHOULD */
            fail_at(line, "memory to stop growing", "%s; it is so already %s", without, when);
        control_begin(when);
        fail_at(line, "memory to stop growing", "%s", without);
    }
    fail_at(line, fmt("memory to stop growing while %s", what), "%s", growth);
}
