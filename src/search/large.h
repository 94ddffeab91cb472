/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histories of a few large blocks, and of huge ones.
 */
#ifndef CONFORM_LARGE_H
#define CONFORM_LARGE_H

#include "search/behaviours.h"

/* Writes one.  It is the same for the same state of writer->random and palette. */
void large_write(struct writer *writer, const struct behaviour_options *options);

/* One with blocks of 128 MiB to more than 4 GiB among them, where size_t has 64 bits.  `zeroed`:
 * the first of them is zeroed memory of 4 GiB, most often, which a handler may have to clear. */
void huge_write(struct writer *writer, bool zeroed);

#endif
