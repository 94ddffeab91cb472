/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running under valgrind's memcheck, and whether it has let the program begin.
 */
#include "runner/memcheck.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/place.h"
#include "base/text.h"
#include "runner/memcheck_report.h"

/* The file in the folder of reports that says that the program has begun; the others are numbers.
 */
#define BEGUN "begun"

int memcheck_make_folder(char *folder, size_t room)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(folder, room, "%s/conform-memcheck-XXXXXX",
             temporary != NULL && *temporary != '\0' ? temporary : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

void memcheck_remove_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;)
        unlinkat(dirfd(entries), entry->d_name, 0); /* but for . and .., which are folders */
    if (entries != NULL)
        closedir(entries);
    rmdir(folder);
}

const char *memcheck_command(const char *command[MEMCHECK_WORDS], const char *folder)
{
    static char supp[PATH_MAX + 32], log[PATH_MAX + 32];
    char found[PATH_MAX];
#ifndef HAVE_VALGRIND_MEMCHECK_H
    return "this conform was built without it; install valgrind with its header, and configure "
           "again";
#endif
    if (!place_find(SOURCE_SUPPRESSIONS, INSTALLED_SUPPRESSIONS, found))
        return "the suppressions file memcheck.supp is not installed";
    snprintf(supp, sizeof supp, "--suppressions=%s", found);
    snprintf(log, sizeof log, "--log-file=%s/%%p", folder);
    const char *const words[MEMCHECK_WORDS] = {
        "valgrind",
        "--quiet",
        "--error-limit=no",
        "--leak-check=no",
        "--num-callers=25",
        "--trace-children=no",
        "--vgdb=no",
        supp,
        log,
        NULL,
    };
    memcpy(command, words, sizeof words);
    return NULL;
}

void memcheck_note_begun(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" BEGUN, folder);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

const char *memcheck_refusal(const char *folder, pid_t pid)
{
    static char buffer[512];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/" BEGUN, folder);
    if (access(path, F_OK) == 0)
        return NULL;
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return "";
    char *words = fgets(buffer, sizeof buffer, file) != NULL ? memcheck_words(buffer) : NULL;
    fclose(file);
    return words != NULL ? words : "";
}
