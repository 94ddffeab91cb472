/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the badge and the page say of a report, in a word or two.
 */
#ifndef CONFORM_STANDING_H
#define CONFORM_STANDING_H

#include <jansson.h>

struct standing {
    const char *words, *class, *color; /* on which white can be read */
};

/* Of what --json wrote. */
const struct standing *standing_of(const json_t *report);

/* Of several the worst; of none, that there is no verdict. */
const struct standing *standing_of_all(const json_t *reports);

#endif
