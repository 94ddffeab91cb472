/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a property is, and the list of all of them.
 *
 * A property is one block in conformance/: PROPERTY(...) with what it says, and
 * behind it the code that tests it.  The block registers itself; nothing else
 * has to be edited to add one.
 */
#ifndef CONFORM_PROPERTY_H
#define CONFORM_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>

enum level {
    MUST,   /* breaking it makes the handler non-conformant */
    SHOULD, /* good practice: a WARN */
};

/* Where a clause comes from. */
enum basis {
    BASIS_NEP,    /* NEP 49, or NumPy's page "Memory management in NumPy" */
    BASIS_C,      /* C17 7.22.3 */
    BASIS_CALLER, /* NumPy's source relies on it; .source names file and versions */
    BASIS_CLAIM,  /* the subject promised it in nep49_claims */
    BASIS_QOI,    /* quality of implementation */
};

/* Whom a property speaks about. */
enum target {
    TARGET_HANDLER,
    TARGET_RUNTIME, /* NumPy itself: reported, but it decides nothing about the handler */
};

/* In what state of its process a property begins. */
enum fixture {
    FIXTURE_PYTHON, /* interpreter up, NumPy imported, subject loaded, GIL held: as NumPy calls
                     * malloc, calloc and free.  Where nothing is said, it is this one. */
    FIXTURE_BARE,   /* the same with the GIL released: as NumPy calls realloc, and as threads run */
    FIXTURE_UNLOADED, /* interpreter up, NumPy imported, GIL held; the property loads the subject */
    FIXTURE_FRESH,    /* no interpreter yet and no subject: the property starts and loads them */
};
enum { FIXTURES = FIXTURE_FRESH + 1 };

struct property {
    const char *id; /* group.what-holds; it never changes its meaning */
    enum level level;
    enum basis basis;
    enum target target;
    const char *clause; /* the statement, in our own words */
    const char *source; /* where it is written */
    const char *why;    /* what breaks in practice when it does not hold */
    const char *hint;   /* for whoever breaks it */
    const char *looks;  /* what a failure typically looks like */
    enum fixture fixture;
    bool quick;    /* --quick runs it: a few milliseconds, and no need of an interpreter */
    bool programs; /* it starts other programs, and takes its time over it */
    bool daily;    /* its seed is another one each day, unless one is given */

    /* Filled in by PROPERTY. */
    void (*run)(void);
    const char *file;
    int line;
    const struct property *next;
};

/* A group is a file in conformance/, or a few whose names begin with its own; one of them says once
 * what it is about. */
struct group {
    const char *name;
    int rank; /* place in lists and reports, lowest first */
    const char *about;
    const struct group *next;
};

#define PROPERTY(symbol, ...)                                                                      \
    static void symbol##_run(void);                                                                \
    static struct property symbol = {__VA_ARGS__, .run = symbol##_run, .file = __FILE__,           \
                                     .line = __LINE__};                                            \
    __attribute__((constructor)) static void symbol##_register(void)                               \
    {                                                                                              \
        property_register(&symbol);                                                                \
    }                                                                                              \
    static void symbol##_run(void)

#define GROUP(symbol, place, text)                                                                 \
    static struct group group_##symbol = {.name = #symbol, .rank = place, .about = text};          \
    __attribute__((constructor)) static void group_##symbol##_register(void)                       \
    {                                                                                              \
        group_register(&group_##symbol);                                                           \
    }                                                                                              \
    _Static_assert(place > 0, "a group has a place in lists")

/* A clause that nothing can test, with why. */
struct untested {
    const char *clause, *source, *why;
    const struct untested *next;
};

#define UNTESTED(symbol, ...)                                                                      \
    static struct untested symbol = {__VA_ARGS__};                                                 \
    __attribute__((constructor)) static void symbol##_register(void)                               \
    {                                                                                              \
        untested_register(&symbol);                                                                \
    }

void property_register(struct property *property);
void group_register(struct group *group);
void untested_register(struct untested *untested);

/* The first of them, in the order of their file; the others follow by next. */
const struct untested *untested_first(void);

/* All properties, ordered by the rank of their group, then by file and line.
 * *count receives how many.  The array belongs to the registry. */
const struct property *const *property_all(size_t *count);

/* The first property, which the others wait for: where it does not pass none of them is run. */
#define FIRST_PROPERTY "abi.loads"

/* The property of that id, or NULL. */
const struct property *property_find(const char *id);

/* Which one may have been meant by an id or a pattern that fits none: words as suggestion_words
 * has them. */
const char *property_meant(const char *id);

/* The group that a property belongs to by its id, or NULL where no file declares it. */
const struct group *property_group(const struct property *property);

/* "MUST", "NEP", "handler": the words of the reports. */
const char *level_name(enum level level);
const char *basis_name(enum basis basis);
const char *target_name(enum target target);

#endif
