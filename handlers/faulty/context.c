/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/context.c catch.
 */
#include "base.h"
