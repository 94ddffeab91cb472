/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading nep49_claims.  A claim that is added here is added to handlers/nep49.h too.
 */
#include "model/claims.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/size_bits.h"
#include "base/text.h"

/* Reads the number that is the whole value, up to 2^40.  NULL, or what is wrong with it. */
static const char *read_number(const char *value, size_t length, size_t *number)
{
    unsigned long long most = POWER_OF_2(40), read = 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)value[i]))
            return "not a number";
        if (read <= most)
            read = 10 * read + (unsigned)(value[i] - '0');
    }
    *number = (size_t)read;
    return length == 0   ? "not a number"
           : read > most ? fmt("too large; %llu is the most", most)
                         : NULL;
}

/* The same, of bytes from which on something holds.  Of two such promises that one keeps both which
 * begins earlier. */
static const char *read_begin(const char *value, size_t length, size_t *from)
{
    size_t number;
    const char *wrong = read_number(value, length, &number);
    if (wrong == NULL && number == 0)
        wrong = "not a number of bytes from 1 on";
    if (wrong == NULL && (*from == 0 || number < *from))
        *from = number;
    return wrong;
}

static bool is(const char *value, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(value, word, length) == 0;
}

static const char *read_alignment(const char *value, size_t length, struct claims *claims)
{
    size_t number;
    const char *wrong = read_number(value, length, &number);
    if (wrong == NULL && (number == 0 || (number & (number - 1)) != 0))
        wrong = "not a power of two";
    if (wrong == NULL && number > claims->alignment) /* of two promises the larger keeps both */
        claims->alignment = number;
    return wrong;
}

static const char *read_guard(const char *value, size_t length, struct claims *claims)
{
    enum guard guard = is(value, length, "after")    ? GUARD_AFTER
                       : is(value, length, "before") ? GUARD_BEFORE
                                                     : GUARD_NONE;
    if (guard == GUARD_NONE)
        return "neither after nor before";
    if (claims->guard != GUARD_NONE && claims->guard != guard)
        return guard == GUARD_AFTER ? "contradicts guard=before" : "contradicts guard=after";
    claims->guard = guard;
    return NULL;
}

/* One number of a list that ends at `end`. */
static bool read_node(const char **p, const char *end, size_t *node)
{
    size_t length = 0;
    while (*p + length < end && isdigit((unsigned char)(*p)[length]))
        length++;
    const char *wrong = read_number(*p, length, node);
    *p += length;
    return wrong == NULL && *node < MOST_NODES;
}

/* NULL, or what is wrong with the list of nodes. */
static const char *read_nodes(const char *p, const char *end, struct nodes *nodes)
{
    for (;; p++) {
        size_t first, last;
        bool right = read_node(&p, end, &first);
        last = first;
        if (right && p < end && *p == '-')
            p++, right = read_node(&p, end, &last);
        if (!right || (p < end && *p != ','))
            return fmt("nodes are numbers below %d, as in 0,2-3", MOST_NODES);
        if (last < first)
            return fmt("there is no node from %zu to %zu", first, last);
        for (; first <= last; first++)
            nodes->bits[first / NODE_BITS] |= 1ul << first % NODE_BITS;
        if (p >= end)
            return NULL;
    }
}

/* POLICY@N, or POLICY:NODES@N. */
static const char *read_numa(const char *value, size_t length, struct claims *claims)
{
    const char *end = value + length, *at = memchr(value, '@', length);
    size_t policy = at != NULL ? (size_t)(at - value) : 0;
    const char *colon = memchr(value, ':', policy);
    size_t word = colon != NULL ? (size_t)(colon - value) : policy;
    bool known = colon == NULL ? is(value, word, "local")
                               : is(value, word, "interleave") || is(value, word, "bind");
    if (!known || policy >= sizeof claims->numa)
        return "not local@BYTES, interleave:NODES@BYTES or bind:NODES@BYTES";
    struct nodes nodes = {0};
    const char *wrong = colon != NULL ? read_nodes(colon + 1, at, &nodes) : NULL;
    if (wrong != NULL)
        return wrong;
    if (claims->numa_from != 0 && (claims->numa[0] != *value /* the first letters differ */ ||
                                   memcmp(&nodes, &claims->nodes, sizeof nodes) != 0))
        return fmt("contradicts numa=%s", claims->numa);
    snprintf(claims->numa, sizeof claims->numa, "%.*s", (int)policy, value);
    claims->nodes = nodes;
    return read_begin(at + 1, (size_t)(end - at - 1), &claims->numa_from);
}

/* A claim has a reader of its own, or is the number of bytes from which on it holds. */
static const struct {
    const char *name;
    const char *(*read)(const char *value, size_t length, struct claims *claims);
    size_t from; /* offset in struct claims */
} known[] = {
    {"alignment", read_alignment, 0},
    {"guard", read_guard, 0},
    {"hugepage", NULL, offsetof(struct claims, hugepage)},
    {"numa", read_numa, 0},
    {"pinned", NULL, offsetof(struct claims, pinned)},
    {"shm", NULL, offsetof(struct claims, shm)},
};

static const char *read_word(const char *word, size_t length, struct claims *claims)
{
    const char *equals = memchr(word, '=', length);
    size_t name = equals != NULL ? (size_t)(equals - word) : length;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strlen(known[i].name) != name || memcmp(known[i].name, word, name) != 0)
            continue;
        if (equals == NULL)
            return fmt("%s: a value is missing (%s=...)", known[i].name, known[i].name);
        const char *value = equals + 1, *wrong;
        if (known[i].read != NULL)
            wrong = known[i].read(value, length - name - 1, claims);
        else
            wrong = read_begin(value, length - name - 1,
                               (size_t *)(void *)((char *)claims + known[i].from));
        return wrong != NULL ? fmt("%.*s: %s", (int)length, word, wrong) : NULL;
    }
    struct suggestion suggestion = suggestion_for(word, name);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        suggestion_consider(&suggestion, known[i].name);
    return fmt("%.*s: not a claim that this version of the suite knows%s", (int)length, word,
               suggestion_words(&suggestion, ""));
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
