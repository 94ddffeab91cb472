/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ranges of versions, as pip writes them: ">=1.25,<2.4".
 */
#ifndef CONFORM_VERSION_H
#define CONFORM_VERSION_H

/* Returns 1 if the version is in the range, 0 if not, and -1 if the range is not valid: clauses
 * with commas in between, each >=, <=, >, <, ==, != or ~= and numbers with dots in between, after
 * == and
 * != perhaps with ".*" at the end.  Of the version only the numbers at its beginning count:
 * "2.5.0.dev0" and "2.5.0rc1" are 2.5.0, "3.14t" is 3.14; without any it is in no range. */
int version_in_range(const char *version, const char *range);

#endif
