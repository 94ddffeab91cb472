/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/environment.c catch.
 */
#include "base.h"
