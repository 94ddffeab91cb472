/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the runner costs: conform with a battery of properties that do nothing, and the bare
 * forks of the same warm process to compare it with.  tests/bench_battery.py times both.
 *
 *     bench_runner OPTION...          conform, with EACH properties nothing.N that do nothing, and
 * as many loading.N that only load the subject bench_runner forks N [HANDLER]  N bare forks; with
 * HANDLER each of them loads it
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "commands/battery.h"
#include "harness/harness.h"
#include "model/options.h"
#include "python/api.h"
#include "python/interpreter.h"
#include "python/python.h"

enum { EACH = 400 };

GROUP(abi, 1, "The one that the coordinator wants first.");
GROUP(nothing, 2, "Properties that do nothing.");
GROUP(loading, 3, "Properties that only load the subject.");

static void do_nothing(void)
{
}

static void add(struct property *property, const char *id, enum fixture fixture)
{
    *property = (struct property){.id = id,
                                  .target = TARGET_HANDLER,
                                  .clause = "the property comes to its end",
                                  .source = "nep49.h",
                                  .why = "what is left is the runner's own work",
                                  .hint = "see conform --explain abi.loads",
                                  .looks = "FAIL",
                                  .fixture = fixture,
                                  .run = do_nothing,
                                  .file = __FILE__,
                                  .line = __LINE__};
    property_register(property);
}

__attribute__((constructor)) static void register_all(void)
{
    static struct property first, nothing[EACH], loading[EACH];
    static char ids[2][EACH][16];
    add(&first, "abi.loads", FIXTURE_BARE);
    first.first = true;
    for (int i = 0; i < EACH; i++) {
        snprintf(ids[0][i], sizeof ids[0][i], "nothing.%d", i);
        snprintf(ids[1][i], sizeof ids[1][i], "loading.%d", i);
        add(&nothing[i], ids[0][i], FIXTURE_UNLOADED);
        add(&loading[i], ids[1][i], FIXTURE_BARE);
    }
}

static _Noreturn void give_up(const char *words)
{
    fprintf(stderr, "bench_runner: %s\n", words);
    exit(1);
}

/* What a process for each costs at the least: CPython's fences, fork, and the wait for its end. */
static void fork_once(const struct subject_place *place)
{
    int status;
    python_before_fork();
    pid_t pid = fork();
    if (pid == 0) {
        struct subject subject;
        char why[512];
        python_after_fork_child();
        _exit(place != NULL && subject_load(place, &subject, why, sizeof why) != LOAD_DONE);
    }
    python_after_fork_parent();
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        give_up(strerror(errno));
    if (status != 0)
        give_up("the handler cannot be loaded");
}

/* The forks come from a process as a worker is: a child of the one that was started. */
static void fork_bare(long count, const char *handler)
{
    struct subject_place place;
    struct environment environment;
    const char *wrong = handler != NULL ? subject_find(handler, &place) : NULL;
    if (wrong != NULL)
        give_up(wrong);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    int status;
    pid_t worker = fork();
    if (worker == 0) {
        struct interpreter python;
        wrong = interpreter_find(NULL, &python);
        if (wrong == NULL)
            wrong = python_api_open(python.library);
        if (wrong == NULL)
            wrong = python_start(python.executable, &environment);
        if (wrong != NULL)
            give_up(wrong);
        for (long i = 0; i < count; i++)
            fork_once(handler != NULL ? &place : NULL);
        _exit(0);
    }
    if (worker < 0 || waitpid(worker, &status, 0) != worker || status != 0)
        give_up("the worker has failed");
}

int main(int argc, char **argv)
{
    struct options options;
    if (argc > 2 && strcmp(argv[1], "forks") == 0) {
        fork_bare(strtol(argv[2], NULL, 10), argc > 3 ? argv[3] : NULL);
        return 0;
    }
    options_read(argc, argv, &options);
    return battery_run(&options, argv);
}
