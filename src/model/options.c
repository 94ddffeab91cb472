/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the command line with getopt_long, so that long names can be abbreviated.
 */
#include "model/options.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "model/record.h"

enum {
    OPT_HELP = 256,
    OPT_VERSION,
    OPT_CLAUSES,
    OPT_LIST_HANDLERS,
    OPT_EXEC,
    OPT_EXPLAIN,
    OPT_FAIL_EACH,
    OPT_KEEP_FAILING,
    OPT_STACKS,
    OPT_RUN,
    OPT_SKIP,
    OPT_TIMEOUT,
    OPT_SEED,
    OPT_NO_FORK,
    OPT_PYTHON,
    OPT_STRICT,
    OPT_COLOR,
    OPT_TAP,
    OPT_JUNIT,
    OPT_JSON,
    OPT_MAX_TIME,
    OPT_MEMCHECK,
    OPT_MOST_RUNS,
    OPT_PRINT,
    OPT_RECORD,
    OPT_REPEAT,
    OPT_REPLAY,
    OPT_UNCHECKED,
    OPT_UNTIMED,
    OPT_SHUFFLE,
    OPT_UNTIL_FAIL,
};

static const struct option long_options[] = {
    {"clauses", no_argument, NULL, OPT_CLAUSES},
    {"color", required_argument, NULL, OPT_COLOR},
    {"exec", no_argument, NULL, OPT_EXEC},
    {"explain", required_argument, NULL, OPT_EXPLAIN},
    {"fail-each", no_argument, NULL, OPT_FAIL_EACH},
    {"handler", required_argument, NULL, 'H'},
    {"help", no_argument, NULL, OPT_HELP},
    {"jobs", required_argument, NULL, 'j'},
    {"json", required_argument, NULL, OPT_JSON},
    {"junit", required_argument, NULL, OPT_JUNIT},
    {"list", no_argument, NULL, 'l'},
    {"list-handlers", no_argument, NULL, OPT_LIST_HANDLERS},
    {"max-time", required_argument, NULL, OPT_MAX_TIME},
    {"memcheck", no_argument, NULL, OPT_MEMCHECK},
    {"most-runs", required_argument, NULL, OPT_MOST_RUNS},
    {"no-fork", no_argument, NULL, OPT_NO_FORK},
    {"keep-failing", no_argument, NULL, OPT_KEEP_FAILING},
    {"print", no_argument, NULL, OPT_PRINT},
    {"python", required_argument, NULL, OPT_PYTHON},
    {"quiet", no_argument, NULL, 'q'},
    {"record", required_argument, NULL, OPT_RECORD},
    {"repeat", required_argument, NULL, OPT_REPEAT},
    {"replay", required_argument, NULL, OPT_REPLAY},
    {"run", required_argument, NULL, OPT_RUN},
    {"seed", required_argument, NULL, OPT_SEED},
    {"shuffle", no_argument, NULL, OPT_SHUFFLE},
    {"skip", required_argument, NULL, OPT_SKIP},
    {"stacks", no_argument, NULL, OPT_STACKS},
    {"strict", no_argument, NULL, OPT_STRICT},
    {"tap", required_argument, NULL, OPT_TAP},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"unchecked", no_argument, NULL, OPT_UNCHECKED},
    {"untimed", no_argument, NULL, OPT_UNTIMED},
    {"until-fail", no_argument, NULL, OPT_UNTIL_FAIL},
    {"verbose", no_argument, NULL, 'v'},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Usage: conform --handler HANDLER [OPTION]...\n"
    "       conform --handler HANDLER [OPTION]... --exec -- SCRIPT|-m MODULE|-c CODE "
    "[ARGUMENT]...\n"
    "Test whether a NumPy data-memory handler (NEP 49) keeps the contract.\n"
    "\n"
    "What to test:\n"
    "  -H, --handler=PATH[:SYMBOL]  a shared object that exports a handler (see nep49.h)\n"
    "      --handler=NAME           a reference handler, see --list-handlers\n"
    "      --run=GLOB               only the properties whose id matches (repeatable)\n"
    "      --skip=GLOB              not those (repeatable; the last match decides)\n"
    "\n"
    "How to run:\n"
    "  -j, --jobs=N                 workers at once (default: one for each core)\n"
    "      --timeout=SECONDS        limit for one call, and for a property that makes none\n"
    "                               (default: 10)\n"
    "      --max-time=SECONDS       limit for the whole run; what is left is INCOMPLETE\n"
    "                               (default: 60)\n"
    "      --seed=N                 of all random choices (default: 49)\n"
    "      --shuffle                in an order drawn from the seed\n"
    "      --repeat=N               N rounds of everything; what was bad in any is reported\n"
    "      --until-fail             rounds until one has something bad\n"
    "      --no-fork                run one property in this process, for a debugger\n"
    "      --memcheck               run under valgrind and lay its errors to the properties\n"
    "      --python=PATH            the interpreter to embed, such as venv/bin/python\n"
    "      --strict                 a WARN counts as a failure\n"
    "\n"
    "A program instead of the battery:\n"
    "      --exec -- ARGUMENT...    run what python3 ARGUMENT... would run, with the handler in\n"
    "                               force in every thread and every call audited\n"
    "      --stacks                 say which lines asked for what is live at the end\n"
    "      --fail-each              run it with request 1 refused, then with request 2, ...\n"
    "      --keep-failing           and each time all requests after it as well\n"
    "      --most-runs=N            at most so many times (default: 20000)\n"
    "      --record=FILE            and write every call into a trace\n"
    "      --untimed                without times, so that the same program gives the same file\n"
    "      --replay=FILE            drive the handler with a trace, without Python\n"
    "      --replay=FILE --print    show a trace as text\n"
    "      --unchecked              make the calls and judge none, to time them\n"
    "\n"
    "What to print:\n"
    "      --tap=FILE, --junit=FILE, --json=FILE\n"
    "                               write a report in that format too (- is stdout,\n"
    "                               which then takes the place of the text)\n"
    "  -q, --quiet                  print only what is wrong\n"
    "  -v, --verbose                print every property\n"
    "      --color=WHEN             auto, always or never; NO_COLOR is respected\n"
    "\n"
    "Instead of testing:\n"
    "  -l, --list                   list the properties (those of --run and --skip)\n"
    "      --list-handlers          list the reference handlers\n"
    "      --explain=ID             what a property tests, why, and what to do about it\n"
    "      --clauses                all clauses, as a page in Markdown\n"
    "      --help, --version\n"
    "\n"
    "Exit status: 0 conformant, 1 not conformant, 2 wrong usage, 3 the handler cannot be\n"
    "loaded, 4 the harness broke, 5 a limit was reached and nothing is wrong so far, 77 the\n"
    "handler says that it cannot work here.\n";

_Noreturn void leave_with(enum exit_code code, const char *format, ...)
{
    char line[8192], clean[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fflush(stdout);
    fprintf(stderr, "conform: %s\n", text_clean(clean, sizeof clean, line, strlen(line), 0));
    exit(code);
}

static double seconds_option(const char *option, const char *value, double least, double most)
{
    char *end;
    errno = 0;
    double number = strtod(value, &end);
    if (errno != 0 || *end != '\0' || !(number >= least && number <= most) ||
        strspn(value, "0123456789.e-") != strlen(value))
        leave_with(EXIT_USAGE, "%s=%s: give a number of seconds from %g to %g", option,
                   text_safe(value), least, most);
    return number;
}

static size_t count_option(const char *option, const char *value, size_t most)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    if (errno != 0 || *value < '0' || *value > '9' || *end != '\0' || number < 1 || number > most)
        leave_with(EXIT_USAGE, "%s=%s: give a whole number from 1 to %zu", option, text_safe(value),
                   most);
    return (size_t)number;
}

/* A leading 0 means nothing; 0x is what a seed from elsewhere may begin with. */
static uint64_t seed_option(const char *value)
{
    bool hexadecimal = value[0] == '0' && (value[1] == 'x' || value[1] == 'X');
    const char *digits = hexadecimal ? value + 2 : value;
    char *end;
    errno = 0;
    uint64_t seed = strtoull(digits, &end, hexadecimal ? 16 : 10);
    if (errno != 0 || !isxdigit((unsigned char)*digits) || *end != '\0')
        leave_with(EXIT_USAGE, "--seed=%s: give a whole number from 0 to 2^64 - 1",
                   text_safe(value));
    return seed;
}

static enum color color_option(const char *value)
{
    static const char *const words[] = {"auto", "always", "never"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(value, words[i]) == 0)
            return (enum color)i;
    }
    leave_with(EXIT_USAGE, "--color=%s: give auto, always or never", text_safe(value));
}

static void add_filter(struct options *options, bool take, const char *glob)
{
    struct filter *filters =
        realloc(options->filters, (options->filter_count + 1) * sizeof *filters);
    if (filters == NULL)
        leave_with(EXIT_HARNESS_BROKE, "out of memory");
    filters[options->filter_count++] = (struct filter){take, glob};
    options->filters = filters;
}

/* A long option that getopt_long did not take: unknown, ambiguous, or with a value it has no use
 * for. */
static _Noreturn void wrong_long_option(const char *word)
{
    size_t length = strcspn(word, "=");
    char matches[256] = "";
    int count = 0;
    for (const struct option *o = long_options; o->name != NULL; o++) {
        if (strncmp(o->name, word + 2, length - 2) != 0)
            continue;
        size_t used = strlen(matches);
        snprintf(matches + used, sizeof matches - used, "%s--%s", count++ > 0 ? ", " : "", o->name);
        if (o->name[length - 2] == '\0') { /* the whole name, whatever else it begins */
            snprintf(matches, sizeof matches, "--%s", o->name);
            count = 1;
            break;
        }
    }
    const char *name = text_safe(text("%.*s", (int)length, word));
    if (count > 1)
        leave_with(EXIT_USAGE, "%s is short for more than one option; give one of %s", name,
                   matches);
    if (count == 1)
        leave_with(EXIT_USAGE, "%s takes no value; leave out the = and what follows", matches);
    leave_with(EXIT_USAGE, "%s: no such option; see conform --help", name);
}

/* What getopt_long says '?' to.  It gives the letter of a short option in optopt; of a long one
 * that is known, its value; else 0. */
static _Noreturn void wrong_option(char **argv)
{
    bool is_long = optopt == 0;
    for (const struct option *o = long_options; o->name != NULL; o++)
        is_long = is_long || o->val == optopt;
    if (is_long)
        wrong_long_option(argv[optind - 1]);
    char letter = (char)optopt, clean[8];
    leave_with(EXIT_USAGE, "-%s: no such option; see conform --help",
               text_clean(clean, sizeof clean, &letter, 1, 0));
}

static _Noreturn void missing_value(const char *word)
{
    if (strncmp(word, "--", 2) == 0)
        leave_with(EXIT_USAGE, "%s needs a value; see conform --help", word);
    leave_with(EXIT_USAGE, "-%c needs a value; see conform --help", optopt);
}

static void set_command(struct options *options, enum command command)
{
    if (options->command != COMMAND_RUN && options->command != command)
        leave_with(
            EXIT_USAGE,
            "--exec, --replay, --list, --list-handlers, --explain and --clauses exclude each "
            "other; give one of them");
    options->command = command;
}

static void take_option(struct options *options, int option, char **argv)
{
    switch (option) {
    case 'H':
        if (options->handler != NULL)
            leave_with(EXIT_USAGE, "--handler is given twice; give it once");
        options->handler = optarg;
        break;
    case 'j':
        options->jobs = count_option("--jobs", optarg, MOST_WORKERS);
        break;
    case 'l':
        set_command(options, COMMAND_LIST);
        break;
    case 'q':
        options->quiet = true;
        break;
    case 'v':
        options->verbose = true;
        break;
    case OPT_CLAUSES:
        set_command(options, COMMAND_CLAUSES);
        break;
    case OPT_COLOR:
        options->color = color_option(optarg);
        break;
    case OPT_EXEC:
        set_command(options, COMMAND_EXEC);
        break;
    case OPT_EXPLAIN:
        set_command(options, COMMAND_EXPLAIN);
        options->explain = optarg;
        break;
    case OPT_FAIL_EACH:
        options->fail_each = true;
        break;
    case OPT_HELP:
        fputs(help, stdout);
        exit(fflush(stdout) == 0 ? 0 : EXIT_HARNESS_BROKE);
    case OPT_JSON:
        options->json = optarg;
        break;
    case OPT_JUNIT:
        options->junit = optarg;
        break;
    case OPT_LIST_HANDLERS:
        set_command(options, COMMAND_LIST_HANDLERS);
        break;
    case OPT_MAX_TIME:
        options->max_time = seconds_option("--max-time", optarg, 0.01, 1e6);
        break;
    case OPT_MEMCHECK:
        options->memcheck = true;
        break;
    case OPT_MOST_RUNS:
        options->most_runs = count_option("--most-runs", optarg, 1000000000);
        break;
    case OPT_NO_FORK:
        options->no_fork = true;
        break;
    case OPT_KEEP_FAILING:
        options->keep_failing = true;
        break;
    case OPT_PYTHON:
        options->python = optarg;
        break;
    case OPT_PRINT:
        options->print = true;
        break;
    case OPT_RECORD:
        options->record = optarg;
        break;
    case OPT_REPEAT:
        options->repeat = count_option("--repeat", optarg, 1000000);
        break;
    case OPT_REPLAY:
        set_command(options, COMMAND_REPLAY);
        options->replay = optarg;
        break;
    case OPT_RUN:
        add_filter(options, true, optarg);
        break;
    case OPT_SEED:
        options->seed = seed_option(optarg);
        break;
    case OPT_SHUFFLE:
        options->shuffle = true;
        break;
    case OPT_SKIP:
        add_filter(options, false, optarg);
        break;
    case OPT_STACKS:
        options->stacks = true;
        break;
    case OPT_STRICT:
        options->strict = true;
        break;
    case OPT_TAP:
        options->tap = optarg;
        break;
    case OPT_TIMEOUT:
        options->timeout = seconds_option("--timeout", optarg, 0.01, 86400);
        break;
    case OPT_UNCHECKED:
        options->unchecked = true;
        break;
    case OPT_UNTIMED:
        options->untimed = true;
        break;
    case OPT_UNTIL_FAIL:
        options->until_fail = true;
        break;
    case OPT_VERSION:
        puts("conform " PACKAGE_VERSION);
        exit(fflush(stdout) == 0 ? 0 : EXIT_HARNESS_BROKE);
    case ':':
        missing_value(argv[optind - 1]);
    default:
        wrong_option(argv);
    }
}

static void check_reports(const struct options *options)
{
    static const char *const names[] = {"--tap", "--junit", "--json"};
    const char *const files[] = {options->tap, options->junit, options->json};
    for (int i = 0; i < 3; i++) {
        if (files[i] != NULL && files[i][0] == '\0')
            leave_with(EXIT_USAGE, "%s: the name is empty; name a file, or - for stdout", names[i]);
        for (int k = 0; k < i; k++) {
            if (files[i] != NULL && files[k] != NULL && strcmp(files[i], files[k]) == 0)
                leave_with(EXIT_USAGE, "%s and %s cannot both go to %s; name another file",
                           names[k], names[i],
                           strcmp(files[i], "-") == 0 ? "stdout" : text_safe(files[i]));
        }
    }
}

static void check_together(const struct options *options)
{
    check_reports(options);
    if (options->quiet && options->verbose)
        leave_with(EXIT_USAGE, "--quiet and --verbose exclude each other; give one of them");
    if (options->no_fork && (options->repeat > 1 || options->until_fail))
        leave_with(EXIT_USAGE, "--no-fork runs one property once; leave out --repeat and "
                               "--until-fail");
    if (options->no_fork && options->memcheck)
        leave_with(EXIT_USAGE, "--no-fork and --memcheck exclude each other; to look at one "
                               "property under valgrind, say valgrind conform ... --no-fork");
    if (options->command != COMMAND_EXEC && (options->stacks || options->fail_each))
        leave_with(EXIT_USAGE, "--stacks and --fail-each go with --exec; see conform --help");
    if (options->record != NULL && (options->command != COMMAND_EXEC || options->fail_each))
        leave_with(EXIT_USAGE, "--record goes with --exec, and not with --fail-each; see conform "
                               "--help");
    if ((options->print || options->unchecked) && options->command != COMMAND_REPLAY)
        leave_with(EXIT_USAGE, "--print and --unchecked go with --replay; see conform --help");
    if (options->most_runs != 0 && !options->fail_each)
        leave_with(EXIT_USAGE, "--most-runs goes with --fail-each; see conform --help");
    if (options->untimed && options->record == NULL)
        leave_with(EXIT_USAGE, "--untimed goes with --record; see conform --help");
    if (options->keep_failing && !options->fail_each)
        leave_with(EXIT_USAGE, "--keep-failing goes with --fail-each; see conform --help");
    bool reports = options->tap != NULL || options->junit != NULL || options->json != NULL;
    if (options->command == COMMAND_EXEC && (reports || options->no_fork || options->memcheck))
        leave_with(EXIT_USAGE, "--exec runs no battery; leave out the options of one");
    bool needs_handler = options->command == COMMAND_RUN || options->command == COMMAND_EXEC ||
                         (options->command == COMMAND_REPLAY && !options->print);
    if (needs_handler && options->handler == NULL)
        leave_with(EXIT_USAGE, "no handler to test; say --handler=PATH, or see conform --help");
}

void options_read(int argc, char **argv, struct options *options)
{
    *options = (struct options){.program = argv[0], .seed = 49};
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, ":H:j:lqv", long_options, NULL)) != -1)
        take_option(options, option, argv);
    if (options->command == COMMAND_EXEC)
        options->program_arguments = argv + optind;
    else if (optind < argc)
        leave_with(EXIT_USAGE, "%s: an argument that is not an option; say --handler=%s to test it",
                   text_safe(argv[optind]), text_safe(argv[optind]));
    check_together(options);
    if (options->most_runs == 0)
        options->most_runs = 20000;
}

bool options_take(const struct options *options, const char *id)
{
    bool taken = true;
    for (size_t i = 0; i < options->filter_count; i++) {
        if (options->filters[i].take)
            taken = false;
    }
    for (size_t i = 0; i < options->filter_count; i++) {
        if (fnmatch(options->filters[i].glob, id, 0) == 0)
            taken = options->filters[i].take;
    }
    return taken;
}
