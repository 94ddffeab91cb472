/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The waivers of --expect: known failures that do not decide.  The Python package reads and
 * validates the file.
 */
#include <fnmatch.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "base/text.h"
#include "base/version.h"
#include "report/present.h"
#include "report/report.h"

/* ---- what an entry is about -------------------------------------------------------------- */

/* NumPy's own defects never decide; and if the first property fails, no other one is run. */
static bool is_about(const struct expectation *e, const struct property *property)
{
    return property->target == TARGET_HANDLER && !property->first &&
           fnmatch(e->id, property->id, 0) == 0;
}

static bool applies(const struct expectation *e, const struct environment *environment)
{
    struct utsname name;
    char platform[16 + sizeof name.machine] = "unknown"; /* as sysconfig.get_platform() has it */
    if (uname(&name) == 0)
        snprintf(platform, sizeof platform, "linux-%s", name.machine);
    return (e->numpy == NULL || version_in_range(environment->numpy, e->numpy) == 1) &&
           (e->python == NULL || version_in_range(environment->python, e->python) == 1) &&
           (e->platform == NULL || fnmatch(e->platform, platform, 0) == 0);
}

void expectations_apply(const struct expectations *all, const struct property *property,
                        const struct environment *environment, struct outcome *outcome)
{
    bool can_be_expected =
        verdict_facts[outcome->verdict].against || outcome->verdict == INCOMPLETE;
    bool is_bad = can_be_expected || outcome->verdict == BROK;
    outcome->waiver = outcome->unused_waiver = NULL;
    for (size_t i = 0; all != NULL && is_bad && !outcome->not_run && i < all->count; i++) {
        const struct expectation *e = &all->of[i];
        if (!is_about(e, property) || !applies(e, environment))
            continue;
        if (outcome->unused_waiver == NULL)
            outcome->unused_waiver = e;
        if (outcome->waiver == NULL && can_be_expected && e->verdict == outcome->verdict)
            outcome->waiver = e;
    }
    if (outcome->waiver != NULL)
        outcome->unused_waiver = NULL;
}

/* True if all properties that the entry is about were run, at least one passed, and no other result
 * than that or a SKIP of its own was found. */
static bool is_stale(const struct expectation *e, const struct run *run)
{
    size_t all, covered = 0, passed = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++)
        covered += is_about(e, properties[i]);
    for (size_t i = 0; i < run->count; i++) {
        const struct outcome *outcome = &run->outcomes[i];
        if (!is_about(e, run->properties[i]))
            continue;
        if ((outcome->verdict != PASS && outcome->verdict != SKIP) || outcome->cause != NULL)
            return false;
        passed += outcome->verdict == PASS;
        covered--;
    }
    return passed > 0 && covered == 0 && applies(e, run->environment);
}

void expectations_find_stale(struct expectations *all, const struct run *run)
{
    for (size_t i = 0; i < all->count; i++)
        all->of[i].is_stale = is_stale(&all->of[i], run);
}

/* ---- reading the file -------------------------------------------------------------------- */

static const char *string_of(const json_t *entry, const char *name)
{
    return json_string_value(json_object_get(entry, name));
}

static enum verdict verdict_called(const char *name)
{
    int verdict = PASS;
    while (verdict < VERDICT_COUNT && strcmp(verdict_name((enum verdict)verdict), name) != 0)
        verdict++;
    return (enum verdict)verdict;
}

/* Leaves, and names the line of that member of the entry. */
#define wrong(file, entry, member, format, ...)                                                    \
    die(EXIT_USAGE, "%s:%d: " format, escape(file),                                                \
        (int)json_integer_value(json_object_get(json_object_get(entry, "lines"), member)),         \
        ##__VA_ARGS__)

/* Leaves if the entry is about nothing that can be waived, or a range is none. */
static void check_entry(const char *file, const json_t *entry, const struct expectation *e)
{
    size_t all, about = 0, matching = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++) {
        matching += fnmatch(e->id, properties[i]->id, 0) == 0;
        about += is_about(e, properties[i]);
    }
    if (matching == 0)
        wrong(file, entry, "id", "%s: matches no property%s; see conform list", escape(e->id),
              property_meant(e->id));
    if (about == 0)
        wrong(file, entry, "id",
              "%s: is nothing that can be waived: either about NumPy itself, which never decides, "
              "or what everything else rests on",
              escape(e->id));
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? "numpy" : "python", *range = i == 0 ? e->numpy : e->python;
        if (range != NULL && version_in_range("0", range) < 0)
            wrong(file, entry, name, "%s: is no range of versions, as \">=1.25,<2.4\" is", name);
    }
}

struct expectations *expectations_read(const char *file)
{
    const char *const words[] = {"--waivers", file, NULL};
    const json_t *entries = present_answer(words, NULL), *entry; /* it stays, as its strings do */
    size_t i;
    struct expectations *all =
        allocate(1, sizeof *all + json_array_size(entries) * sizeof *all->of);
    all->file = file;
    all->count = json_array_size(entries);
    json_array_foreach(entries, i, entry)
    {
        all->of[i] = (struct expectation){
            .id = string_of(entry, "id"),
            .verdict = verdict_called(string_of(entry, "verdict")),
            .reason = string_of(entry, "reason"),
            .url = string_of(entry, "url"),
            .until = string_of(entry, "until"),
            .numpy = string_of(entry, "numpy"),
            .python = string_of(entry, "python"),
            .platform = string_of(entry, "platform"),
            .line = (int)json_integer_value(json_object_get(entry, "line")),
        };
        check_entry(file, entry, &all->of[i]);
    }
    return all;
}
