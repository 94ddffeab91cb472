/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading nep49_claims.  A claim that is added here is added to handlers/nep49.h too.
 */
#include "claims.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

static const char *read_alignment(const char *value, size_t length, struct claims *claims)
{
    char digits[24];
    if (length == 0 || length >= sizeof digits || strspn(value, "0123456789") < length)
        return text("alignment=%.*s: not a number", (int)length, value);
    memcpy(digits, value, length);
    digits[length] = '\0';
    errno = 0;
    unsigned long long number = strtoull(digits, NULL, 10);
    if (errno != 0 || number == 0 || (number & (number - 1)) != 0 || number > (1ull << 40))
        return text("alignment=%s: not a power of two", digits);
    if (number > claims->alignment) /* of two promises the larger keeps both */
        claims->alignment = (size_t)number;
    return NULL;
}

static const struct {
    const char *name;
    const char *(*read)(const char *value, size_t length, struct claims *claims);
} known[] = {
    {"alignment", read_alignment},
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

const char *claims_parse(const char *words, struct claims *claims)
{
    memset(claims, 0, sizeof *claims);
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
