/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/owndata.c catch.
 */
#include "base.h"
