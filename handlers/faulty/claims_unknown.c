/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes a claim that the suite does not know; its alignment is as claimed.
 */
#include "mutant.h"

CLAIMS("alignment=16 wait-free");
OBJECT(claims_unknown, "abi.claims-known");
