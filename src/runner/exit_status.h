/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a record says of the process that left it.
 */
#ifndef CONFORM_EXIT_STATUS_H
#define CONFORM_EXIT_STATUS_H

#include <stdbool.h>

#include "model/record.h"

/* Of one that did not reach its end: fills in expected and seen. */
void ending_describe(struct record *record, const char *how);

/* The same of one that a sanitizer ended for an error that is no signal, as what it printed says;
 * false where none did. */
bool ending_by_sanitizer(struct record *record);

/* Of one that went on for a moment after what ended it: where it was then is no cause. */
void ending_forget_cause(struct record *record);

/* Of one that did.  What came over the shared memory is not to be trusted: a subject can write
 * there. */
void ending_make_sound(struct record *record);

#endif
