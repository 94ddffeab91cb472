/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Computing a summary once more.
 */
#include "report/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/program_version.h"
#include "base/text.h"
#include "report/members.h"
#include "report/report.h"

/* What the verdicts are, as far as it matters. */
struct sums {
    json_int_t of[2][VERDICT_COUNT]; /* by target */
    json_int_t against, incomplete, waived, count;
};

static bool is_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static enum verdict verdict_of(const json_t *property)
{
    int verdict = INCOMPLETE;
    while (verdict > PASS &&
           strcmp(word(property, "verdict"), verdict_name((enum verdict)verdict)) != 0)
        verdict--;
    return (enum verdict)verdict;
}

static struct sums sums_of(const json_t *report)
{
    struct sums sums = {.count = 0};
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        struct property like = {
            .level = strcmp(word(property, "level"), "SHOULD") == 0 ? SHOULD : MUST,
            .target =
                strcmp(word(property, "target"), "runtime") == 0 ? TARGET_RUNTIME : TARGET_HANDLER};
        enum verdict verdict = verdict_of(property);
        bool decides = verdict_would_decide(verdict, &like, is_true(report, "strict"));
        bool waived = json_object_get(property, "waived") != NULL;
        sums.count++;
        sums.of[like.target][verdict]++;
        sums.waived += decides && waived;
        sums.incomplete += decides && !waived && verdict == INCOMPLETE;
        sums.against += decides && !waived && verdict != INCOMPLETE;
    }
    return sums;
}

/* Whether it can be so that no handler came of loading it: nothing was tried behind that. */
static bool nothing_was_loaded(const json_t *report)
{
    const struct property *loads = property_first();
    const json_t *property, *first = NULL;
    size_t i, passed = 0;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        bool passes = verdict_of(property) == PASS && strcmp(word(property, "target"), "runtime");
        if (loads != NULL && strcmp(word(property, "id"), loads->id) == 0)
            first = property;
        passed += passes;
    }
    return first != NULL && passed == 0;
}

/* Without --fail-on. */
static enum exit_code code_of(const json_t *report, const struct sums *sums)
{
    json_int_t told = number(report, "exit_code");
    bool interrupted = is_true(report, "interrupted");
    if ((told == EXIT_CANNOT_LOAD || told == EXIT_CANNOT_WORK_HERE) && nothing_was_loaded(report))
        return (enum exit_code)told;
    if (sums->against > 0 || json_array_size(json_object_get(report, "stale")) > 0)
        return EXIT_NOT_CONFORMANT;
    if (sums->of[TARGET_HANDLER][BROK] + sums->of[TARGET_RUNTIME][BROK] > 0)
        return EXIT_HARNESS_BROKE;
    if (is_true(report, "quick") && !interrupted)
        return EXIT_CONFORMANT;
    return sums->incomplete > 0 || interrupted ? EXIT_INCOMPLETE : EXIT_CONFORMANT;
}

enum exit_code summary_code(const json_t *report)
{
    struct sums sums = sums_of(report);
    return code_of(report, &sums);
}

bool summary_is_against(const json_t *report)
{
    struct sums sums = sums_of(report);
    return !is_true(report, "interrupted") && !is_true(report, "quick") && sums.against > 0 &&
           code_of(report, &sums) == EXIT_NOT_CONFORMANT;
}

/* ---- what it says -------------------------------------------------------------------------- */

static bool is_told_code(const json_t *report, const struct sums *sums)
{
    json_int_t told = number(report, "exit_code");
    enum exit_code code = code_of(report, sums);
    bool may_be_by_baseline = json_object_get(report, "baseline") != NULL &&
                              (code == EXIT_CONFORMANT || code == EXIT_NOT_CONFORMANT);
    return json_is_integer(json_object_get(report, "exit_code")) &&
           (told == (json_int_t)code ||
            (may_be_by_baseline && (told == EXIT_CONFORMANT || told == EXIT_NOT_CONFORMANT ||
                                    told == EXIT_HARNESS_BROKE || told == EXIT_INCOMPLETE)));
}

static bool are_told_sums(const json_t *report, const struct sums *sums)
{
    static const char *const targets[] = {"handler", "runtime"};
    for (int target = TARGET_HANDLER; target <= TARGET_RUNTIME; target++) {
        const json_t *told = json_object_get(json_object_get(report, "verdicts"), targets[target]);
        for (int verdict = PASS; verdict < VERDICT_COUNT; verdict++) {
            if (number(told, verdict_name((enum verdict)verdict)) != sums->of[target][verdict])
                return false;
        }
    }
    return number(report, "expected") == sums->count && number(report, "waivers") == sums->waived;
}

static json_int_t handler_count(const struct sums *sums)
{
    json_int_t count = 0;
    for (int verdict = PASS; verdict < VERDICT_COUNT; verdict++)
        count += sums->of[TARGET_HANDLER][verdict];
    return count;
}

static const char *conclusion(const json_t *report, const struct sums *sums)
{
    struct figures figures = {
        .code = code_of(report, sums),
        .count = (size_t)handler_count(sums),
        .against = (size_t)sums->against,
        .waived = (size_t)sums->waived,
        .skipped = (size_t)sums->of[TARGET_HANDLER][SKIP],
        .unfinished = (size_t)sums->of[TARGET_HANDLER][INCOMPLETE],
        .stale = json_array_size(json_object_get(report, "stale")),
        .rounds = (size_t)number(report, "rounds"),
        .checker =
            json_string_value(json_object_get(json_object_get(report, "environment"), "checker")),
        .interrupted = is_true(report, "interrupted"),
        .quick = is_true(report, "quick"),
        .whole = is_true(report, "whole"),
    };
    return conclusion_of(&figures);
}

/* How often each was run, and in how many of these rounds it was bad. */
static bool are_rounds(const json_t *report)
{
    json_int_t rounds = number(report, "rounds");
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        const json_t *bad = json_object_get(property, "bad_rounds");
        json_int_t count = json_integer_value(bad);
        if ((rounds > 1) != json_is_integer(bad) || count < 0 || count > rounds)
            return false;
    }
    return rounds >= 1;
}

/* 64 bits, in digits. */
static bool is_seed(const char *words)
{
    errno = 0;
    unsigned long long seed = strtoull(words, NULL, 10);
    return errno == 0 && strcmp(words, text("%llu", seed)) == 0;
}

/* Which one does not decide as this version says it does, or NULL. */
static const char *changed_property(const json_t *report)
{
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        const struct property *known = property_find(word(property, "id"));
        if (known == NULL || strcmp(word(property, "level"), level_name(known->level)) != 0 ||
            strcmp(word(property, "basis"), basis_name(known->basis)) != 0 ||
            strcmp(word(property, "target"), target_name(known->target)) != 0)
            return word(property, "id");
    }
    return NULL;
}

/* What is known of this version alone. */
static const char *wrong_in_this_version(const json_t *report, const struct sums *sums)
{
    const char *changed = changed_property(report);
    size_t all, about_handler = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++)
        about_handler += properties[i]->target == TARGET_HANDLER;
    if (changed != NULL)
        return text("%.64s is not what it is in conform %s", text_safe(changed), program_version);
    if (is_true(report, "whole") != ((size_t)handler_count(sums) == about_handler))
        return "whole is not what its properties are";
    return strcmp(word(report, "conclusion"), conclusion(report, sums)) == 0
               ? NULL
               : "its conclusion is not that of its verdicts";
}

const char *summary_wrong(const json_t *report)
{
    struct sums sums = sums_of(report);
    bool is_this_version = strcmp(word(report, "conform"), program_version) == 0;
    bool conformant =
        code_of(report, &sums) == EXIT_CONFORMANT && sums.waived == 0 && !is_true(report, "quick");
    if (!are_told_sums(report, &sums) || is_true(report, "conformant") != conformant)
        return "its summary is not that of its verdicts";
    if (!is_told_code(report, &sums))
        return "its exit_code is not that of its verdicts";
    if (!are_rounds(report))
        return "its rounds are not those of its properties";
    if (!is_seed(word(report, "seed")))
        return "its seed is none";
    if (json_object_get(report, "daily_seed") != NULL && !is_seed(word(report, "daily_seed")))
        return "its daily_seed is none";
    return is_this_version ? wrong_in_this_version(report, &sums) : NULL;
}
