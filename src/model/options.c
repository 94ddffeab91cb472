/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the command line with getopt_long, so that long names can be abbreviated.
 */
#include "model/options.h"

#include <fnmatch.h>
#include <getopt.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/sanitizer_detect.h"
#include "base/text.h"
#include "model/option_table.h"
#include "model/property.h"

/* What getopt_long returns for the first row; letters are below. */
enum { FIRST_ROW = 256 };

_Noreturn void die(enum exit_code code, const char *format, ...)
{
    char line[8192], clean[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "conform: %s\n", sanitize(clean, sizeof clean, line, strlen(line), 0));
    exit(code);
}

void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + (count == 0), size);
    if (memory == NULL)
        die(EXIT_HARNESS_BROKE, "out of memory");
    return memory;
}

/* ---- what getopt_long says no to --------------------------------------------------------- */

/* A long option that it did not take: unknown, ambiguous, or with a value it has no use for. */
static _Noreturn void wrong_long_option(const char *word)
{
    size_t length = strcspn(word, "=");
    char matches[256] = "";
    int count = 0;
    for (size_t i = 0; i < option_row_count; i++) {
        const char *name = option_rows[i].name;
        if (name == NULL || strncmp(name, word + 2, length - 2) != 0)
            continue;
        size_t used = strlen(matches);
        snprintf(matches + used, sizeof matches - used, "%s--%s", count++ > 0 ? ", " : "", name);
        if (name[length - 2] == '\0') { /* the whole name, whatever else it begins */
            snprintf(matches, sizeof matches, "--%s", name);
            count = 1;
            break;
        }
    }
    const char *name = escape(fmt("%.*s", (int)length, word));
    if (count > 1)
        die(EXIT_USAGE, "%s is short for more than one option; give one of %s", name, matches);
    if (count == 1)
        die(EXIT_USAGE, "%s takes no value; leave out the = and what follows", matches);
    struct suggestion suggestion = suggestion_for(word + 2, length - 2);
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].name != NULL)
            suggestion_consider(&suggestion, option_rows[i].name);
    }
    die(EXIT_USAGE, "%s: no such option%s; see conform --help", name,
        suggestion_words(&suggestion, "--"));
}

/* What getopt_long says '?' to.  It gives the letter of a short option in optopt; of a long one
 * that is known, its value; else 0. */
static _Noreturn void wrong_option(char **argv)
{
    if (optopt == 0 || optopt >= FIRST_ROW)
        wrong_long_option(argv[optind - 1]);
    char letter = (char)optopt, clean[8];
    die(EXIT_USAGE, "-%s: no such option; see conform --help",
        sanitize(clean, sizeof clean, &letter, 1, 0));
}

/* ---- which command, and what it takes ---------------------------------------------------- */

/* "--exec, --replay and --list": what `takers` names. */
static const char *names_of(unsigned takers)
{
    const char *named[COMMANDS] = {""};
    size_t count = 0;
    for (size_t i = 0; i < COMMANDS; i++) {
        if ((takers & 1u << i) != 0)
            named[count++] = command_rows[i].name;
    }
    const char *names = named[0];
    for (size_t i = 1; i < count; i++)
        names = fmt("%s%s%s", names, i + 1 < count ? ", " : " and ", named[i]);
    return names;
}

/* The command that the options have chosen, which begin with the battery: --exec is one in its
 * place, --fail-each one in the place of --exec. */
static enum command choose_command(const bool given[])
{
    const struct option_row *in_place_of[COMMANDS] = {NULL};
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i], **place;
        if (!given[i] || row->command == COMMAND_RUN)
            continue;
        place = &in_place_of[command_rows[row->command].of];
        if (*place != NULL)
            die(EXIT_USAGE, "--%s and --%s exclude each other; give one of them", (*place)->name,
                row->name);
        *place = row;
    }
    enum command command = COMMAND_RUN;
    while (in_place_of[command] != NULL)
        command = in_place_of[command]->command;
    return command;
}

/* Nothing that was given is passed over in silence. */
static void check_taken(const bool given[], enum command command)
{
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        if (!given[i] || (row->takers & 1u << command) != 0)
            continue;
        unsigned takers =
            row->command == COMMAND_RUN ? row->takers : 1u << command_rows[row->command].of;
        die(EXIT_USAGE, "--%s goes with %s%s; see conform --help", row->name, names_of(takers),
            command == COMMAND_RUN ? "" : fmt(", not with %s", command_rows[command].name));
    }
}

/* True if both are the same name, or the same regular file: many can write to a device. */
static bool is_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return strcmp(one, other) == 0 ||
           (stat(one, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) &&
            a.st_dev == b.st_dev && a.st_ino == b.st_ino);
}

#define REPORT_FORMAT_NAME(name, words, takers) "--" #name,
static const char *const report_names[] = {REPORT_FORMATS(REPORT_FORMAT_NAME)};

void check_not_overwriting(const struct options *options, const char *path, const char *what)
{
    for (int i = 0; i <= REPORT_FORMAT_COUNT; i++) {
        bool is_trace = i == REPORT_FORMAT_COUNT;
        const char *file = is_trace ? options->record : options->reports[i];
        if (file != NULL && strcmp(file, "-") != 0 && is_same_file(file, path))
            die(EXIT_USAGE, "%s=%s would overwrite %s; name another file",
                is_trace ? "--record" : report_names[i], escape(file), what);
    }
}

static void check_reports(const struct options *options)
{
    const char *const *names = report_names;
    const char *const *files = options->reports;
    for (int i = 0; i < REPORT_FORMAT_COUNT; i++) {
        if (files[i] != NULL && files[i][0] == '\0')
            die(EXIT_USAGE, "%s: the name is empty; name a file, or - for stdout", names[i]);
        for (int k = 0; k < i; k++) {
            if (files[i] != NULL && files[k] != NULL && is_same_file(files[i], files[k]))
                die(EXIT_USAGE, "%s and %s cannot both go to %s; name another file", names[k],
                    names[i], strcmp(files[i], "-") == 0 ? "stdout" : escape(files[i]));
        }
    }
}

/* The test suite and --bench alone take several handlers. */
static void check_repeated(const struct options *options)
{
    if (options->handler_count <= 1 || options->command == COMMAND_BENCH)
        return;
    if (options->command != COMMAND_RUN)
        die(EXIT_USAGE, "--handler is given twice, which goes with the whole battery; "
                        "give it once");
    for (int i = 0; i < RUN_FORMAT_COUNT; i++) {
        if (options->reports[i] != NULL)
            die(EXIT_USAGE,
                "several --handler make no %s; say --json or --html, which have them all",
                report_names[i]);
    }
}

static void check_together(const struct options *options, const bool given[])
{
    const char *checker = options->memcheck ? "memcheck" : options->tsan ? "tsan" : NULL;
    const char *epoch = getenv("SOURCE_DATE_EPOCH"); /* the time of the files in a bundle */
    bool has_many = options->handler_count > 1;
    check_reports(options);
    check_repeated(options);
    if (options->repro != NULL && options->command == COMMAND_RUN && checker != NULL)
        die(EXIT_USAGE, "--repro and --%s exclude each other; give one of them", checker);
    if (options->repro != NULL && options->command == COMMAND_RUN && has_many)
        die(EXIT_USAGE, "--repro goes with one handler; give it once");
    if (options->quiet && options->verbose)
        die(EXIT_USAGE, "--quiet and --verbose exclude each other; give one of them");
    if (options->command == COMMAND_NO_FORK && options->memcheck)
        die(EXIT_USAGE, "--no-fork and --memcheck exclude each other; to look at one "
                        "property under valgrind, say valgrind conform ... --no-fork");
    if (options->tsan && options->memcheck)
        die(EXIT_USAGE, "--tsan and --memcheck exclude each other; give one of them");
    check_taken(given, options->command);
    if (options->reports[REPORT_bundle] != NULL && epoch != NULL &&
        (*epoch == '\0' || strlen(epoch) > 10 || epoch[strspn(epoch, "0123456789")] != '\0'))
        die(EXIT_USAGE, "SOURCE_DATE_EPOCH=%s: is no number of seconds since 1970", escape(epoch));
    if (options->quick && checker != NULL)
        die(EXIT_USAGE, "--quick and --%s exclude each other; give one of them", checker);
    if (options->baseline != NULL && strcmp(options->baseline, "-") == 0)
        die(EXIT_USAGE, "--baseline=-: is read more than once; name a file");
    if (options->baseline != NULL && has_many)
        die(EXIT_USAGE,
            "--baseline goes with one handler; write a report of several by --json, and "
            "compare by --compare");
}

/* ---- reading ----------------------------------------------------------------------------- */

/* What getopt_long wants to know of the table. */
struct getopt_tables {
    struct option names[MOST_OPTION_ROWS + 1];
    char letters[2 * MOST_OPTION_ROWS + 2];
};

static void fill_tables(struct getopt_tables *tables)
{
    struct option *name = tables->names;
    char *letter = tables->letters;
    *letter++ = ':'; /* tell a missing value from an unknown option */
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        int has_value = row->argument == NULL ? no_argument
                        : row->may_lack_it    ? optional_argument
                                              : required_argument;
        if (row->name != NULL)
            *name++ = (struct option){row->name, has_value, NULL, FIRST_ROW + (int)i};
        if (row->letter != 0)
            *letter++ = row->letter;
        if (row->letter != 0 && has_value != no_argument)
            *letter++ = ':';
    }
}

static size_t row_of(int option)
{
    size_t i = 0;
    if (option >= FIRST_ROW)
        return (size_t)(option - FIRST_ROW);
    while (option_rows[i].letter != option)
        i++;
    return i;
}

static void check_operands(const struct options *options)
{
    size_t count = 0;
    while (options->operands != NULL && options->operands[count] != NULL)
        count++;
    if (options->command == COMMAND_COMPARE && count != 2)
        die(EXIT_USAGE, "--compare takes two reports; say --compare OLD.json NEW.json");
    if (options->command == COMMAND_COMPARE && strcmp(options->operands[0], "-") == 0 &&
        strcmp(options->operands[1], "-") == 0)
        die(EXIT_USAGE, "--compare: only one of the two can be -, which is stdin");
    if (options->command == COMMAND_FROM &&
        (count == 0 ||
         (options->reports[REPORT_html] == NULL && options->reports[REPORT_badge] == NULL &&
          options->reports[REPORT_markdown] == NULL)))
        die(EXIT_USAGE, "--from takes reports and makes --html, --badge or --markdown of "
                        "them; say --html PAGE.html --from ONE.json OTHER.json");
    if (options->with_subject && options->reports[REPORT_bundle] == NULL)
        die(EXIT_USAGE, "--with-subject goes with --bundle; see conform --help");
    if (options->command == COMMAND_VERIFY && count == 0)
        die(EXIT_USAGE, "--verify takes bundles; say --verify FILE.tar.gz");
    if (options->command == COMMAND_RUN && options->fail_on_new && options->baseline == NULL)
        die(EXIT_USAGE, "--fail-on goes with --compare or --baseline; see conform --help");
    for (size_t i = 0; i < count; i++)
        check_not_overwriting(options, options->operands[i], "what the program is given");
    if (options->command != COMMAND_COMPARE && options->operands != NULL && count == 0)
        die(EXIT_USAGE, "--exec: no program to run; say --exec -- SCRIPT, -m MODULE, -c "
                        "CODE, or - for one on stdin");
}

/* Where the command, or valgrind, has another default than the usual one. */
static void take_other_defaults(const bool given[], struct options *options)
{
    bool memcheck = options->memcheck || memcheck_is_running();
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        const char *other = options->command == COMMAND_BENCH                 ? row->usual_bench
                            : options->command <= COMMAND_NO_FORK && memcheck ? row->usual_memcheck
                                                                              : NULL;
        if (!given[i] && other != NULL)
            row->take(row, other, options);
        if (given[i] && row->field == offsetof(struct options, timeout))
            options->timeout_is_given = true;
        if (given[i] && row->field == offsetof(struct options, max_time))
            options->max_time_is_given = true;
    }
}

void options_read(int argc, char **argv, struct options *options)
{
    struct getopt_tables tables = {0};
    bool given[MOST_OPTION_ROWS] = {false}, has_operands = false;
    *options = (struct options){.program = argv[0]};
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].usual != NULL)
            option_rows[i].take(&option_rows[i], option_rows[i].usual, options);
    }
    fill_tables(&tables);
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
        if (option == ':')
            die(EXIT_USAGE, "%s needs a value; see conform --help",
                begins_with(argv[optind - 1], "--") ? argv[optind - 1] : fmt("-%c", optopt));
        if (option == '?')
            wrong_option(argv);
        size_t row = row_of(option);
        given[row] = true;
        has_operands = has_operands || option_rows[row].operands != NULL;
        if (option_rows[row].take != NULL)
            option_rows[row].take(&option_rows[row], optarg, options);
    }
    options->command = choose_command(given);
    take_other_defaults(given, options);
    if (has_operands)
        options->operands = argv + optind;
    else if (optind < argc)
        die(EXIT_USAGE, "%s: an argument that is not an option; say --handler=%s to test it",
            escape(argv[optind]), escape(argv[optind]));
    check_together(options, given);
    bool takes_handler = (option_rows[row_of('H')].takers & 1u << options->command) != 0;
    if (takes_handler && options->command != COMMAND_VERIFY && options->handler == NULL)
        die(EXIT_USAGE, "no handler to test; say --handler=PATH, or see conform --help");
    check_operands(options);
}

bool options_take(const struct options *options, const char *id)
{
    const struct property *property = property_find(id);
    bool is_left_out = property != NULL && property->target == TARGET_RUNTIME && !options->numpy;
    bool has_threads = property != NULL && property_has_threads(property);
    size_t group_length = strcspn(id, ".");
    bool taken = (!options->tsan || has_threads) && !is_left_out;
    for (size_t i = 0; i < options->filter_count; i++) {
        if (options->filters[i].take)
            taken = false;
    }
    for (size_t i = 0; i < options->filter_count; i++) {
        const struct filter *filter = &options->filters[i];
        if (fnmatch(filter->glob, id, 0) == 0 &&
            (!filter->take || !is_left_out || strncmp(filter->glob, id, group_length) == 0))
            taken = filter->take;
    }
    return taken && (!options->quick || (property != NULL && property->quick));
}

/* A pattern that matches no property is an error: next to others it would look as if it had been
 * run, or left out. */
static void check_patterns(const struct options *options)
{
    size_t all;
    const struct property *const *properties = property_all(&all);
    for (size_t i = 0; i < options->filter_count; i++) {
        const struct filter *filter = &options->filters[i];
        bool fits = false;
        for (size_t k = 0; k < all && !fits; k++)
            fits = fnmatch(filter->glob, properties[k]->id, 0) == 0;
        if (!fits)
            die(EXIT_USAGE,
                "--%s=%s: no property is left %s by it%s, for a pattern is of whole ids, as "
                "'malloc.*' is; see conform --list",
                filter->take ? "run" : "skip", escape(filter->glob),
                filter->take ? "to run" : "out", property_meant(filter->glob));
    }
}

const struct property **options_properties(const struct options *options, size_t *count)
{
    size_t all;
    const struct property *const *properties = property_all(&all);
    const struct property **taken = allocate(all, sizeof *taken);
    check_patterns(options);
    *count = 0;
    for (size_t i = 0; i < all; i++) {
        if (options_take(options, properties[i]->id))
            taken[(*count)++] = properties[i];
    }
    if (*count == 0)
        die(EXIT_USAGE, "no property is left by --run and --skip%s; see conform --list",
            options->quick ? " of those that --quick runs" : "");
    return taken;
}
