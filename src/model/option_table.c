/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options, a row each, in the order of --help.  A row is all that an option needs but a field
 * in struct options, and whoever reads that.
 */
#include "model/option_table.h"

#include <stddef.h>

#include "model/record.h"

#define COMMAND_ROW(symbol, name, of) {name, COMMAND_##of},
const struct command_row command_rows[COMMANDS] = {COMMAND_LIST_OF(COMMAND_ROW)};

#define COMMAND_BIT(symbol, name, of) symbol = 1 << COMMAND_##symbol,
enum {
    COMMAND_LIST_OF(COMMAND_BIT) BATTERY = RUN | NO_FORK,
    PROGRAM = EXEC | RECORD | FAIL_EACH,
};

/* Where a value goes.  A compiler warns where the field is not of the type. */
#define FIELD(type, name)                                                                          \
    .field = offsetof(struct options, name) +                                                      \
             0 * sizeof((type *)NULL == &((struct options *)NULL)->name)
#define FLAG(name) .take = take_flag, FIELD(bool, name)
#define TEXT(name) .take = take_text, FIELD(const char *, name)
#define COUNT(name, greatest) .take = take_count, .most = (greatest), FIELD(size_t, name)
#define SECONDS(name, smallest, greatest)                                                          \
    .take = take_seconds, .least = (smallest), .most = (greatest), FIELD(double, name)

#define REPORT_FORMAT_ROW(format, words, takers_)                                                  \
    {                                                                                              \
        .name = #format,                                                                           \
        .argument = "FILE",                                                                        \
        .takers = takers_,                                                                         \
        TEXT(reports[REPORT_##format]),                                                            \
        .help = "also a report in " words,                                                         \
    },

const struct option_row option_rows[] = {
    {.heading = "What to test"},
    {.name = "handler",
     .letter = 'H',
     .argument = "HANDLER",
     .takers = BATTERY | PROGRAM | REPLAY | SEARCH | BENCH,
     .take = take_handler,
     .help = "a shared object that exports one, as PATH[:SYMBOL] (see\n"
             "nep49.h), or the NAME of a reference handler (see\n"
             "--list-handlers), or default, which is NumPy's own;\n"
             "repeatable: the battery is run on each"},
    {.name = "claim",
     .argument = "CLAIM",
     .takers = BATTERY | PROGRAM | REPLAY | SEARCH,
     .take = take_claim,
     .help = "what the handler promises beyond the contract, as its own\n"
             "nep49_claims would (see nep49.h): alignment=64; repeatable"},
    {.name = "run",
     .argument = "GLOB",
     .takers = BATTERY | LIST | CLAUSES,
     .take = take_run,
     .help = "only the properties whose id matches the pattern, in which\n"
             "* is anything, ? a letter and [ab] one of two: 'realloc.*'\n"
             "(quote it; repeatable: what any takes is run)"},
    {.name = "skip",
     .argument = "GLOB",
     .takers = BATTERY | LIST | CLAUSES,
     .take = take_skip,
     .help = "not those, in the same way; of all --run and --skip that\n"
             "match an id the last one decides"},

    {.name = "numpy",
     .takers = BATTERY | LIST | CLAUSES,
     FLAG(numpy),
     .help = "also the properties about NumPy itself, which decide nothing\n"
             "about the handler; --run 'runtime.*' runs these alone"},

    {.heading = "How to run"},
    {.name = "quick",
     .takers = RUN,
     FLAG(quick),
     .help = "a few properties, in a fraction of a second: to run while one\n"
             "writes a handler; it proves nothing"},
    {.name = "jobs",
     .letter = 'j',
     .argument = "N",
     .takers = RUN | SEARCH,
     COUNT(jobs, MOST_WORKERS),
     .usual_words = "one for each core",
     .help = "workers at once"},
    {.name = "timeout",
     .argument = "SECONDS",
     .takers = RUN | PROGRAM | REPLAY | SEARCH | BENCH,
     SECONDS(timeout, 0.01, 86400),
     .usual = "10",
     .usual_memcheck = "120",
     .usual_bench = "30",
     .help = "limit for one call, and for a property that makes none"},
    {.name = "max-time",
     .argument = "SECONDS",
     .takers = RUN | BENCH,
     SECONDS(max_time, 0.01, 1e6),
     .usual = "60",
     .usual_memcheck = "1200",
     .usual_bench = "55",
     .help = "limit for the whole run, longer on a busy machine; what is\n"
             "left is INCOMPLETE"},
    {.name = "seed",
     .argument = "N",
     .takers = BATTERY | SEARCH,
     .take = take_seed,
     .usual = "49",
     .help = "of all random choices"},
    {.name = "shuffle",
     .takers = RUN,
     FLAG(shuffle),
     .help = "run the properties in an order drawn from the seed"},
    {.name = "repeat",
     .argument = "N",
     .takers = RUN,
     COUNT(repeat, 1000000),
     .help = "N rounds of everything; what was bad in any is reported"},
    {.name = "until-fail",
     .takers = RUN,
     FLAG(until_fail),
     .help = "run everything again and again until something is bad;\n"
             "with --repeat, N times at the most"},
    {.name = "no-fork",
     .takers = NO_FORK,
     .command = COMMAND_NO_FORK,
     .help = "run one property in this process, for a debugger"},
    {.name = "memcheck",
     .takers = RUN,
     FLAG(memcheck),
     .help = "run under valgrind and attribute its errors to the properties"},
    {.name = "tsan",
     .takers = RUN,
     FLAG(tsan),
     .help = "look for data races, in a handler that was compiled with\n"
             "-fsanitize=thread; by itself in what has several threads"},
    {.name = "python",
     .argument = "PATH",
     .takers = BATTERY | PROGRAM | BENCH,
     .take = take_python,
     .help = "the interpreter to embed, such as venv/bin/python"},
    {.name = "strict",
     .takers = BATTERY | COMPARE,
     FLAG(strict),
     .help = "count a WARN as a failure"},

    {.name = "expect",
     .argument = "FILE",
     .takers = RUN,
     TEXT(expect),
     .help = "failures that are known, in TOML, each with a reason, do not\n"
             "count; what passes against it fails (docs/reports.md)"},

    {.name = "repro",
     .argument = "FOLDER",
     .takers = RUN | SEARCH,
     TEXT(repro),
     .help = "for each failure write a C file to the folder that shows it\n"
             "without Python, NumPy and conform (docs/reports.md)"},

    {.heading = "A program instead of the battery"},
    {.name = "exec",
     .operands = "-- ARGUMENT ...",
     .takers = PROGRAM,
     .command = COMMAND_EXEC,
     .help = "run what python3 ARGUMENT ... would run, with the handler\n"
             "in force in every thread and every call audited"},
    {.name = "stacks",
     .takers = EXEC | RECORD,
     FLAG(stacks),
     .help = "say which lines of Python asked for what is live at the end"},
    {.name = "record",
     .argument = "FILE",
     .takers = RECORD,
     .command = COMMAND_RECORD,
     TEXT(record),
     .help = "and write every call into a trace"},
    {.name = "untimed",
     .takers = RECORD,
     FLAG(untimed),
     .help = "without times, so that the same program gives the same file"},
    {.name = "fail-each",
     .takers = FAIL_EACH,
     .command = COMMAND_FAIL_EACH,
     .help = "run it with request 1 refused, then with request 2, ..."},
    {.name = "keep-failing",
     .takers = FAIL_EACH,
     FLAG(keep_failing),
     .help = "and each time all requests after it as well"},
    {.name = "most-runs",
     .argument = "N",
     .takers = FAIL_EACH,
     COUNT(most_runs, 1000000000),
     .usual = "20000",
     .help = "at most so many times"},

    {.heading = "A trace instead of the battery"},
    {.name = "replay",
     .argument = "FILE",
     .takers = REPLAY | PRINT,
     .command = COMMAND_REPLAY,
     TEXT(replay),
     .help = "drive the handler with the calls of a trace, without Python,\n"
             "and judge each"},
    {.name = "print",
     .takers = PRINT,
     .command = COMMAND_PRINT,
     .help = "show the trace as text instead; no handler is needed"},
    {.name = "unchecked",
     .takers = REPLAY | SEARCH,
     FLAG(unchecked),
     .help = "make the calls and judge none, to time them; with --search too"},

    {.heading = "Figures instead of the battery"},
    {.name = "bench",
     .argument = "quick",
     .may_lack_it = true,
     .takers = BENCH,
     .command = COMMAND_BENCH,
     .take = take_bench,
     .help = "how fast up to six --handler are beside NumPy's default one and\n"
             "libc, in about a minute; =quick: in ten seconds"},

    {.heading = "A search instead of the battery"},
    {.name = "search",
     .argument = "SECONDS",
     .may_lack_it = true,
     .takers = SEARCH,
     .command = COMMAND_SEARCH,
     SECONDS(search, 0.1, 1e6),
     .usual = "10",
     .help = "make up histories of calls, without Python, judge each call,\n"
             "and cut what shows a defect short"},
    {.name = "memory",
     .argument = "MIB",
     .takers = SEARCH,
     COUNT(memory, 1 << 20),
     .usual = "256",
     .help = "what is live at once, at the most"},
    {.name = "trace",
     .argument = "FILE",
     .takers = SEARCH,
     TEXT(trace),
     .help = "write what shows a defect into a trace, for --replay"},

    {.heading = "What is different"},
    {.name = "compare",
     .operands = "OLD NEW",
     .takers = COMPARE,
     .command = COMMAND_COMPARE,
     .help = "say how the second of two reports of --json differs from\n"
             "the first: NEW, FIXED, CHANGED and GONE; nothing is run"},
    {.name = "baseline",
     .argument = "FILE",
     .takers = RUN,
     TEXT(baseline),
     .help = "say the same of this run and an earlier report"},
    {.name = "fail-on",
     .argument = "new",
     .takers = RUN | COMPARE,
     .take = take_fail_on,
     .help = "with one of these: status 1 only for what is NEW"},

    {.heading = "What to print",
     .help = "FILE is - for stdout, which then takes the place of the text"},
    /* clang-format off */
    REPORT_FORMATS(REPORT_FORMAT_ROW)
    /* clang-format on */
    {.name = "from",
     .operands = "FILE ...",
     .takers = FROM,
     .command = COMMAND_FROM,
     .help = "write --html or --badge of reports that --json wrote, of\n"
             "several handlers or weeks; nothing is run"},
    {.name = "with-subject",
     .takers = BATTERY,
     FLAG(with_subject),
     .help = "with --bundle: and the handler's file"},
    {.name = "verify",
     .operands = "FILE ...",
     .takers = VERIFY,
     .command = COMMAND_VERIFY,
     .help = "say whether what --bundle wrote is as it was written and\n"
             "complete, and what it says"},
    {.name = "quiet",
     .letter = 'q',
     .takers = BATTERY | PROGRAM | REPLAY | COMPARE | VERIFY | SEARCH | BENCH,
     FLAG(quiet),
     .help = "print only what is wrong"},
    {.name = "verbose",
     .letter = 'v',
     .takers = BATTERY | FAIL_EACH,
     FLAG(verbose),
     .help = "print every property; with --fail-each, what each run prints"},
    {.name = "color",
     .argument = "WHEN",
     .takers = BATTERY,
     .take = take_color,
     .help = "auto, always or never; NO_COLOR is respected"},

    {.heading = "Instead of testing"},
    {.name = "list",
     .letter = 'l',
     .takers = LIST,
     .command = COMMAND_LIST,
     .help = "list the properties (those of --run and --skip)"},
    {.name = "list-handlers",
     .takers = LIST_HANDLERS,
     .command = COMMAND_LIST_HANDLERS,
     .help = "list the reference handlers"},
    {.name = "init",
     .argument = "FOLDER",
     .takers = INIT,
     .command = COMMAND_INIT,
     TEXT(init),
     .help = "write a handler to begin with there: C, its Makefile, and\n"
             "files for CI on GitHub and GitLab"},
    {.name = "explain",
     .argument = "ID",
     .takers = EXPLAIN,
     .command = COMMAND_EXPLAIN,
     TEXT(explain),
     .help = "what a property tests, why, and what to do about it"},
    {.name = "clauses",
     .takers = CLAUSES,
     .command = COMMAND_CLAUSES,
     .help = "print all clauses as a page in Markdown"},
    {.name = "help", .letter = 'h', .take = take_help, .help = "print the options"},
    {.name = "version",
     .letter = 'V',
     .take = take_version,
     .help = "print the version, and what it works with"},
};

const size_t option_row_count = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= MOST_OPTION_ROWS, "more options");
