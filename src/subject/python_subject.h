/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A subject that a Python module offers: --handler python:MODULE:ATTR or python:MODULE.
 */
#ifndef CONFORM_PYTHON_SUBJECT_H
#define CONFORM_PYTHON_SUBJECT_H

#include "subject/subject.h"

/* Imports place->module, GIL held, and makes a handler of its attribute place->symbol, which may
 * be dotted: a capsule, an object or a class with one, a context manager, or a function that
 * returns one or installs it; where none comes of it, or it is "", what the import itself put in
 * force.  subject->how then says which of these it was.  The handler that was current before is
 * current afterwards.  As subject_load. */
enum load_state python_subject_load(const struct subject_place *place, struct subject *subject,
                                    char *why, size_t room);

/* Imports what of the standard library changes signals as it is imported, where a module may be
 * about to: that is Python's doing. */
void python_subject_prepare(const struct subject_place *place);

#endif
