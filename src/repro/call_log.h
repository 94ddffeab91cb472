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

#include "base/step.h"

struct logged {
    struct step step; /* with the address of its block in place of the number */
    pid_t process;
    const void *result;
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

/* A call that is about to be made; `size` is that of the block that it is given, or 0 if it is not
 * known.  NULL where nothing is logged, as call_log_end takes it.  The number of calls in one is
 * `times`. */
struct logged *call_log_begin(struct step step, size_t size);
void call_log_expect(struct logged *call, size_t times);
void call_log_end(struct logged *call, const void *result, size_t times);

/* ---- lists: made of what was logged, and made fit to be read (call_list.c) ------------------- */

/* The calls of one process, as far as they are of blocks that are known, each of which has a number
 * of its own: of the first process alone; of the one that made the last call, behind those that the
 * first made until then; or likewise of the last one that was forked, with a fork in between.  An
 * empty list where there is no memory. */
enum list_of { OF_LAST_PROCESS, OF_FORKED_PROCESS, OF_FIRST_PROCESS };
struct call_list call_list_of(const struct call_log *log, enum list_of which);

struct call_list call_list_copy(const struct call_list *list);
void call_list_free(struct call_list *list);

/* Leaves out so many steps. */
void call_list_cut(struct call_list *list, size_t from, size_t length);

/* Changes each size `from` that the step is given to `to`.  Returns true if there is one. */
bool step_change_size(struct step *step, uint64_t from, uint64_t to);

/* Frees at its end what is live there. */
void call_list_close(struct call_list *list);

/* Makes a step of several blocks one of each; where that were more than MOST_STEPS, all stays. */
void call_list_take_apart(struct call_list *list);

/* As it is to be printed, and not to be cut any more: what does nothing is gone, the same again and
 * again is one step, and blocks are counted from 0. */
void call_list_tidy(struct call_list *list);

/* How many blocks its numbers want. */
size_t call_list_blocks(const struct call_list *list);

#endif
