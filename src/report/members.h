/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Members of JSON that was read, which may be anything.
 */
#ifndef CONFORM_MEMBERS_H
#define CONFORM_MEMBERS_H

#include <jansson.h>

/* The string that the member is; "" where it is none, or the object is none. */
static inline const char *word(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value != NULL ? value : "";
}

#endif
