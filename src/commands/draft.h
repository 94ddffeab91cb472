/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file in the folder of --repro that appears as a whole or not at all.
 */
#ifndef CONFORM_DRAFT_H
#define CONFORM_DRAFT_H

#include <stdio.h>

struct draft {
    const char *given;   /* the folder, as it was named */
    char *folder, *path; /* absolute; the path is what it has until it is kept */
    FILE *file;
};

/* Both leave with EXIT_HARNESS_BROKE where it cannot be written. */
struct draft draft_begin(const char *folder);
/* As the file of that name.  Returns its path, the caller's to free. */
char *draft_keep(struct draft *draft, const char *name);

#endif
