/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/present.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/install_path.h"
#include "base/text.h"
#include "model/options.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"

enum { CANNOT_EXECUTE = 127 };

static const char *chosen;

void present_with(const char *python)
{
    chosen = python;
}

static const char *interpreter(void)
{
    static char path[PATH_MAX + sizeof "/python3"];
    char folder[PATH_MAX];
    if (chosen != NULL)
        return chosen;
    if (!place_of_program(folder) || access(fmt("%s/../pyvenv.cfg", folder), F_OK) != 0)
        return "python3";
    snprintf(path, sizeof path, "%s/python3", folder);
    return path;
}

int present_memory(void)
{
    int fd = memfd_create("report", 0);
    if (fd < 0)
        die(EXIT_HARNESS_BROKE, "no memory for a report: %s", strerror(errno));
    return fd;
}

char *present_read(int fd, size_t *length)
{
    off_t end = lseek(fd, 0, SEEK_END);
    char *contents = allocate((size_t)end + 1, 1);
    if (pread(fd, contents, (size_t)end, 0) != end)
        die(EXIT_HARNESS_BROKE, "a report cannot be read: %s", strerror(errno));
    *length = (size_t)end;
    close(fd);
    return contents;
}

static bool pass_interrupt_on(void *pid)
{
    int number = interrupt_to_pass_on();
    if (number != 0)
        kill(*(pid_t *)pid, number);
    return false;
}

/* Executes Python with this stdin, or with that of this process if it is -1.  Returns its wait
 * status. */
static int execute(const char *python, const char *const *words, int input, bool interruptible)
{
    int status = 0;
    child_prepare();
    pid_t pid = child_fork(false);
    if (pid == 0) {
        if (input >= 0)
            dup2(input, STDIN_FILENO);
        unsetenv("LD_PRELOAD"); /* it is for the handler, and may not suit this process */
        signal(SIGPIPE, SIG_DFL);
        for (int i = 0; i < 3 && !interruptible; i++)
            signal((int[]){SIGINT, SIGTERM, SIGHUP}[i], SIG_IGN);
        execvp(python, (char *const *)words);
        _exit(CANNOT_EXECUTE);
    }
    if (pid < 0 || child_wait(pid, interruptible ? pass_interrupt_on : NULL, &pid, &status) != 0)
        die(EXIT_HARNESS_BROKE, "no process for %s: %s", escape(python), strerror(errno));
    return status;
}

int present(const char *const *arguments, const json_t *input, bool interruptible)
{
    const char *python = interpreter();
    char package[PATH_MAX];
    size_t count = 0;
    while (arguments[count] != NULL)
        count++;
    int fd = input != NULL ? memfd_create("json", MFD_CLOEXEC) : -1;
    const char **words = calloc(count + 5, sizeof *words);
    if (words == NULL ||
        (input != NULL &&
         (fd < 0 || json_dumpfd(input, fd, JSON_ENCODE_ANY) != 0 || lseek(fd, 0, SEEK_SET) != 0)))
        die(EXIT_HARNESS_BROKE, "no memory for a report: %s", strerror(errno));
    place_find(SOURCE_REPORT_PACKAGE, INSTALLED_REPORT_PACKAGE, package);
    words[0] = python;
    words[1] = "-B"; /* writes no __pycache__ */
    words[2] = "-S"; /* the package needs the standard library alone, and site is slow */
    words[3] = package;
    memcpy(words + 4, arguments, count * sizeof *words);
    int status = execute(python, words, fd, interruptible);
    free(words);
    if (fd >= 0)
        close(fd);
    if (WIFSIGNALED(status) && interrupt_came() != 0)
        return -1;
    if (WIFSIGNALED(status))
        die(EXIT_HARNESS_BROKE, "%s, which makes the reports, died of %s", escape(python),
            child_signal_name(WTERMSIG(status)));
    if (WEXITSTATUS(status) == CANNOT_EXECUTE)
        die(EXIT_USAGE,
            "%s, which makes the reports, cannot be started: install Python 3.9 "
            "or later, or put it on PATH",
            escape(python));
    return WEXITSTATUS(status);
}

json_t *present_answer(const char *const *arguments, const json_t *input)
{
    int fd = present_memory();
    const char *words[16] = {"--answer", fmt("/dev/fd/%d", fd)};
    size_t length;
    for (size_t i = 0; arguments[i] != NULL && i + 3 < sizeof words / sizeof *words; i++)
        words[i + 2] = arguments[i];
    int status = present(words, input, input == NULL);
    if (status < 0)
        interrupt_die();
    if (status != 0)
        exit(status);
    char *contents = present_read(fd, &length);
    json_t *answer = json_loadb(contents, length, JSON_DECODE_ANY, NULL);
    free(contents);
    if (answer == NULL)
        die(EXIT_HARNESS_BROKE, "conform_report gave no answer");
    return answer;
}
