/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What fuzz_handler.c, which is compiled with a handler, calls of libconform-fuzz.a.
 *
 * The handler lives as long as the process, and what earlier entries left in it counts.  Two
 * variables of the environment are for that: with CONFORM_FUZZ_FRESH each entry has a process of
 * its own, which is slower; and into the file CONFORM_FUZZ_TRACE all calls of the process go, as a
 * trace.
 */
#ifndef CONFORM_TARGET_H
#define CONFORM_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "nep49.h"

/* Which handler it is; NULL: there is none, for the reason, and the process ends with 77. */
void conform_fuzz_begin(PyDataMem_Handler *handler, const char *why);

/* Replays an entry, and judges each call.  Where something does not hold, it is said, and the
 * process ends by abort(). */
void conform_fuzz_one(const uint8_t *bytes, size_t length);

/* Makes bytes a fuzzer has changed an entry: a trace of one frame that was never closed, whose
 * calls have no checksum.  Overwrites the bytes before the calls, and returns the length of the
 * entry; a `room` that is too small for these leaves it as it is. */
size_t conform_fuzz_put_head(uint8_t *bytes, size_t length, size_t room);

#endif
