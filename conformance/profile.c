/* SPDX-License-Identifier: BSD-3-Clause
 *
 * profile: what other versions of NumPy ask for.  The routes of profiles/routes.py were recorded on
 * each of them; here their traces drive the subject, judged on every call as docs/replay.md says.
 */
#include <limits.h>

#include "base/install_path.h"
#include "harness/harness.h"
#include "python/python.h"
#include "trace/replay.h"

GROUP(profile, 14, "Calls of other versions of NumPy, replayed from recordings.");

/* Blocks are written and checked whole up to here: all but a few that the routes make. */
enum { WHOLE = 1 << 17, WHOLE_IF_INSTRUMENTED = 4096 };

struct profile {
    const char *version;
    char path[PATH_MAX];
};

static void find_trace(struct profile *profile)
{
    const char *name = fmt("/numpy-%s.trace", profile->version);
    if (!place_find(fmt("%s%s", SOURCE_PROFILES, name), fmt("%s%s", INSTALLED_PROFILES, name),
                    profile->path))
        harness_broke("%s is not there, nor in %s: install it again", profile->path,
                      SOURCE_PROFILES);
}

static void note_part(const char *part, void *data)
{
    const struct profile *profile = data;
    program_part("NumPy %s's %s (%s)", profile->version, part, profile->path);
}

/* How to reproduce it, on this trace alone. */
static const char *replay_command(const struct profile *profile)
{
    return fmt("conform replay --handler=%s %s", shell_quote(subject_place()->argument),
               shell_quote(profile->path));
}

static void judge(const struct profile *profile, const struct replay_result *result)
{
    const struct replay_violation *violation = &result->violation;
    const struct property *property = property_of_rule(violation->rule);
    struct step call = result->under_way.step;
    if (result->under_way.pointer != TRACE_NULL)
        call.pointer = result; /* not NULL: the address itself is not known */
    switch (result->outcome) {
    case REPLAY_PASSED:
        return;
    case REPLAY_VIOLATED:
        attribute_to(property->id, &call);
        fail(fmt("%s to hold: %s", property->id, property->title),
             "in call %zu of NumPy %s's, %s: %s%s%s; reproduce: %s", (size_t)violation->call,
             profile->version, violation->part[0] != '\0' ? violation->part : "import",
             violation->text, violation->history[0] != '\0' ? "; " : "", violation->history,
             replay_command(profile));
    case REPLAY_TRACE_WRONG:
        harness_broke("%s: %s", profile->path, result->wrong);
    case REPLAY_NO_MEMORY:
    case REPLAY_UNDER_WAY:
        break;
    }
    harness_broke("no memory for the tables of the replay");
}

static void replay(const char *version)
{
    struct profile profile = {.version = version};
    struct replay_result result;
    char why[256];
    find_trace(&profile);
    struct trace_reader *reader = trace_open(profile.path, why, sizeof why);
    if (reader == NULL)
        harness_broke("%s: %s", profile.path, why);
    struct replay_options options = {
        .alignment = subject_claims().alignment,
        .fill.whole = is_instrumented() ? WHOLE_IF_INSTRUMENTED : WHOLE,
        .watched = subject_handler(),
        .part_begins = note_part,
        .data = &profile,
        .take_gil = python_acquire,
        .release_gil = python_release,
    };
    note_part("import", &profile);
    replay_run(reader, subject_traced(), &options, &result);
    trace_reader_close(reader);
    judge(&profile, &result);
    if (result.cut)
        harness_broke("%s: %s", profile.path, result.wrong);
}

#define WHY "Users run the handler with that NumPy, regardless of what its author tests with."
#define HINT                                                                                       \
    "Replay the named file alone with conform replay -H HANDLER FILE. For the property in the "    \
    "message, conform explain has a hint. docs/callers.md shows what each NumPy does on each "     \
    "route."

#define SHARED(version)                                                                            \
    .level = MUST, .basis = BASIS_CALLER, .fixture = FIXTURE_BARE, .hint = HINT,                   \
    .clause = "The handler keeps the contract in every call that NumPy " version                   \
              " was recorded to make, in order."

PROPERTY(profile_numpy_1_22, SHARED("1.22"),
    .id     = "profile.numpy-1.22", .ends_process = true,
    .title  = "calls recorded from NumPy 1.22",
    .source = "profiles/numpy-1.22.trace; ctors.c PyArray_NewFromDescr_int, PyArray_FromIter",
    .why    = WHY " In NumPy 1.22, the first with handlers, an array without elements has a block "
              "of its other dimensions, which is freed as 1 byte.",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 400), in NumPy 1.22's fromiter")
{
    replay("1.22");
}

PROPERTY(profile_numpy_1_24, SHARED("1.24"),
    .id     = "profile.numpy-1.24", .ends_process = true,
    .title  = "calls recorded from NumPy 1.24",
    .source = "profiles/numpy-1.24.trace; item_selection.c _new_sortlike, ctors.c PyArray_FromIter",
    .why    = WHY " NumPy 1.24 frees NULL with a size in every contiguous sort.",
    .looks  = "CRASH: SIGSEGV, inside free((nil), 40), in NumPy 1.24's sort: shuffled(5).sort()")
{
    replay("1.24");
}

PROPERTY(profile_numpy_1_26, SHARED("1.26"),
    .id     = "profile.numpy-1.26", .ends_process = true,
    .title  = "calls recorded from NumPy 1.26",
    .source = "profiles/numpy-1.26.trace; arraytypes.c.src VOID_compare, ctors.c PyArray_FromIter",
    .why    = WHY " NumPy 1.26 requests 0 bytes to compare records with empty fields.",
    .looks  = "CRASH: SIGSEGV, inside malloc(0), in NumPy 1.26's records: np.zeros(3, ...).sort()")
{
    replay("1.26");
}

PROPERTY(profile_numpy_2_0, SHARED("2.0"),
    .id     = "profile.numpy-2.0",
    .title  = "calls recorded from NumPy 2.0",
    .source = "profiles/numpy-2.0.trace; NumPy 2.0: ctors.c, shape.c, stringdtype/",
    .why    = WHY " NumPy 2.0 adds arrays of StringDType; their blocks are "
              "resized and pickled too.",
    .looks  = "expected realloc.keeps-contents to hold: the first min(old, new) bytes stay; seen "
              "in call 1391")
{
    replay("2.0");
}

PROPERTY(profile_numpy_2_2, SHARED("2.2"),
    .id     = "profile.numpy-2.2", .ends_process = true,
    .title  = "calls recorded from NumPy 2.2",
    .source = "profiles/numpy-2.2.trace; NumPy 2.2: ctors.c, shape.c PyArray_Resize",
    .why    = WHY " NumPy 2.2 makes more small temporaries than earlier versions, and still passes "
              "size 1 to free after resize(0).",
    .looks  = "CRASH: SIGABRT, inside free(0x55d0c0a8b2a0, 1), in NumPy 2.2's resize")
{
    replay("2.2");
}

PROPERTY(profile_numpy_2_5, SHARED("2.5"),
    .id     = "profile.numpy-2.5",
    .title  = "calls recorded from NumPy 2.5",
    .source = "profiles/numpy-2.5.trace; NumPy 2.5: shape.c PyArray_Resize_int, ctors.c",
    .why    = WHY " NumPy 2.5 cuts a block to 1 byte if an array becomes empty, "
              "and grows it later.",
    .looks  = "expected realloc.keeps-contents to hold: the first min(old, new) bytes stay; seen "
              "in call 617")
{
    replay("2.5");
}
