/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making a list that shows a defect as short as there is time for.
 */
#ifndef CONFORM_SHRINK_H
#define CONFORM_SHRINK_H

#include "repro/attempt.h"

/* Cuts the list, which shows what `seen` says, until it shows it with nothing left out, or the
 * seconds are over.  Returns what the last attempt with it has shown. */
struct attempt shrink(const struct tried *tried, struct call_list *list, struct attempt seen,
                      double seconds);

#endif
