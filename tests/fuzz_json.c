/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How libFuzzer changes reports: a value of one becomes another, comes twice or goes, and what
 * comes of it is JSON still.  Bytes that are changed at random are none, nearly always, and
 * Jansson, which is not instrumented, says so before anything of ours is reached.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "model/record.h"

size_t LLVMFuzzerMutate(uint8_t *bytes, size_t length, size_t room);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t room, unsigned seed);

static json_t *odd_number(struct random *r)
{
    static const json_int_t odd[] = {0,   -1,  1,         2,         64,        128,      255,
                                     256, 257, INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    uint64_t which = random_below(r, sizeof odd / sizeof *odd + 1);
    return which < sizeof odd / sizeof *odd ? json_integer(odd[which]) : json_real(1e308);
}

/* The string with some bytes changed; itself where that is not UTF-8 any more. */
static json_t *changed_string(const json_t *string)
{
    char bytes[4096];
    size_t length = json_string_length(string);
    if (length > sizeof bytes)
        length = sizeof bytes;
    memcpy(bytes, json_string_value(string), length);
    length = LLVMFuzzerMutate((uint8_t *)bytes, length, sizeof bytes);
    json_t *changed = json_stringn(bytes, length);
    return changed != NULL ? changed : json_string(json_string_value(string));
}

/* Some value in it, by way of members; the value itself at times. */
static json_t *some_value(json_t *value, struct random *r)
{
    size_t count = json_is_array(value) ? json_array_size(value) : json_object_size(value);
    if (count == 0 || random_below(r, 8) == 0)
        return value;
    size_t which = (size_t)random_below(r, count);
    if (json_is_array(value))
        return some_value(json_array_get(value, which), r);
    void *at = json_object_iter(value);
    while (which-- > 0)
        at = json_object_iter_next(value, at);
    return some_value(json_object_iter_value(at), r);
}

/* In the place of `old`. */
static json_t *another(json_t *root, const json_t *old, struct random *r)
{
    switch (random_below(r, 8)) {
    case 0:
        return json_null();
    case 1:
        return random_below(r, 2) ? json_true() : json_false();
    case 2:
        return odd_number(r);
    case 3:
        return random_below(r, 2) ? json_array() : json_object();
    case 4:
        return json_string(verdict_name((enum verdict)random_below(r, VERDICT_COUNT)));
    case 5:
        return json_string("");
    case 6:
        return json_deep_copy(some_value(root, r));
    default:
        return json_is_string(old) ? changed_string(old) : odd_number(r);
    }
}

static void change_array(json_t *root, json_t *array, struct random *r)
{
    size_t count = json_array_size(array), which = (size_t)random_below(r, count + 1);
    json_t *old = json_array_get(array, which);
    if (old == NULL)
        json_array_append_new(array, another(root, NULL, r));
    else if (random_below(r, 4) == 0)
        json_array_remove(array, which);
    else if (random_below(r, 4) == 0)
        json_array_insert_new(array, which, json_deep_copy(old));
    else
        json_array_set_new(array, which, another(root, old, r));
}

static void change_object(json_t *root, json_t *object, struct random *r)
{
    size_t which = (size_t)random_below(r, json_object_size(object) + 1);
    void *at = json_object_iter(object);
    while (at != NULL && which-- > 0)
        at = json_object_iter_next(object, at);
    if (at == NULL)
        return;
    if (random_below(r, 4) == 0)
        json_object_del(object, json_object_iter_key(at));
    else
        json_object_iter_set_new(object, at, another(root, json_object_iter_value(at), r));
}

size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t length, size_t room, unsigned seed)
{
    struct random r = random_for(seed, "fuzz_json");
    json_t *root = random_below(&r, 16) > 0 ? json_loadb((char *)bytes, length, 0, NULL) : NULL;
    if (root == NULL)
        return LLVMFuzzerMutate(bytes, length, room);
    for (uint64_t left = 1 + random_below(&r, 3); left > 0; left--) {
        json_t *value = some_value(root, &r);
        if (json_is_array(value))
            change_array(root, value, &r);
        else if (json_is_object(value))
            change_object(root, value, &r);
        else
            left += random_below(&r, 8) > 0; /* another one, nearly always */
    }
    size_t needed = json_dumpb(root, NULL, 0, JSON_COMPACT);
    if (needed > 0 && needed <= room)
        length = json_dumpb(root, (char *)bytes, room, JSON_COMPACT);
    json_decref(root);
    return length;
}
