/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What --expect names: the failures that are known, each with a reason, and do not decide.
 */
#ifndef CONFORM_EXPECTATIONS_H
#define CONFORM_EXPECTATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "model/property.h"
#include "model/record.h"

/* An [[expect]] of the file.  What was not said is NULL. */
struct expectation {
    const char *id; /* or a glob of ids */
    enum verdict verdict;
    const char *reason, *url, *until;
    const char *numpy, *python; /* ranges of versions */
    const char *platform;       /* a glob such as linux-x86_64 */
    int line;
};

struct expectations {
    const char *file;
    size_t count;
    struct expectation of[];
};

/* Reads the file.  Leaves with EXIT_USAGE and one line that names the place, where it is no TOML,
 * or says what this program cannot hold it to. */
const struct expectations *expectations_read(const char *file);

/* Whether it speaks about that property; and about a run in that environment. */
bool expectation_is_about(const struct expectation *expectation, const struct property *property);
bool expectation_applies(const struct expectation *expectation,
                         const struct environment *environment);

/* The entry by which that record of the property does not decide, or NULL; `all` may be NULL. */
const struct expectation *expectations_waive(const struct expectations *all,
                                             const struct property *property,
                                             const struct outcome *outcome,
                                             const struct environment *environment);

#endif
