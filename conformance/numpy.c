/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numpy: real arrays on the handler.
 */
#include "battery.h"

GROUP(numpy, 10, "Real arrays on the handler, through NumPy.");
