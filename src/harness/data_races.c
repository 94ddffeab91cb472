/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What ThreadSanitizer reports, taken from it by the functions that it has for debuggers
 * (compiler-rt, lib/tsan/rtl/tsan_debugging.cpp), and which of it is the subject's.
 *
 * Where this program is not instrumented, the runtime sees of it, of Python and of NumPy what they
 * call of libc, locks among it, and no access but by memcpy and the like.
 */
#include "harness/data_races.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/object_file.h"
#include "base/text.h"

enum { FRAMES = 16, ACCESSES = 2, KEPT = 64, PRINTED = 6, EVERY = 4096, NOWHERE = -1 };

struct access {
    int size, is_write;
    void *frames[FRAMES]; /* the innermost first, up to a NULL; none where that was too long ago */
};
struct race {
    struct access accesses[ACCESSES];
    void *address;
    bool is_placed; /* the memory is a variable, or of malloc's */
};

static struct {
    bool watched;
    struct link_map *last; /* of the objects that were there before the subject */
    size_t count;
    struct race all[KEPT];

    int (*get_data)(void *report, const char **description, int *count, int *stacks, int *accesses,
                    int *locations, int *mutexes, int *threads, int *tids, void **sleep,
                    uintptr_t frames);
    int (*get_access)(void *report, uintptr_t i, int *thread, void **address, int *size,
                      int *is_write, int *is_atomic, void **frames, uintptr_t room);
    void (*symbolize)(void *frame, const char *format, char *to, uintptr_t room);
    void (*release)(const void *at), (*acquire)(const void *at);
} races;

__attribute__((visibility("default"))) void __tsan_on_report(void *report);
__attribute__((visibility("default"))) bool
__tsan_passes_over(void *report,
                   bool passed_over) __asm__("_ZN6__tsan8OnReportEPKNS_10ReportDescEb");

/* Called by the runtime, under a lock of its own, when it has printed a report. */
void __tsan_on_report(void *report)
{
    const char *kind;
    int count, accesses, places, others, thread, is_atomic;
    void *nothing[1];
    if (!races.watched || races.count == KEPT)
        return;
    races.get_data(report, &kind, &count, &others, &accesses, &places, &others, &others, &others,
                   nothing, 1);
    if (accesses < ACCESSES)
        return; /* a lock that was not released, say */
    struct race *race = &races.all[races.count++];
    race->is_placed = places > 0;
    for (uintptr_t i = 0; i < ACCESSES; i++) {
        struct access *access = &race->accesses[i];
        races.get_access(report, i, &thread, &race->address, &access->size, &access->is_write,
                         &is_atomic, access->frames, FRAMES - 1);
    }
}

/* Called before it prints one, and returns true to suppress it: the runtime ends the process if its
 * text has no room in the pipe, which is not read meanwhile. */
bool __tsan_passes_over(void *report, bool passed_over)
{
    if (passed_over || !races.watched || races.count < PRINTED)
        return passed_over;
    __tsan_on_report(report);
    return true;
}

void data_races_watch(void)
{
    *(void **)&races.get_data = dlsym(RTLD_DEFAULT, "__tsan_get_report_data");
    *(void **)&races.get_access = dlsym(RTLD_DEFAULT, "__tsan_get_report_mop");
    *(void **)&races.symbolize = dlsym(RTLD_DEFAULT, "__sanitizer_symbolize_pc");
    *(void **)&races.release = dlsym(RTLD_DEFAULT, "__tsan_release");
    *(void **)&races.acquire = dlsym(RTLD_DEFAULT, "__tsan_acquire");
    races.last = dlopen(NULL, RTLD_NOW);
    while (races.last != NULL && races.last->l_next != NULL)
        races.last = races.last->l_next;
    races.watched = races.last != NULL && races.get_data != NULL && races.get_access != NULL &&
                    races.symbolize != NULL && races.release != NULL && races.acquire != NULL;
}

bool data_races_are_watched(void)
{
    return races.watched;
}

void data_races_hand_over(const void *at, size_t length)
{
    for (size_t i = 0; races.watched && i < length; i += EVERY)
        races.release((const char *)at + i);
}

void data_races_take_over(const void *at, size_t length)
{
    for (size_t i = 0; races.watched && i < length; i += EVERY)
        races.acquire((const char *)at + i);
}

/* ---- whose it is -------------------------------------------------------------------------- */

static const struct link_map *object_of(const void *address)
{
    Dl_info info;
    struct link_map *object = NULL;
    return dladdr1(address, &info, (void **)&object, RTLD_DL_LINKMAP) != 0 ? object : NULL;
}

/* Code or a variable. */
static bool is_of_subject(const void *address)
{
    const struct link_map *object = object_of(address);
    for (const struct link_map *its = races.last->l_next; its != NULL && object != NULL;
         its = its->l_next) {
        if (its == object)
            return true;
    }
    return false;
}

/* Of what stands between the subject and memory: the runtime, libc, and this program in the place
 * of libc. */
static bool is_of_libc(const void *code)
{
    const struct link_map *object = object_of(code);
    return object != NULL && (object == object_of((const void *)races.get_data) ||
                              object == object_of((const void *)gnu_get_libc_version) ||
                              object == object_of((const void *)data_races_watch));
}

static bool is_lost(const struct access *access)
{
    return access->frames[0] == NULL;
}

/* The first frame of the subject's, or NOWHERE where the access is not its. */
static int first_of_subject(const struct access *access)
{
    for (int i = 0; access->frames[i] != NULL; i++) {
        if (is_of_subject(access->frames[i]))
            return i;
        if (!is_of_libc(access->frames[i]))
            return NOWHERE;
    }
    return NOWHERE;
}

/* Whether the subject brings an object along that the runtime cannot see into.  What an allocator
 * there does to hand memory from one thread to another is not known. */
static bool has_blind_spot(void)
{
    struct object_sanitizer its_own;
    bool has = false;
    for (const struct link_map *its = races.last->l_next; its != NULL && !has; its = its->l_next)
        has = !object_file_sanitizer(its->l_name, &its_own) ||
              strcmp(its_own.sanitizer->flag, "thread") != 0;
    return has;
}

/* Nobody else uses its variables. */
static bool is_subjects(const struct race *race)
{
    bool is = race->is_placed || !has_blind_spot();
    for (size_t i = 0; i < ACCESSES; i++) {
        const struct access *access = &race->accesses[i];
        is = is &&
             (is_lost(access) ? is_of_subject(race->address) : first_of_subject(access) != NOWHERE);
    }
    return is;
}

/* ---- in words ----------------------------------------------------------------------------- */

static void add(char *to, size_t room, const char *more)
{
    strncat(to, more, room - strlen(to) - 1);
}

/* "mine_malloc (mine.c:17)", and the functions that it was inlined in. */
static void add_frame(char *to, size_t room, void *frame, const char **before)
{
    enum { ROOM = 2048 };
    static char lines[ROOM];
    Dl_info info = {.dli_fname = NULL};
    memset(lines, 0, sizeof lines); /* the last one ends in one more NUL, or there is but one */
    races.symbolize(frame, "%f\t%s\t%l", lines, sizeof lines - 1);
    for (const char *line = lines; *line != '\0'; line += strlen(line) + 1) {
        int name = (int)strcspn(line, "\t");
        const char *path = line[name] == '\t' ? line + name + 1 : "";
        const char *number = strchr(path, '\t'), *slash;
        add(to, room, *before);
        *before = ", from ";
        if (number != NULL && atoi(number + 1) > 0) {
            slash = memrchr(path, '/', (size_t)(number - path));
            path = slash != NULL ? slash + 1 : path;
            add(to, room,
                fmt("%.*s (%.*s:%d)", name, line, (int)(number - path), path, atoi(number + 1)));
            continue;
        }
        if (dladdr(frame, &info) == 0 || info.dli_fname == NULL)
            continue;
        slash = strrchr(info.dli_fname, '/');
        add(to, room,
            fmt("%.*s (%s+0x%zx)", name, line, slash != NULL ? slash + 1 : info.dli_fname,
                (size_t)((char *)frame - (char *)info.dli_fbase)));
    }
}

/* Its stack, as far as it is the subject's. */
static void add_access(char *to, size_t room, const struct access *access, const char *before)
{
    add(to, room,
        fmt("%sa %s of %s%s", before, access->is_write ? "write" : "read",
            plural((size_t)access->size, "byte"),
            is_lost(access) ? " too long ago to say where" : ""));
    if (is_lost(access))
        return;
    before = " at ";
    for (int i = first_of_subject(access); access->frames[i] != NULL; i++) {
        if (!is_of_subject(access->frames[i]))
            break;
        if (i == 0 || access->frames[i] != access->frames[i - 1]) /* once for what is inlined */
            add_frame(to, room, access->frames[i], &before);
    }
}

bool data_races_tell(struct record *record)
{
    const struct race *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < races.count; i++) {
        if (!is_subjects(&races.all[i]))
            continue;
        bool is_better =
            first != NULL && is_lost(&first->accesses[1]) && !is_lost(&races.all[i].accesses[1]);
        first = first == NULL || is_better ? &races.all[i] : first;
        count++;
    }
    if (first == NULL)
        return false;
    snprintf(record->expected, sizeof record->expected,
             "no two threads to use the same memory with nothing that puts them in order");
    snprintf(record->seen, sizeof record->seen, "%s%s: ", plural(count, "data race"),
             count > 1 ? ", one of them" : "");
    add_access(record->seen, sizeof record->seen, &first->accesses[0], "");
    add_access(record->seen, sizeof record->seen, &first->accesses[1], ", and ");
    return true;
}
