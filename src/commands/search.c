/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Searching for a history that shows a defect, and telling it.
 */
#include "commands/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/reexec.h"
#include "base/text.h"
#include "commands/launch.h"
#include "commands/reproducers.h"
#include "harness/limits.h"
#include "model/property.h"
#include "search/search.h"
#include "search/show.h"
#include "subject/subject.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"
#include "supervise/stall.h"

/* Shared with the processes that load the handler. */
struct loading {
    struct loaded loaded;
    struct claims claims;
    bool is_getter;
};

struct searching {
    const struct options *options;
    struct subject_place place;
    struct loading *loading;
    struct claims claims;
    bool is_getter;
    pid_t pid; /* that loads it for the first time */
    struct stall stall;
};

/* ---- loading it ------------------------------------------------------------------------------ */

static PyDataMem_Handler *load(void *data)
{
    struct searching *searching = data;
    struct subject subject;
    struct loading *loading = searching->loading;
    struct loaded *loaded = &loading->loaded;
    loaded->state = subject_load(&searching->place, &subject, loaded->why, sizeof loaded->why);
    if (loaded->state != LOAD_DONE)
        return NULL;
    loading->claims = subject_all_claims(&searching->place, &subject);
    loading->is_getter = subject.getter != NULL;
    return subject.handler;
}

static bool is_to_end(void *data)
{
    struct searching *searching = data;
    return interrupt_came() != 0 ||
           stall_lasts(&searching->stall, searching->pid, searching->options->timeout);
}

/* Returns a verdict if loading does not come back; exits if it fails. */
static enum exit_code load_first(struct searching *searching, const struct launch *start)
{
    int status = 0;
    struct loading *loading =
        mmap(NULL, sizeof *loading, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (loading == MAP_FAILED)
        die(EXIT_HARNESS_BROKE, "no memory to share: %s", strerror(errno));
    searching->loading = loading;
    searching->pid = child_fork(true);
    if (searching->pid == 0) {
        load(searching);
        _exit(0);
    }
    int given_up =
        searching->pid > 0 ? child_wait(searching->pid, is_to_end, searching, &status) : -1;
    if (given_up < 0)
        die(EXIT_HARNESS_BROKE, "no process to load it: %s", strerror(errno));
    if (interrupt_came() != 0)
        interrupt_die();
    loading->loaded.why[sizeof loading->loaded.why - 1] = '\0';
    launch_again(start, (int)loading->loaded.state, loading->loaded.why);
    loaded_or_leave(searching->options->handler, (int)loading->loaded.state, loading->loaded.why);
    searching->claims = loading->claims;
    searching->is_getter = loading->is_getter;
    if (loading->loaded.state == LOAD_DONE)
        return EXIT_CONFORMANT;
    printf("%-7s %s, loading the handler\n", given_up > 0 ? "TIMEOUT" : "CRASH",
           given_up > 0          ? fmt("no end after %.3g s", searching->options->timeout)
           : WIFSIGNALED(status) ? child_signal_name(WTERMSIG(status))
                                 : "exit");
    return EXIT_NOT_CONFORMANT;
}

/* ---- telling --------------------------------------------------------------------------------- */

static void print_summary(const struct options *options, const struct search_result *result)
{
    if (options->quiet)
        return;
    printf("%" PRIu64 " histor%s of %" PRIu64 " calls in %.1f s, %.1f million a second of a "
           "process; %" PRIu64 " kinds of calls, %u edges of sizes; seed %" PRIu64 "\n",
           result->trials, result->trials == 1 ? "y" : "ies", result->calls, result->seconds,
           result->busy > 0 ? (double)result->calls / result->busy / 1e6 : 0, result->tuples,
           result->edges, options->seed);
}

/* What libc's allocator does as well, and what did not come again, is attributed to nobody. */
static enum verdict verdict_of(const struct search_result *result)
{
    if (!result->has_found)
        return result->ended > 0 ? PASS : INCOMPLETE;
    if (result->plain_shows)
        return BROK;
    if (result->shown == 0)
        return INCOMPLETE;
    return result->found.kind == FOUND_WRONG   ? FAIL
           : result->found.kind == FOUND_HANGS ? TIMEOUT
                                               : CRASH;
}

static void print_found(const struct search_result *result)
{
    const struct found *found = &result->found;
    const struct property *property = property_of_rule(found->rule);
    const char *word = verdict_name(verdict_of(result));
    printf("%-7s %s  %zu step%s, of %zu%s%s\n", word, property->id, result->list.count,
           result->list.count == 1 ? "" : "s", result->length_before,
           result->shown < result->tried
               ? fmt(", which show it %u of %u times", result->shown, result->tried)
               : "",
           found->in_fork ? ", in the forked process" : "");
    show_calls(stdout, 8, &result->list);
    if (result->list.at_once && found->at >= result->list.count)
        printf("        in one of the threads: %s\n", escape(found->seen));
    else if (found->at >= result->list.count)
        printf("        when all that is live was looked at: %s\n", escape(found->seen));
    else
        printf("        %s: %s\n", show_step(&result->list.at[found->at]), escape(found->seen));
    if (found->history[0] != '\0')
        printf("        %s\n", escape(found->history));
    if (result->plain_shows)
        puts("        with libc's allocator it shows something as well: the handler is not blamed");
    else if (result->shown == 0 && interrupt_came() != 0)
        puts("        interrupted before it was tried again: no verdict");
    else if (result->shown == 0)
        puts("        seen once, and not again: no verdict; --seed says another one");
    else
        printf("        the clause: %s\n", property->clause);
}

/* Before anything is searched: leaves where no file can be there. */
static void trace_prepare(const struct options *options)
{
    if (options->trace == NULL)
        return;
    bool is_new = access(options->trace, F_OK) != 0;
    FILE *file = fopen(options->trace, "ae");
    if (file == NULL)
        die(EXIT_USAGE, "--trace=%s: %s", escape(options->trace), strerror(errno));
    fclose(file);
    if (is_new)
        unlink(options->trace);
}

static bool has_late_steps(const struct call_list *list)
{
    size_t i = 0;
    while (i < list->count && (list->at[i].thread & STEP_IN_DESTRUCTOR) == 0)
        i++;
    return i < list->count;
}

static void write_trace(const struct options *options, const struct search_result *result)
{
    char why[256];
    if (options->trace == NULL)
        return;
    if (!show_as_trace(options->trace, &result->list, why, sizeof why))
        die(EXIT_HARNESS_BROKE, "--trace=%s: %s", escape(options->trace), why);
    bool is_whole = !result->list.at_once && !has_late_steps(&result->list);
    for (size_t i = 0; i < result->list.count; i++)
        is_whole = is_whole && result->list.at[i].kind <= STEP_FREE_NULL;
    printf("        trace: %s%s\n", escape(options->trace),
           is_whole ? ""
                    : ", of the calls alone: a trace has no threads at once, forks, limits of "
                      "memory, pauses and ends of threads");
}

/* What a file of calls, one after the other, cannot show; or NULL. */
static const char *beyond_calls(const struct call_list *list)
{
    if (list->in_turns)
        return "it stops a thread in the midst of a call, and a file makes plain calls";
    if (list->at_once)
        return "its threads run at once, and a file makes one call after the other";
    if (has_late_steps(list))
        return "it takes the end of a thread or of the process, and a file makes plain calls";
    return NULL;
}

static void write_repro(const struct searching *searching, const struct search_result *result)
{
    if (searching->options->repro == NULL)
        return;
    const char *wrong = interrupt_came() != 0             ? "it was interrupted"
                        : searching->place.module != NULL ? "the handler comes from a Python module"
                        : result->shown < result->tried   ? "it does not show each time"
                        : result->plain_shows             ? "libc's allocator shows it as well"
                                                          : beyond_calls(&result->list);
    if (wrong != NULL) {
        printf("        no file of C: %s\n", wrong);
        return;
    }
    char *file = reproducer_write(searching->options, &searching->place, searching->is_getter,
                                  searching->claims.alignment, property_of_rule(result->found.rule),
                                  &result->list, &result->found);
    printf("        reproducer: %s\n", escape(file));
    free(file);
}

/* ---- the command ----------------------------------------------------------------------------- */

/* As much as is wanted, or half of that as often as it takes. */
static size_t most_bytes(const struct options *options)
{
    size_t bytes = options->memory << 20;
    while (bytes > 1 << 20 && lacking_memory(bytes) != NULL)
        bytes /= 2;
    return bytes;
}

static size_t jobs(const struct options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t wanted = options->jobs != 0 ? options->jobs : cores > 0 ? (size_t)cores : 1;
    return MIN(wanted, (size_t)MOST_SEARCHERS);
}

static enum exit_code search(struct searching *searching)
{
    enum { HUGE_BYTES_LOG2 = 33 }; /* the most that is live of them, should they be touched */
    const struct options *options = searching->options;
    struct search_result result;
    struct search_options how = {
        .get = load,
        .data = searching,
        .get_plain = plain_handler,
        .alignment = searching->claims.alignment,
        .unjudged = options->unchecked,
        .seed = options->seed,
        .seconds = options->search,
        .hangs = options->timeout,
        .jobs = jobs(options),
        .most_bytes = most_bytes(options),
        .may = {.exits = true,
                .threads = true,
                .forks = true,
                .address_limits = !is_instrumented()},
        .huge =
            sizeof(size_t) > 4 && lacking_memory((size_t)((uint64_t)1 << HUGE_BYTES_LOG2)) == NULL,
        .stops = !is_instrumented(),
    };
    search_run(&how, &result);
    if (result.is_broken)
        die(EXIT_HARNESS_BROKE, "no memory or no process for the search: %s", strerror(errno));
    print_summary(options, &result);
    bool has_found = result.has_found;
    if (has_found) {
        print_found(&result);
        write_trace(options, &result);
        write_repro(searching, &result);
    }
    enum verdict verdict = verdict_of(&result);
    enum exit_code code = verdict == PASS         ? EXIT_CONFORMANT
                          : verdict == BROK       ? EXIT_HARNESS_BROKE
                          : verdict == INCOMPLETE ? EXIT_INCOMPLETE
                                                  : EXIT_NOT_CONFORMANT;
    if (!has_found && code == EXIT_INCOMPLETE)
        puts("INCOMPLETE: no history came to its end; give it more time by conform search -H "
             "HANDLER SECONDS");
    search_result_free(&result);
    if (interrupt_came() != 0)
        interrupt_die();
    return code;
}

enum exit_code search_command(const struct options *options, char **argv)
{
    struct searching searching = {.options = options};
    const char *wrong = subject_find(options->handler, &searching.place);
    if (wrong != NULL)
        die(EXIT_CANNOT_LOAD, "%s", wrong);
    struct launch start = {
        .options = options, .argv = argv, .places = &searching.place, .count = 1};
    launch(&start);
    searching.place.claims = options->claims;
    reproducers_prepare(options);
    trace_prepare(options);
    child_prepare();
    interrupt_catch();
    enum exit_code code = load_first(&searching, &start);
    if (code == EXIT_CONFORMANT)
        code = search(&searching);
    if (!options->quiet && static_tls_is_wide())
        printf("it loads only with GLIBC_TUNABLES=%s, which was set for it\n", STATIC_TLS_TUNABLE);
    subject_place_free(&searching.place);
    return code;
}
