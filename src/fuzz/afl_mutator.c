/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mutator as AFL++ loads it, from AFL_CUSTOM_MUTATOR_LIBRARY.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/random.h"
#include "fuzz/entry.h"
#include "fuzz/mutator.h"

#define CALLED __attribute__((visibility("default")))
CALLED void *afl_custom_init(void *afl, unsigned seed);
CALLED size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t length, uint8_t **to,
                              uint8_t *other, size_t other_length, size_t room);
CALLED void afl_custom_deinit(void *data);

struct afl {
    struct random random;
    uint8_t bytes[ENTRY_MOST];
};

void *afl_custom_init(void *afl, unsigned seed)
{
    struct afl *new = malloc(sizeof *new);
    (void)afl;
    if (new != NULL)
        new->random = random_for(seed, "afl");
    return new;
}

size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t length, uint8_t **to, uint8_t *other,
                       size_t other_length, size_t room)
{
    struct afl *afl = data;
    room = MIN(room, sizeof afl->bytes);
    length = MIN(length, room);
    memcpy(afl->bytes, bytes, length);
    *to = afl->bytes;
    return mutator_mutate(afl->bytes, length, other, other_length, room, random_next(&afl->random));
}

void afl_custom_deinit(void *data)
{
    free(data);
}
