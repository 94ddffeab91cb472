/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making new entries of old ones, for a fuzzer: not bytes are changed but histories.
 */
#ifndef CONFORM_MUTATOR_H
#define CONFORM_MUTATOR_H

#include <stddef.h>
#include <stdint.h>

#include "nep49.h"

/* Learns the sizes at the edges of this handler's classes, for mutations to draw from. */
void mutator_learn(PyDataMem_Handler *handler);

/* Makes one or two entries into another, in the place of the first, which has room for so many
 * bytes.  The same for the same seed.  Returns its length; what was there, where that cannot be. */
size_t mutator_mutate(uint8_t *bytes, size_t length, const uint8_t *other, size_t other_length,
                      size_t room, uint64_t seed);

#endif
