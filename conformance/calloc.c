/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calloc: what it hands out.
 */
#include "battery.h"

GROUP(calloc, 3, "What calloc hands out: zeroed, of the right size, and refused where the product wraps.");
