/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free: what it takes.
 */
#include "battery.h"

GROUP(free, 5, "What free takes: NULL, wrong sizes, any order.");
