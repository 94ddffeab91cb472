/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/realloc.c catch.
 */
#include "base.h"
