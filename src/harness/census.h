/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What this process has besides memory: descriptors, threads, children, mappings.
 */
#ifndef CONFORM_CENSUS_H
#define CONFORM_CENSUS_H

#include <stdbool.h>
#include <stddef.h>

size_t count_descriptors(void);
size_t count_threads(void);
size_t count_mappings(void);

/* From now on a process whose parent ends becomes a child of this one. */
void adopt_orphans(void);

/* Whether there is a child, be it one that has ended and that nobody has waited for. */
bool has_child(void);

#endif
