/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The traces that fuzzing begins with, made by the writer: of every kind of history, from no call
 * to some frames full, and each once more without its end.
 *
 *     fuzz_seeds FOLDER
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history.h"

/* The first frame loses length and sum, as if it had never been completed. */
static bool reopen_frame(const char *path)
{
    static const char zeros[8];
    int fd = open(path, O_WRONLY);
    bool done = fd >= 0 && pwrite(fd, zeros, sizeof zeros, 24) == sizeof zeros;
    if (fd >= 0)
        close(fd);
    return done;
}

static bool write_seeds(const char *folder, enum history_kind kind, uint64_t calls)
{
    static const char *const ends[] = {"whole", "cut", "crashed"};
    char path[512];
    struct stat status;
    for (int end = 0; end < 3; end++) {
        snprintf(path, sizeof path, "%s/%d-%d-%s", folder, (int)kind, (int)calls, ends[end]);
        if (!history_write(path, kind, calls, calls) || stat(path, &status) != 0 ||
            (end == 1 && truncate(path, status.st_size - 3) != 0) ||
            (end == 2 && !reopen_frame(path))) {
            perror(path);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static const uint64_t lengths[] = {0, 1, 2, 5, 20, 200, 2000, 60000};
    if (argc != 2) {
        fprintf(stderr, "fuzz_seeds FOLDER\n");
        return 2;
    }
    for (int kind = HISTORY_LOOPS; kind <= HISTORY_ANYTHING; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            if (!write_seeds(argv[1], (enum history_kind)kind, lengths[i]))
                return 1;
        }
    }
    return 0;
}
