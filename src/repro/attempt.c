/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One process after the other.
 */
#include "repro/attempt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/text.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

static bool is_late(void *until)
{
    return interrupt_came() != 0 || clock_now() > *(uint64_t *)until;
}

static void be_quiet(int output)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
}

/* The last line of what was printed, or the last of those that begin so: the handler may have
 * printed as well. */
static void read_line(struct attempt *attempt, int output, const char *begin)
{
    char text[2048] = "";
    off_t size = lseek(output, 0, SEEK_END);
    off_t from = size > (off_t)sizeof text - 1 ? size - (off_t)sizeof text + 1 : 0;
    if (pread(output, text, sizeof text - 1, from) < 0)
        return;
    const char *line = NULL;
    for (char *rest = text, *next; (next = strsep(&rest, "\n")) != NULL;) {
        if (*next != '\0' && strncmp(next, begin, strlen(begin)) == 0)
            line = next + strlen(begin);
    }
    if (line == NULL)
        return;
    snprintf(attempt->line, sizeof attempt->line, "%s", line);
    snprintf(attempt->what, sizeof attempt->what, "%.*s", (int)strcspn(line, ":"), line);
    attempt->no_end = strcmp(attempt->what, "no end") == 0; /* as runtime.c prints it */
}

/* True if the handler calls Python and crashes because no interpreter runs: it crashes in a call
 * that returned when it was recorded. */
static bool misses_python(const struct tried *tried, const struct call_list *list,
                          const struct attempt *seen)
{
    return tried->names_python && seen->outcome == REPRODUCED &&
           strncmp(seen->what, "SIG", 3) == 0 && seen->at < list->count &&
           list->at[seen->at].returned;
}

static void conclude(struct attempt *result, int status, int output)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    result->outcome = code == 2 ? NOT_TRIED : NOT_REPRODUCED;
    if (code == 1 || code == 2)
        read_line(result, output, code == 1 ? "reproduced: " : "");
    if (code == 1 && result->what[0] != '\0')
        result->outcome = REPRODUCED;
}

struct attempt attempt(const void *about, const struct call_list *list)
{
    const struct tried *tried = about;
    struct attempt result = {.outcome = NOT_TRIED, .at = list->count};
    uint64_t begun = clock_now(), until = begun + (uint64_t)(tried->seconds + 2) * 1000000000u;
    size_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0, output = memfd_create("seen", MFD_CLOEXEC);
    pid_t pid = output >= 0 && at != MAP_FAILED ? child_fork(true) : -1;
    if (pid == 0) {
        be_quiet(output);
        try_list(tried, list, at);
    }
    if (pid >= 0 && child_wait(pid, is_late, &until, &status) == 0)
        conclude(&result, status, output);
    else
        snprintf(result.line, sizeof result.line, "it could not be tried: %s",
                 pid < 0                 ? strerror(errno)
                 : interrupt_came() != 0 ? "interrupted"
                                         : "no end");
    if (result.outcome == NOT_TRIED && (result.line[0] == '\0' || result.what[0] != '\0'))
        snprintf(result.line, sizeof result.line, "the handler cannot be loaded without Python");
    if (pid >= 0)
        result.at = *at;
    if (misses_python(tried, list, &result)) {
        result.outcome = NOT_REPRODUCED;
        snprintf(result.line, sizeof result.line, "the handler calls Python, which does not run");
    }
    if (at != MAP_FAILED)
        munmap(at, sizeof *at);
    close(output);
    result.seconds = clock_since(begun);
    return result;
}

/* ---- how it is found ----------------------------------------------------------------------- */

struct found {
    struct entry entry;
    int state; /* enum load_state */
    char why[256];
};

static void load(const struct subject_place *place, struct found *found)
{
    struct subject subject;
    found->state = (int)subject_load(place, &subject, found->why, sizeof found->why);
    if (found->state != LOAD_DONE)
        return;
    found->entry.is_getter = subject.getter != NULL;
    found->entry.alignment = subject_all_claims(place, &subject).alignment;
}

const char *entry_find(const struct subject_place *place, struct entry *entry)
{
    enum { SECONDS = 10 };
    uint64_t until = clock_now() + SECONDS * 1000000000ull;
    int status;
    struct found *found =
        mmap(NULL, sizeof *found, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED)
        return strerror(errno);
    pid_t pid = child_fork(true);
    if (pid == 0) {
        int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
        dup2(nothing, STDOUT_FILENO);
        dup2(nothing, STDERR_FILENO);
        load(place, found);
        _exit(0);
    }
    if (pid > 0)
        child_wait(pid, is_late, &until, &status);
    *entry = found->entry;
    found->why[sizeof found->why - 1] = '\0';
    const char *why = found->state == LOAD_DONE ? NULL
                      : found->why[0] != '\0'   ? text_safe(found->why)
                                                : "it cannot be loaded in a process of its own";
    munmap(found, sizeof *found);
    return why;
}
