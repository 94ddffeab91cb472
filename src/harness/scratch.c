/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The folder for what a subject leaves.
 */
#include "harness/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

void scratch_name(char name[SCRATCH_NAME])
{
    const char *where = access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(name, SCRATCH_NAME, "%s/conform-XXXXXX", where);
    if (mkdtemp(name) != NULL)
        rmdir(name);
}

const char *scratch_remove(const char *name)
{
    const char *found = NULL;
    DIR *entries = opendir(name);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        found = text_safe(entry->d_name);
        unlink(text("%s/%s", name, entry->d_name));
    }
    if (entries != NULL)
        closedir(entries);
    rmdir(name);
    return found;
}
