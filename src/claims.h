/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_claims: what a subject promises beyond the contract.
 */
#ifndef CONFORM_CLAIMS_H
#define CONFORM_CLAIMS_H

#include <stddef.h>

struct claims {
    size_t alignment; /* every block's, a power of two; 0 where none is claimed */
};

/* Reads `words`, separated by white space.  Returns NULL, or one line on the first word
 * that the suite does not know or cannot read (good until the next call of text()). */
const char *claims_parse(const char *words, struct claims *claims);

#endif
