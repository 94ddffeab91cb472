/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A folder in memory for files that a subject leaves.  The coordinator names it, a property makes
 * it and removes it, and where it could not come to that, the coordinator does.
 */
#ifndef CONFORM_SCRATCH_H
#define CONFORM_SCRATCH_H

enum { SCRATCH_NAME = 32 };

/* A name that no file has, in /dev/shm or else in /tmp. */
void scratch_name(char name[SCRATCH_NAME]);

/* Removes the folder, if it is there, and what is in it: the name of something that was, or NULL.
 */
const char *scratch_remove(const char *name);

#endif
