/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The mutator as AFL++ loads it, from AFL_CUSTOM_MUTATOR_LIBRARY.
 */
#include <string.h>
#include <sys/param.h>

#include "base/random.h"
#include "fuzz/entry.h"

#define CALLED __attribute__((visibility("default")))
CALLED void *afl_custom_init(void *afl, unsigned seed);
CALLED size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t length, uint8_t **to,
                              uint8_t *other, size_t other_length, size_t room);
CALLED void afl_custom_deinit(void *data);

static struct random numbers;

void *afl_custom_init(void *afl, unsigned seed)
{
    (void)afl;
    numbers = random_for(seed, "afl");
    return &numbers;
}

size_t afl_custom_fuzz(void *data, uint8_t *bytes, size_t length, uint8_t **to, uint8_t *other,
                       size_t other_length, size_t room)
{
    static uint8_t made[ENTRY_MOST];
    (void)data;
    room = MIN(room, sizeof made);
    length = MIN(length, room);
    memcpy(made, bytes, length);
    *to = made;
    return mutator_mutate(made, length, other, other_length, room, random_next(&numbers));
}

void afl_custom_deinit(void *data)
{
    (void)data;
}
