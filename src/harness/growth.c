/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Measuring growth over phases, each twice as long as the one before.
 */
#include "harness/growth.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "harness/interpose.h"
#include "harness/proc_count.h"
#include "harness/property_child.h"
#include "harness/test_process.h"
#include "repro/call_log.h"

enum {
    PHASES = 6,
    CONFIRMING = 3, /* more of them, each with a pause before it is measured */
    IF_BUSY = 7, /* a handler that keeps memory for a time may by chance keep more on a busy one */
};

/* ---- measures -------------------------------------------------------------------------------- */

static size_t libc_blocks(void)
{
    return interpose_counts().blocks;
}

static size_t libc_bytes(void)
{
    return interpose_counts().bytes;
}

/* Kernels since 6.2 report resident memory from counters that lag behind. */
static const struct oracle {
    const char *name;
    size_t (*read)(void);
    size_t slack;     /* by so much it may grow in a phase by chance */
    size_t least;     /* growth from the first phase on that is a violation, if it goes on */
    size_t too_much;  /* no cache grows by so much */
    bool is_exact;    /* growth by so much needs no confirmation */
    enum topic topic; /* of the property that states the requirement */
} oracles[MEASURES] = {
    [MAPPED_BYTES] = {"bytes mapped", mapped_bytes, 256 << 10, 0, 256 << 20, false,
                      TOPIC_MEMORY_GROWS},
    [RESIDENT_BYTES] = {"bytes resident", resident_bytes, 1 << 20, 0, 64 << 20, false,
                        TOPIC_MEMORY_GROWS},
    [MAPPINGS] = {"mappings", count_mappings, 16, 1000, 8192, true, TOPIC_MAPPINGS_GROW},
    [DESCRIPTORS] = {"descriptors", count_descriptors, 2, 100, 400, true, TOPIC_DESCRIPTORS_GROW},
    [THREADS] = {"threads", count_threads, 2, 50, 100, true, TOPIC_THREADS_GROW},
    [LIBC_BLOCKS] = {"blocks of libc's held", libc_blocks, 150, 2000, 1 << 16, false,
                     TOPIC_LIBC_MEMORY_GROWS},
    [LIBC_BYTES] = {"bytes of libc's held", libc_bytes, 1 << 20, 0, 64 << 20, false,
                    TOPIC_LIBC_MEMORY_GROWS},
};

size_t measure_now(enum measure measure)
{
    return oracles[measure].read();
}

const char *measure_name(enum measure measure)
{
    return oracles[measure].name;
}

struct measures {
    size_t of[MEASURES];
};

static struct measures measure_all(enum measure end)
{
    struct measures now = {{0}};
    for (enum measure m = 0; m < end; m++)
        now.of[m] = measure_now(m);
    return now;
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

/* What is repeated, and which measures are looked at. */
struct repeated {
    size_t cycles; /* in the first phase */
    void (*cycle)(void *data);
    void *data;
    enum measure end;
};

/* Runs the cycles in each of `parts`, or as many as there is time for, and returns how many.  The
 * first phase, which is enough for most handlers, may take a fifth of the property's time. */
static size_t run_phase(const struct repeated *r, size_t parts)
{
    uint64_t begun = clock_now();
    double most = time_limit() > 0 ? time_limit() / (parts == 1 ? 5 : 15) : 1;
    size_t done = 0;
    for (size_t part = 0; part < parts; part++) {
        if (clock_since(begun) >= most)
            break;
        for (size_t i = 0; i < r->cycles && clock_since(begun) < most; i++, done++)
            r->cycle(r->data);
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

/* ---- phases ---------------------------------------------------------------------------------- */

/* `before` is the most before the latest phase. */
struct growth {
    struct measures begun, before, after;
    size_t done, done_before;
};

static void measure_phase(struct growth *g, const struct repeated *r, size_t parts, bool confirming)
{
    for (enum measure m = 0; m < r->end; m++)
        g->before.of[m] = MAX(g->before.of[m], g->after.of[m]);
    g->done_before += g->done;
    g->done = run_phase(r, parts);
    if (confirming)
        pause_after(r->cycle, r->data);
    g->after = measure_all(r->end);
}

/* True if it grew in the latest phase by more than chance, and not much less for each cycle than in
 * the phases before. */
static bool still_grows(const struct growth *g, enum measure m)
{
    enum { MUCH_LESS = 4 };
    size_t last = above(g->after.of[m], g->before.of[m]);
    double earlier = (double)above(g->before.of[m], g->begun.of[m]) * (double)g->done;
    return last > oracles[m].slack && (double)last * (double)g->done_before >= earlier / MUCH_LESS;
}

/* True if it grew by more than any cache has. */
static bool has_grown_a_lot(const struct growth *g, enum measure m)
{
    return above(g->after.of[m], g->begun.of[m]) > oracles[m].too_much;
}

/* The property that reports the growth of it: the running one, unless another is about that. */
static const struct property *reported_by(enum measure measure)
{
    const uint64_t all = ABOUT(MEMORY_GROWS) | ABOUT(MAPPINGS_GROW) | ABOUT(DESCRIPTORS_GROW) |
                         ABOUT(THREADS_GROW) | ABOUT(LIBC_MEMORY_GROWS);
    const struct property *running = running_property();
    enum topic topic = oracles[measure].topic;
    bool is_about_it = (running->answers_for & all) == 0 ? topic == TOPIC_MEMORY_GROWS
                                                         : (running->answers_for >> topic & 1) != 0;
    return is_about_it ? running : property_find(property_about(topic));
}

/* The measure that still grows, one of the running property if possible; or `end`. */
static enum measure growing(const struct growth *g, enum measure end)
{
    enum measure found = end;
    for (enum measure m = 0; m < end; m++) {
        if (still_grows(g, m) && (found == end || reported_by(found) != running_property()))
            found = m;
    }
    return found;
}

/* Returns NULL, or how much *grown grew, which then is the measure. */
static const char *growth_confirmed(const struct repeated *r, int confirming_phases,
                                    enum measure *grown)
{
    if (is_instrumented()) {
        for (size_t i = 0; i <= r->cycles / 16; i++)
            r->cycle(r->data);
        return NULL;
    }
    run_phase(r, 1);
    struct growth g = {.begun = measure_all(r->end)};
    enum measure m = 0;
    g.before = g.after = g.begun;
    for (int phase = 0; phase < PHASES + confirming_phases; phase++) {
        bool confirming = phase >= PHASES;
        measure_phase(&g, r, (size_t)1 << (confirming ? PHASES / 2 : phase), confirming);
        m = growing(&g, r->end);
        if (m == r->end && g.done < r->cycles)
            mark_incomplete(
                "it came to %zu rounds of %zu in its part of %g s; give it more by --timeout",
                g.done, r->cycles, time_limit());
        if (m == r->end || (has_grown_a_lot(&g, m) && oracles[m].is_exact))
            break;
        if (phase < PHASES - 1 && has_grown_a_lot(&g, m))
            phase = PHASES - 1;
    }
    *grown = m;
    if (m == r->end || above(g.after.of[m], g.begun.of[m]) < oracles[m].least)
        return NULL;
    return fmt("%zu %s more after the last %zu times, %zu since the first %zu",
               above(g.after.of[m], g.before.of[m]), measure_name(m), g.done,
               above(g.after.of[m], g.begun.of[m]), r->cycles);
}

static int confirming_phases(void)
{
    return clock_slowness() > 2 ? IF_BUSY : CONFIRMING;
}

const char *growth_over(size_t cycles, void (*cycle)(void *data), void *data)
{
    enum measure grown;
    const struct repeated repeated = {cycles, cycle, data, MAPPINGS};
    return growth_confirmed(&repeated, confirming_phases(), &grown);
}

void expect_no_growth_at(int line, enum measure end, size_t cycles, void (*cycle)(void *data),
                         void (*control)(void *data), void *data, const char *what)
{
    enum measure grown;
    struct repeated repeated = {cycles, cycle, data, end};
    const char *growth = growth_confirmed(&repeated, confirming_phases(), &grown);
    if (growth == NULL)
        return;
    bool is_memory = grown < MAPPINGS;
    test_process.setup.record->growing = is_memory;
    call_log_to(NULL); /* what has shown it comes last there */
    if (reported_by(grown) != running_property())
        fail_for(reported_by(grown),
                 &(struct finding){.words = "", .expected = "", .past = "", .situation = ""},
                 "%s while %s", growth, what);
    /* a control only decides whose the growth is: one confirming phase is enough */
    repeated.cycle = control;
    const char *without = control != NULL ? growth_confirmed(&repeated, 1, &grown) : NULL;
    if (without != NULL) {
        static const char when[] = "without what this is about";
        attribute_to(property_about(oracles[grown].topic), NULL);
        if (running_property()->level !=
            MUST) /* the property that it is attributed to is a SHOULD */
            fail_at(line, "memory to stop growing", "%s; it is so already %s", without, when);
        control_begin(when);
        fail_at(line, "memory to stop growing", "%s", without);
    }
    fail_at(line,
            fmt("%s to stop growing while %s", is_memory ? "memory" : measure_name(grown), what),
            "%s", growth);
}
