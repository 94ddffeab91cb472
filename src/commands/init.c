/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing the project that is embedded in this program.
 */
#include "commands/commands.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "python/python_sources.h"
#include "report/atomic_file.h"

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

/* Writes all files into the folder.  False with errno set. */
static bool write_all(const char *folder)
{
    static const char *const folders[] = {".github", ".github/workflows"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        if (mkdir(fmt("%s/%s", folder, folders[i]), 0777) != 0)
            return false;
    }
    for (size_t i = 0; i < FILES; i++) {
        struct atomic_file file;
        const char *text = python_source_find(files[i].name)->text;
        if (atomic_file_open(&file, fmt("%s/%s", folder, files[i].path)) != 0 ||
            atomic_file_close(&file, fputs(text, file.file) >= 0) != 0)
            return false;
    }
    return true;
}

/* Makes the folder, unless there is an empty one.  Returns NULL, or what is wrong. */
static const char *make_empty(const char *folder)
{
    struct dirent **entries;
    if (*folder == '\0')
        return "the name is empty; name a folder";
    if (mkdir(folder, 0777) == 0)
        return NULL;
    int count = errno == EEXIST ? scandir(folder, &entries, NULL, NULL) : -1;
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
    const char *wrong = make_empty(folder);
    if (wrong != NULL)
        die(EXIT_USAGE, "init %s: %s", escape(folder), wrong);
    if (!write_all(folder))
        die(EXIT_HARNESS_BROKE, "init %s: cannot be written: %s", escape(folder), strerror(errno));
    for (size_t i = 0; i < FILES; i++)
        puts(files[i].path);
    printf("go on with: cd %s && make check\n", shell_quote(folder));
    return EXIT_CONFORMANT;
}
