/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which property answers for a call that goes wrong.  free(NULL, 1) that crashes ends every
 * property which happens to make that call, and one of them is about it: that one tells it, and the
 * others, which could not come to what they are about, are SKIPs that name it as their cause.  The
 * same holds for what goes wrong in a control, which is without what the property is about.
 *
 * Nothing is lost on the way: a property becomes a SKIP only where another one keeps a verdict
 * against the handler that weighs as much.
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

/* True of a call for little that has returned NULL: that may be its right, when much is live, say.
 * It explains something only where the property that is about such calls has failed. */
bool attribution_is_of_little(const struct call *call);

/* True of a call for more than there can be: a block that it returns is not that long. */
bool attribution_is_absurd(const struct call *call);

/* The same as attribution_for, of a call that has returned NULL, and NULL where that is its
 * right. */
const struct attribution *attribution_for_null(const struct call *call);

/* When all `count` properties have their verdicts on the board: makes SKIPs of those for which
 * another one answers.  0, or -1 where there was no memory for it. */
int attribution_settle(const struct property *const *properties, size_t count, struct board *board);

/* After that: the id of a property for which nobody answers, though it is no verdict against the
 * handler, or that ended well inside its own control; NULL, for there is to be none. */
const char *attribution_unsettled(const struct property *const *properties, size_t count,
                                  struct board *board);

#endif
