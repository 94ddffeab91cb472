/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries are mutated as the search mutates its histories, and now and then rows of scenarios
 * are appended.
 */
#include "fuzz/entry.h"

#include <sys/param.h>

#include "search/generators.h"
#include "search/scenario.h"

enum {
    MOST = 20000,         /* steps */
    MOST_BYTES = 4 << 20, /* live, of what is put behind */
    ROWS_EVERY = 3,
    LEAST_BYTES = 2, /* of a step */
    LEAST_ROOM = 16, /* steps; no scenario is shorter than two */
};

static struct writer writer;
static struct size_dict size_dict;
static struct step first_entry[MOST], other_entry[MOST], made_entry[MOST];

void mutator_learn(PyDataMem_Handler *handler)
{
    size_dict_learn(&size_dict, handler, false, UINT64_MAX);
}

/* Writes rows of scenarios, at most `room` steps, and returns the number of steps. */
static size_t write_rows(struct random *random, struct step *steps, size_t room)
{
    if (room < LEAST_ROOM)
        return 0;
    const struct scenario_limits limits = {.most_bytes = MOST_BYTES, .most_steps = room};
    writer_begin(&writer, steps, room);
    writer.random = *random;
    writer.size_dict = &size_dict;
    writer.most_bytes = MOST_BYTES;
    scenarios_write(&limits, &writer);
    *random = writer.random;
    return writer.count;
}

/* At the most `room` steps, of one or two entries of so many. */
static size_t mutate(struct random *random, size_t count, size_t other_count, size_t room)
{
    size_t made = 0;
    struct corpus corpus = {.count = 0};
    if (count > 0)
        corpus_add(&corpus, first_entry, count, random);
    if (other_count > 0)
        corpus_add(&corpus, other_entry, other_count, random);
    if (corpus.count > 0)
        made = corpus_mutate(&corpus, &size_dict, random, made_entry, room);
    corpus_free(&corpus);
    if (made == 0 || random_below(random, ROWS_EVERY) == 0)
        made += write_rows(random, made_entry + made, room - made);
    return made;
}

size_t mutator_mutate(uint8_t *bytes, size_t length, const uint8_t *other, size_t other_length,
                      size_t room, uint64_t seed)
{
    struct random random = random_for(seed, "fuzz");
    size_t count = entry_read(bytes, length, first_entry, MOST);
    size_t other_count = other_length > 0 ? entry_read(other, other_length, other_entry, MOST) : 0;
    size_t made = mutate(&random, count, other_count, MIN(room / LEAST_BYTES, (size_t)MOST));
    size_t written = entry_write(made_entry, made, bytes, room);
    return written != 0 ? written : length;
}
