/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Entries are mutated as the search mutates its histories, and now and then a stretch of what
 * programs do is put behind them.
 */
#include "fuzz/mutator.h"

#include <stdlib.h>
#include <sys/param.h>

#include "fuzz/entry.h"
#include "search/behaviours.h"
#include "search/mutate.h"

enum {
    MOST = 20000,         /* steps */
    MOST_BYTES = 4 << 20, /* live, of what is put behind */
    BRIEF = 4096,         /* below this, most of what is made by the hundred thousand has no room */
    BEHAVE_EVERY = 3,
    LEAST_BYTES = 2, /* of a step */
};

/* Made at the first call, and kept. */
static struct mutator {
    struct writer *writer;
    struct size_dict size_dict;
    struct step *read, *other, *made;
} * mutator;

static void forget(struct mutator *new)
{
    free(new->writer);
    free(new->read);
    free(new);
}

static bool begin(void)
{
    if (mutator != NULL)
        return true;
    struct mutator *new = calloc(1, sizeof *new);
    if (new == NULL)
        return false;
    new->writer = writer_new();
    new->read = calloc((size_t)3 * MOST, sizeof *new->read);
    if (new->writer == NULL || new->read == NULL) {
        forget(new);
        return false;
    }
    new->other = new->read + MOST;
    new->made = new->other + MOST;
    mutator = new;
    return true;
}

void mutator_learn(PyDataMem_Handler *handler)
{
    if (begin())
        size_dict_learn(&mutator->size_dict, handler, false, UINT64_MAX);
}

/* What programs do, in so many steps at the most. */
static size_t behave(struct random *random, struct step *steps, size_t room)
{
    struct behaviour_options options = {.is_brief = room < BRIEF};
    writer_begin(mutator->writer, steps, room);
    mutator->writer->random = *random;
    mutator->writer->size_dict = &mutator->size_dict;
    mutator->writer->most_bytes = MOST_BYTES;
    behaviours_write(mutator->writer, &options);
    *random = mutator->writer->random;
    return mutator->writer->count;
}

/* At the most `room` steps, of one or two entries of so many. */
static size_t mutate(struct random *random, size_t count, size_t other_count, size_t room)
{
    size_t made = 0;
    struct corpus *corpus = corpus_new();
    if (corpus == NULL)
        return 0;
    if (count > 0)
        corpus_add(corpus, mutator->read, count, random);
    if (other_count > 0)
        corpus_add(corpus, mutator->other, other_count, random);
    if (corpus_count(corpus) > 0)
        made = corpus_mutate(corpus, &mutator->size_dict, random, mutator->made, room);
    corpus_free(corpus);
    if (made == 0 || random_below(random, BEHAVE_EVERY) == 0)
        made += behave(random, mutator->made + made, room - made);
    return made;
}

size_t mutator_mutate(uint8_t *bytes, size_t length, const uint8_t *other, size_t other_length,
                      size_t room, uint64_t seed)
{
    struct random random = random_for(seed, "fuzz");
    if (!begin())
        return length;
    size_t count = entry_read(bytes, length, mutator->read, MOST);
    size_t other_count =
        other_length > 0 ? entry_read(other, other_length, mutator->other, MOST) : 0;
    size_t made = mutate(&random, count, other_count, MIN(room / LEAST_BYTES, (size_t)MOST));
    size_t written = entry_write(mutator->made, made, bytes, room);
    return written != 0 ? written : length;
}
