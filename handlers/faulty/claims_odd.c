/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims an alignment that is not a power of two.
 */
#include "mutant.h"

CLAIMS("alignment=48");
OBJECT(claims_odd, "abi.claims-known");
