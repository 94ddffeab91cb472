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

/* ---- what getopt_long refuses ------------------------------------------------------------ */

/* "see conform exec --help" */
static const char *see_help(enum command command)
{
    command = command_rows[command].of;
    if (command == COMMAND_RUN)
        return "see conform --help";
    return fmt("%ssee conform %s --help",
               command == COMMAND_EXEC ? "put -- before options of the program, or " : "",
               command_rows[command].name);
}

/* The command whose name, or that of the option which it once was, is the word. */
static enum command command_once(const char *word, size_t length)
{
    for (enum command i = 0; i < COMMANDS; i++) {
        const char *was = command_rows[i].was;
        if (was != NULL && strlen(was) == length && memcmp(was, word, length) == 0)
            return i;
    }
    return command_named(word, length);
}

/* A long option that it did not take: unknown, ambiguous, or with a value that it does not have. */
static _Noreturn void wrong_long_option(const char *word, enum command command)
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
    enum command meant = command_once(word + 2, length - 2);
    if (meant != COMMAND_RUN)
        die(EXIT_USAGE, "%s is a command; say %s", name, command_usage(meant));
    if (count > 1)
        die(EXIT_USAGE, "%s is short for more than one option; give one of %s", name, matches);
    if (count == 1)
        die(EXIT_USAGE, "%s takes no value; leave out the = and what follows", matches);
    struct suggestion suggestion = suggestion_for(word + 2, length - 2);
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].name != NULL)
            suggestion_consider(&suggestion, option_rows[i].name);
    }
    const char *words = suggestion_words(&suggestion, "--");
    if (*words == '\0') {
        suggestion = suggestion_for(word + 2, length - 2);
        command_suggest(&suggestion);
        words = suggestion_words(&suggestion, "conform ");
    }
    die(EXIT_USAGE, "%s: no such option%s; %s", name, words, see_help(command));
}

/* What getopt_long returns '?' for.  It gives the letter of a short option in optopt; of a long one
 * that is known, its value; else 0. */
static _Noreturn void wrong_option(char **argv, enum command command)
{
    if (optopt == 0 || optopt >= FIRST_ROW)
        wrong_long_option(argv[optind - 1], command);
    char letter = (char)optopt, clean[8];
    die(EXIT_USAGE, "-%s: no such option; %s", sanitize(clean, sizeof clean, &letter, 1, 0),
        see_help(command));
}

/* ---- which command, and what it takes ---------------------------------------------------- */

/* "exec, replay and search": what `takers` names, without the variants of a command that it names.
 */
static const char *names_of(unsigned takers)
{
    const char *named[COMMANDS] = {""};
    size_t count = 0;
    for (enum command i = 0; i < COMMANDS; i++) {
        enum command of = command_rows[i].of;
        if ((takers & 1u << i) != 0 && (of == i || (takers & 1u << of) == 0))
            named[count++] = command_rows[i].name;
    }
    const char *names = named[0];
    for (size_t i = 1; i < count; i++)
        names = fmt("%s%s%s", names, i + 1 < count ? ", " : " and ", named[i]);
    return names;
}

/* The variant of the command that the options select, or the command. */
static enum command select_variant(enum command command, const bool given[])
{
    const struct option_row *selects = NULL;
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        if (!given[i] || row->command == COMMAND_RUN || command_rows[row->command].of != command)
            continue;
        if (selects != NULL)
            die(EXIT_USAGE, "--%s and --%s exclude each other; give one of them", selects->name,
                row->name);
        selects = row;
    }
    return selects != NULL ? selects->command : command;
}

/* Every option that was given has an effect. */
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

/* The test suite and bench alone take several handlers. */
static void check_repeated(const struct options *options)
{
    if (options->handler_count <= 1 || options->command == COMMAND_BENCH)
        return;
    if (options->command != COMMAND_RUN)
        die(EXIT_USAGE, "--handler is given twice, and %s takes one; give it once",
            command_rows[options->command].name);
    for (int i = 0; i < RUN_FORMAT_COUNT; i++) {
        if (options->reports[i] != NULL)
            die(EXIT_USAGE,
                "several --handler make no %s; say --json or --html, which have them all",
                report_names[i]);
    }
}

static void check_together(const struct options *options)
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
    if (options->tsan && options->memcheck)
        die(EXIT_USAGE, "--tsan and --memcheck exclude each other; give one of them");
    if (options->reports[REPORT_bundle] != NULL && epoch != NULL &&
        (*epoch == '\0' || strlen(epoch) > 10 || epoch[strspn(epoch, "0123456789")] != '\0'))
        die(EXIT_USAGE, "SOURCE_DATE_EPOCH=%s: is no number of seconds since 1970", escape(epoch));
    if (options->quick && checker != NULL)
        die(EXIT_USAGE, "--quick and --%s exclude each other; give one of them", checker);
    if (options->baseline != NULL && strcmp(options->baseline, "-") == 0)
        die(EXIT_USAGE, "--baseline=-: is read more than once; name a file");
    if (options->baseline != NULL && has_many)
        die(EXIT_USAGE,
            "--baseline goes with one handler; write a report of several by --json, and say "
            "conform compare");
    if (options->with_subject && options->reports[REPORT_bundle] == NULL)
        die(EXIT_USAGE, "--with-subject goes with --bundle; see conform --help");
    if (options->command == COMMAND_RUN && options->fail_on_new && options->baseline == NULL)
        die(EXIT_USAGE, "--fail-on goes with --baseline or conform compare; see conform --help");
    if (options->command == COMMAND_REPORT && options->reports[REPORT_html] == NULL &&
        options->reports[REPORT_badge] == NULL && options->reports[REPORT_markdown] == NULL)
        die(EXIT_USAGE, "report writes --html, --badge or --markdown; say %s",
            command_usage(COMMAND_REPORT));
}

/* ---- operands ---------------------------------------------------------------------------- */

/* Checks how many there are, and takes those that the command has a row for. */
static void take_operands(struct options *options)
{
    const struct command_row *row = &command_rows[command_rows[options->command].of];
    const struct option_row *operand = row->operand;
    const char *usage = command_usage(row->of);
    bool takes_handlers = operand != NULL && operand->take == take_handler, needs_handler = false;
    size_t count = 0;
    while (options->operands[count] != NULL)
        count++;
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].take == take_handler)
            needs_handler = (option_rows[i].takers & 1u << options->command) != 0;
    }
    if (needs_handler && options->handler == NULL && !(takes_handlers && count > 0))
        die(EXIT_USAGE, "no handler to test; say %s", usage);
    if (row->of == COMMAND_EXEC && count == 0)
        die(EXIT_USAGE,
            "exec: no program to run; name a SCRIPT, -m MODULE, -c CODE, or - for stdin after --");
    if (count < row->least || count > row->most)
        die(EXIT_USAGE, "%s: %s; say %s", row->name,
            count > row->most
                ? fmt("%s is one operand too many", escape(options->operands[row->most]))
                : "an operand is missing",
            usage);
    if (options->command == COMMAND_COMPARE && strcmp(options->operands[0], "-") == 0 &&
        strcmp(options->operands[1], "-") == 0)
        die(EXIT_USAGE, "compare: only one of the two reports can be -, which is stdin");
    for (size_t i = 0; i < count && operand != NULL; i++)
        operand->take(operand, options->operands[i], options);
    for (size_t i = 0; i < count && operand == NULL; i++)
        check_not_overwriting(options, options->operands[i], "what the program is given");
}

/* A command that is not the first word. */
static void check_command_is_first(const struct options *options)
{
    for (char **word = options->operands; *word != NULL; word++) {
        enum command command = command_named(*word, strlen(*word));
        if (options->command <= COMMAND_NO_FORK && command != COMMAND_RUN)
            die(EXIT_USAGE, "%s is a command, which is the first word; say %s, or ./%s for a file",
                *word, command_usage(command), *word);
    }
}

/* ---- reading ----------------------------------------------------------------------------- */

/* The tables that getopt_long reads. */
struct getopt_tables {
    struct option names[MOST_OPTION_ROWS + 1];
    char letters[2 * MOST_OPTION_ROWS + 3];
};

static void fill_tables(struct getopt_tables *tables, enum command command)
{
    struct option *name = tables->names;
    char *letter = tables->letters;
    if (command == COMMAND_EXEC)
        *letter++ = '+'; /* stop at the program, whose options follow it */
    *letter++ = ':';     /* distinguish a missing value from an unknown option */
    for (size_t i = 0; i < option_row_count; i++) {
        const struct option_row *row = &option_rows[i];
        int has_value = row->argument == NULL ? no_argument : required_argument;
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

static void take_defaults(struct options *options)
{
    for (size_t i = 0; i < option_row_count; i++) {
        if (option_rows[i].usual != NULL)
            option_rows[i].take(&option_rows[i], option_rows[i].usual, options);
    }
    for (enum command i = 0; i < COMMANDS; i++) {
        const struct option_row *operand = command_rows[i].operand;
        if (operand != NULL && operand->usual != NULL)
            operand->take(operand, operand->usual, options);
    }
}

/* Of `conform help COMMAND`. */
static _Noreturn void help_on(const char *word)
{
    enum command command = word != NULL ? command_named(word, strlen(word)) : COMMAND_RUN;
    struct suggestion suggestion = suggestion_for(word, word != NULL ? strlen(word) : 0);
    command_suggest(&suggestion);
    if (word != NULL && command == COMMAND_RUN)
        die(EXIT_USAGE, "help %s: no such command%s; see conform --help", escape(word),
            suggestion_words(&suggestion, ""));
    command_help(command);
}

void options_read(int argc, char **argv, struct options *options)
{
    struct getopt_tables tables = {0};
    bool given[MOST_OPTION_ROWS] = {false};
    *options = (struct options){.program = argv[0]};
    take_defaults(options);
    if (argc > 1 && strcmp(argv[1], "help") == 0)
        help_on(argv[2]);
    if (argc > 1)
        options->command = command_named(argv[1], strlen(argv[1]));
    if (options->command != COMMAND_RUN)
        argc--, argv++;
    fill_tables(&tables, options->command);
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, tables.letters, tables.names, NULL)) != -1) {
        if (option == ':')
            die(EXIT_USAGE, "%s needs a value; %s",
                begins_with(argv[optind - 1], "--") ? argv[optind - 1] : fmt("-%c", optopt),
                see_help(options->command));
        if (option == '?')
            wrong_option(argv, options->command);
        size_t row = row_of(option);
        given[row] = true;
        if (option_rows[row].take != NULL)
            option_rows[row].take(&option_rows[row], optarg, options);
    }
    options->operands = argv + optind;
    check_command_is_first(options);
    options->command = select_variant(options->command, given);
    if (options->command == COMMAND_NO_FORK && options->memcheck)
        die(EXIT_USAGE, "--no-fork and --memcheck exclude each other; to look at one "
                        "property under valgrind, say valgrind conform ... --no-fork");
    check_taken(given, options->command);
    take_other_defaults(given, options);
    take_operands(options);
    check_together(options);
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
            die(EXIT_USAGE, "%s%s%s%s: no property matches%s; see conform list",
                filter->option != NULL ? "--" : "", filter->option != NULL ? filter->option : "",
                filter->option != NULL ? "=" : "", escape(filter->glob),
                property_meant(filter->glob));
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
        die(EXIT_USAGE, "no property is left by --run and --skip%s; see conform list",
            options->quick ? " of those that --quick runs" : "");
    return taken;
}
