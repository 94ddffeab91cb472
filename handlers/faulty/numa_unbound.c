/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims to bind large blocks to a memory node, but does not bind them.
 */
#include "mutant.h"

CLAIMS("numa=bind:0@65536");
OBJECT(numa_unbound, "claim.numa");
