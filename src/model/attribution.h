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
struct call_kind {
    enum step_kind function;
    int condition; /* see attribution.c */
    enum topic topic;
    const char *call; /* in words, as in "free(NULL, n)" */
};

/* Returns the kind of `call`, or NULL if no property is about such calls. */
const struct call_kind *call_kind(const struct step *call);

/* True if NULL is never right for such a call. */
bool call_may_not_return_null(const struct step *call);

/* True if the call asks for at most 1 MiB.  NULL can still be right, for example if much memory is
 * live: it explains a failure only if the property that is about such calls has failed too. */
bool call_is_of_little(const struct step *call);

/* True if the call asks for more than any machine has: a block that it returns is too short. */
bool call_is_absurd(const struct step *call);

/* Returns how far the failure in `record` of `property` is from its root cause: of two, the lower
 * one more likely names the defect, and the other one is a consequence. */
int cause_distance(const struct property *property, const struct record *record);

/* Draws the conclusions from the records of all `count` properties: outcomes[i] is a SKIP if
 * another property answers for the i-th. */
void attribution_settle(const struct property *const *properties, size_t count,
                        struct shared_results *shared, struct outcome *outcomes);

#endif
