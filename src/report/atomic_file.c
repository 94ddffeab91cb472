/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns where the file is or will be: behind links, also those that lead to nothing yet.  The
 * caller's to free, or NULL with errno set. */
static char *place_of(const char *path)
{
    char link[PATH_MAX], *behind;
    char *place = realpath(path, NULL);
    if (place != NULL || errno != ENOENT)
        return place;
    ssize_t length = readlink(path, link, sizeof link - 1);
    if (length < 0)
        return strdup(path);
    link[length] = '\0';
    const char *slash = link[0] != '/' ? strrchr(path, '/') : NULL;
    int folder = slash != NULL ? (int)(slash - path) + 1 : 0;
    if (asprintf(&behind, "%.*s%s", folder, path, link) < 0)
        return NULL;
    place = place_of(behind);
    free(behind);
    return place;
}

int atomic_file_open(struct atomic_file *file, const char *path)
{
    struct stat status;
    bool exists = stat(path, &status) == 0;
    *file = (struct atomic_file){.file = strcmp(path, "-") == 0 ? stdout : NULL};
    if (file->file != NULL)
        return 0;
    if (exists && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return -1;
    }
    if (exists && !S_ISREG(status.st_mode)) {
        file->file = fopen(path, "we");
        return file->file != NULL ? 0 : -1;
    }
    if (exists && access(path, W_OK) != 0)
        return -1;
    file->target = place_of(path);
    const char *slash = file->target != NULL ? strrchr(file->target, '/') : NULL;
    int folder = slash != NULL ? (int)(slash - file->target) + 1 : 0, descriptor = -1;
    char *temporary;
    if (file->target != NULL &&
        asprintf(&temporary, "%.*s.conform-XXXXXX", folder, file->target) >= 0) {
        descriptor = mkostemp(temporary, O_CLOEXEC);
        file->file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
        file->temporary = temporary;
    }
    if (file->file == NULL) {
        int error = errno;
        atomic_file_close(file, false);
        errno = error;
        return -1;
    }
    mode_t mask = umask(0);
    umask(mask);
    fchmod(descriptor, exists ? status.st_mode & 0777 : 0666 & ~mask);
    return 0;
}

int atomic_file_close(struct atomic_file *file, bool keep)
{
    int error = 0;
    if (file->file != NULL && (ferror(file->file) != 0 || fflush(file->file) != 0))
        error = errno != 0 ? errno : EIO; /* ferror: of the write that failed */
    if (file->file != NULL && file->file != stdout && fclose(file->file) != 0 && error == 0)
        error = errno;
    if (keep && error == 0 && file->temporary != NULL && rename(file->temporary, file->target) != 0)
        error = errno;
    if (file->temporary != NULL && (!keep || error != 0))
        unlink(file->temporary);
    free(file->temporary);
    free(file->target);
    *file = (struct atomic_file){.file = NULL};
    errno = error;
    return error == 0 ? 0 : -1;
}
