/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whose matter it is when a call goes wrong.  free(NULL, 1) that crashes ends every property which
 * happens to make that call, and one of them is about it: that one says so, and the others, which
 * could not come to what they are about, are SKIPs that point to it.
 */
#ifndef CONFORM_ATTRIBUTION_H
#define CONFORM_ATTRIBUTION_H

#include "model/property.h"
#include "model/record.h"

/* A kind of call that one property is about, or two. */
struct attribution {
    const char *call;   /* in words, as in "free(NULL, n)" */
    const char *owner;  /* the id of the property */
    const char *second; /* likewise, or NULL */
};

/* The kind that `call` is of, or NULL where no property is about all such calls. */
const struct attribution *attribution_for(const struct call *call);

/* The same, of a call that has returned NULL, and NULL where that is its right. */
const struct attribution *attribution_for_null(const struct call *call);

/* When all `count` properties have their verdicts on the board: makes SKIPs of those that were
 * ended by a call which another one is about, and finds broken. */
void attribution_settle(const struct property *const *properties, size_t count,
                        struct board *board);

#endif
