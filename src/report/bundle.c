/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a bundle has, and what of one that is read holds.
 */
#include "report/bundle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>

#include "base/program_version.h"
#include "base/text.h"
#include "report/archive.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/summary.h"

/* Of the other members, as sha256sum --check reads it in their folder; the caller's to free. */
static char *manifest_of(const struct bundle *bundle)
{
    char *words = calloc(BUNDLE_MEMBERS, 128), *end = words, hex[SHA256_HEX];
    for (int i = BUNDLE_MANIFEST + 1; i < BUNDLE_MEMBERS && words != NULL; i++) {
        if (bundle->of[i].bytes == NULL)
            continue;
        archive_hash(bundle->of[i].bytes, bundle->of[i].length, hex);
        end += sprintf(end, "%s  %s\n", hex, archive_names[i] + strlen(ARCHIVE_FOLDER));
    }
    return words;
}

/* ---- writing ------------------------------------------------------------------------------- */

static void take_string(struct member *member, char *words)
{
    *member = (struct member){words, words != NULL ? strlen(words) : 0};
}

/* An address is another one in each run, and tells nobody anything later: 0x558ac796f450 becomes
 * 0x#. */
static void hide_addresses(char *words)
{
    enum { SHORTEST = 8 }; /* digits */
    char *to = words;
    for (const char *from = words; from != NULL && *from != '\0';) {
        size_t digits = strncmp(from, "0x", 2) == 0 ? strspn(from + 2, "0123456789abcdef") : 0;
        if (digits < SHORTEST) {
            *to++ = *from++;
            continue;
        }
        to = stpcpy(to, "0x#");
        from += 2 + digits;
    }
    if (words != NULL)
        *to = '\0';
}

static char *text_of(const struct run *run)
{
    struct options options = *run->options;
    struct run plain = *run;
    char *words = NULL;
    size_t length;
    FILE *file = open_memstream(&words, &length);
    options.quiet = options.verbose = false;
    plain.options = &options;
    if (file == NULL)
        return NULL;
    int failed = report_text(file, &plain, false);
    return fclose(file) == 0 && failed == 0 ? words : NULL;
}

/* The ids of all properties about the handler. */
static char *list_of_properties(void)
{
    char *words = NULL;
    size_t length, count;
    const struct property *const *properties = property_all(&count);
    FILE *file = open_memstream(&words, &length);
    if (file == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (properties[i]->target == TARGET_HANDLER)
            fprintf(file, "%s\n", properties[i]->id);
    }
    return fclose(file) == 0 ? words : NULL;
}

/* A string of JSON is one of TOML. */
static void put_entry(FILE *file, const char *key, const char *value)
{
    json_t *words = json_string(value);
    char *quoted = value != NULL ? json_dumps(words, JSON_ENCODE_ANY) : NULL;
    if (quoted != NULL)
        fprintf(file, "%s = %s\n", key, quoted);
    free(quoted);
    json_decref(words);
}

static char *waivers_of(const struct expectations *all)
{
    char *words = NULL;
    size_t length;
    FILE *file = open_memstream(&words, &length);
    if (file == NULL)
        return NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct expectation *e = &all->of[i];
        fputs("[[expect]]\n", file);
        put_entry(file, "id", e->id);
        put_entry(file, "verdict", verdict_name(e->verdict));
        put_entry(file, "reason", e->reason);
        put_entry(file, "url", e->url);
        if (e->until != NULL)
            fprintf(file, "until = %s\n", e->until);
        put_entry(file, "numpy", e->numpy);
        put_entry(file, "python", e->python);
        put_entry(file, "platform", e->platform);
    }
    return fclose(file) == 0 ? words : NULL;
}

/* The file that was tested; one that was changed since is none. */
static int take_handler(struct member *member, const struct run *run)
{
    char hex[SHA256_HEX];
    FILE *file = fopen(run->place->path, "rbe");
    if (file == NULL)
        return -1;
    bool sought = fseek(file, 0, SEEK_END) == 0;
    long length = sought ? ftell(file) : -1;
    if (length < 0 || length > ARCHIVE_LARGEST / 2) {
        errno = length < 0 ? errno : EFBIG;
        fclose(file);
        return -1;
    }
    rewind(file);
    member->bytes = malloc((size_t)length + 1);
    member->length = member->bytes != NULL ? fread(member->bytes, 1, (size_t)length, file) : 0;
    fclose(file);
    if (member->bytes == NULL)
        return -1;
    archive_hash(member->bytes, member->length, hex);
    errno = ESTALE;
    return strcmp(hex, run->sha256) == 0 ? 0 : -1;
}

static int fill(struct bundle *bundle, const struct run *run)
{
    struct run untimed = *run;
    untimed.untimed = true;
    bundle->report = report_value(&untimed);
    char *json = json_dumps(bundle->report, JSON_INDENT(1) | JSON_ENSURE_ASCII);
    char *words = text_of(&untimed);
    hide_addresses(json);
    hide_addresses(words);
    take_string(&bundle->of[BUNDLE_REPORT], json);
    take_string(&bundle->of[BUNDLE_TEXT], words);
    take_string(&bundle->of[BUNDLE_PROPERTIES], list_of_properties());
    if (run->expectations != NULL)
        take_string(&bundle->of[BUNDLE_WAIVERS], waivers_of(run->expectations));
    if (run->options->with_subject && take_handler(&bundle->of[BUNDLE_HANDLER], run) != 0)
        return -1;
    take_string(&bundle->of[BUNDLE_MANIFEST], manifest_of(bundle));
    errno = ENOMEM;
    for (int i = BUNDLE_MANIFEST; i <= BUNDLE_PROPERTIES; i++) {
        if (bundle->of[i].bytes == NULL)
            return -1;
    }
    return 0;
}

/* Now, or what everybody who wants the same bytes agrees on. */
static uint64_t time_of_bundle(void)
{
    const char *agreed = getenv("SOURCE_DATE_EPOCH");
    uint64_t time_is = agreed != NULL ? strtoull(agreed, NULL, 10) : (uint64_t)time(NULL);
    return MIN(time_is, (uint64_t)ARCHIVE_LATEST);
}

int report_bundle(FILE *file, const struct run *run)
{
    struct bundle bundle = {.report = NULL};
    int failed = fill(&bundle, run);
    if (failed == 0)
        failed = archive_write(file, &bundle, time_of_bundle());
    int error = errno;
    bundle_free(&bundle);
    errno = error;
    return failed != 0 ? -1 : 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

void bundle_free(struct bundle *bundle)
{
    for (int i = 0; i < BUNDLE_MEMBERS; i++)
        free(bundle->of[i].bytes);
    json_decref(bundle->report);
    *bundle = (struct bundle){.report = NULL};
}

/* The text ends with what the report says. */
static bool is_told_in_text(const struct bundle *bundle)
{
    const char *end = text(": %s\n", word(bundle->report, "conclusion"));
    const struct member *words = &bundle->of[BUNDLE_TEXT];
    return words->length > strlen(end) &&
           strcmp(words->bytes + words->length - strlen(end), end) == 0;
}

static const char *read_report(struct bundle *bundle)
{
    const struct member *json = &bundle->of[BUNDLE_REPORT];
    char hex[SHA256_HEX];
    bundle->report = json_loadb(json->bytes, json->length, JSON_REJECT_DUPLICATES, NULL);
    if (bundle->report == NULL || report_wrong(bundle->report) != NULL)
        return "its report is none that --json of this program writes";
    const json_t *subject = json_object_get(bundle->report, "subject");
    if (bundle->of[BUNDLE_HANDLER].bytes != NULL) {
        archive_hash(bundle->of[BUNDLE_HANDLER].bytes, bundle->of[BUNDLE_HANDLER].length, hex);
        if (strcmp(hex, word(subject, "sha256")) != 0)
            return "the handler in it is not the one that its report is about";
    }
    bool has_waivers = json_object_get(bundle->report, "waivers") != NULL;
    if (has_waivers != (bundle->of[BUNDLE_WAIVERS].bytes != NULL))
        return "its waivers are not those of its report";
    const char *wrong = summary_wrong(bundle->report);
    return wrong == NULL && !is_told_in_text(bundle) ? "its text does not end with its conclusion"
                                                     : wrong;
}

const char *bundle_read_tar(const char *bytes, size_t length, struct bundle *bundle)
{
    const char *wrong = archive_read_tar(bytes, length, bundle);
    for (int i = BUNDLE_MANIFEST; i <= BUNDLE_PROPERTIES && wrong == NULL; i++) {
        if (bundle->of[i].bytes == NULL)
            wrong = text("lacks %s", archive_names[i]);
    }
    char *manifest = wrong == NULL ? manifest_of(bundle) : NULL;
    if (wrong == NULL &&
        (manifest == NULL || strcmp(manifest, bundle->of[BUNDLE_MANIFEST].bytes) != 0 ||
         strlen(manifest) != bundle->of[BUNDLE_MANIFEST].length))
        wrong = "what is in it is not what its manifest says";
    free(manifest);
    return wrong != NULL ? wrong : read_report(bundle);
}

const char *bundle_read(const char *bytes, size_t length, struct bundle *bundle)
{
    char *tar = NULL;
    size_t unpacked = 0;
    *bundle = (struct bundle){.report = NULL};
    const char *wrong = archive_unseal(bytes, length, &tar, &unpacked);
    if (wrong == NULL)
        wrong = bundle_read_tar(tar, unpacked, bundle);
    free(tar);
    return wrong;
}

/* The same ids in the report. */
static char *list_of_report(const json_t *report)
{
    const json_t *property;
    char *words = NULL;
    size_t i, length;
    FILE *file = open_memstream(&words, &length);
    if (file == NULL)
        return NULL;
    json_array_foreach(json_object_get(report, "properties"), i, property)
    {
        if (strcmp(word(property, "target"), "runtime") != 0)
            fprintf(file, "%s\n", word(property, "id"));
    }
    return fclose(file) == 0 ? words : NULL;
}

/* What the run says itself that it left out. */
static const char *left_out(const json_t *report)
{
    if (is_true(report, "interrupted"))
        return "the run was interrupted";
    if (is_true(report, "quick"))
        return "it is of --quick, which proves nothing";
    return is_true(report, "whole") ? NULL : "--run or --skip has left properties out";
}

const char *bundle_incomplete(const struct bundle *bundle, bool *unsure)
{
    const char *wrong = left_out(bundle->report), *list = bundle->of[BUNDLE_PROPERTIES].bytes;
    char *known = list_of_properties(), *told = list_of_report(bundle->report);
    *unsure = strcmp(word(bundle->report, "conform"), program_version) != 0;
    if (wrong == NULL && (known == NULL || told == NULL))
        wrong = "there is no memory for it";
    if (wrong == NULL && !*unsure && strcmp(list, known) != 0)
        wrong = "its list is not of all properties of that version";
    if (wrong == NULL && strcmp(list, told) != 0)
        wrong = "it has not each property of its list once";
    free(known);
    free(told);
    return wrong;
}
