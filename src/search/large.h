/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histories of a few large blocks.
 */
#ifndef CONFORM_LARGE_H
#define CONFORM_LARGE_H

#include "search/behaviours.h"

/* Writes one.  It is the same for the same state of writer->random and palette. */
void large_write(struct writer *writer, const struct behaviour_options *options);

#endif
