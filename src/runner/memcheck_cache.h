/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What memcheck reports of the interpreter and NumPy, property by property, kept from run to run
 * in ${XDG_CACHE_HOME:-~/.cache}/conform.  A file is good for one program, one interpreter and one
 * NumPy.  Nothing depends on it: without such a folder it is found out anew.
 */
#ifndef CONFORM_MEMCHECK_CACHE_H
#define CONFORM_MEMCHECK_CACHE_H

#include "model/record.h"
#include "runner/memcheck_report.h"

/* Adds what is kept for property `id`.  What cannot be read, or is not whole, is as nothing. */
void memcheck_cache_read(struct memcheck_errors *errors, const struct environment *environment,
                         const char *id);

/* Puts `errors` in the place of what is kept. */
void memcheck_cache_write(const struct memcheck_errors *errors,
                          const struct environment *environment, const char *id);

#endif
