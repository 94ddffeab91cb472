/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --tsan: this program once more, with the runtime of ThreadSanitizer in it.
 */
#ifndef CONFORM_UNDER_TSAN_H
#define CONFORM_UNDER_TSAN_H

#include "subject/subject.h"

/* Comes back where the runtime is in this process, for a subject that was compiled for it; else
 * replaces this process, or leaves with a line on what is to be done. */
void tsan_enter(char **argv, const struct subject_place *place);

#endif
