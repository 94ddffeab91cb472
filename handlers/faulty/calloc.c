/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/calloc.c catch.
 */
#include "base.h"
