/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints while it is loaded.
 */
#include <stdio.h>

#include "mutant.h"

__attribute__((constructor)) static void greet(void)
{
    printf("loads_aloud 1.0, at your service\n");
}
OBJECT(loads_aloud, "abi.loads-quietly");
