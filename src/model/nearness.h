/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How near to a defect the finding of a property is, where one defect breaks many.
 */
#ifndef CONFORM_NEARNESS_H
#define CONFORM_NEARNESS_H

#include "model/record.h"

/* Of two findings the one with the lower number more likely names the defect, and the other comes
 * of it.  It is a verdict against the handler by the property `id`. */
int nearness(const char *id, const struct record *record);

#endif
