/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Asking executables which Python they are.  An embedded interpreter that is told of another
 * version, or of no Python at all, starts none the less, with packages from somewhere else.
 */
#include "python/interpreter.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/install_path.h"
#include "base/text.h"
#include "python/python_sources.h"

static const double timeout = 20;                 /* seconds, on a machine that is not busy */
#define USUAL_PATH "/usr/local/bin:/usr/bin:/bin" /* where PATH is not set */

/* ---- one executable ---------------------------------------------------------------------- */

/* What the last executable said when it was given probe.py. */
static struct answer {
    char out[4096 + 3 * PATH_MAX]; /* stdout */
    char reason[256];              /* a line of stderr */
    int status;
    bool in_time;
} answer;

static const char *probe(void)
{
    return python_source_find("probe")->text;
}

static bool is_late(uint64_t begin)
{
    double taken = clock_since(begin);
    return taken > timeout && taken > timeout * clock_slowness();
}

/* Reads until the end or until `room` is full.  False where neither came in time, or a signal did.
 */
static bool read_all(int fd, char *to, size_t room, uint64_t begin)
{
    size_t used = 0;
    ssize_t length = 1;
    while (used < room - 1 && length > 0) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int count = poll(&ready, 1, 200);
        if (count == 0 && !is_late(begin))
            continue;
        length = count == 1 && !is_late(begin) ? read(fd, to + used, room - 1 - used) : -1;
        used += length > 0 ? (size_t)length : 0;
    }
    to[used] = '\0';
    return length >= 0;
}

/* Waits for its end and takes its status.  False where it was killed, for the same reasons. */
static bool wait_for(pid_t pid, uint64_t begin)
{
    while (waitpid(pid, &answer.status, WNOHANG) == 0) {
        if (!answer.in_time || is_late(begin) || usleep(500) != 0) {
            kill(pid, SIGKILL);
            waitpid(pid, &answer.status, 0);
            return false;
        }
    }
    return true;
}

/* The line of stderr that says most: the last that has an error in it, or else the last; none where
 * it is our own words again, of a program that took them for a name. */
static void read_reason(int fd, char *to, size_t room)
{
    static char errors[4096];
    ssize_t length = pread(fd, errors, sizeof errors - 1, 0);
    errors[length > 0 ? length : 0] = '\0';
    bool has_error = false;
    for (char *rest = errors, *line; (line = strsep(&rest, "\n")) != NULL;) {
        bool tells = strcasestr(line, "error") != NULL;
        if (*line != '\0' && (tells || !has_error))
            snprintf(to, room, "%s", line);
        has_error = has_error || tells;
    }
    static const char ours[] = "SPDX-License-Identifier";
    if (strstr(probe(), ours) != NULL && strstr(to, ours) != NULL)
        *to = '\0';
}

/* Ours without LD_PRELOAD: what is preloaded is for the handler's sake, makes each start slower and
 * need not bear with a start by vfork (ThreadSanitizer does not).  The caller's to free, or NULL.
 */
static char **make_environment(void)
{
    size_t count = 0, kept = 0;
    while (environ[count] != NULL)
        count++;
    char **copy = calloc(count + 1, sizeof *copy);
    for (size_t i = 0; copy != NULL && i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            copy[kept++] = environ[i];
    }
    return copy;
}

/* Starts it on these descriptors and with that environment; it ends with us, which posix_spawn
 * cannot have.  0, or errno. */
static int start(const char *path, char **environment, int input, int output, int errors,
                 pid_t *pid)
{
    const char *const command[] = {path, "-S", "-c", probe(), NULL};
    pid_t parent = getpid();
    volatile int wrong = 0; /* the child's as well, until it is the other program */
    *pid = vfork();
    if (*pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent && dup2(input, STDIN_FILENO) == STDIN_FILENO &&
            dup2(output, STDOUT_FILENO) == STDOUT_FILENO &&
            dup2(errors, STDERR_FILENO) == STDERR_FILENO)
            execve(path, (char *const *)command, environment);
        wrong = errno;
        _exit(127);
    }
    if (*pid < 0)
        wrong = errno;
    if (*pid > 0 && wrong != 0)
        waitpid(*pid, NULL, 0);
    return wrong;
}

/* 0, or errno. */
static int ask(const char *path)
{
    int input = memfd_create("nothing", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC),
        output[2], wrong;
    pid_t pid;
    answer = (struct answer){.in_time = true};
    if (input < 0 || errors < 0 || pipe2(output, O_CLOEXEC) != 0)
        return errno;
    uint64_t begin = clock_now();
    char **environment = make_environment();
    wrong = environment == NULL ? ENOMEM : start(path, environment, input, output[1], errors, &pid);
    free(environment);
    close(output[1]);
    if (wrong == 0)
        answer.in_time = read_all(output[0], answer.out, sizeof answer.out, begin);
    close(output[0]); /* what prints without end dies of it */
    if (wrong == 0) {
        answer.in_time = wait_for(pid, begin) && answer.in_time;
        read_reason(errors, answer.reason, sizeof answer.reason);
    }
    close(errors);
    close(input);
    return wrong;
}

/* The value of that key, the caller's to free, or NULL. */
static char *value_of(const char *key)
{
    const char *line = strstr(answer.out, fmt("conform-probe %s=", key));
    if (line == NULL)
        return NULL;
    const char *value = strchr(line, '=') + 1;
    return strndup(value, strcspn(value, "\n"));
}

/* Why no answer came: the executable is no Python, or one that does not start. */
static const char *describe_silence(void)
{
    if (!answer.in_time)
        return fmt("does not answer within %.0f s", timeout * clock_slowness());
    const char *how = WIFSIGNALED(answer.status)
                          ? fmt("dies of SIG%s", sigabbrev_np(WTERMSIG(answer.status)))
                          : fmt("ends with status %d", WEXITSTATUS(answer.status));
    if (answer.reason[0] == '\0')
        return fmt("is not a Python interpreter, it %s and does not say why", how);
    return fmt("is not a Python interpreter that starts, it %s: %s", how, escape(answer.reason));
}

/* What is wrong, in words that come behind the path. */
static const char *take(const char *path, struct interpreter *interpreter)
{
    struct stat status;
    memset(interpreter, 0, sizeof *interpreter);
    if (access(path, X_OK) != 0)
        return fmt("%s", strerror(errno));
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return "is a directory";
    if (interpreter_by_files(path, interpreter))
        return NULL;
    int wrong = ask(path);
    if (wrong != 0)
        return fmt("is not a Python interpreter (%s)", strerror(wrong));
    char *lack = value_of("lack"), *numpy = value_of("numpy");
    interpreter->executable = value_of("executable");
    interpreter->program = value_of("program");
    interpreter->library = value_of("library");
    interpreter->has_numpy = numpy != NULL && strcmp(numpy, "yes") == 0;
    const char *line = NULL;
    if (lack != NULL && *lack != '\0')
        line = escape(lack);
    else if (!answer.in_time || lack == NULL || numpy == NULL || interpreter->library == NULL)
        line = describe_silence();
    else if (interpreter->executable[0] != '/')
        line = "does not know where it is";
    interpreter->is_late = !answer.in_time;
    free(lack);
    free(numpy);
    return line;
}

/* ---- those of PATH ------------------------------------------------------------------------ */

/* Adds to `passed_over` why python3 of that folder will not do. */
static bool is_fit(const char *folder, struct interpreter *interpreter, char passed_over[1024])
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/python3", folder);
    if (*folder != '/' || length >= (int)sizeof path || access(path, X_OK) != 0)
        return false;
    const char *wrong = take(path, interpreter);
    if (wrong == NULL && interpreter->has_numpy)
        return true;
    size_t used = strlen(passed_over);
    snprintf(passed_over + used, 1024 - used, "%s%s %s", used > 0 ? "; " : "", escape(path),
             wrong != NULL ? wrong : "has no NumPy");
    return false;
}

static const char *search_path(struct interpreter *interpreter)
{
    static char line[2048];
    char passed_over[1024] = "";
    const char *active = getenv("VIRTUAL_ENV"), *variable = getenv("PATH");
    char *folders, *rest, own[PATH_MAX]; /* the folder of this program, in an environment */
    bool has_own = place_of_program(own) && access(fmt("%s/../pyvenv.cfg", own), F_OK) == 0;
    if (asprintf(&folders, "%s%s%s%s%s", active != NULL ? active : "",
                 active != NULL ? "/bin:" : "", has_own ? own : "", has_own ? ":" : "",
                 variable != NULL ? variable : USUAL_PATH) < 0)
        return "out of memory";
    rest = folders;
    bool found = false;
    answer.in_time = true; /* one that hangs is enough */
    for (char *folder; !found && answer.in_time && (folder = strsep(&rest, ":")) != NULL;)
        found = is_fit(folder, interpreter, passed_over);
    free(folders);
    const char *advice = interpreter_advice();
    snprintf(line, sizeof line, "%s%s%s name one that has by --python%s%s%s",
             answer.in_time ? "no python3 on PATH has NumPy"
                            : "the first python3 on PATH that may have NumPy does not answer",
             advice, advice[0] != '\0' ? ", or" : ";", passed_over[0] != '\0' ? " (" : "",
             passed_over, passed_over[0] != '\0' ? ")" : "");
    return found ? NULL : line;
}

const char *interpreter_advice(void)
{
    static const char *const names[] = {"PYTHONHOME", "PYTHONPATH"};
    const char *advice = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && *value != '\0')
            advice = fmt("%s%s%s=%.200s", advice, *advice == '\0' ? "; try without " : " and ",
                         names[i], escape(value));
    }
    return advice;
}

/* The first file of that name in the folders of PATH that can be executed, or the name itself. */
static const char *find_on_path(const char *name)
{
    static char path[PATH_MAX];
    const char *variable = getenv("PATH");
    char *folders = strdup(variable != NULL ? variable : USUAL_PATH), *rest = folders;
    bool found = false;
    for (char *folder; !found && (folder = strsep(&rest, ":")) != NULL;) {
        int length = snprintf(path, sizeof path, "%s/%s", *folder != '\0' ? folder : ".", name);
        found = length < (int)sizeof path && access(path, X_OK) == 0;
    }
    free(folders);
    return found ? path : name;
}

const char *interpreter_find(const char *path, struct interpreter *interpreter)
{
    if (path == NULL)
        return search_path(interpreter);
    const char *at = strchr(path, '/') != NULL ? path : find_on_path(path);
    const char *wrong = *path == '\0' ? "the name is empty" : take(at, interpreter);
    return wrong != NULL
               ? fmt("--python=%s: %s; give the path of another interpreter", escape(path), wrong)
               : NULL;
}
