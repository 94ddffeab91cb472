/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of every reproducer: it loads the handler in a child process, executes the calls there,
 * and prints the first violation.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static PyDataMem_Handler *(*getter)(const char **why); /* or NULL */

/* Finds the handler in the object, under its name or as nep49.h has it.  Exits with 2 if there is
 * none. */
static PyDataMem_Handler *load(const char *path)
{
    const char *why = "has no handler of that name";
    const char *const names[] = {ENTRY, "nep49_handler", "nep49_get_handler"};
    dlopen("libm.so.6", RTLD_NOW | RTLD_GLOBAL); /* which any Python has loaded */
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = NULL;
    bool is_getter = false;
    if (object == NULL)
        why = dlerror();
    for (int i = 0; object != NULL && symbol == NULL && i < 3; i++) {
        symbol = dlsym(object, names[i]);
        is_getter = i == 0 ? IS_GETTER : i == 2;
    }
    PyDataMem_Handler *handler = symbol;
    if (symbol != NULL && is_getter) {
        memcpy(&getter, &symbol, sizeof getter);
        handler = getter(&why);
    }
    if (handler == NULL) {
        fprintf(stderr, "%s: %s\n", path, why);
        _exit(2);
    }
    return handler;
}

static void execute_calls(const char *path, struct executions *executions)
{
    struct execute_options options = {
        .rules = {.alignment = ALIGNMENT,
                  .fill = {.whole = 128 << 10, .marks = true},
                  .in_each_call = true,
                  .strict = CHECKS_ERRNO},
        .slots = BLOCKS,
        .most_bytes = SIZE_MAX,
        .until = UINT64_MAX,
        .growth_seconds = SECONDS / 2.0,
    };
    PyDataMem_Handler *handler = load(path);
    options.rules.watched = handler;
    options.getter = getter;
    execute_use_memory(70000, 20);
    alarm(SECONDS);
    execute(&calls, handler, &options, executions);
    _exit(0);
}

/* Returns true, and prints what failed, if this process has. */
static bool reproduced(const struct execution *side, int status)
{
    static const char *const formats[] = {
        [STEP_MALLOC] = "malloc(%zu)",        [STEP_CALLOC] = "calloc(%zu, %zu)",
        [STEP_REALLOC] = "realloc(p, %zu)",   [STEP_FREE] = "free(p, %zu)",
        [STEP_MALLOC_FREE] = "malloc(%zu)",   [STEP_CALLOC_FREE] = "calloc(%zu, %zu)",
        [STEP_FREE_NULL] = "free(NULL, %zu)", [STEP_LOOK_AT_STRUCT] = "the struct"};
    const struct step *step = side->at < calls.count ? &calls.at[side->at] : NULL;
    const char *what = heap_rule_name(side->violation.rule), *seen = side->violation.seen;
    char exits[32] = "";
    if (side->state != EXECUTION_UNDER_WAY && side->state != EXECUTION_VIOLATED)
        return false;
    if (side->state == EXECUTION_UNDER_WAY) {
        int number = WTERMSIG(status);
        bool is_exit = WIFEXITED(status);
        snprintf(exits, sizeof exits, is_exit ? "with status %d" : "after %d s",
                 is_exit ? WEXITSTATUS(status) : SECONDS);
        what = is_exit             ? "the process exits"
               : number == SIGALRM ? "no end"
               : number == SIGSEGV ? "SIGSEGV"
               : number == SIGBUS  ? "SIGBUS"
               : number == SIGABRT ? "SIGABRT"
                                   : strsignal(number);
        seen = is_exit || number == SIGALRM ? exits : "";
    } else if (side->violation.rule == HEAP_RETURNS) {
        what = side->violation.seen;
        seen = "";
    }
    printf("reproduced: %s: call %lu, ", what, (unsigned long)side->calls);
    if (step == NULL)
        printf("the end");
    else if (step->kind < sizeof formats / sizeof *formats && formats[step->kind] != NULL)
        printf(formats[step->kind], (size_t)step->first, (size_t)step->second);
    else
        printf("step %zu", (size_t)side->at + 1);
    printf("%s%s\n", *seen != '\0' ? ": " : "", seen);
    return true;
}

/* Executes the calls in a child process.  Returns 1 if they show a failure, 0 if not, and 2 if they
 * could not be executed. */
static int run(const char *path)
{
    int status = 0;
    struct executions *executions =
        mmap(NULL, sizeof *executions, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid = executions != MAP_FAILED ? fork() : -1;
    if (pid == 0) {
        setpgid(0, 0);
        execute_calls(path, executions);
    }
    if (pid < 0 || waitpid(pid, &status, 0) < 0) {
        perror("no process");
        return 2;
    }
    kill(-pid, SIGKILL); /* what it has forked */
    for (int i = 0; i <= MOST_FORKS; i++) {
        const struct execution *side = &executions->side[i];
        if (reproduced(side, i == 0 ? status : side->status))
            return 1;
    }
    return executions->side[0].state == EXECUTION_PASSED ? 0 : 2;
}

/* What depends on where memory lies may show in one program and not in the next: several are
 * tried. */
int main(int argc, char **argv)
{
    const char *name = "REPRODUCER_TRY", *value = getenv(name);
    char next[16];
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "usage: %s [OBJECT.so]\n", argv[0]);
        return 2;
    }
    int result = run(argc == 2 ? argv[1] : OBJECT), tries = value != NULL ? atoi(value) + 1 : 1;
    snprintf(next, sizeof next, "%d", tries);
    if (result == 0 && tries < PROGRAMS && setenv(name, next, 1) == 0)
        execv("/proc/self/exe", argv);
    if (result == 0)
        puts("not reproduced");
    return result;
}
