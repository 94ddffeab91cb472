/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A bundle: what a run found and what it was, in a .tar.gz that can be checked.  What is read has
 * to be, byte for byte, what this program writes, but for what it tells: one list of names in one
 * order, plain files with one time, and a hash over all of it.  So there is no link, no path and no
 * member beside the others that anybody would have to guard against.
 */
#ifndef CONFORM_BUNDLE_H
#define CONFORM_BUNDLE_H

#include <stddef.h>

#include "report/report.h"

enum bundle_member {
    BUNDLE_MANIFEST,   /* the SHA-256 of all others, as sha256sum has it */
    BUNDLE_REPORT,     /* what --json writes, without times */
    BUNDLE_TEXT,       /* the text, likewise */
    BUNDLE_PROPERTIES, /* what had to run: an id a line */
    BUNDLE_WAIVERS,    /* the entries of --expect, where there is one */
    BUNDLE_HANDLER,    /* with --with-subject */
};
enum { BUNDLE_MEMBERS = BUNDLE_HANDLER + 1 };

struct bundle {
    struct member {
        char *bytes; /* NULL where it is not there; else with a NUL behind it */
        size_t length;
    } of[BUNDLE_MEMBERS];
    json_t *report;
};

/* Reads what --bundle wrote, which is freed by bundle_free in either case.  NULL, or in words why
 * it is none, or not as it was written; good until the next calls of text(). */
const char *bundle_read(const char *bytes, size_t length, struct bundle *bundle);
void bundle_free(struct bundle *bundle);

/* The same of the archive alone, without what is around it. */
const char *bundle_read_tar(const char *bytes, size_t length, struct bundle *bundle);

/* Why it is no report of the whole battery, in words (good until the next calls of text()); or NULL
 * where each property that this version had to run is there once.  *unsure is true where that is
 * another version, whose list nobody here can look at. */
const char *bundle_incomplete(const struct bundle *bundle, bool *unsure);

#endif
