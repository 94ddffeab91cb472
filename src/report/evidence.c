/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A record on its way through JSON and back.  What a subject could write is any bytes: each is the
 * letter of that number, and a NUL that of number 256.
 */
#include "report/evidence.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "base/program_version.h"
#include "base/text.h"
#include "base/version.h"
#include "report/members.h"
#include "report/reading.h"

/* ---- bytes ------------------------------------------------------------------------------- */

static json_t *bytes(const char *from, size_t length)
{
    char *letters = malloc(2 * length + 1), *to = letters;
    if (letters == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    for (size_t i = 0; i < length; i++) {
        unsigned letter = from[i] != '\0' ? (unsigned char)from[i] : 256;
        if (letter >= 0x80)
            *to++ = (char)(0xc0 | letter >> 6);
        *to++ = (char)(letter >= 0x80 ? 0x80 | (letter & 0x3f) : letter);
    }
    json_t *value = json_stringn(letters, (size_t)(to - letters));
    free(letters);
    return value;
}

/* What of them is there, at most `room`, with no NUL at the end. */
static size_t take_bytes(const json_t *value, char *to, size_t room)
{
    const unsigned char *from = (const unsigned char *)json_string_value(value);
    size_t length = 0;
    while (from != NULL && *from != '\0' && length < room) {
        unsigned letter = *from++;
        if (letter >= 0xc0) /* jansson takes no broken UTF-8 */
            letter = (letter & 0x1f) << 6 | (*from++ & 0x3f);
        to[length++] = (char)letter;
        while ((*from & 0xc0) == 0x80) /* of a letter that no byte is */
            from++;
    }
    return length;
}

enum { WHOLE = 0 }; /* of a string that has an end */

static json_t *string_bytes(const char *from, size_t room)
{
    return bytes(from, room == WHOLE ? strlen(from) : strnlen(from, room));
}

static void take_string(const json_t *object, const char *name, char *to, size_t room)
{
    to[take_bytes(json_object_get(object, name), to, room - 1)] = '\0';
}

/* For as long as the program runs; NULL where there is none. */
static char *new_string(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    char *words = json_is_string(value) ? malloc(json_string_length(value) + 1) : NULL;
    if (words != NULL)
        words[take_bytes(value, words, json_string_length(value))] = '\0';
    return words;
}

/* ---- writing ------------------------------------------------------------------------------ */

/* What is neither text nor a call. */
#define NUMBERS(NUMBER)                                                                            \
    NUMBER(by_checker, NO_CHECKER, SUSPECTS_RACE)                                                  \
    NUMBER(controlled, 0, 1)                                                                       \
    NUMBER(growing, 0, 1)                                                                          \
    NUMBER(line, 0, INT_MAX)                                                                       \
    NUMBER(not_run, 0, 1)                                                                          \
    NUMBER(overwritten, 0, 1)                                                                      \
    NUMBER(signal, 0, 128)                                                                         \
    NUMBER(signal_elsewhere, 0, 1)                                                                 \
    NUMBER(unclaimed, 0, 1)

#define TEXTS(TEXT)                                                                                \
    TEXT(expected)                                                                                 \
    TEXT(seen)                                                                                     \
    TEXT(attribute_to)

static json_t *call_array(const struct call *call)
{
    return json_pack("[i, I, I, I, i]", (int)call->function, (json_int_t)(uintptr_t)call->pointer,
                     (json_int_t)call->first, (json_int_t)call->second, call->trouble);
}

static json_t *record_object(const struct run *run, size_t i)
{
    struct record *record = malloc(sizeof *record); /* control is looked at, and may be taken */
    if (record == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    *record = *run->records[i];
    record_check_control(record);
    json_t *object = json_pack("{s:s, s:s, s:f}", "id", run->properties[i]->id, "verdict",
                               verdict_name(record->verdict), "seconds", record->seconds);
#define PUT_NUMBER(name, least, most)                                                              \
    if (record->name != 0)                                                                         \
        json_object_set_new(object, #name, json_integer(record->name));
    NUMBERS(PUT_NUMBER)
#define PUT_TEXT(name)                                                                             \
    if (record->name[0] != '\0')                                                                   \
        json_object_set_new(object, #name, string_bytes(record->name, sizeof record->name));
    TEXTS(PUT_TEXT)
    PUT_TEXT(control)
    size_t printed = MIN(record->output_length, sizeof record->output);
    if (printed > 0)
        json_object_set_new(object, "output", bytes(record->output, printed));
    for (int k = 0; k < SUSPECTS; k++) {
        if (record->suspects[k].function != OUTSIDE)
            json_object_set_new(object, text("suspect%d", k), call_array(&record->suspects[k]));
    }
    if (record->verdict != PASS && record->verdict != SKIP)
        json_object_set_new(object, "reproduce", json_string(run_reproduce(run, i)));
    free(record);
    return object;
}

static json_t *place_object(const struct subject_place *place)
{
    json_t *object = json_object();
    const struct {
        const char *name, *words;
    } all[] = {{"argument", place->argument}, {"path", place->path},     {"symbol", place->symbol},
               {"label", place->label},       {"module", place->module}, {"claims", place->claims}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].words != NULL)
            json_object_set_new(object, all[i].name, string_bytes(all[i].words, WHOLE));
    }
    return object;
}

static json_t *load_object(const struct load *load)
{
    return json_pack("{s:i, s:o, s:o, s:i, s:b, s:b, s:o, s:o}", "state",
                     (int)atomic_load(&load->state), "why",
                     string_bytes(load->why, sizeof load->why), "name",
                     string_bytes(load->name, sizeof load->name), "version", (int)load->version,
                     "has_name", load->has_name != 0, "has_gil", load->has_gil != 0, "claims",
                     string_bytes(load->claims, sizeof load->claims), "how",
                     string_bytes(load->how, sizeof load->how));
}

/* The words of each --run and --skip, in their order. */
static json_t *filters_array(const struct options *options)
{
    json_t *filters = json_array();
    for (size_t i = 0; i < options->filter_count; i++) {
        const struct filter *filter = &options->filters[i];
        json_array_append_new(filters,
                              json_pack("[b, o]", filter->take, string_bytes(filter->glob, WHOLE)));
    }
    return filters;
}

/* Those that are about another platform are passed over everywhere. */
static json_t *expectations_object(const struct expectations *all)
{
    json_t *entries = json_array();
    for (size_t i = 0; i < all->count; i++) {
        const struct expectation *e = &all->of[i];
        if (!expectation_is_here(e))
            continue;
        json_array_append_new(entries,
                              json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:s*, s:s*, s:i}", "id", e->id,
                                        "verdict", verdict_name(e->verdict), "reason", e->reason,
                                        "url", e->url, "until", e->until, "numpy", e->numpy,
                                        "python", e->python, "line", e->line));
    }
    return json_pack("{s:o, s:o}", "file", string_bytes(all->file, WHOLE), "entries", entries);
}

static const char *under(const struct options *options)
{
    return options->memcheck   ? "memcheck"
           : options->helgrind ? "helgrind"
           : options->tsan     ? "tsan"
                               : NULL;
}

json_t *evidence_object(const struct run *run)
{
    const struct options *options = run->options;
    struct run raw = *run;
    json_t *records = json_array();
    raw.properties = run->evidence->properties;
    raw.records = run->evidence->records;
    raw.count = run->evidence->count;
    for (size_t i = 0; i < raw.count; i++)
        json_array_append_new(records, record_object(&raw, i));
    json_t *object = json_pack("{s:I, s:I, s:o, s:b, s:s*, s:o, s:o, s:o, s:b, s:o}", "number",
                               (json_int_t)options->shard, "of", (json_int_t)options->shards,
                               "filters", filters_array(options), "strict", options->strict,
                               "under", under(options), "place", place_object(run->place), "load",
                               load_object(run->load), "python", string_bytes(run->python, WHOLE),
                               "gil", run->environment->gil, "records", records);
    if (run->expectations != NULL)
        json_object_set_new(object, "expect", expectations_object(run->expectations));
    if (object == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    return object;
}

/* ---- reading ------------------------------------------------------------------------------ */

static size_t number(const json_t *object, const char *name)
{
    json_int_t value = json_integer_value(json_object_get(object, name));
    return value > 0 ? (size_t)value : 0;
}

size_t part_count(const struct part *part)
{
    return json_array_size(json_object_get(part->shard, "records"));
}

/* Why what the shard says of its run is nothing that one writes, or NULL. */
static const char *shape_wrong(json_t *shard)
{
    json_error_t error;
    json_t *place = json_object_get(shard, "place"), *load = json_object_get(shard, "load");
    json_t *filters = json_object_get(shard, "filters"), *filter;
    int validate = JSON_VALIDATE_ONLY;
    size_t i;
    if (json_unpack_ex(
            shard, &error, validate, "{s:I, s:I, s:o, s:b, s?s, s:o, s:o, s:s, s:b, s:o}", "number",
            "of", "filters", "strict", "under", "place", "load", "python", "gil", "records") != 0 ||
        json_unpack_ex(place, &error, validate, "{s:s, s:s, s?s, s:s, s?s, s?s}", "argument",
                       "path", "symbol", "label", "module", "claims") != 0 ||
        json_unpack_ex(load, &error, validate, "{s:i, s:s, s:s, s:i, s:b, s:b, s:s, s:s}", "state",
                       "why", "name", "version", "has_name", "has_gil", "claims", "how") != 0)
        return text("%s", error.text);
    json_array_foreach(filters, i, filter)
    {
        if (json_unpack_ex(filter, &error, validate, "[b, s]") != 0)
            return text("%s", error.text);
    }
    json_int_t state = json_integer_value(json_object_get(load, "state"));
    json_int_t version = json_integer_value(json_object_get(load, "version"));
    return !json_is_array(filters) || state < LOAD_UNKNOWN || state > LOAD_CONTRADICTED ||
                   version < 0 || version > UINT8_MAX
               ? "a number or a list that none has"
               : NULL;
}

struct part part_read(const char *file)
{
    struct part part = {.file = file};
    const json_t *reports = reports_read(file, false);
    part.report = json_array_get(reports, 0);
    part.shard = json_object_get(part.report, "shard");
    part.number = number(part.shard, "number");
    part.of = number(part.shard, "of");
    if (json_array_size(reports) != 1 || part.number < 1 || part.number > part.of ||
        part.of > MOST_SHARDS || !json_is_array(json_object_get(part.shard, "records")))
        leave_with(EXIT_USAGE, "%s: is no report of a shard; write one by --shard I/N --json FILE",
                   text_safe(file));
    if (strcmp(word(part.report, "conform"), program_version) != 0)
        leave_with(EXIT_USAGE, "%s: is of conform %s, and this is %s; merge it by that one",
                   text_safe(file), text_safe(word(part.report, "conform")), program_version);
    const char *wrong = shape_wrong(json_object_get(part.report, "shard"));
    if (wrong != NULL)
        leave_with(EXIT_USAGE, "%s: its shard is none that --shard writes: %s", text_safe(file),
                   text_safe(wrong));
    if (json_is_true(json_object_get(part.report, "interrupted")))
        leave_with(EXIT_USAGE, "%s: was interrupted; run shard %zu/%zu again", text_safe(file),
                   part.number, part.of);
    return part;
}

/* Of all that has to be the same. */
static const struct same {
    const char *object, *member, *called;
} sames[] = {
    {"subject", "sha256", "the handler's SHA-256"},
    {"subject", "symbol", "the symbol"},
    {"subject", "claimed_for_it", "--claim"},
    {"environment", "python", "Python"},
    {"environment", "numpy", "NumPy"},
    {"environment", "libc", "libc"},
    {"environment", "checker", "beside it"},
    {"environment", "allocator", "LD_PRELOAD"},
    {NULL, "seed", "seed"},
    {NULL, "daily_seed", "seed of the day"},
    {"shard", "of", "parts"},
    {"shard", "filters", "--run and --skip"},
    {"shard", "expect", "--expect"},
    {"shard", "strict", "--strict"},
    {"shard", "under", "the checker"},
};

static const json_t *member_of(const struct part *part, const struct same *same)
{
    const json_t *object =
        same->object != NULL ? json_object_get(part->report, same->object) : part->report;
    return json_object_get(object, same->member);
}

/* Of what is short enough. */
static const char *in_words(const json_t *value)
{
    const char *words = json_string_value(value);
    return words != NULL            ? text("%.64s", text_safe(words))
           : json_is_integer(value) ? text("%" JSON_INTEGER_FORMAT, json_integer_value(value))
           : value == NULL          ? "none"
                                    : NULL;
}

const char *part_differs(const struct part *part, const struct part *other)
{
    const struct same handler = {"subject", "argument", "the handler"};
    bool has_file = *word(json_object_get(part->report, "subject"), "sha256") != '\0';
    if (!has_file && !json_equal(member_of(part, &handler), member_of(other, &handler)))
        return text("the handler is %s, there %s", in_words(member_of(part, &handler)),
                    in_words(member_of(other, &handler)));
    for (size_t i = 0; i < sizeof sames / sizeof *sames; i++) {
        const json_t *one = member_of(part, &sames[i]), *two = member_of(other, &sames[i]);
        const char *is = in_words(one), *was = in_words(two);
        if (json_equal(one, two) || (one == NULL && two == NULL))
            continue;
        return is != NULL && was != NULL ? text("%s is %s, there %s", sames[i].called, is, was)
                                         : text("%s is not what it is there", sames[i].called);
    }
    return NULL;
}

void part_options(const struct part *part, struct options *options)
{
    const json_t *filters = json_object_get(part->shard, "filters"), *one;
    const char *checker = word(part->shard, "under");
    size_t i;
    options->filter_count = 0;
    options->filters = calloc(json_array_size(filters) + 1, sizeof *options->filters);
    if (options->filters == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    json_array_foreach(filters, i, one)
    {
        json_t *glob = json_pack("{s:O}", "glob", json_array_get(one, 1));
        const char *words = new_string(glob, "glob");
        options->filters[options->filter_count++] =
            (struct filter){json_is_true(json_array_get(one, 0)), words != NULL ? words : ""};
        json_decref(glob);
    }
    options->strict = json_is_true(json_object_get(part->shard, "strict"));
    options->memcheck = strcmp(checker, "memcheck") == 0;
    options->helgrind = strcmp(checker, "helgrind") == 0;
    options->tsan = strcmp(checker, "tsan") == 0;
    options->seed = strtoull(word(part->report, "seed"), NULL, 10);
    options->daily_seed = strtoull(word(part->report, "daily_seed"), NULL, 10);
}

static enum verdict verdict_of(const json_t *object)
{
    int verdict = VERDICT_COUNT - 1;
    while (verdict > VERDICT_NONE &&
           strcmp(word(object, "verdict"), verdict_name((enum verdict)verdict)) != 0)
        verdict--;
    return (enum verdict)verdict;
}

const struct expectations *part_expectations(const struct part *part)
{
    const json_t *expect = json_object_get(part->shard, "expect"), *entry;
    const json_t *entries = json_object_get(expect, "entries");
    size_t i;
    if (expect == NULL)
        return NULL;
    struct expectations *all = calloc(1, sizeof *all + json_array_size(entries) * sizeof *all->of);
    if (all == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    all->file = new_string(expect, "file");
    all->file = all->file != NULL ? all->file : "";
    json_array_foreach(entries, i, entry)
    {
        const char *numpy = word(entry, "numpy"), *python = word(entry, "python");
        bool is_sound = (*numpy == '\0' || version_range_is_sound(numpy)) &&
                        (*python == '\0' || version_range_is_sound(python));
        all->of[all->count++] = (struct expectation){
            .id = word(entry, "id"),
            .verdict = verdict_of(entry),
            .reason = word(entry, "reason"),
            .url = json_string_value(json_object_get(entry, "url")),
            .until = json_string_value(json_object_get(entry, "until")),
            .numpy = json_string_value(json_object_get(entry, "numpy")),
            .python = json_string_value(json_object_get(entry, "python")),
            .line = (int)number(entry, "line"),
        };
        if (!is_sound || all->of[i].verdict == VERDICT_NONE)
            leave_with(EXIT_USAGE, "%s: what it has of --expect is not what --expect takes",
                       text_safe(part->file));
    }
    return all;
}

void part_surroundings(const struct part *part, struct subject_place *place,
                       struct environment *environment, struct run *run)
{
    const json_t *from = json_object_get(part->shard, "place");
    const json_t *in = json_object_get(part->report, "environment");
    const json_t *subject = json_object_get(part->report, "subject");
    *place = (struct subject_place){
        .argument = new_string(from, "argument"),
        .path = new_string(from, "path"),
        .symbol = new_string(from, "symbol"),
        .label = new_string(from, "label"),
        .module = new_string(from, "module"),
        .claims = new_string(from, "claims"),
    };
    run->python = new_string(part->shard, "python");
    if (place->argument == NULL || place->path == NULL || place->label == NULL ||
        run->python == NULL)
        leave_with(EXIT_USAGE, "%s: says nothing of its handler", text_safe(part->file));
    snprintf(environment->python, sizeof environment->python, "%s", word(in, "python"));
    snprintf(environment->numpy, sizeof environment->numpy, "%s", word(in, "numpy"));
    environment->free_threaded = json_is_true(json_object_get(in, "free_threaded"));
    environment->gil = json_is_true(json_object_get(part->shard, "gil"));
    snprintf(run->sha256, sizeof run->sha256, "%s", word(subject, "sha256"));
    run->tunables = json_string_value(json_object_get(in, "tunables"));
    snprintf(run->allocator, sizeof run->allocator, "%s", word(in, "allocator"));
    run->machine = (struct machine){
        .libc = word(in, "libc"),
        .kernel = word(in, "kernel"),
        .page_size = (long)number(in, "page_size"),
        .checker = json_string_value(json_object_get(in, "checker")),
    };
}

void part_load(const struct part *part, struct load *load)
{
    const json_t *from = json_object_get(part->shard, "load");
    size_t state = number(from, "state");
    atomic_store(&load->state, state <= LOAD_CONTRADICTED ? (int)state : LOAD_UNKNOWN);
    take_string(from, "why", load->why, sizeof load->why);
    take_bytes(json_object_get(from, "name"), load->name, sizeof load->name);
    load->version = (uint8_t)number(from, "version");
    load->has_name = json_is_true(json_object_get(from, "has_name"));
    load->has_gil = json_is_true(json_object_get(from, "has_gil"));
    take_string(from, "claims", load->claims, sizeof load->claims);
    take_string(from, "how", load->how, sizeof load->how);
}

static bool take_call(const json_t *from, struct call *call)
{
    json_int_t function = json_integer_value(json_array_get(from, 0));
    json_int_t trouble = json_integer_value(json_array_get(from, 4));
    if (from == NULL)
        return true;
    *call = (struct call){
        .function = (enum function)function,
        .pointer = (const void *)(uintptr_t)json_integer_value(json_array_get(from, 1)),
        .first = (size_t)json_integer_value(json_array_get(from, 2)),
        .second = (size_t)json_integer_value(json_array_get(from, 3)),
        .trouble = (int)trouble,
    };
    return function >= OUTSIDE && function <= IN_FREE && trouble >= NO_TROUBLE &&
           trouble <= REFUSED_LITTLE;
}

/* Where it is there at all. */
static bool is_none_or(const json_t *object, const char *name, bool is_it(const json_t *))
{
    const json_t *member = json_object_get(object, name);
    return member == NULL || is_it(member);
}

static bool is_string(const json_t *value)
{
    return json_is_string(value);
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

/* False where it is nothing that a property leaves. */
static bool take_record(const json_t *from, struct record *record)
{
    char control[sizeof record->control];
    bool sound = json_is_number(json_object_get(from, "seconds")) &&
                 is_none_or(from, "output", is_string) && is_none_or(from, "control", is_string) &&
                 is_none_or(from, "reproduce", is_string);
    memset(record, 0, sizeof *record);
    record->verdict = verdict_of(from);
    record->seconds = json_number_value(json_object_get(from, "seconds"));
    record->output_length =
        take_bytes(json_object_get(from, "output"), record->output, sizeof record->output);
#define TAKE_TEXT(name)                                                                            \
    sound = is_none_or(from, #name, is_string) && sound;                                           \
    take_string(from, #name, record->name, sizeof record->name);
    TEXTS(TAKE_TEXT)
    take_string(from, "control", control, sizeof control);
    record_enter_control(record, control);
#define TAKE_NUMBER(name, least, most)                                                             \
    sound = is_none_or(from, #name, is_integer) && sound && number(from, #name) <= (size_t)(most); \
    record->name = sound ? (int)number(from, #name) : 0;
    NUMBERS(TAKE_NUMBER)
    for (int k = 0; k < SUSPECTS; k++)
        sound =
            take_call(json_object_get(from, text("suspect%d", k)), &record->suspects[k]) && sound;
    return sound && record->verdict != VERDICT_NONE;
}

/* Whether the part says that verdict of it, or that another one of the same part is its cause. */
static bool is_told(const struct part *part, const char *id, enum verdict verdict)
{
    const json_t *property;
    size_t i;
    json_array_foreach(json_object_get(part->report, "properties"), i, property)
    {
        if (strcmp(word(property, "id"), id) == 0)
            return strcmp(word(property, "verdict"), verdict_name(verdict)) == 0 ||
                   json_object_get(property, "caused_by") != NULL;
    }
    return strcmp(id, FIRST_PROPERTY) == 0; /* which nobody asked for */
}

void part_record(const struct part *part, const char *id, struct record *record,
                 const char **reproduce)
{
    const json_t *from, *found = NULL;
    size_t i, count = 0;
    json_array_foreach(json_object_get(part->shard, "records"), i, from)
    {
        if (strcmp(word(from, "id"), id) != 0)
            continue;
        found = from;
        count++;
    }
    if (count != 1 || !take_record(found, record))
        leave_with(EXIT_USAGE, "%s: has %s of %s, which shard %zu/%zu runs", text_safe(part->file),
                   count == 0  ? "nothing"
                   : count > 1 ? "more than one verdict"
                               : "no sound verdict",
                   id, part->number, part->of);
    if (!is_told(part, id, record->verdict))
        leave_with(EXIT_USAGE, "%s: says of %s what is not in its own records: it was changed",
                   text_safe(part->file), id);
    *reproduce = json_string_value(json_object_get(found, "reproduce"));
}
