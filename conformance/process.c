/* SPDX-License-Identifier: BSD-3-Clause
 *
 * process: forked children, and the interpreter's end.
 */
#include "battery.h"

GROUP(process, 7, "Forked children, and the end of the interpreter.");
