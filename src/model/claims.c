/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading nep49_claims.  A claim that is added here is added to handlers/nep49.h too.
 */
#include "model/claims.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/size_bits.h"
#include "base/text.h"

/* The number that is the whole value, from 1 to 2^40, or 0. */
static size_t read_number(const char *value, size_t length)
{
    char digits[24];
    if (length == 0 || length >= sizeof digits || strspn(value, "0123456789") < length)
        return 0;
    memcpy(digits, value, length);
    digits[length] = '\0';
    errno = 0;
    unsigned long long number = strtoull(digits, NULL, 10);
    return errno == 0 && number <= POWER_OF_2(40) ? (size_t)number : 0;
}

static bool is(const char *value, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(value, word, length) == 0;
}

/* Of two promises from some size on that one keeps both which begins earlier. */
static void begin_at(size_t *from, size_t number)
{
    if (*from == 0 || number < *from)
        *from = number;
}

static const char *read_alignment(const char *value, size_t length, struct claims *claims)
{
    size_t number = read_number(value, length);
    if (length == 0 || strspn(value, "0123456789") < length)
        return text("alignment=%.*s: not a number", (int)length, value);
    if (number == 0 || (number & (number - 1)) != 0)
        return text("alignment=%.*s: not a power of two", (int)length, value);
    if (number > claims->alignment) /* of two promises the larger keeps both */
        claims->alignment = number;
    return NULL;
}

static const char *read_guard(const char *value, size_t length, struct claims *claims)
{
    claims->guard = is(value, length, "after")    ? GUARD_AFTER
                    : is(value, length, "before") ? GUARD_BEFORE
                                                  : GUARD_NONE;
    return claims->guard != GUARD_NONE
               ? NULL
               : text("guard=%.*s: neither after nor before", (int)length, value);
}

static const char *read_hugepage(const char *value, size_t length, struct claims *claims)
{
    size_t number = read_number(value, length);
    begin_at(&claims->hugepage, number);
    return number != 0 ? NULL : text("hugepage=%.*s: not a number of bytes", (int)length, value);
}

/* POLICY@N, or POLICY:NODES@N with nodes as in 0,2-3. */
static const char *read_numa(const char *value, size_t length, struct claims *claims)
{
    const char *at = memchr(value, '@', length);
    size_t policy = at != NULL ? (size_t)(at - value) : length;
    const char *colon = memchr(value, ':', policy);
    size_t word = colon != NULL ? (size_t)(colon - value) : policy;
    bool nodes = colon != NULL && word + 1 < policy &&
                 strspn(colon + 1, "0123456789,-") >= policy - word - 1;
    bool known = colon == NULL
                     ? is(value, word, "local")
                     : nodes && (is(value, word, "interleave") || is(value, word, "bind"));
    claims->numa_from = at != NULL ? read_number(at + 1, length - policy - 1) : 0;
    if (!known || claims->numa_from == 0 || policy >= sizeof claims->numa)
        return text("numa=%.*s: not local@BYTES, interleave:NODES@BYTES or bind:NODES@BYTES",
                    (int)length, value);
    memcpy(claims->numa, value, policy);
    claims->numa[policy] = '\0';
    return NULL;
}

static const char *read_pinned(const char *value, size_t length, struct claims *claims)
{
    size_t number = read_number(value, length);
    begin_at(&claims->pinned, number);
    return number != 0 ? NULL : text("pinned=%.*s: not a number of bytes", (int)length, value);
}

static const char *read_shm(const char *value, size_t length, struct claims *claims)
{
    size_t number = read_number(value, length);
    begin_at(&claims->shm, number);
    return number != 0 ? NULL : text("shm=%.*s: not a number of bytes", (int)length, value);
}

static const struct {
    const char *name;
    const char *(*read)(const char *value, size_t length, struct claims *claims);
} known[] = {
    {"alignment", read_alignment}, {"guard", read_guard},   {"hugepage", read_hugepage},
    {"numa", read_numa},           {"pinned", read_pinned}, {"shm", read_shm},
};

static const char *read_word(const char *word, size_t length, struct claims *claims)
{
    const char *equals = memchr(word, '=', length);
    size_t name = equals != NULL ? (size_t)(equals - word) : length;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != name || memcmp(known[i].name, word, name) != 0)
            continue;
        if (equals == NULL)
            return text("%s: a value is missing (%s=...)", known[i].name, known[i].name);
        return known[i].read(equals + 1, length - name - 1, claims);
    }
    return text("%.*s: not a claim that this version of the suite knows", (int)length, word);
}

const char *claims_add(const char *words, struct claims *claims)
{
    for (const char *p = words; *p != '\0';) {
        size_t length = 0;
        while (p[length] != '\0' && !isspace((unsigned char)p[length]))
            length++;
        if (length > 0) {
            const char *wrong = read_word(p, length, claims);
            if (wrong != NULL)
                return wrong;
        }
        p += length;
        while (isspace((unsigned char)*p))
            p++;
    }
    return NULL;
}

const char *claims_parse(const char *words, struct claims *claims)
{
    memset(claims, 0, sizeof *claims);
    return claims_add(words, claims);
}
