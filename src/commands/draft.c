/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Written beside its place, and renamed.
 */
#include "commands/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "model/options.h"

static _Noreturn void cannot_write(const char *folder)
{
    leave_with(EXIT_HARNESS_BROKE, "--repro=%s: %s; name another folder", text_safe(folder),
               strerror(errno));
}

struct draft draft_begin(const char *folder)
{
    struct draft draft = {.given = folder, .folder = realpath(folder, NULL)};
    mode_t mask = umask(0);
    umask(mask);
    if (draft.folder == NULL || asprintf(&draft.path, "%s/.conform-XXXXXX", draft.folder) < 0)
        cannot_write(folder);
    int fd = mkostemp(draft.path, O_CLOEXEC);
    draft.file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (draft.file == NULL)
        cannot_write(folder);
    fchmod(fd, 0666 & ~mask);
    return draft;
}

static void end(struct draft *draft)
{
    fclose(draft->file);
    free(draft->folder);
    free(draft->path);
}

char *draft_keep(struct draft *draft, const char *name)
{
    char *path;
    if (asprintf(&path, "%s/%s", draft->folder, name) < 0)
        path = NULL;
    if (path == NULL || fflush(draft->file) != 0 || ferror(draft->file) ||
        rename(draft->path, path) != 0) {
        int error = errno;
        unlink(draft->path);
        errno = error;
        cannot_write(draft->given);
    }
    end(draft);
    return path;
}
