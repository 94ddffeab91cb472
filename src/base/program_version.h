/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What this program is: "0.2.0" of a release, "0.2.0+g1234abc" of any other commit, with ".dirty"
 * where files were changed since; see program_version.sh, of which make makes the rest.
 */
#ifndef CONFORM_PROGRAM_VERSION_H
#define CONFORM_PROGRAM_VERSION_H

extern const char program_version[];

#endif
