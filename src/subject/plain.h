/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A handler that is nothing but libc: for what is to be said of NumPy and the interpreter whatever
 * the subject is.
 */
#ifndef CONFORM_PLAIN_H
#define CONFORM_PLAIN_H

#include "subject/subject.h"

/* One for the whole process. */
PyDataMem_Handler *plain_handler(void);

/* The same as a subject, for which nothing is loaded and which claims nothing. */
const struct subject_place *plain_place(void);

#endif
