/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a bundle, and reading it back.
 */
#include "report/bundle.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <time.h>
#include <zlib.h>

#include "base/program_version.h"
#include "base/text.h"
#include "report/members.h"
#include "report/reading.h"
#include "report/summary.h"

#define FOLDER "conform-bundle/"

/* In their order. */
static const char *const names[BUNDLE_MEMBERS] = {FOLDER "MANIFEST",     FOLDER "report.json",
                                                  FOLDER "report.txt",   FOLDER "properties.txt",
                                                  FOLDER "waivers.toml", FOLDER "handler.so"};

enum {
    BLOCK = 512,
    LARGEST = 256 << 20 /* bytes of a bundle, unpacked: a handler's file is in it */
};

static void hash_of(const void *bytes, size_t length, char hex[SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, length, bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* Of the other members, as sha256sum --check reads it in their folder; the caller's to free. */
static char *manifest_of(const struct bundle *bundle)
{
    char *words = calloc(BUNDLE_MEMBERS, 128), *end = words, hex[SHA256_HEX];
    for (int i = BUNDLE_MANIFEST + 1; i < BUNDLE_MEMBERS && words != NULL; i++) {
        if (bundle->of[i].bytes == NULL)
            continue;
        hash_of(bundle->of[i].bytes, bundle->of[i].length, hex);
        end += sprintf(end, "%s  %s\n", hex, names[i] + strlen(FOLDER));
    }
    return words;
}

/* ---- the archive: POSIX's ustar ------------------------------------------------------------ */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], none[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static struct header make_header(const char *name, size_t size, uint64_t time)
{
    struct header header = {
        .mode = "0000644",
        .uid = "0000000",
        .gid = "0000000",
        .sum = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
        .type = '0',
        .magic = "ustar",
        .version = {'0', '0'},
        .user = "root",
        .group = "root",
    };
    unsigned sum = 0;
    snprintf(header.name, sizeof header.name, "%s", name);
    memcpy(header.size, text("%011zo", size), 12);
    memcpy(header.mtime, text("%011llo", (unsigned long long)time), 12);
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)&header)[i];
    memcpy(header.sum, text("%06o", sum), 7);
    return header;
}

static size_t padding(size_t length)
{
    return (BLOCK - length % BLOCK) % BLOCK;
}

enum { LATEST_TIME = INT32_MAX };

static int write_tar(FILE *file, const struct bundle *bundle, uint64_t time)
{
    static const char zeros[2 * BLOCK];
    struct header header;
    for (int i = 0; i < BUNDLE_MEMBERS; i++) {
        const struct member *member = &bundle->of[i];
        if (member->bytes == NULL)
            continue;
        header = make_header(names[i], member->length, time);
        fwrite(&header, sizeof header, 1, file);
        fwrite(member->bytes, 1, member->length, file);
        fwrite(zeros, 1, padding(member->length), file);
    }
    fwrite(zeros, 1, sizeof zeros, file);
    return ferror(file) ? -1 : 0;
}

static bool is_zero(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

/* Eleven octal digits and a NUL; or SIZE_MAX. */
static size_t octal(const char digits[12])
{
    size_t value = 0;
    for (int i = 0; i < 11; i++) {
        if (digits[i] < '0' || digits[i] > '7')
            return SIZE_MAX;
        value = value * 8 + (size_t)(digits[i] - '0');
    }
    return value;
}

/* The member that the header at `bytes` is of, none before `next`; or BUNDLE_MEMBERS where it is
 * not what is written for any of them. */
static int member_at(const char *bytes, int next, size_t *size, size_t *time)
{
    struct header header, made;
    memcpy(&header, bytes, sizeof header);
    *size = octal(header.size);
    size_t when = octal(header.mtime);
    if (*time == SIZE_MAX)
        *time = when;
    for (int i = next; i < BUNDLE_MEMBERS && *size <= LARGEST && when <= LATEST_TIME; i++) {
        made = make_header(names[i], *size, *time);
        if (memcmp(&made, &header, sizeof header) == 0)
            return i;
    }
    return BUNDLE_MEMBERS;
}

static const char *read_members(const char *bytes, size_t length, struct bundle *bundle)
{
    size_t at = 0, size, time = SIZE_MAX;
    int next = 0;
    while (length - at >= 3 * BLOCK) {
        int member = member_at(bytes + at, next, &size, &time);
        at += BLOCK;
        if (member == BUNDLE_MEMBERS || length - at - 2 * BLOCK < size + padding(size) ||
            !is_zero(bytes + at + size, padding(size)))
            return text("member %zu is none that --bundle writes in that place", (size_t)next + 1);
        struct member *place = &bundle->of[member];
        place->bytes = malloc(size + 1);
        if (place->bytes == NULL)
            return "there is no memory for it";
        memcpy(place->bytes, bytes + at, size);
        place->bytes[size] = '\0';
        place->length = size;
        at += size + padding(size);
        next = member + 1;
    }
    return length - at == 2 * BLOCK && is_zero(bytes + at, 2 * BLOCK)
               ? NULL
               : "it does not end as --bundle ends it";
}

/* ---- what is around it: gzip, with a hash in its header ------------------------------------ */

/* As RFC 1952 has it: deflate, a comment, no time, the best compression, Unix. */
static const char begin[] = "\x1f\x8b\x08\x10\0\0\0\0\x02\x03"
                            "conform bundle; SHA-256 of all behind this: ";
enum { BEGIN = sizeof begin - 1, HASHED = BEGIN + SHA256_HEX, TRAILER = 8 };

static void put_number(unsigned char *bytes, size_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

/* All behind the header; the caller's to free, or NULL. */
static unsigned char *compress_tar(const char *tar, size_t length, size_t *packed)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)tar, .avail_in = (uInt)length};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    size_t room = deflateBound(&stream, length);
    unsigned char *bytes = malloc(room + TRAILER);
    stream.next_out = bytes;
    stream.avail_out = (uInt)room;
    int result = bytes != NULL ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    *packed = stream.total_out;
    deflateEnd(&stream);
    if (result != Z_STREAM_END) {
        free(bytes);
        return NULL;
    }
    put_number(bytes + *packed, crc32(0, (const Bytef *)tar, (uInt)length));
    put_number(bytes + *packed + 4, length);
    *packed += TRAILER;
    return bytes;
}

/* What `packed` holds; the caller's to free.  NULL where it is none, or too large. */
static char *unpack(const unsigned char *packed, size_t length, size_t *unpacked)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .avail_in = (uInt)length};
    size_t room = 1 << 16;
    char *bytes = malloc(room);
    int result = bytes != NULL ? inflateInit2(&stream, -MAX_WBITS) : Z_MEM_ERROR;
    bool begun = result == Z_OK;
    while (result == Z_OK) {
        if (stream.total_out == room) {
            char *longer = room < LARGEST ? realloc(bytes, 2 * room) : NULL;
            bytes = longer != NULL ? longer : bytes;
            room *= longer != NULL ? 2 : 1;
        }
        stream.next_out = (Bytef *)bytes + stream.total_out;
        stream.avail_out = (uInt)(room - stream.total_out);
        if (stream.avail_out == 0)
            break; /* too large */
        result = inflate(&stream, Z_NO_FLUSH);
    }
    *unpacked = stream.total_out;
    if (begun)
        inflateEnd(&stream);
    if (result == Z_STREAM_END && stream.avail_in == 0)
        return bytes;
    free(bytes);
    return NULL;
}

static const char *unseal(const char *bytes, size_t length, char **tar, size_t *unpacked)
{
    unsigned char trailer[TRAILER];
    char hex[SHA256_HEX];
    if (length < BEGIN || memcmp(bytes, begin, BEGIN) != 0)
        return "is nothing that --bundle writes";
    if (length < HASHED + TRAILER)
        return "is cut short";
    hash_of(bytes + HASHED, length - HASHED, hex);
    if (memcmp(bytes + BEGIN, hex, SHA256_HEX) != 0)
        return "was changed or cut short: its SHA-256 is not the one that it says";
    *tar = unpack((const unsigned char *)bytes + HASHED, length - HASHED - TRAILER, unpacked);
    if (*tar == NULL)
        return "was not packed by --bundle";
    put_number(trailer, crc32(0, (const Bytef *)*tar, (uInt)*unpacked));
    put_number(trailer + 4, *unpacked);
    return memcmp(trailer, bytes + length - TRAILER, TRAILER) == 0 ? NULL
                                                                   : "was not packed by --bundle";
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

/* All that this version has. */
static char *list_of_properties(void)
{
    char *words = NULL;
    size_t length, count;
    const struct property *const *properties = property_all(&count);
    FILE *file = open_memstream(&words, &length);
    if (file == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++)
        fprintf(file, "%s\n", properties[i]->id);
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
    if (length < 0 || length > LARGEST / 2) {
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
    hash_of(member->bytes, member->length, hex);
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
    return MIN(time_is, (uint64_t)LATEST_TIME);
}

static int write_sealed(FILE *file, const char *tar, size_t length)
{
    char hex[SHA256_HEX];
    size_t packed;
    unsigned char *bytes = compress_tar(tar, length, &packed);
    if (bytes == NULL) {
        errno = ENOMEM;
        return -1;
    }
    hash_of(bytes, packed, hex);
    fwrite(begin, 1, BEGIN, file);
    fwrite(hex, 1, SHA256_HEX, file); /* the NUL ends the comment */
    fwrite(bytes, 1, packed, file);
    free(bytes);
    return ferror(file) ? -1 : 0;
}

int report_bundle(FILE *file, const struct run *run)
{
    struct bundle bundle = {.report = NULL};
    char *tar = NULL;
    size_t length;
    int failed = fill(&bundle, run);
    FILE *stream = failed == 0 ? open_memstream(&tar, &length) : NULL;
    if (stream != NULL) {
        failed = write_tar(stream, &bundle, time_of_bundle());
        failed = fclose(stream) != 0 || failed != 0 ? -1 : write_sealed(file, tar, length);
    }
    int error = errno;
    free(tar);
    bundle_free(&bundle);
    errno = error;
    return failed != 0 || stream == NULL ? -1 : 0;
}

/* ---- reading ------------------------------------------------------------------------------- */

static bool is_true(const json_t *object, const char *name)
{
    return json_is_true(json_object_get(object, name));
}

static json_int_t number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
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
        hash_of(bundle->of[BUNDLE_HANDLER].bytes, bundle->of[BUNDLE_HANDLER].length, hex);
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
    const char *wrong = read_members(bytes, length, bundle);
    for (int i = BUNDLE_MANIFEST; i <= BUNDLE_PROPERTIES && wrong == NULL; i++) {
        if (bundle->of[i].bytes == NULL)
            wrong = text("lacks %s", names[i]);
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
    const char *wrong = unseal(bytes, length, &tar, &unpacked);
    if (wrong == NULL)
        wrong = bundle_read_tar(tar, unpacked, bundle);
    free(tar);
    return wrong;
}

/* The properties of the report, as the list has them. */
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
        fprintf(file, "%s\n", word(property, "id"));
    }
    return fclose(file) == 0 ? words : NULL;
}

/* What the run says itself that it left out. */
static const char *left_out(const json_t *report)
{
    const json_t *shard = json_object_get(report, "shard");
    if (is_true(report, "interrupted"))
        return "the run was interrupted";
    if (shard != NULL)
        return text("it is shard %d/%d", (int)number(shard, "number"), (int)number(shard, "of"));
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
