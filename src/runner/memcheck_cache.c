/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A file for each property and each environment it was run in: a line that says which, a line for
 * each error, and a line that says how many those are.
 */
#include "runner/memcheck_cache.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"

enum { PATH_ROOM = PATH_MAX - 64, KEY_ROOM = 2048 };

/* A file as it is now: its path, and what changes when it is built anew. */
static const char *file_as_it_is(const char *path)
{
    struct stat status = {0};
    stat(path, &status);
    return text("%s (%lld bytes of %lld.%09ld)", text_safe(path), (long long)status.st_size,
                (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

static void make_key(char key[KEY_ROOM], const struct environment *environment, const char *id)
{
    char self[PATH_MAX];
    place_program(self);
    snprintf(key, KEY_ROOM, "%s, conform %s %s, Python %s %s, NumPy %s", id, PACKAGE_VERSION,
             file_as_it_is(self), environment->python,
             file_as_it_is(environment->python_executable), environment->numpy);
}

/* FNV-1a */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 0x100000001b3u;
    return hash;
}

/* Makes the folder, its parents too.  0, or -1 where there is to be none. */
static int make_folder(char folder[PATH_ROOM])
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (base != NULL && *base == '/') /* a relative one is to be ignored */
        length = snprintf(folder, PATH_ROOM, "%s/conform", base);
    else if (home != NULL && *home == '/')
        length = snprintf(folder, PATH_ROOM, "%s/.cache/conform", home);
    if (length < 0 || length >= PATH_ROOM)
        return -1;
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0700);
        *slash = '/';
    }
    return mkdir(folder, 0700) == 0 || errno == EEXIST ? 0 : -1;
}

/* 0, or -1 where nothing is kept. */
static int find_file(char path[PATH_MAX], const char *key, const char *id)
{
    char folder[PATH_ROOM];
    if (make_folder(folder) != 0)
        return -1;
    int length = snprintf(path, PATH_MAX, "%s/memcheck-%s-%016llx", folder, id,
                          (unsigned long long)hash_of(key));
    return length < PATH_MAX ? 0 : -1;
}

static const char *last_line(size_t count)
{
    return text_count(count, "error");
}

void memcheck_cache_read(struct memcheck_errors *errors, const struct environment *environment,
                         const char *id)
{
    char key[KEY_ROOM], path[PATH_MAX];
    make_key(key, environment, id);
    FILE *file = find_file(path, key, id) == 0 ? fopen(path, "re") : NULL;
    if (file == NULL)
        return;
    struct memcheck_errors kept = {0};
    char *line = NULL;
    size_t room = 0;
    bool is_ours = false, is_whole = false;
    for (size_t number = 0; getline(&line, &room, file) > 0; number++) {
        line[strcspn(line, "\n")] = '\0';
        if (number == 0)
            is_ours = strcmp(line, key) == 0;
        is_whole = strcmp(line, last_line(kept.count)) == 0;
        if (!is_ours || is_whole)
            break;
        if (number > 0)
            memcheck_add(&kept, line, NULL);
    }
    for (size_t i = 0; is_whole && i < kept.count; i++)
        memcheck_add(errors, kept.all[i].sameness, NULL);
    memcheck_errors_free(&kept);
    free(line);
    fclose(file);
}

void memcheck_cache_write(const struct memcheck_errors *errors,
                          const struct environment *environment, const char *id)
{
    char key[KEY_ROOM], path[PATH_MAX], fresh[PATH_MAX + 32];
    make_key(key, environment, id);
    if (find_file(path, key, id) != 0)
        return;
    snprintf(fresh, sizeof fresh, "%s.%ld", path, (long)getpid());
    FILE *file = fopen(fresh, "wxe");
    if (file == NULL)
        return;
    fprintf(file, "%s\n", key);
    for (size_t i = 0; i < errors->count; i++)
        fprintf(file, "%s\n", errors->all[i].sameness);
    fprintf(file, "%s\n", last_line(errors->count));
    bool wrong = ferror(file) != 0;
    if (fclose(file) != 0 || wrong || rename(fresh, path) != 0)
        unlink(fresh);
}
