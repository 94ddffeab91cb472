/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generators of call sequences for special cases.  Each writes the same sequence for the same state
 * of writer->random and the size dictionary.
 */
#ifndef CONFORM_GENERATORS_H
#define CONFORM_GENERATORS_H

#include "search/behaviours.h"

/* A few large blocks. */
void write_large(struct writer *writer, const struct behaviour_options *options);

/* Blocks of 128 MiB to more than 4 GiB among them; only if size_t has 64 bits.  `zeroed`: the first
 * is zeroed memory, mostly of 4 GiB, which a handler may have to clear. */
void write_huge_blocks(struct writer *writer, bool zeroed);

/* A program that runs for long, for as long as there is room. */
void write_long_run(struct writer *writer);

/* A sequence in which time passes. */
void write_idle(struct writer *writer);

#endif
