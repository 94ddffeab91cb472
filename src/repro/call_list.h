/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of steps: made of what was logged, cut down, and made fit to be read.
 */
#ifndef CONFORM_CALL_LIST_H
#define CONFORM_CALL_LIST_H

#include "repro/call_log.h"

/* The calls of one process, as far as they are of blocks that are known, each of which has a number
 * of its own: of the first process alone; of the one that made the last call, behind those that the
 * first made until then; or likewise of the last one that was forked, with a fork in between.  An
 * empty list where there is no memory. */
enum list_of { OF_LAST_PROCESS, OF_FORKED_PROCESS, OF_FIRST_PROCESS };
struct call_list call_list_of(const struct call_log *log, enum list_of which);

struct call_list call_list_copy(const struct call_list *list);
void call_list_free(struct call_list *list);

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
