/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Running under valgrind's memcheck, and reading what it reports.
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

#include "/place.h"
#include "base/text.h"

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

const char *memcheck_start(char **argv, const char *folder)
{
    char found[PATH_MAX], supp[PATH_MAX + 32], log[PATH_MAX + 32], self[PATH_MAX];
#ifndef HAVE_VALGRIND_MEMCHECK_H
    return "this conform was built without it; install valgrind with its header, and configure "
           "again";
#endif
    if (!place_find(SOURCE_SUPPRESSIONS, INSTALLED_SUPPRESSIONS, found))
        return "the suppressions file memcheck.supp is not installed";
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length <= 0)
        return strerror(errno);
    self[length] = '\0';
    snprintf(supp, sizeof supp, "--suppressions=%s", found);
    snprintf(log, sizeof log, "--log-file=%s/%%p", folder);
    static const char *const options[] = {
        "valgrind",
        "--tool=memcheck",
        "--quiet",
        "--error-limit=no",
        "--leak-check=no",
        "--num-callers=25",
        "--trace-children=no",
        "--vgdb=no",
    };
    enum { OPTIONS = sizeof options / sizeof *options };
    size_t count = 0;
    while (argv[count] != NULL)
        count++;
    const char **command = calloc(OPTIONS + count + 4, sizeof *command);
    if (command == NULL)
        return "out of memory";
    memcpy(command, options, sizeof options);
    size_t n = OPTIONS;
    command[n++] = supp;
    command[n++] = log;
    command[n++] = self;
    memcpy(command + n, argv + 1, count * sizeof *command); /* with the closing NULL */
    execvp(command[0], (char *const *)command);
    const char *wrong = errno == ENOENT
                            ? "valgrind is not installed; install it, or leave --memcheck out"
                            : text("valgrind: %s", strerror(errno));
    free(command);
    return wrong;
}

/* The text of a report line behind "==PID== ", or NULL. */
static char *behind_prefix(char *line)
{
    line[strcspn(line, "\n")] = '\0';
    char *equals = strncmp(line, "==", 2) == 0 ? strstr(line + 2, "== ") : NULL;
    return equals != NULL ? equals + 3 : NULL;
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
    char *words = fgets(buffer, sizeof buffer, file) != NULL ? behind_prefix(buffer) : NULL;
    fclose(file);
    return words != NULL ? words : "";
}

int memcheck_first_error(const char *folder, pid_t pid, char *line, size_t room)
{
    char path[PATH_MAX], buffer[512];
    snprintf(path, sizeof path, "%s/%ld", folder, (long)pid);
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return -1;
    size_t used = 0;
    while (fgets(buffer, sizeof buffer, file) != NULL) {
        char *words = behind_prefix(buffer);
        if (words == NULL || *words == '\0') {
            if (used > 0)
                break;
            continue;
        }
        words += strspn(words, " ");
        /* "at 0x4C2BBEF: free (vg_replace_malloc.c:538)" */
        const char *frame = strstr(words, ": ");
        bool is_frame = strncmp(words, "at 0x", 5) == 0 || strncmp(words, "by 0x", 5) == 0;
        if (used == 0 && (is_frame || strncmp(words, "Thread ", 7) == 0))
            continue;
        if (is_frame && strstr(words, " (drive.c:") != NULL)
            break; /* from here on it is the harness */
        int wrote = snprintf(line + used, room - used, "%s%s",
                             used == 0                      ? ""
                             : strncmp(words, "at", 2) == 0 ? " at "
                                                            : ", from ",
                             is_frame && frame != NULL ? frame + 2 : words);
        used += (size_t)wrote < room - used ? (size_t)wrote : room - used - 1;
        if (used > 300)
            break;
    }
    fclose(file);
    return used > 0 ? 0 : -1;
}
