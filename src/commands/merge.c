/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --merge: puts the records of all parts on one board, and goes on as a battery does behind its
 * last property.
 */
#include "commands/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "commands/conclude.h"
#include "model/cost.h"
#include "report/evidence.h"
#include "supervise/loaded.h"

struct merge {
    struct options options; /* those of the parts, and where to tell it */
    struct part *parts;     /* in their order */
    size_t count;
    struct selection selection;
    struct board *board;
    const char **reproduce; /* for each property of the selection, or NULL */
    struct subject_place place;
    struct environment environment;
    struct load load;
    struct comparison comparison;
    struct run run;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (memory == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    return memory;
}

/* ---- are they all, and of one run -------------------------------------------------------- */

static void add_part(struct merge *m, const char *file)
{
    struct part part = part_read(file);
    if (m->parts == NULL) {
        m->count = part.of;
        m->parts = allocate(part.of, sizeof *m->parts);
        m->parts[part.number - 1] = part;
        return;
    }
    const struct part *other = m->parts;
    while (other->file == NULL)
        other++;
    const char *differs = part_differs(&part, other);
    if (differs != NULL)
        leave_with(EXIT_USAGE, "%s: is of another run than %s: %s", text_safe(file),
                   text_safe(other->file), differs);
    struct part *place = &m->parts[part.number - 1];
    if (place->file != NULL)
        leave_with(EXIT_USAGE, "%s: is shard %zu/%zu, and so is %s", text_safe(file), part.number,
                   part.of, text_safe(place->file));
    *place = part;
}

static void check_complete(const struct merge *m)
{
    const char *missing = "";
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        if (m->parts[i].file == NULL)
            missing = text("%s%s%zu", missing, count++ > 0 ? ", " : "", i + 1);
    }
    if (count > 0)
        leave_with(EXIT_USAGE, "--merge: of %zu shards there %s missing: %s", m->count,
                   count == 1 ? "is one" : text("are %zu", count), missing);
}

/* ---- putting them together --------------------------------------------------------------- */

/* The first property was run with each part, and decides what became of the others: one that did
 * not pass is told.  The part that it is of. */
static const struct part *take_first(struct merge *m)
{
    struct record *record = board_record(m->board, 0);
    size_t owner = shard_of(FIRST_PROPERTY, m->count) - 1;
    for (size_t i = 0; i < m->count; i++) {
        part_record(&m->parts[i], FIRST_PROPERTY, record, &m->reproduce[0]);
        if (record->verdict != PASS)
            return &m->parts[i];
    }
    part_record(&m->parts[owner], FIRST_PROPERTY, record, &m->reproduce[0]);
    return &m->parts[owner];
}

static const struct part *take_records(struct merge *m)
{
    size_t *taken = allocate(m->count, sizeof *taken);
    for (size_t i = 1; i < m->selection.count; i++) {
        const char *id = m->selection.properties[i]->id;
        size_t shard = shard_of(id, m->count) - 1;
        part_record(&m->parts[shard], id, board_record(m->board, i), &m->reproduce[i]);
        taken[shard]++;
    }
    for (size_t i = 0; i < m->count; i++) {
        if (part_count(&m->parts[i]) != taken[i] + 1)
            leave_with(EXIT_USAGE, "%s: has %zu properties, and shard %zu/%zu runs %zu",
                       text_safe(m->parts[i].file), part_count(&m->parts[i]), i + 1, m->count,
                       taken[i] + 1);
    }
    free(taken);
    return take_first(m);
}

static const char *kernel_of(const struct part *part)
{
    const json_t *environment = json_object_get(part->report, "environment");
    const char *kernel = json_string_value(json_object_get(environment, "kernel"));
    return kernel != NULL ? kernel : "";
}

/* Each once, on several machines that are else alike. */
static const char *kernels(const struct merge *m)
{
    const char *all = kernel_of(&m->parts[0]);
    for (size_t i = 1; i < m->count; i++) {
        size_t k = 0;
        while (strcmp(kernel_of(&m->parts[k]), kernel_of(&m->parts[i])) != 0)
            k++;
        if (k == i)
            all = text("%s, %s", all, kernel_of(&m->parts[i]));
    }
    char *kept = strdup(all);
    return kept != NULL ? kept : "";
}

static void fill_run(struct merge *m, const struct part *first)
{
    struct run *run = &m->run;
    size_t hidden = conclude_hidden(&m->selection, board_record(m->board, 0), false);
    const struct record **records = allocate(m->selection.count, sizeof *records);
    part_surroundings(first, &m->place, &m->environment, run);
    part_load(first, &m->load);
    m->options.claims = m->place.claims;
    run->options = &m->options;
    run->place = &m->place;
    run->load = &m->load;
    run->environment = &m->environment;
    run->machine.kernel = kernels(m);
    run->properties = m->selection.properties + hidden;
    run->reproduce = m->reproduce + hidden;
    run->count = m->selection.count - hidden;
    for (size_t i = 0; i < run->count; i++)
        records[i] = board_record(m->board, hidden + i);
    run->records = records;
    run->rounds = 1;
    run->expectations = part_expectations(first);
    for (size_t i = 0; i < m->count; i++)
        run->seconds += json_number_value(json_object_get(m->parts[i].report, "seconds"));
}

static void put_together(struct merge *m)
{
    part_options(&m->parts[0], &m->options);
    m->selection = selection_of(&m->options, options_choose);
    m->board = board_create(m->selection.count);
    if (m->board == NULL)
        leave_with(EXIT_HARNESS_BROKE, "no memory: %s", strerror(errno));
    m->reproduce = allocate(m->selection.count, sizeof *m->reproduce);
    const struct part *first = take_records(m);
    conclude_settle(&m->selection, m->board);
    fill_run(m, first);
}

enum exit_code merge_run(const struct options *options)
{
    static struct merge merge;
    struct merge *m = &merge;
    m->options = *options;
    json_t *baseline = conclude_baseline(options);
    for (char **file = options->operands; *file != NULL; file++)
        add_part(m, *file);
    check_complete(m);
    put_together(m);
    struct report_files *files = report_files_open(options);
    conclude_compare(&m->run, baseline, &m->comparison);
    report_files_write(files, &m->run);
    loaded_or_leave(m->place.argument, atomic_load(&m->load.state), m->load.why);
    if (!conclude_print(&m->run))
        leave_with(EXIT_HARNESS_BROKE, "stdout cannot be written: %s", strerror(errno));
    return run_status(&m->run);
}
