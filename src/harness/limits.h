/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a property may take: random numbers, memory and time.
 */
#ifndef CONFORM_LIMITS_H
#define CONFORM_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"

/* This property's own stream of random numbers, from the seed of the run. */
struct random *rng(void);

/* The seed itself. */
uint64_t run_seed(void);

/* What fits on this machine: SKIPs where `bytes` of touched memory would be more than half of what
 * the address-space limit, the free memory or the control group allows. */
void ask_for_memory(size_t bytes);

/* The same without the SKIP: NULL, or why they do not fit (good until the next calls of text()). */
const char *lacking_memory(size_t bytes);

/* The descriptor that keeps the captured output open, whatever the subject does to the low ones. */
enum { OUTPUT_FD = 200 };

/* How much the property's process has printed so far, stdio flushed. */
size_t output_so_far(void);

/* True where memcheck runs this, or a sanitizer is built in: loops may then be shorter. */
bool is_instrumented(void);

/* Seconds after which something that ought to be done at once hangs: well before the property's own
 * limit, so that there is time to say so. */
double hang_limit(void);

/* SIGALRM then; 0: never. */
void alarm_in(double seconds);

/* The time that this property may take, in seconds, and whether half of it is over, because the
 * subject is slow or the machine busy: then it comes to an end, and says that it stopped_short. */
double time_limit(void);
bool time_is_up(void);

/* How far a loop over many sizes goes at a time: 1, or `longer` where is_instrumented, and when
 * time_is_up, with which the property has stopped_short. */
size_t stride(size_t longer);

enum { SCRATCH_NAME = 32 };

/* A name that no file has, in /dev/shm or else in /tmp. */
void scratch_name(char name[SCRATCH_NAME]);

/* Removes the folder, if it is there, and what is in it: the name of something that was, or NULL.
 */
const char *scratch_remove(const char *name);

#endif
