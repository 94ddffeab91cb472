/* SPDX-License-Identifier: BSD-3-Clause
 *
 * array_watch: sees what leaves an array with another size than its block has, before it is freed.
 */
#ifndef CONFORM_SHIMS_ARRAY_WATCH_H
#define CONFORM_SHIMS_ARRAY_WATCH_H

#include <stdbool.h>

#include "shims/auditor.h"

/* From now on the auditor is told of arrays that `a.dtype =` leaves or np.fromiter makes without
 * elements, and of those whose `__setstate__` fails behind the change of their dtype.  NumPy is
 * there, and the GIL is held; false with an exception. */
bool array_watch_begin(struct auditor *auditor);

#endif
