/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The handlers that were given, beside NumPy's default one and libc.
 */
#include "commands/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "bench/bench.h"
#include "commands/embed.h"
#include "commands/under_sanitizer.h"
#include "report/report.h"
#include "report/report_files.h"
#include "subject/plain.h"
#include "supervise/child.h"
#include "supervise/interrupt.h"
#include "supervise/loaded.h"

/* What is aimed at, and what is the most. */
static const double usual_seconds = 55, quick_seconds = 9, usual_timeout = 30;
static const double usual_limit = 59, quick_limit = 9.8;

static bool is_over(void)
{
    return interrupt_came() != 0;
}

static void describe_machine(char *words, size_t room)
{
    char line[256], model[80] = "";
    double load = 0;
    FILE *file = fopen("/proc/cpuinfo", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "model name%*[^:]: %79[^\n]", model) == 1)
            break;
    }
    if (file != NULL)
        fclose(file);
    if (getloadavg(&load, 1) != 1)
        load = 0;
    snprintf(words, room, "%s%s%ld cores, load %.1f", model, *model != '\0' ? ", " : "",
             sysconf(_SC_NPROCESSORS_ONLN), load);
}

/* Those that were given stand behind the two. */
static size_t find_all(const struct options *options, struct subject_place *places)
{
    size_t count = BENCH_GIVEN;
    const char *wrong = subject_find("default", &places[BENCH_DEFAULT]);
    places[BENCH_LIBC] = *plain_place();
    if (options->handler_count > MOST_BENCHED - BENCH_GIVEN)
        leave_with(EXIT_USAGE, "--bench takes up to %d handlers", MOST_BENCHED - BENCH_GIVEN);
    for (size_t i = 0; i < options->handler_count && wrong == NULL; i++)
        wrong = subject_find(options->handlers[i], &places[count++]);
    if (wrong != NULL)
        leave_with(EXIT_CANNOT_LOAD, "%s", wrong);
    return count;
}

/* A handler that is lost has broken its contract, or cannot be had. */
static enum exit_code tell_lost(const struct bench *bench, const struct subject_place *places,
                                char **argv)
{
    static const char *const verdicts[] = {
        [BENCH_ENDED] = "CRASH", [BENCH_HUNG] = "TIMEOUT", [BENCH_REFUSED] = "FAIL"};
    const struct subject_place *place = &places[bench->lost];
    if (interrupt_came() != 0)
        interrupt_die();
    if (bench->state != LOAD_DONE && bench->lost >= BENCH_GIVEN) {
        loaded_start_again((int)bench->state, bench->why, argv);
        loaded_or_leave(place->argument, (int)bench->state, bench->why);
    }
    printf("%-7s %s: %s; there are no figures\n", verdicts[bench->loss], text_safe(place->label),
           text_safe(bench->why));
    return bench->lost < BENCH_GIVEN ? EXIT_HARNESS_BROKE : EXIT_NOT_CONFORMANT;
}

enum exit_code bench_command(const struct options *options, char **argv)
{
    static struct bench bench;
    static struct subject_place places[MOST_BENCHED];
    struct report_files *files;
    child_prepare();
    interrupt_catch();
    bench.subjects = find_all(options, places);
    for (size_t i = BENCH_GIVEN; i < bench.subjects; i++)
        sanitizer_enter(options, argv, &places[i], 1);
    struct bench_options how = {
        .python = embed(options, true, argv),
        .is_quick = options->bench != NULL,
        .seconds = options->max_time != 0   ? options->max_time
                   : options->bench != NULL ? quick_seconds
                                            : usual_seconds,
        .limit = options->max_time != 0   ? 0
                 : options->bench != NULL ? quick_limit
                                          : usual_limit,
        .hangs = options->timeout != 0 ? options->timeout : usual_timeout,
        .is_over = is_over,
    };
    for (size_t i = 0; i < bench.subjects; i++) {
        how.places[i] = &places[i];
        bench.labels[i] = i == BENCH_DEFAULT ? "NumPy's default"
                          : i == BENCH_LIBC  ? "libc"
                                             : places[i].label;
    }
    files = report_files_open(options);
    describe_machine(bench.machine, sizeof bench.machine);
    if (!bench_run(&how, &bench))
        return tell_lost(&bench, places, argv);
    if (!options->quiet && !report_files_take_stdout(options))
        bench_print(&bench);
    json_t *value = bench_report(&bench);
    report_files_write(files, value, (const char *const[]){"--run", NULL});
    json_decref(value);
    return EXIT_CONFORMANT;
}
