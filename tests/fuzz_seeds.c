/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The traces that fuzzing begins with, made by the writer: of every kind of history, from no call
 * to some frames full, and each once more without its end.
 *
 *     fuzz_seeds FOLDER
 */
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "history.h"

static int failed(const char *path)
{
    perror(path);
    return 1;
}

int main(int argc, char **argv)
{
    static const uint64_t lengths[] = {0, 1, 2, 5, 20, 200, 2000, 60000};
    char path[512];
    struct stat status;
    if (argc != 2) {
        fprintf(stderr, "fuzz_seeds FOLDER\n");
        return 2;
    }
    for (int kind = HISTORY_LOOPS; kind <= HISTORY_ANYTHING; kind++) {
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            snprintf(path, sizeof path, "%s/seed-%d-%zu", argv[1], kind, i);
            if (!history_write(path, (enum history_kind)kind, i, lengths[i]))
                return failed(path);
            snprintf(path, sizeof path, "%s/seed-%d-%zu-cut", argv[1], kind, i);
            if (!history_write(path, (enum history_kind)kind, i, lengths[i]) ||
                stat(path, &status) != 0 || truncate(path, status.st_size - 3) != 0)
                return failed(path);
        }
    }
    return 0;
}
