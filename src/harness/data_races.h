/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data races in the subject, as ThreadSanitizer's runtime reports them to the process of a
 * property.
 */
#ifndef CONFORM_DATA_RACES_H
#define CONFORM_DATA_RACES_H

#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"

/* From now on they are kept.  To be called before the subject is loaded: what is loaded from then
 * on is the subject's. */
void data_races_watch(void);

bool data_races_are_watched(void);

/* False where there was none with both of its accesses in the subject.  Else says of them, in the
 * record, how many and where the first is. */
bool data_races_tell(struct record *record);

/* What happened in this thread before data_races_hand_over comes before what happens in another
 * behind data_races_take_over of the same address, and of each 4096th byte behind it: for what the
 * harness, or the kernel, orders and the runtime does not see. */
void data_races_hand_over(const void *at, size_t length);
void data_races_take_over(const void *at, size_t length);

#endif
