/* SPDX-License-Identifier: BSD-3-Clause
 *
 * context: which handler is in force where.
 */
#include "battery.h"

GROUP(context, 11, "One handler for each thread and task, by NumPy's context variable.");
