/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An entry of a fuzzer's corpus: a trace of one frame that was never closed, as a program leaves it
 * that crashed.  Its payload has no sum, so that what a fuzzer changes in it is a trace again, and
 * --replay and --print take it as it is.
 */
#ifndef CONFORM_ENTRY_H
#define CONFORM_ENTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/step.h"
#include "nep49.h"

/* The longest entry, in bytes. */
enum { ENTRY_MOST = 1 << 16 };

/* The steps of an entry, or of any trace, as far as it can be read: so many of them. */
size_t entry_read(const uint8_t *bytes, size_t length, struct step *steps, size_t room);

/* Writes as many of the steps as there is room for.  The length of the entry, or 0 where not even
 * its head fits.  What a trace has no word for (forks, pauses, limits) is left out. */
size_t entry_write(const struct step *steps, size_t count, uint8_t *bytes, size_t room);

/* Makes the head of something that should be an entry one.  False: it is shorter than a head. */
bool entry_mend(uint8_t *bytes, size_t length);

/* ---- mutator.c: making new entries of old ones; not bytes are changed but calls ---------- */

/* Learns the sizes at the edges of this handler's classes, for mutations to draw from. */
void mutator_learn(PyDataMem_Handler *handler);

/* Makes one or two entries into another, in the place of the first, which has room for so many
 * bytes.  The same for the same seed.  Returns its length; what was there, where that cannot be. */
size_t mutator_mutate(uint8_t *bytes, size_t length, const uint8_t *other, size_t other_length,
                      size_t room, uint64_t seed);

#endif
