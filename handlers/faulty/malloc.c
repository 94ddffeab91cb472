/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/malloc.c catch.
 */
#include "base.h"
