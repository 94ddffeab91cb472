/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pages about the properties: list, explain and clauses.
 */
#include "base/text.h"
#include "report/report.h"
#include "search/scenario.h"

void report_list(const struct property *const *properties, size_t count)
{
    for (size_t i = 0; i < count; i++)
        printf("%-34s %-6s %-6s %s\n", properties[i]->id, level_name(properties[i]->level),
               basis_name(properties[i]->basis), properties[i]->clause);
}

static const char *const basis_words[] = {
    [BASIS_NEP] = "NEP 49 or NumPy's documentation of it",
    [BASIS_C] = "the C standard's memory management functions",
    [BASIS_CALLER] = "NumPy's source relies on it",
    [BASIS_CLAIM] = "the handler promised it",
    [BASIS_QOI] = "good practice",
};

/* What the rows of scenarios are drawn from, within the limits of each property. */
static void print_factors(void)
{
    for (enum factor factor = 0; factor < FACTORS; factor++) {
        const struct factor_levels *levels = &scenario_factors[factor];
        char words[1024];
        size_t used = (size_t)snprintf(words, sizeof words, "%s: ", levels->name);
        for (unsigned i = 0; i < levels->count && used < sizeof words; i++)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? "; " : "",
                                     levels->level[i].name);
        report_print_field(stdout, factor == 0 ? "factors" : "", words);
    }
}

void report_explain(const struct property *property)
{
    printf("%s\n", property->id);
    report_print_field(stdout, "clause", property->clause);
    report_print_field(stdout, "level",
                       fmt("%s (%s)", level_name(property->level), basis_words[property->basis]));
    report_print_field(stdout, "source", property->source);
    report_print_field(stdout, "about",
                       property->target == TARGET_HANDLER
                           ? "the handler"
                           : "NumPy itself: it decides nothing about the handler");
    report_print_field(stdout, "why", property->why);
    report_print_field(stdout, "hint", property->hint);
    if (property->looks != NULL)
        report_print_field(stdout, "looks", property->looks);
    if (property->scenarios)
        print_factors();
    report_print_field(stdout, "code", fmt("%s:%d in the sources", property->file, property->line));
}

void report_clauses(const struct property *const *properties, size_t count)
{
    const struct group *group = NULL;
    puts("# Clauses\n\n"
         "<!-- Made by `conform clauses` from the blocks in conformance/; not edited by hand. "
         "-->\n\n"
         "Each property tests the clause beside it. MUST decides whether a handler is\n"
         "conformant; SHOULD is good practice, but a crash or a hang decides in either. A\n"
         "property about NumPy decides nothing about the handler.");
    for (size_t i = 0; i < count; i++) {
        const struct property *p = properties[i];
        if (property_group(p) != group) {
            group = property_group(p);
            printf("\n## %s\n\n%s\n", group->name, group->about);
        }
        printf("\n### %s\n\n%s, %s%s. %s.\n\n* Source: %s\n* Why: %s\n* Hint: %s\n", p->id,
               level_name(p->level), basis_name(p->basis),
               p->target == TARGET_RUNTIME ? ", about NumPy" : "", p->clause, p->source, p->why,
               p->hint);
        if (p->looks != NULL)
            printf("* A failure looks like: %s\n", p->looks);
    }
    puts("\n## What nothing here can test");
    for (const struct untested *u = untested_first(); u != NULL; u = u->next)
        printf("\n* %s. %s.\n  Not tested, for %s.\n", u->clause, u->source, u->why);
}
