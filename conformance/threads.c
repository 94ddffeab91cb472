/* SPDX-License-Identifier: BSD-3-Clause
 *
 * threads: calls from several threads.
 */
#include "battery.h"

GROUP(threads, 6, "Calls from several threads, most of them without the GIL.");
