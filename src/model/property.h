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
#include <stdint.h>

#include "base/heap_rule.h"
#include "base/step.h"

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
    TARGET_HANDLER, /* the default */
    TARGET_RUNTIME, /* NumPy itself: reported, but it decides nothing about the handler */
};

/* In what state of its process a property begins. */
enum fixture {
    FIXTURE_PYTHON, /* interpreter up, NumPy imported, subject loaded, GIL held: as NumPy calls
                     * malloc, calloc and free.  The default. */
    FIXTURE_BARE,   /* the same with the GIL released: as NumPy calls realloc, and as threads run */
    FIXTURE_UNLOADED, /* interpreter up, NumPy imported, GIL held; the property loads the subject */
    FIXTURE_FRESH,    /* no interpreter yet and no subject: the property starts and loads them */
};
enum { FIXTURES = FIXTURE_FRESH + 1 };

/* How close a failure of a property is to its root cause.  A block that is too short or that
 * overlaps another one corrupts its neighbors; that breaks what realloc keeps and what calloc
 * zeroes, and all of it breaks NumPy, never the other way around.  So the check that uses the
 * fewest functions, and looks at the place of the defect, is the closest. */
enum closeness {
    RANK_OF_GROUP,     /* in a property: the rank of its group; in a group: RANK_RECORDED */
    RANK_BY_ITSELF,    /* one call, or the struct: no other defect can cause it */
    RANK_PLACE,        /* where a block is, and its size */
    RANK_BESIDE,       /* what was written into other blocks */
    RANK_FRESH,        /* the contents of a new block, and parts of a block */
    RANK_RESIZED,      /* what realloc keeps */
    RANK_ONE_FUNCTION, /* anything else about one function */
    RANK_IN_USE,       /* threads, processes, NumPy */
    RANK_AT_LENGTH,    /* everything together */
    RANK_RECORDED,     /* programs, in which any defect can show */
};

struct rank {
    enum closeness fails, crashes; /* if a check fails, and if the process ends or hangs */
    int tie;                       /* of two that are equally close, the lower one comes first */
};

/* A defect that any property can run into, and that one property is about: a kind of call (the
 * table in attribution.c), or something that the harness checks everywhere. */
enum topic {
    TOPIC_MISSING_FUNCTION, /* a call of a function that is a NULL pointer */
    TOPIC_REFUSED_MEMORY, /* a call that the harness refused memory, in place of libc or the kernel
                           */
    TOPIC_LITTLE_MALLOC,  /* NULL from a call for at most 1 MiB */
    TOPIC_LITTLE_CALLOC,
    TOPIC_LITTLE_REALLOC,
    TOPIC_MALLOC_ZERO,
    TOPIC_MALLOC_ONE,
    TOPIC_MALLOC_TOO_LARGE,
    TOPIC_NOT_ALIGNED, /* a block that is not aligned as its size demands */
    TOPIC_CALLOC_NOT_ZERO,
    TOPIC_CALLOC_ZERO,
    TOPIC_CALLOC_TOO_LARGE,
    TOPIC_REALLOC_NULL,
    TOPIC_REALLOC_ONE,
    TOPIC_REALLOC_TOO_LARGE,
    TOPIC_FREE_WRONG_SIZE,
    TOPIC_FREE_NULL_ZERO,
    TOPIC_FREE_NULL,
    TOPIC_BLOCKS_OVERLAP,
    TOPIC_MEMORY_GROWS,
    TOPIC_MAPPINGS_GROW,
    TOPIC_DESCRIPTORS_GROW,
    TOPIC_THREADS_GROW,
    TOPIC_LIBC_MEMORY_GROWS,
    TOPIC_STRUCT_GONE,
    TOPIC_STRUCT_CHANGED,
    TOPIC_EXCEPTION_SET,
    TOPIC_DIRECTION_FLAG_SET,
    TOPIC_DATA_RACE,
};
#define ABOUT(topic) (UINT64_C(1) << TOPIC_##topic)

struct property {
    const char *id; /* group.what-holds; it never changes its meaning */
    enum level level;
    enum basis basis;
    enum target target;
    const char *title;  /* at most 40 characters, for lists */
    const char *clause; /* one requirement in one sentence of at most 25 words */
    const char *tests;  /* what is tried, if the clause does not say it all; or NULL */
    const char *source; /* where the requirement is written */
    const char *why;    /* what breaks in practice when it does not hold */
    const char *wrong;  /* a few lines of C that break it, or NULL */
    const char *right;  /* lines that keep it, or NULL */
    const char *hint;   /* how to fix a handler that breaks it, most likely fix first */
    const char *looks;  /* what a failure typically looks like */
    enum fixture fixture;
    bool quick;           /* --quick runs it: a few milliseconds, and no need of an interpreter */
    bool programs;        /* it starts other programs, and takes its time over it */
    bool scenarios;       /* what it finds is reported by the property of the oracle */
    bool first;           /* it loads the handler: if it fails, no other property runs */
    bool threads;         /* it calls from several threads: --tsan runs it */
    bool ends_process;    /* a failure usually is a CRASH, as `looks` shows */
    unsigned slow_ms;     /* duration with -j1, if it is more than 40 ms */
    struct rank rank;     /* default: that of the group */
    enum heap_rule rule;  /* that the heap model checks for this property, or HEAP_NO_RULE */
    uint64_t answers_for; /* topics that it is about, as ABOUT(topic) | ... */
    uint64_t answers_next_for; /* topics that it is about if the one above passes or was not run */

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
    int order; /* place in lists and reports, lowest first */
    const char *about;
    struct rank rank;        /* of its properties that have none of their own */
    bool threads;            /* of all its properties */
    enum step_kind function; /* that it is about, or OUTSIDE */
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

/* A property whose code is a function of conformance/MODULE.py; include python/python.h. */
#define PYTHON_PROPERTY(module, function, ...)                                                     \
    PROPERTY(module##_##function, __VA_ARGS__)                                                     \
    {                                                                                              \
        python_call(#module, #function);                                                           \
    }                                                                                              \
    _Static_assert(sizeof #module > 1, "a module has a name")

/* Further arguments are fields of struct group. */
#define GROUP(symbol, place, ...)                                                                  \
    static struct group group_##symbol = {.name = #symbol, .order = place, .about = __VA_ARGS__};  \
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

/* All properties, ordered by their group, then by file and line.
 * *count receives how many.  The array belongs to the registry. */
const struct property *const *property_all(size_t *count);

/* The property with .first, which all others wait for, or NULL. */
const struct property *property_first(void);

/* The id of the property that answers for a topic, or "" if it is not linked. */
const char *property_about(enum topic topic);

/* The facts of the property, or else those of its group. */
struct rank property_rank(const struct property *property);
bool property_has_threads(const struct property *property);

/* The property of that id, or NULL. */
const struct property *property_find(const char *id);

/* The property that names the rule.  There is one for each. */
const struct property *property_of_rule(enum heap_rule rule);

/* True if the rule is about the alignment of a block. */
bool rule_is_alignment(enum heap_rule rule);

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
