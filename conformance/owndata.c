/* SPDX-License-Identifier: BSD-3-Clause
 *
 * owndata: arrays that own memory without a handler.
 */
#include "battery.h"

GROUP(owndata, 12, "Arrays that own memory no handler made.");
