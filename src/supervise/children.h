/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a subject leaves running: a process that it forked and that went on in a group or session of
 * its own.  Coordinator and workers adopt such processes, and end them.
 */
#ifndef CONFORM_CHILDREN_H
#define CONFORM_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* From now on a descendant whose parent has ended becomes a child of this process, or no more. */
void children_adopt(bool adopt);

/* Kills every child of this process and waits for it, and goes on until there are none but the
 * `count` at `keep`.  Does nothing on a kernel that does not tell a process its children. */
void children_end(const pid_t *keep, size_t count);

#endif
