/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decodes how the process of a property ended.
 */
#ifndef CONFORM_EXIT_STATUS_H
#define CONFORM_EXIT_STATUS_H

#include <stdbool.h>

#include "model/record.h"

/* Fills in expected and seen for a process that did not reach its end. */
void ending_describe(struct record *record, const char *how);

/* The same from the output of a sanitizer that ended the process without a signal; false if none
 * did. */
bool ending_by_sanitizer(struct record *record);

/* Forgets suspects of a process that went on for a moment after what ended it. */
void ending_forget_cause(struct record *record);

/* Terminates the texts and checks the verdict of a process that reached its end: a handler can
 * overwrite them. */
void record_terminate(struct record *record);

#endif
