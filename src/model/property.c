/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The registry of properties and groups.
 */
#include "model/property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* Filled before main by the constructors that PROPERTY and GROUP leave behind. */
static const struct property *properties;
static const struct group *groups;
static const struct untested *all_untested;
static size_t property_count;
static const struct property **ordered;

void property_register(struct property *property)
{
    property->next = properties;
    properties = property;
    property_count++;
}

void untested_register(struct untested *untested)
{
    const struct untested **last = &all_untested;
    while (*last != NULL)
        last = (const struct untested **)&(*last)->next;
    *last = untested;
}

const struct untested *untested_first(void)
{
    return all_untested;
}

void group_register(struct group *group)
{
    group->next = groups;
    groups = group;
}

const struct group *property_group(const struct property *property)
{
    size_t length = strcspn(property->id, ".");
    for (const struct group *g = groups; g != NULL; g = g->next) {
        if (strlen(g->name) == length && memcmp(g->name, property->id, length) == 0)
            return g;
    }
    return NULL;
}

static int by_rank_and_line(const void *left, const void *right)
{
    const struct property *a = *(const struct property *const *)left;
    const struct property *b = *(const struct property *const *)right;
    const struct group *ga = property_group(a), *gb = property_group(b);
    int ra = ga != NULL ? ga->order : 1 << 20, rb = gb != NULL ? gb->order : 1 << 20;
    if (ra != rb)
        return ra < rb ? -1 : 1;
    if (ga != gb && ga != NULL && gb != NULL)
        return strcmp(ga->name, gb->name);
    int file = strcmp(a->file, b->file);
    return file != 0 ? file : a->line - b->line;
}

const struct property *const *property_all(size_t *count)
{
    if (ordered == NULL) {
        ordered = calloc(property_count + 1, sizeof *ordered);
        if (ordered == NULL) {
            fputs("conform: out of memory\n", stderr);
            exit(4);
        }
        size_t n = 0;
        for (const struct property *p = properties; p != NULL; p = p->next)
            ordered[n++] = p;
        qsort(ordered, n, sizeof *ordered, by_rank_and_line);
    }
    *count = property_count;
    return ordered;
}

bool rule_is_alignment(enum heap_rule rule)
{
    return rule >= HEAP_MALLOC_ALIGNMENT && rule <= HEAP_CLAIMED_ALIGNMENT;
}

const struct property *property_of_rule(enum heap_rule rule)
{
    const struct property *p = properties;
    while (p->rule != rule)
        p = p->next;
    return p;
}

const struct property *property_find(const char *id)
{
    for (const struct property *p = properties; p != NULL; p = p->next) {
        if (strcmp(p->id, id) == 0)
            return p;
    }
    return NULL;
}

const struct property *property_first(void)
{
    const struct property *p = properties;
    while (p != NULL && !p->first)
        p = p->next;
    return p;
}

const char *property_about(enum topic topic)
{
    const struct property *p = properties;
    while (p != NULL && (p->answers_for >> topic & 1) == 0)
        p = p->next;
    return p != NULL ? p->id : "";
}

struct rank property_rank(const struct property *property)
{
    static const struct rank last = {RANK_RECORDED, RANK_RECORDED, 1000};
    const struct group *group = property_group(property);
    if (property->rank.fails != RANK_OF_GROUP)
        return property->rank;
    return group != NULL && group->rank.fails != RANK_OF_GROUP ? group->rank : last;
}

bool property_has_threads(const struct property *property)
{
    const struct group *group = property_group(property);
    return property->threads || (group != NULL && group->threads);
}

const char *property_meant(const char *id)
{
    size_t count;
    const struct property *const *all = property_all(&count);
    struct suggestion suggestion = suggestion_for(id, strlen(id));
    for (size_t i = 0; i < count; i++) {
        suggestion_consider(&suggestion, all[i]->id);
        suggestion_consider(&suggestion, fmt("%.*s.*", (int)strcspn(all[i]->id, "."), all[i]->id));
    }
    return suggestion_words(&suggestion, "");
}

const char *level_name(enum level level)
{
    return level == MUST ? "MUST" : "SHOULD";
}

const char *basis_name(enum basis basis)
{
    switch (basis) {
    case BASIS_NEP:
        return "NEP";
    case BASIS_C:
        return "C";
    case BASIS_CALLER:
        return "CALLER";
    case BASIS_CLAIM:
        return "CLAIM";
    case BASIS_QOI:
        return "QOI";
    }
    return "?";
}

const char *target_name(enum target target)
{
    return target == TARGET_HANDLER ? "handler" : "runtime";
}
