/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histories of a program that runs for long.
 */
#ifndef CONFORM_LONG_RUN_H
#define CONFORM_LONG_RUN_H

#include "search/writer.h"

/* Writes one, as long as there is room.  It is the same for the same state of writer->random. */
void long_run_write(struct writer *writer);

#endif
