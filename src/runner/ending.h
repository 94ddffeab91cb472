/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a record says of the process that left it.
 */
#ifndef CONFORM_ENDING_H
#define CONFORM_ENDING_H

#include "model/record.h"

/* Of one that did not reach its end: fills in expected and seen. */
void ending_describe(struct record *record, const char *how);

/* Of one that went on for a moment after what ended it: where it was then is no cause. */
void ending_forget_cause(struct record *record);

/* Of one that did.  What came over the shared memory is not to be trusted: a subject can write
 * there. */
void ending_make_sound(struct record *record);

#endif
