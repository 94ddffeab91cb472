/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pages about the properties: list, explain and clauses.
 */
#include <string.h>
#include <sys/param.h>

#include "base/text.h"
#include "report/report.h"
#include "search/scenario.h"

enum { WIDTH = 80, INDENT = 2 };

static void print_wrapped(int margin, const char *words)
{
    printf("%*s", margin, "");
    report_wrap(stdout, margin, WIDTH, words);
}

/* Prints the lines of code behind a margin. */
static void print_code(int margin, const char *code)
{
    while (*code != '\0') {
        size_t length = strcspn(code, "\n");
        printf("%*s%.*s\n", length > 0 ? margin : 0, "", (int)length, code);
        code += length + (code[length] == '\n');
    }
}

void report_list(const struct property *const *properties, size_t count, bool verbose)
{
    for (size_t i = 0, end; i < count; i = end) {
        const struct group *group = property_group(properties[i]);
        int width = 0;
        for (end = i; end < count && property_group(properties[end]) == group; end++)
            width = MAX(width, (int)strlen(properties[end]->id));
        printf("%s%s (%zu)\n", i > 0 ? "\n" : "", group->name, end - i);
        for (; i < end; i++) {
            printf("%*s%-*s %-6s %s\n", INDENT, "", width, properties[i]->id,
                   level_name(properties[i]->level), properties[i]->title);
            if (verbose)
                print_wrapped(3 * INDENT, properties[i]->clause);
        }
    }
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
    puts("\nFACTORS");
    for (enum factor factor = 0; factor < FACTORS; factor++) {
        const struct factor_levels *levels = &scenario_factors[factor];
        char words[1024];
        size_t used = (size_t)snprintf(words, sizeof words, "%s: ", levels->name);
        for (unsigned i = 0; i < levels->count && used < sizeof words; i++)
            used += (size_t)snprintf(words + used, sizeof words - used, "%s%s", i > 0 ? "; " : "",
                                     levels->level[i].name);
        print_wrapped(INDENT, words);
    }
}

/* Prints a heading and, below it, the words or the code; nothing if there is no text. */
static void print_section(const char *heading, void (*print)(int, const char *), const char *text)
{
    if (text == NULL)
        return;
    printf("\n%s\n", heading);
    print(INDENT, text);
}

void report_explain(const struct property *property)
{
    printf("%s  %s  %s\n", property->id, level_name(property->level), property->title);
    print_section("REQUIREMENT", print_wrapped, property->clause);
    print_section("WHY", print_wrapped, property->why);
    print_section("TESTS", print_wrapped, property->tests);
    print_section("WRONG", print_code, property->wrong);
    print_section("RIGHT", print_code, property->right);
    print_section("HINT", print_wrapped, property->hint);
    print_section("A FAILURE LOOKS LIKE", print_wrapped, property->looks);
    print_section("SOURCE", print_wrapped,
                  fmt("%s (%s)", property->source, basis_words[property->basis]));
    if (property->target == TARGET_RUNTIME)
        print_section("ABOUT", print_wrapped,
                      "NumPy itself: the result does not count for the handler.");
    if (property->scenarios)
        print_factors();
    printf("\nTEST  %s:%d\nRUN   conform HANDLER --run %s\n", property->file, property->line,
           property->id);
}

/* Prints a block of code for Markdown; nothing if there is none. */
static void print_block(const char *heading, const char *code)
{
    if (code == NULL)
        return;
    printf("\n%s:\n\n```c\n", heading);
    print_code(0, code);
    puts("```");
}

/* Prints an entry of a list; nothing if there is no text. */
static void print_entry(const char *name, const char *words)
{
    if (words != NULL)
        printf("* %s: %s\n", name, words);
}

void report_clauses(const struct property *const *properties, size_t count)
{
    const struct group *group = NULL;
    puts("# Clauses\n\n"
         "<!-- Made by `conform clauses` from the blocks in conformance/; not edited by hand. "
         "-->\n\n"
         "Each property tests one requirement. A handler is conformant if it passes every\n"
         "MUST. A SHOULD is good practice, but a crash or a hang counts for either level.\n"
         "The result of a property about NumPy does not count for the handler.");
    for (size_t i = 0; i < count; i++) {
        const struct property *p = properties[i];
        if (property_group(p) != group) {
            group = property_group(p);
            printf("\n## %s\n\n%s\n", group->name, group->about);
        }
        printf("\n### %s\n\n**%s** (%s, %s%s)\n\n%s\n\n", p->id, p->title, level_name(p->level),
               basis_name(p->basis), p->target == TARGET_RUNTIME ? ", about NumPy" : "", p->clause);
        print_entry("Tests", p->tests);
        print_entry("Why", p->why);
        print_entry("Hint", p->hint);
        print_entry("A failure looks like", p->looks);
        print_entry("Source", p->source);
        print_block("Wrong", p->wrong);
        print_block("Right", p->right);
    }
    puts("\n## What cannot be tested");
    for (const struct untested *u = untested_first(); u != NULL; u = u->next)
        printf("\n* %s Source: %s.\n  Not tested: %s\n", u->clause, u->source, u->why);
}
