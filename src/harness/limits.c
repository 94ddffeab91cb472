/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Random numbers, time and memory.
 */
#include "harness/limits.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/sanitizer_detect.h"
#include "base/size_bits.h"
#include "base/text.h"
#include "harness/test_process.h"
#include "harness/verdict.h"

struct random *rng(void)
{
    return &test_process.random;
}

double hang_limit(void)
{
    static const double without_limit = 3;
    return test_process.setup.limit > 0 ? test_process.setup.limit / 3 : without_limit;
}

void alarm_in(double seconds)
{
    long microseconds = (long)(seconds * 1e6);
    struct itimerval soon = {.it_value = {microseconds / 1000000, microseconds % 1000000}};
    setitimer(ITIMER_REAL, &soon, NULL);
}

/* A number of bytes from a file that holds one, or UINT64_MAX. */
static uint64_t bytes_in_file(const char *path, const char *format, uint64_t unit)
{
    uint64_t value = UINT64_MAX;
    char line[256];
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return UINT64_MAX;
    while (value == UINT64_MAX && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, format, &value) == 1)
            value *= unit;
    }
    fclose(file);
    return value;
}

uint64_t free_memory(void)
{
    uint64_t available = bytes_in_file("/proc/meminfo", "MemAvailable: %" SCNu64, 1024);
    uint64_t group = bytes_in_file("/sys/fs/cgroup/memory.max", "%" SCNu64, 1);
    return available < group ? available : group;
}

const char *lacking_memory(size_t bytes)
{
    struct rlimit limit;
    if (bytes > PTRDIFF_MAX)
        return fmt("a size_t has %d bits", SIZE_BITS);
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur / 2 < bytes)
        return fmt("the address space is limited to %zu MiB", (size_t)limit.rlim_cur >> 20);
    return free_memory() / 2 < bytes
               ? fmt("%zu MiB of memory are available", (size_t)(free_memory() >> 20))
               : NULL;
}

void ask_for_memory(size_t bytes)
{
    const char *why = lacking_memory(bytes);
    if (why != NULL)
        skip("it needs %zu MiB, and %s", bytes >> 20, why);
}

size_t output_so_far(void)
{
    fflush(stdout);
    int length = 0;
    if (test_process.setup.at_end != NULL)
        skip("with --no-fork the output is not captured");
    if (ioctl(OUTPUT_FD, FIONREAD, &length) != 0)
        harness_broke("the captured output cannot be measured: %s", strerror(errno));
    return (size_t)length;
}

bool is_instrumented(void)
{
    return sanitizer_is_running() || memcheck_is_running() || emulator_is_running();
}

double time_limit(void)
{
    return test_process.setup.limit;
}

bool time_is_up(void)
{
    return test_process.setup.limit > 0 &&
           clock_since(test_process.begun) > test_process.setup.limit / 2;
}

size_t stride(size_t longer)
{
    if (!is_instrumented() && !time_is_up())
        return 1;
    if (!is_instrumented())
        mark_incomplete("sizes were left out when half of its %g s were over; give it more by "
                        "--timeout",
                        test_process.setup.limit);
    return longer;
}

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
        found = escape(entry->d_name);
        unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL)
        closedir(entries);
    rmdir(name);
    return found;
}
