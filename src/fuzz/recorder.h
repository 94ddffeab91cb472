/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler that writes down the calls of one thread, in a trace, and hands them on.
 */
#ifndef CONFORM_RECORDER_H
#define CONFORM_RECORDER_H

#include <stddef.h>

#include "nep49.h"

/* Before `inner`, one for the process; each call is in the file when it returns.  NULL with one
 * line in `why`, which does not name the file. */
PyDataMem_Handler *recorder_begin(const PyDataMem_Handler *inner, const char *path, char *why,
                                  size_t room);

#endif
