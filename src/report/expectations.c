/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading what --expect names.  The file is TOML, and conform-toml makes JSON of that, in which
 * each value is an object with its place and a member that says of which kind it is.
 */
#include "report/expectations.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"
#include "base/version.h"
#include "model/options.h"
#include "supervise/child.h"

/* ---- what an entry is about -------------------------------------------------------------- */

/* What is NumPy's never decides; and where the first property fails, nothing else was tried. */
bool expectation_is_about(const struct expectation *expectation, const struct property *property)
{
    return property->target == TARGET_HANDLER && !property->first &&
           fnmatch(expectation->id, property->id, 0) == 0;
}

const char *platform_name(void)
{
    struct utsname name;
    return uname(&name) == 0 ? text("linux-%s", name.machine) : "unknown";
}

bool expectation_is_here(const struct expectation *expectation)
{
    return expectation->platform == NULL || fnmatch(expectation->platform, platform_name(), 0) == 0;
}

bool expectation_applies(const struct expectation *expectation,
                         const struct environment *environment)
{
    const struct expectation *e = expectation;
    return (e->numpy == NULL || version_is_in(environment->numpy, e->numpy)) &&
           (e->python == NULL || version_is_in(environment->python, e->python)) &&
           expectation_is_here(e);
}

/* Behind none of these does it stay open what the handler does: it was seen, if only to a limit. */
static bool can_be_expected(enum verdict verdict)
{
    return verdict == FAIL || verdict == WARN || verdict == CRASH || verdict == TIMEOUT ||
           verdict == INCOMPLETE;
}

const struct expectation *expectations_waive(const struct expectations *all,
                                             const struct property *property,
                                             const struct record *record,
                                             const struct environment *environment)
{
    if (all == NULL || !can_be_expected(record->verdict) || record_was_not_run(record))
        return NULL;
    for (size_t i = 0; i < all->count; i++) {
        const struct expectation *one = &all->of[i];
        if (one->verdict == record->verdict && expectation_is_about(one, property) &&
            expectation_applies(one, environment))
            return one;
    }
    return NULL;
}

/* ---- reading the file -------------------------------------------------------------------- */

static int number(const json_t *value, const char *name)
{
    return (int)json_integer_value(json_object_get(value, name));
}

/* Leaves, and names the place of the value. */
#define wrong(file, value, format, ...)                                                            \
    leave_with(EXIT_USAGE, "%s:%d:%d: " format, text_safe(file), number(value, "line"),            \
               number(value, "column"), ##__VA_ARGS__)

/* As much as no list of waivers has; what is nested deeply is in one line. */
enum { MOST_BYTES = 1 << 20, LONGEST_LINE = 2000 };

/* Leaves where it is no file that can be read twice, or one that takes the reader's stack. */
static int open_file(const char *file)
{
    static char bytes[MOST_BYTES + 1];
    struct stat status;
    int fd = stat(file, &status) == 0 ? open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0)
        leave_with(EXIT_USAGE, "%s: %s", text_safe(file), strerror(errno));
    if (!S_ISREG(status.st_mode))
        leave_with(EXIT_USAGE, "%s: is no regular file", text_safe(file));
    ssize_t length = pread(fd, bytes, sizeof bytes, 0);
    if (length < 0)
        leave_with(EXIT_USAGE, "%s: %s", text_safe(file), strerror(errno));
    if (length > MOST_BYTES)
        leave_with(EXIT_USAGE, "%s: has more than %d bytes", text_safe(file), MOST_BYTES);
    int line = 1;
    for (ssize_t i = 0, begin = 0; i < length; i++) {
        if (bytes[i] == '\n') {
            line++;
            begin = i + 1;
        } else if (i - begin >= LONGEST_LINE) {
            leave_with(EXIT_USAGE, "%s:%d:%d: a line of more than %d bytes", text_safe(file), line,
                       LONGEST_LINE + 1, LONGEST_LINE);
        }
    }
    return fd;
}

/* What is in the file, as conform-toml tells it. */
static json_t *read_toml(const char *file)
{
    char reader[PATH_MAX];
    int input = open_file(file), output = memfd_create("expectations", MFD_CLOEXEC), status = 0;
    if (!place_find(BUILT_TOML_READER, INSTALLED_TOML_READER, reader))
        leave_with(EXIT_USAGE, "--expect: this conform was built without toml++; install "
                               "libtomlplusplus-dev and g++, then configure and make again");
    pid_t pid = output >= 0 ? child_fork(false) : -1;
    if (pid == 0) {
        dup2(input, STDIN_FILENO);
        dup2(output, STDOUT_FILENO);
        execl(reader, reader, (char *)NULL);
        _exit(EXIT_HARNESS_BROKE);
    }
    if (pid < 0 || child_wait(pid, NULL, NULL, &status) != 0 || lseek(output, 0, SEEK_SET) != 0)
        leave_with(EXIT_HARNESS_BROKE, "no process for %s: %s", reader, strerror(errno));
    json_t *root = status == 0 ? json_loadfd(output, JSON_ALLOW_NUL, NULL) : NULL;
    close(input);
    close(output);
    if (root == NULL)
        leave_with(EXIT_USAGE, "%s: cannot be read: %s %s", text_safe(file), reader,
                   WIFSIGNALED(status) ? text("died of %s", child_signal_name(WTERMSIG(status)))
                                       : text("ended with status %d", WEXITSTATUS(status)));
    const json_t *error = json_object_get(root, "error");
    if (error != NULL)
        wrong(file, root, "%s", text_safe(json_string_value(error)));
    return root;
}

/* ---- what is in it ----------------------------------------------------------------------- */

/* The members of an entry, all of them strings but the date. */
static const struct member {
    const char *name;
    size_t field; /* of what is kept as it is */
    bool is_wanted, is_date;
} members[] = {
    {.name = "id", .field = offsetof(struct expectation, id), .is_wanted = true},
    {.name = "verdict", .is_wanted = true},
    {.name = "reason", .field = offsetof(struct expectation, reason), .is_wanted = true},
    {.name = "url", .field = offsetof(struct expectation, url)},
    {.name = "until", .field = offsetof(struct expectation, until), .is_date = true},
    {.name = "numpy", .field = offsetof(struct expectation, numpy)},
    {.name = "python", .field = offsetof(struct expectation, python)},
    {.name = "platform", .field = offsetof(struct expectation, platform)},
};
enum { MEMBERS = sizeof members / sizeof *members, VERDICT_MEMBER = 1 };

/* Of a table. */
static const json_t *member_of(const json_t *table, const char *name)
{
    const json_t *value;
    size_t i;
    json_array_foreach(json_object_get(table, "table"), i, value)
    {
        if (strcmp(json_string_value(json_object_get(value, "key")), name) == 0)
            return value;
    }
    return NULL;
}

/* In the entry, what a later check has to say something about; or the entry. */
static const json_t *place_of(const json_t *entry, const char *name)
{
    const json_t *value = member_of(entry, name);
    return value != NULL ? value : entry;
}

static const struct member *member_called(const char *file, const json_t *value)
{
    const char *name = json_string_value(json_object_get(value, "key"));
    for (size_t i = 0; i < MEMBERS; i++) {
        if (strcmp(members[i].name, name) == 0)
            return &members[i];
    }
    wrong(file, value,
          "%s: no such key; an entry has id, verdict, reason, url, until, numpy, "
          "python and platform",
          text_safe(name));
}

/* Its string, or its date as one. */
static const char *words_of(const char *file, const json_t *value, const struct member *member)
{
    const json_t *words = json_object_get(value, member->is_date ? "date" : "string");
    if (words == NULL && member->is_date)
        wrong(file, value, "until is no date; write it without quotes, as 2027-01-31");
    if (words == NULL)
        wrong(file, value, "%s is no string", member->name);
    const char *bytes = json_string_value(words);
    if (strlen(bytes) != json_string_length(words))
        wrong(file, value, "%s has a NUL in it", member->name);
    if (bytes[strspn(bytes, " \t\r\n")] == '\0')
        wrong(file, value, "%s is empty", member->name);
    return bytes;
}

static enum verdict verdict_called(const char *file, const json_t *value, const char *name)
{
    for (int verdict = PASS; verdict < VERDICT_COUNT; verdict++) {
        if (can_be_expected((enum verdict)verdict) &&
            strcmp(verdict_name((enum verdict)verdict), name) == 0)
            return (enum verdict)verdict;
    }
    wrong(file, value,
          "verdict is %s; what can be expected is FAIL, WARN, CRASH, TIMEOUT and "
          "INCOMPLETE",
          text_safe(name));
}

/* Today here, as in the file; good until the next calls of text(). */
static const char *today(void)
{
    time_t now = time(NULL);
    struct tm day;
    char words[32] = "";
    if (localtime_r(&now, &day) != NULL)
        strftime(words, sizeof words, "%Y-%m-%d", &day);
    return text("%s", words);
}

/* fnmatch() takes a [ without an end for a letter, which no name has. */
static bool is_glob(const char *pattern)
{
    for (const char *open = pattern; (open = strchr(open, '[')) != NULL;) {
        size_t first = open[1] == '!' || open[1] == '^' ? 2 : 1;
        const char *close = open[first] != '\0' ? strchr(open + first + 1, ']') : NULL;
        if (close == NULL)
            return false;
        open = close;
    }
    return true;
}

static void check_entry(const char *file, const json_t *entry, const struct expectation *e)
{
    size_t all, about = 0, matching = 0;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < all; i++) {
        matching += fnmatch(e->id, properties[i]->id, 0) == 0;
        about += expectation_is_about(e, properties[i]);
    }
    if (matching == 0)
        wrong(file, place_of(entry, "id"), "%s: matches no property%s; see conform --list",
              text_safe(e->id), property_meant(e->id));
    if (about == 0)
        wrong(file, place_of(entry, "id"),
              "%s: is nothing that can be waived: either about NumPy "
              "itself, which never decides, or what everything else rests on",
              text_safe(e->id));
    if (e->platform != NULL && !is_glob(e->platform))
        wrong(file, place_of(entry, "platform"), "platform: a [ has no ] in \"%s\"",
              text_safe(e->platform));
    if (e->until != NULL && strcmp(e->until, today()) < 0)
        wrong(file, place_of(entry, "until"), "%s: expired, it was until %s", text_safe(e->id),
              e->until);
    for (size_t i = 0; i < MEMBERS; i++) {
        bool is_range = members[i].field == offsetof(struct expectation, numpy) ||
                        members[i].field == offsetof(struct expectation, python);
        const char *range = *(const char *const *)((const char *)e + members[i].field);
        if (is_range && range != NULL && !version_range_is_sound(range))
            wrong(file, place_of(entry, members[i].name),
                  "%s: is no range of versions, as \">=1.25,<2.4\" is", members[i].name);
    }
}

static bool is_same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* One of two that are about the same has nothing to say. */
static void check_once(const char *file, const json_t *entry, const struct expectations *all,
                       const struct expectation *e)
{
    for (const struct expectation *other = all->of; other < e; other++) {
        if (is_same(other->id, e->id) && other->verdict == e->verdict &&
            is_same(other->numpy, e->numpy) && is_same(other->python, e->python) &&
            is_same(other->platform, e->platform))
            wrong(file, entry, "%s: the entry of line %d is about the same", text_safe(e->id),
                  other->line);
    }
}

static void read_entry(const char *file, const json_t *entry, struct expectation *e)
{
    const json_t *value;
    size_t i;
    if (json_object_get(entry, "table") == NULL)
        wrong(file, entry, "expect is no table; begin each entry with [[expect]]");
    e->line = number(entry, "line");
    json_array_foreach(json_object_get(entry, "table"), i, value)
    {
        const struct member *member = member_called(file, value);
        const char *words = words_of(file, value, member);
        if (member == &members[VERDICT_MEMBER])
            e->verdict = verdict_called(file, value, words);
        else
            *(const char **)((char *)e + member->field) = words;
    }
    for (size_t k = 0; k < MEMBERS; k++) {
        if (members[k].is_wanted && member_of(entry, members[k].name) == NULL)
            wrong(file, entry, "an entry without %s", members[k].name);
    }
    check_entry(file, entry, e);
}

const struct expectations *expectations_read(const char *file)
{
    const json_t *root = read_toml(file), *value, *entry; /* it stays, for its words do */
    size_t i;
    json_array_foreach(json_object_get(root, "table"), i, value)
    {
        const char *name = json_string_value(json_object_get(value, "key"));
        if (strcmp(name, "expect") != 0)
            wrong(file, value, "%s: no such key; begin each entry with [[expect]]",
                  text_safe(name));
        if (json_object_get(value, "array") == NULL)
            wrong(file, value, "expect is no array of tables; begin each entry with [[expect]]");
    }
    const json_t *entries = json_object_get(member_of(root, "expect"), "array");
    size_t count = json_array_size(entries);
    struct expectations *all = calloc(1, sizeof *all + count * sizeof *all->of);
    if (all == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    all->file = file;
    all->count = count;
    json_array_foreach(entries, i, entry)
    {
        read_entry(file, entry, &all->of[i]);
        check_once(file, entry, all, &all->of[i]);
    }
    return all;
}
