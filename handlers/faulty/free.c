/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/free.c catch.
 */
#include "base.h"
