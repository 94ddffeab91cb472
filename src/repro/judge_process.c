/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What of the process is to stay as it is: noted as lines before the handler is loaded and before
 * its first call, and compared after loading and after each call.  NOTE is one of the functions
 * below, note_...
 */
#include <dirent.h>
#include <fcntl.h>
#include <fenv.h>
#include <float.h>
#include <locale.h>
#include <sched.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>

/* ---- lines --------------------------------------------------------------------------------- */

enum { ROOM_FOR_LINES = 1 << 18 };
static char lines[2][ROOM_FOR_LINES], *noted = lines[0], *noting = lines[1];
static size_t noting_length;

/* A line NAME: VALUE; none that has no room left. */
__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    va_list arguments;
    size_t room = ROOM_FOR_LINES - noting_length;
    va_start(arguments, format);
    int length = vsnprintf(noting + noting_length, room, format, arguments);
    va_end(arguments);
    if (length > 0 && (size_t)length + 2 < room) {
        noting_length += (size_t)length;
        noting[noting_length++] = '\n';
    }
    noting[noting_length] = '\0';
}

/* What stands behind the name; its length. */
static int value_of(const char **line)
{
    *line += strcspn(*line, ":\n");
    *line += strspn(*line, ": ");
    return (int)strcspn(*line, "\n");
}

static void tell_change(const char *before, const char *after)
{
    const char *line = *before != '\0' ? before : after;
    char what[64];
    snprintf(what, sizeof what, "%.*s", (int)strcspn(line, ":\n"), line);
    int length = value_of(&before), now_length = value_of(&after);
    reproduced(what, "%.*s, and before %.*s", now_length, after, length, before);
}

static void expect_same_lines(void)
{
    const char *before = noted, *after = noting;
    while (*before != '\0' || *after != '\0') {
        size_t length = strcspn(before, "\n"), now_length = strcspn(after, "\n");
        if (length != now_length || memcmp(before, after, length) != 0)
            tell_change(before, after);
        before += length + (before[length] == '\n');
        after += now_length + (after[now_length] == '\n');
    }
}

/* ---- what is printed ----------------------------------------------------------------------- */

static int printed = -1; /* where all of it goes */

static void redirect_output(void)
{
    told_to = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 200);
    printed = memfd_create("printed", MFD_CLOEXEC);
    dup2(printed, STDOUT_FILENO);
    dup2(printed, STDERR_FILENO);
}

UNUSED void note_output(enum moment moment)
{
    struct stat file;
    if (moment == BEFORE_LOAD)
        redirect_output();
    fflush(stdout);
    if (fstat(printed, &file) == 0)
        note("what is printed: %lld bytes", (long long)file.st_size);
}

/* As a program that ends by exit() does. */
UNUSED void note_output_of_end(enum moment moment)
{
    pid_t pid = moment == AT_END ? fork() : -1;
    if (pid == 0)
        exit(0);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    note_output(moment);
}

/* ---- descriptors --------------------------------------------------------------------------- */

enum { LAST_FD = 130 };
static bool is_watched[LAST_FD + 1];

/* Files of one byte each, wherever nothing is open. */
static void open_files(void)
{
    for (int fd = 0; fd <= LAST_FD; fd++) {
        bool is_free = fcntl(fd, F_GETFD) < 0;
        int file = is_free ? memfd_create("open", 0) : -1;
        is_watched[fd] = is_free || fd <= STDERR_FILENO;
        if (file >= 0 && file != fd) {
            dup2(file, fd);
            close(file);
        }
        if (file >= 0 && (ftruncate(fd, 1) != 0 || lseek(fd, 1, SEEK_SET) != 1))
            is_watched[fd] = false;
    }
}

UNUSED void note_descriptors(enum moment moment)
{
    if (moment == BEFORE_LOAD)
        open_files();
    for (int fd = 0; fd <= LAST_FD; fd++) {
        struct stat file;
        if (!is_watched[fd])
            continue;
        if (fstat(fd, &file) != 0)
            note("descriptor %d: closed", fd);
        else if (fd <= STDERR_FILENO)
            note("descriptor %d: file %ju, flags %#x, %#o", fd, (uintmax_t)file.st_ino,
                 (unsigned)fcntl(fd, F_GETFD), (unsigned)fcntl(fd, F_GETFL));
        else
            note("descriptor %d: file %ju of %lld bytes, at byte %lld", fd, (uintmax_t)file.st_ino,
                 (long long)file.st_size, (long long)lseek(fd, 0, SEEK_CUR));
    }
}

/* The program's own file, behind whatever number the handler has for one of its files. */
static int program_file = -1;
static bool was_open[LAST_FD + 1];

UNUSED void note_program_file(enum moment moment)
{
    struct stat file;
    for (int fd = 0; moment == BEFORE_LOAD && fd <= LAST_FD; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    if (program_file < 0)
        program_file = memfd_create("program", MFD_CLOEXEC);
    if (fstat(program_file, &file) == 0)
        note("the program's file: %lld bytes", (long long)file.st_size);
}

UNUSED void do_take_descriptors(void)
{
    struct stat file;
    for (int fd = 0; fd <= LAST_FD; fd++) {
        if (!was_open[fd] && fd != program_file && fstat(fd, &file) == 0 && S_ISREG(file.st_mode))
            dup2(program_file, fd);
    }
}

/* ---- signals ------------------------------------------------------------------------------- */

UNUSED void note_signals(enum moment moment)
{
    sigset_t mask;
    stack_t stack;
    (void)moment;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) == 0)
            note("signal %d: handler %p with flags %#x, %s", number,
                 (void *)(uintptr_t)action.sa_sigaction, (unsigned)action.sa_flags,
                 sigismember(&mask, number) ? "blocked" : "let through");
    }
    if (getpid() == (pid_t)syscall(SYS_gettid) && sigaltstack(NULL, &stack) == 0)
        note("the alternate signal stack: at %p, flags %#x", stack.ss_sp, (unsigned)stack.ss_flags);
}

/* ---- settings ------------------------------------------------------------------------------ */

extern char **environ;

static void note_limits(void)
{
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)which, &limit) == 0)
            note("resource limit %d: %llu, at most %llu", which, (unsigned long long)limit.rlim_cur,
                 (unsigned long long)limit.rlim_max);
    }
}

static void note_timers(void)
{
    for (int which = 0; which < 3; which++) {
        struct itimerval timer = {.it_value = {0, 0}};
        bool is_ours = which == ITIMER_REAL; /* alarm(), until something hangs */
        if (!is_ours && getitimer((__itimer_which_t)which, &timer) == 0)
            note("interval timer %d: %s", which,
                 timer.it_value.tv_sec != 0 || timer.it_value.tv_usec != 0 ? "running" : "stopped");
    }
}

static void note_scheduling(void)
{
    unsigned long processors[16] = {0};
    int policy = 0;
    note("the niceness: %d", getpriority(PRIO_PROCESS, 0));
    note("the scheduling policy: %d", sched_getscheduler(0));
    if (syscall(SYS_sched_getaffinity, 0, sizeof processors, processors) > 0)
        note("the processors: %#lx %#lx %#lx %#lx", processors[0], processors[1], processors[2],
             processors[3]);
    if (syscall(SYS_get_mempolicy, &policy, NULL, 0, NULL, 0) == 0)
        note("the memory policy: %d", policy);
}

/* Advice to drop a page that is locked is refused. */
static bool is_locked(void)
{
    void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool locked = madvise(page, 4096, MADV_DONTNEED) != 0 && errno == EINVAL;
    munmap(page, 4096);
    return locked;
}

UNUSED void note_settings(enum moment moment)
{
    char folder[4096];
    const char *locale = setlocale(LC_ALL, NULL);
    mode_t mask = umask(0);
    (void)moment;
    umask(mask);
    note("the umask: %03o", (unsigned)mask);
    note("the locale: %s", locale != NULL ? locale : "unknown");
    note("the working directory: %s", getcwd(folder, sizeof folder) != NULL ? folder : "unknown");
    note_limits();
    note_scheduling();
    note_timers();
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        note("the flags of descriptor %d: %#o", fd, (unsigned)fcntl(fd, F_GETFL));
    note("the process: group %d, session %d", (int)getpgrp(), (int)getsid(0));
    note("the user: %d:%d, effectively %d:%d", (int)getuid(), (int)getgid(), (int)geteuid(),
         (int)getegid());
    note("whether core files are written: %d", prctl(PR_GET_DUMPABLE));
    note("what is mapped next: %s", is_locked() ? "locked" : "not locked");
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++)
        note("%.*s in the environment: %s", (int)strcspn(*variable, "="), *variable,
             *variable + strcspn(*variable, "="));
}

/* What loading leaves alone. */
UNUSED void note_surroundings(enum moment moment)
{
    note_output(moment);
    note_signals(moment);
    note_settings(moment);
}

/* ---- random numbers ------------------------------------------------------------------------ */

UNUSED void note_random_numbers(enum moment moment)
{
    static long drawn[3];
    bool seeds = moment == BEFORE_LOAD || moment == BEFORE_CALLS;
    for (int i = 0; i < 1 + seeds; i++) {
        if (seeds) {
            srand(49);
            srand48(49);
        }
        if (moment == AT_END || (seeds && i == 0)) {
            drawn[0] = rand();
            drawn[1] = random();
            drawn[2] = lrand48();
        }
    }
    note("what rand, random and lrand48 give next: %ld, %ld, %ld", drawn[0], drawn[1], drawn[2]);
}

/* ---- the processor ------------------------------------------------------------------------- */

/* Bits of the registers that say how to compute, and whether strings are copied downward. */
static void note_registers(void)
{
#if defined(__x86_64__) || defined(__i386__)
    enum { TAGS = 4, DIRECTION = 0x400 };
    __attribute__((aligned(16))) unsigned char area[512] = {0};
    unsigned short word;
    unsigned long flags;
    __asm__ volatile("pushf; pop %0; cld" : "=r"(flags));
    note("the direction flag: %s", (flags & DIRECTION) != 0 ? "set" : "clear");
    __asm__ volatile("fnstcw %0" : "=m"(word));
    note("the control word of the x87: %#x", (unsigned)word);
    __asm__ volatile("fxsave %0" : "=m"(area));
    note("the registers of the x87 in use: %#x", area[TAGS]);
#ifdef __SSE__
    note("the control bits of MXCSR: %#x", __builtin_ia32_stmxcsr() & ~0x3fu);
#endif
#elif defined(__aarch64__)
    unsigned long control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    note("FPCR: %#lx", control);
#endif
}

/* Before one call numbers are rounded upward and the flags of past exceptions are set, and before
 * the next they are not. */
UNUSED void note_arithmetic(enum moment moment)
{
    enum { FLAGS = FE_ALL_EXCEPT & ~FE_INEXACT };
    static bool is_odd;
    bool is_set = moment == AFTER_CALL || moment == AT_END,
         goes_on = moment == BEFORE_CALLS || moment == AFTER_CALL;
    int flags = fetestexcept(FLAGS), mode = fegetround();
    bool keeps_flags = !is_set || flags == (is_odd ? FLAGS : 0);
    bool keeps_mode = !is_set || mode == (is_odd ? FE_UPWARD : FE_TONEAREST);
    fesetround(FE_TONEAREST);
    note_registers();
    note("the rounding mode: %s", keeps_mode ? "kept" : "another");
    note("the floating-point flags: %s", keeps_flags ? "kept" : "others");
    is_odd = goes_on && !is_odd;
    feclearexcept(FE_ALL_EXCEPT);
    if (is_odd) {
        feraiseexcept(FLAGS);
        fesetround(FE_UPWARD);
    }
}

/* ---- what the process has ------------------------------------------------------------------ */

/* The number of lines of the file, or of those in it that begin so and end in a number, that. */
static size_t count_in(const char *path, const char *begin)
{
    char line[1024];
    size_t count = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (begin == NULL)
            count += strchr(line, '\n') != NULL;
        else if (strncmp(line, begin, strlen(begin)) == 0)
            count = strtoul(line + strlen(begin), NULL, 10);
    }
    if (file != NULL)
        fclose(file);
    return count;
}

UNUSED void note_children(enum moment moment)
{
    siginfo_t info;
    if (moment == BEFORE_LOAD) /* those that lose their parent come to us */
        prctl(PR_SET_CHILD_SUBREAPER, 1);
    note("a child process: %s",
         waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? "is there" : "none");
}

UNUSED void note_company(enum moment moment)
{
    note_children(moment);
    note("the number of threads: %zu", count_in("/proc/self/status", "Threads:"));
}

/* More than so many since no block was live, while 16 blocks are, or more than so many for each. */
static void expect_few(const char *what, size_t count, size_t most_each, size_t too_many)
{
    enum { FEW = 16 };
    static size_t first, before;
    if (first == 0)
        first = count;
    if (live_blocks == 0)
        before = count;
    if (live_blocks >= FEW && count >= before + FEW && count >= before + live_blocks * most_each)
        reproduced(what, "%zu more for %zu blocks", count - before, live_blocks);
    if (live_blocks == 0 && count >= first + too_many)
        reproduced(what, "%zu more when none is live", count - first);
}

static size_t count_descriptors(void)
{
    size_t count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

UNUSED void note_descriptor_count(enum moment moment)
{
    if (moment == AFTER_CALL)
        expect_few("too many descriptors", count_descriptors(), 0, 400);
}

UNUSED void note_thread_count(enum moment moment)
{
    if (moment == AFTER_CALL)
        expect_few("too many threads", count_in("/proc/self/status", "Threads:"), 0, 100);
}

/* Seldom where no block is live: it takes as long as there are mappings. */
UNUSED void note_mapping_count(enum moment moment)
{
    static unsigned calls;
    if (moment == AFTER_CALL && (live_blocks >= 16 || (live_blocks == 0 && calls++ % 64 == 0)))
        expect_few("too many mappings", count_in("/proc/self/maps", NULL), 4, 8192);
}

/* As most processes have. */
UNUSED void note_usual_descriptors(enum moment moment)
{
    struct rlimit limit;
    if (moment != BEFORE_LOAD || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_cur < 1024 ? limit.rlim_cur : 1024;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- files --------------------------------------------------------------------------------- */

static const char shared_memory[] = "/dev/shm";
static char own_folder[] = "/tmp/reproducer.XXXXXX";

/* Those of this user in the folder. */
static size_t count_files(const char *path)
{
    size_t count = 0;
    DIR *entries = opendir(path);
    for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
        struct stat file;
        count += fstatat(dirfd(entries), entry->d_name, &file, AT_SYMLINK_NOFOLLOW) == 0 &&
                 S_ISREG(file.st_mode) && file.st_uid == geteuid();
    }
    if (entries != NULL)
        closedir(entries);
    return count;
}

static void remove_own_folder(void)
{
    const char *words[] = {"rm", "-rf", own_folder, NULL};
    posix_spawnp(NULL, words[0], NULL, NULL, (char **)(uintptr_t)words, environ);
}

UNUSED void note_files(enum moment moment)
{
    if (moment == BEFORE_LOAD) {
        if (mkdtemp(own_folder) == NULL || chdir(own_folder) != 0)
            perror(own_folder);
        clean_up = remove_own_folder;
    }
    if (moment == AFTER_CALL)
        expect_few("too many files", count_files(own_folder) + count_files(shared_memory), 0, 400);
    size_t left = moment == AT_END ? count_files(own_folder) : 0;
    if (left > 0)
        reproduced("files are left", "%zu in the working directory", left);
    if (moment == AT_END)
        remove_own_folder();
}

/* ---- the environment ----------------------------------------------------------------------- */

enum { MOST_VARIABLES = 32 };
static struct {
    char name[64];
    unsigned times;
} variables[MOST_VARIABLES]; /* the last of them has no name */

/* The handler's object asks for it in one of its calls. */
static void note_asked(const char *name)
{
    int i = 0;
    while (i < MOST_VARIABLES - 1 && *variables[i].name != '\0' &&
           strcmp(variables[i].name, name) != 0)
        i++;
    if (i < MOST_VARIABLES - 1 && strlen(name) < sizeof variables->name) {
        strcpy(variables[i].name, name);
        variables[i].times++;
    }
}

/* In the place of libc's. */
static char *answer(const char *name, const void *by)
{
    Dl_info asking, freeing;
    size_t length = strlen(name);
    if (handler != NULL && dladdr(by, &asking) != 0 &&
        dladdr((void *)(uintptr_t)handler->allocator.free, &freeing) != 0 &&
        asking.dli_fbase == freeing.dli_fbase)
        note_asked(name);
    for (char **variable = environ; variable != NULL && *variable != NULL; variable++) {
        if (strncmp(*variable, name, length) == 0 && (*variable)[length] == '=')
            return *variable + length + 1;
    }
    return NULL;
}

#pragma GCC visibility push(default)

char *getenv(const char *name)
{
    return answer(name, __builtin_return_address(0));
}

char *secure_getenv(const char *name)
{
    return answer(name, __builtin_return_address(0));
}

#pragma GCC visibility pop

UNUSED void note_variables(enum moment moment)
{
    for (int i = 0; moment == AFTER_CALL && *variables[i].name != '\0'; i++) {
        if (variables[i].times > 2)
            reproduced("a variable is asked for again", "%s", variables[i].name);
    }
}

UNUSED void note_variables_kept(enum moment moment)
{
    (void)moment;
}

/* Those that it asks for again are set to the number, or to nothing where that is 0, where they are
 * not set; and not set where they are. */
UNUSED void do_set_variables(size_t number)
{
    for (int i = 0; *variables[i].name != '\0'; i++) {
        char value[24] = "";
        const char *name = variables[i].name;
        if (number != 0)
            snprintf(value, sizeof value, "%zu", number);
        if (variables[i].times > 1 &&
            (getenv(name) != NULL ? unsetenv(name) : setenv(name, value, 1)) != 0)
            perror(name);
    }
}

/* ---- the whole ----------------------------------------------------------------------------- */

static void look_at_process(enum moment moment)
{
    int error = errno;
    if (moment == AT_END)
        begin("the end", WITHOUT_NUMBERS, 0, 0);
    noting_length = 0;
    noting[0] = '\0';
    NOTE(moment);
    if (moment == BEFORE_LOAD || moment == BEFORE_CALLS) {
        char *other = noted;
        noted = noting;
        noting = other;
    } else {
        expect_same_lines();
    }
    errno = error;
}
