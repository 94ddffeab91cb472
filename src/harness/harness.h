/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All that a file in conformance/ includes.
 */
#ifndef CONFORM_BATTERY_H
#define CONFORM_BATTERY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/blocks.h"
#include "harness/proc_count.h"
#include "harness/property_child.h"
#include "harness/sizes.h"

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define LENGTH(array) (sizeof(array) / sizeof *(array))

#endif
