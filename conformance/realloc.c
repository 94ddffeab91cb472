/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what it keeps.
 */
#include "battery.h"

GROUP(realloc, 4, "What realloc keeps, moves and refuses.");
