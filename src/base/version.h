/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranges of versions, as pip writes them: ">=1.25,<2.4".
 */
#ifndef CONFORM_VERSION_H
#define CONFORM_VERSION_H

#include <stdbool.h>

/* Whether it is one: clauses with commas in between, each >=, <=, >, <, ==, != or ~= and numbers
 * with dots in between, behind == and != perhaps with ".*" at the end. */
bool version_range_is_sound(const char *range);

/* Whether a version is in a sound range.  Of the version counts what it begins with, numbers and
 * dots: "2.5.0.dev0" and "2.5.0rc1" are 2.5.0, "3.14t" is 3.14.  One that has none is in no range.
 */
bool version_is_in(const char *version, const char *range);

#endif
