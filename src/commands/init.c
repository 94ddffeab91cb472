/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the project that is embedded in this program.
 */
#include "commands/init.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "python/python_sources.h"

/* Each by the name that it is embedded by, its last one, and where it goes. */
static const struct file {
    const char *name, *path;
} files[] = {
    {"mine.c", "mine.c"},
    {"Makefile", "Makefile"},
    {"README.md", "README.md"},
    {"conform.yml", ".github/workflows/conform.yml"},
    {".gitlab-ci.yml", ".gitlab-ci.yml"},
};
enum { FILES = sizeof files / sizeof *files };

/* The folders on the way to the file, behind the first `from` bytes. */
static bool make_folders(char *path, size_t from)
{
    for (char *slash = path + from; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        bool there = mkdir(path, 0777) == 0 || errno == EEXIST;
        *slash = '/';
        if (!there)
            return false;
    }
    return true;
}

/* Under another name first: it is there as a whole, or not at all. */
static bool write_file(const char *folder, const struct file *file)
{
    char path[PATH_MAX], begun[PATH_MAX];
    size_t length = strlen(folder);
    if (snprintf(begun, sizeof begun, "%s/%s.conform", folder, file->path) >= (int)sizeof begun) {
        errno = ENAMETOOLONG;
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", folder, file->path);
    if (!make_folders(begun, length + 1))
        return false;
    FILE *stream = fopen(begun, "wxe");
    if (stream == NULL)
        return false;
    bool written = fputs(python_source_find(file->name)->text, stream) >= 0;
    return fclose(stream) == 0 && written && rename(begun, path) == 0;
}

static int remove_below(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status, (void)kind;
    return walk->level == 0 ? 0 : remove(path);
}

/* NULL where the folder is there and empty, or what is wrong; `made` says whether it is new. */
static const char *make_empty(const char *folder, bool *made)
{
    struct dirent **entries;
    *made = mkdir(folder, 0777) == 0;
    if (!*made && errno != EEXIST)
        return strerror(errno);
    int count = scandir(folder, &entries, NULL, NULL);
    if (count < 0)
        return errno == ENOTDIR ? "is no folder" : strerror(errno);
    for (int i = 0; i < count; i++)
        free(entries[i]);
    free(entries);
    return count <= 2 ? NULL
                      : "has something in it; name an empty folder, or one that is not there";
}

enum exit_code init_run(const char *folder)
{
    bool made = false, written = true;
    const char *wrong =
        *folder == '\0' ? "the name is empty; name a folder" : make_empty(folder, &made);
    if (wrong != NULL)
        leave_with(EXIT_USAGE, "--init=%s: %s", text_safe(folder), wrong);
    for (size_t i = 0; i < FILES && written; i++)
        written = write_file(folder, &files[i]);
    if (!written) {
        wrong = strerror(errno);
        nftw(folder, remove_below, 8, FTW_DEPTH | FTW_PHYS);
        if (made)
            rmdir(folder);
        leave_with(EXIT_HARNESS_BROKE, "--init=%s: cannot be written: %s", text_safe(folder),
                   wrong);
    }
    for (size_t i = 0; i < FILES; i++)
        puts(files[i].path);
    printf("go on with: cd %s && make check\n", text_shell(folder));
    return EXIT_CONFORMANT;
}
