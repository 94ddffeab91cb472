/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Every call that a property makes, in memory that outlives its process, for --repro.
 */
#ifndef CONFORM_CALL_LOG_H
#define CONFORM_CALL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "repro/step.h"

struct logged {
    struct step step; /* without its block */
    pid_t process;
    const void *given, *result;
    uint64_t word; /* what the block was full of that is given, again and again */
    bool has_word;
};

struct call_log {
    _Atomic uint32_t count;   /* more than MOST_STEPS: the last ones are not there */
    _Atomic uint32_t threads; /* that have numbers */
    pid_t process;            /* of the property, which may fork others */
    struct logged calls[MOST_STEPS];
};

/* Memory for one that is shared with whoever is forked; NULL with errno set.  What is not written
 * to takes no room. */
struct call_log *call_log_create(void);
void call_log_clear(struct call_log *log);

/* From here on the calls of this process and of those that are forked off it go there, by whatever
 * thread.  NULL: nowhere. */
void call_log_to(struct call_log *log);

/* A call that is about to be made; `size` is that of the block at `given`, or 0 where it is not
 * known.  NULL where nothing is logged, as call_log_end takes it.  The number of calls in one is
 * `times`. */
struct logged *call_log_begin(enum step_kind kind, const void *given, size_t size, size_t first,
                              size_t second);
void call_log_expect(struct logged *call, size_t times);
void call_log_end(struct logged *call, const void *result, size_t times);

#endif
