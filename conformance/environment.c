/* SPDX-License-Identifier: BSD-3-Clause
 *
 * env: what a handler leaves alone in its process.
 */
#include "battery.h"

GROUP(env, 8, "What a handler leaves alone: output, descriptors, signals, floating-point state, exceptions.");
