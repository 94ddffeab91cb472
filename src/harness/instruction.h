/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which object the instruction lies in at which a signal came.
 */
#ifndef CONFORM_HARNESS_INSTRUCTION_H
#define CONFORM_HARNESS_INSTRUCTION_H

#include <stddef.h>

/* Writes "libmine.so+0x1139" into words[room]: the object's file, and the address within it as
 * addr2line takes it.  `context` is what the signal's handler was given.  "" where the instruction
 * lies in no file, or this machine's context is not known.  Async-signal-safe. */
void instruction_place(const void *context, char *words, size_t room);

#endif
