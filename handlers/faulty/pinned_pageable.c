/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Claims page-locked memory, but returns memory of libc.
 */
#include "mutant.h"

CLAIMS("pinned=1");
OBJECT(pinned_pageable, "claim.pinned");
