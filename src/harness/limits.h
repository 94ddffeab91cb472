/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a property may use: random numbers, memory, time, output and a folder.
 */
#ifndef CONFORM_LIMITS_H
#define CONFORM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* The property's own stream of random numbers. */
struct random *rng(void);

/* SKIPs if `bytes` of touched memory are more than half of what the address-space limit, the free
 * memory or the control group allows. */
void ask_for_memory(size_t bytes);

/* Returns NULL, or why they do not fit (valid until the next calls of fmt()). */
const char *lacking_memory(size_t bytes);

/* The bytes that this process can use, by the kernel and the control group; UINT64_MAX: unknown. */
uint64_t free_memory(void);

/* A descriptor that keeps the captured output open if a handler closes the low ones. */
enum { OUTPUT_FD = 200 };

/* Flushes stdio and returns the number of bytes printed so far. */
size_t output_so_far(void);

/* True under memcheck, a sanitizer or an emulator: loops may then be shorter. */
bool is_instrumented(void);

/* Seconds after which an immediate operation counts as a hang; well below the property's limit. */
double hang_limit(void);

/* Raises SIGALRM then; 0: never. */
void alarm_in(double seconds);

/* The property's time in seconds, and whether half of it is over: it should then end with
 * mark_incomplete(). */
double time_limit(void);
bool time_is_up(void);

/* The step of a loop over many sizes: 1, or `longer` if is_instrumented(), or if time_is_up(),
 * which calls mark_incomplete(). */
size_t stride(size_t longer);

/* A folder for files that a handler leaves, in /dev/shm or else in /tmp.  The coordinator chooses
 * the name, a property makes and removes the folder, and the coordinator removes what is left. */
enum { SCRATCH_NAME = 32 };
void scratch_name(char name[SCRATCH_NAME]);

/* Removes the folder with its files, if it exists.  Returns the name of one of them, or NULL. */
const char *scratch_remove(const char *name);

#endif
