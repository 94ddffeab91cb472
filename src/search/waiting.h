/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Histories in which time passes.
 */
#ifndef CONFORM_WAITING_H
#define CONFORM_WAITING_H

#include "search/writer.h"

/* Writes one.  It is the same for the same state of writer->random and palette. */
void waiting_write(struct writer *writer);

#endif
