/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options, a row each, in the order of --help.  A row is all that an option needs but a field
 * in struct options, and whoever reads that.
 */
#include "model/option_table.h"

#include <stddef.h>

#include "model/record.h"

const struct command_row command_rows[COMMANDS] = {
    [COMMAND_RUN] = {.name = "the battery"},
    [COMMAND_NO_FORK] = {.name = "--no-fork", .of = COMMAND_RUN, .is_kind = true},
    [COMMAND_EXEC] = {.name = "--exec", .of = COMMAND_RUN},
    [COMMAND_RECORD] = {.name = "--exec --record", .of = COMMAND_EXEC, .is_kind = true},
    [COMMAND_FAIL_EACH] = {.name = "--exec --fail-each", .of = COMMAND_EXEC, .is_kind = true},
    [COMMAND_REPLAY] = {.name = "--replay", .of = COMMAND_RUN},
    [COMMAND_PRINT] = {.name = "--replay --print", .of = COMMAND_REPLAY, .is_kind = true},
    [COMMAND_SEARCH] = {.name = "--search", .of = COMMAND_RUN},
    [COMMAND_BENCH] = {.name = "--bench", .of = COMMAND_RUN},
    [COMMAND_COMPARE] = {.name = "--compare", .of = COMMAND_RUN},
    [COMMAND_FROM] = {.name = "--from", .of = COMMAND_RUN},
    [COMMAND_MERGE] = {.name = "--merge", .of = COMMAND_RUN},
    [COMMAND_VERIFY] = {.name = "--verify", .of = COMMAND_RUN},
    [COMMAND_INIT] = {.name = "--init", .of = COMMAND_RUN},
    [COMMAND_LIST] = {.name = "--list", .of = COMMAND_RUN},
    [COMMAND_LIST_HANDLERS] = {.name = "--list-handlers", .of = COMMAND_RUN},
    [COMMAND_EXPLAIN] = {.name = "--explain", .of = COMMAND_RUN},
    [COMMAND_CLAUSES] = {.name = "--clauses", .of = COMMAND_RUN},
};

enum {
    RUN = 1 << COMMAND_RUN,
    NO_FORK = 1 << COMMAND_NO_FORK,
    EXEC = 1 << COMMAND_EXEC,
    RECORD = 1 << COMMAND_RECORD,
    FAIL_EACH = 1 << COMMAND_FAIL_EACH,
    REPLAY = 1 << COMMAND_REPLAY,
    PRINT = 1 << COMMAND_PRINT,
    SEARCH = 1 << COMMAND_SEARCH,
    BENCH = 1 << COMMAND_BENCH,
    COMPARE = 1 << COMMAND_COMPARE,
    FROM = 1 << COMMAND_FROM,
    MERGE = 1 << COMMAND_MERGE,
    VERIFY = 1 << COMMAND_VERIFY,
    INIT = 1 << COMMAND_INIT,
    LIST = 1 << COMMAND_LIST,
    LIST_HANDLERS = 1 << COMMAND_LIST_HANDLERS,
    EXPLAIN = 1 << COMMAND_EXPLAIN,
    CLAUSES = 1 << COMMAND_CLAUSES,

    BATTERY = RUN | NO_FORK,
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
        .man = "Write a report into FILE too: " words ".",                                         \
    },

const struct option_row option_rows[] = {
    {.heading = "What to test"},
    {
        .name = "handler",
        .letter = 'H',
        .argument = "HANDLER",
        .takers = BATTERY | PROGRAM | REPLAY | VERIFY | SEARCH | BENCH,
        .take = take_handler,
        .help = "a shared object that exports one, as PATH[:SYMBOL] (see\n"
                "nep49.h), or the NAME of a reference handler (see\n"
                "--list-handlers), or default, which is NumPy's own;\n"
                "repeatable: the battery is run on each",
        .man = "The handler to test, as above. Given more than once, the battery is run on each, "
               "one after the other, with a report for each: Python starts once for all.",
    },
    {
        .name = "claim",
        .argument = "CLAIM",
        .takers = BATTERY | PROGRAM | REPLAY | SEARCH,
        .take = take_claim,
        .help = "what the handler promises beyond the contract, as its own\n"
                "nep49_claims would (see nep49.h): alignment=64; repeatable",
        .man =
            "Hold the handler to that promise beyond the contract, too: for one that comes from "
            "Python, or from somebody else, and has no\n"
            ".Dv nep49_claims .\n"
            "Reports tell such claims apart from the handler's own.\n"
            "Of two the stronger is kept; one that contradicts the handler's own, as guard=before "
            "does guard=after, is wrong usage, and so are memory nodes that this machine lacks.",
    },
    {
        .name = "run",
        .argument = "GLOB",
        .takers = BATTERY | LIST | CLAUSES,
        .take = take_run,
        .help = "only the properties whose id matches the pattern, in which\n"
                "* is anything, ? a letter and [ab] one of two: 'realloc.*'\n"
                "(quote it; repeatable: what any takes is run)",
        .man = "Run only the properties whose id matches the pattern\n"
               ".Pq see Xr glob 7 ;\n"
               "a\n"
               ".Sq *\n"
               "matches the dot too, and the shell is kept off by quotes. Given more than once, "
               "what any of them takes is run.",
    },
    {
        .name = "skip",
        .argument = "GLOB",
        .takers = BATTERY | LIST | CLAUSES,
        .take = take_skip,
        .help = "not those, in the same way; of all --run and --skip that\n"
                "match an id the last one decides",
        .man = "Leave out the properties whose id matches. Of several --run and --skip that match "
               "an id the last one decides. With any --run nothing that it does not match is run.",
    },

    {
        .name = "numpy",
        .takers = BATTERY | LIST | CLAUSES,
        FLAG(numpy),
        .help = "also the properties about NumPy itself, which decide nothing\n"
                "about the handler; --run 'runtime.*' runs these alone",
        .man = "Run the properties about NumPy itself too, which decide nothing about the handler. "
               "Without this option, such a property runs only if a --run pattern begins with the "
               "name of its group, as\n"
               ".Sq runtime.*\n"
               "does.",
    },
    {
        .name = "shard",
        .argument = "I/N",
        .takers = RUN | LIST,
        .take = take_shard,
        .help = "of those the I-th of N parts, to be run on other machines;\n"
                "--merge makes one report of their --json",
        .man = "Run the I-th of N parts of what is left to run, 1 to 1000. No property is in two, "
               "together they are all, and none changes parts where others are added. What "
               "--json writes of each is for --merge.",
    },

    {.heading = "How to run"},
    {
        .name = "quick",
        .takers = RUN,
        FLAG(quick),
        .help = "a few properties, in a fraction of a second: to run while one\n"
                "writes a handler; it proves nothing",
        .man = "Run a few properties, without starting Python where the handler does not need it "
               "and no --python is given: to run while one writes a handler. The last line says "
               "what failed, and nothing else, for nothing is proved. The exit status is 1 where "
               "something failed and else 0, but for 3, 4 and 77.",
    },
    {
        .name = "jobs",
        .letter = 'j',
        .argument = "N",
        .takers = RUN | SEARCH,
        COUNT(jobs, MOST_WORKERS),
        .help = "workers at once (default: one for each core)",
        .man = "Run up to N properties at once, 1 to 64. The default is one for each core.",
    },
    {
        .name = "timeout",
        .argument = "SECONDS",
        .takers = RUN | PROGRAM | REPLAY | SEARCH | BENCH,
        SECONDS(timeout, 0.01, 86400),
        .help = "limit for one call, and for a property that makes none\n"
                "(default: 10)",
        .man = "The limit for one call of the handler, and for a property that makes none, 10 "
               "unless told\n"
               ".Pq with Fl -memcheck No and Fl -helgrind No 120 .\n"
               "A call that does not come back within it is a TIMEOUT. Once a property has reached "
               "it, the next ones get a fifth of it, then a tenth. A property that gets on is not "
               "ended for its slowness; when half of this time is over, those that try very many "
               "sizes or requests leave some out, and are INCOMPLETE. With "
               "--exec it is the limit for loading the handler.",
    },
    {
        .name = "max-time",
        .argument = "SECONDS",
        .takers = RUN | BENCH,
        SECONDS(max_time, 0.01, 1e6),
        .help = "limit for the whole run; what is left is INCOMPLETE\n"
                "(default: 60; more where the machine is busy)",
        .man =
            "The limit for the whole run, 60 unless told\n"
            ".Pq with Fl -memcheck No and Fl -helgrind No 1200 ,\n"
            "and more where the machine has more to run than it has cores. What is under way or "
            "has not begun when it is over is INCOMPLETE. With --repeat it is the limit for "
            "each round. With --bench: how long it takes, 55 unless told, or 9; three rounds are "
            "made in any case.",
    },
    {
        .name = "seed",
        .argument = "N",
        .takers = BATTERY | SEARCH,
        .take = take_seed,
        .help = "of all random choices (default: 49)",
        .man = "The seed of all random choices, decimal, or hexadecimal with a leading\n"
               ".Li 0x .\n"
               "The default is 49, and for search.model another one each day.",
    },
    {
        .name = "daily-seed",
        .argument = "N",
        .takers = BATTERY,
        .take = take_daily_seed,
        .help = "of search.model alone (default: that of --seed, or the day)",
    },
    {
        .name = "shuffle",
        .takers = RUN,
        FLAG(shuffle),
        .help = "run the properties in an order drawn from the seed",
    },
    {
        .name = "repeat",
        .argument = "N",
        .takers = RUN,
        COUNT(repeat, 1000000),
        .help = "N rounds of everything; what was bad in any is reported",
        .man = "Run everything N times. Of each property the worst round is reported, and how many "
               "were bad.",
    },
    {
        .name = "until-fail",
        .takers = RUN,
        FLAG(until_fail),
        .help = "run everything again and again until something is bad;\n"
                "with --repeat, N times at the most",
    },
    {
        .name = "no-fork",
        .takers = NO_FORK,
        .command = COMMAND_NO_FORK,
        .help = "run one property in this process, for a debugger",
        .man = "Run one property in this process, for a debugger, and without any limit of time. "
               "--run has to leave exactly one.",
    },
    {
        .name = "memcheck",
        .takers = RUN,
        FLAG(memcheck),
        .help = "run under valgrind and attribute its errors to the properties",
        .man =
            "Run under valgrind. Memory errors are attributed to the property in which they occur, "
            "and one that has any fails, unless they are the interpreter's or NumPy's. Those "
            "that are known are suppressed. A property that has others is run once more with "
            "nothing but libc's allocator in the place of the handler, and what memcheck "
            "reports then too is not counted: the same kind of error at the same place, called "
            "from the same three; a failure or a crash that libc's allocator comes to as well is "
            "valgrind's own, or the interpreter's, and skips the property. What was learnt that "
            "way is kept in\n"
            ".Pa ~/.cache/conform .",
    },
    {
        .name = "helgrind",
        .takers = RUN,
        FLAG(helgrind),
        .help = "look for what may be data races, in a handler as it is,\n"
                "under valgrind; by itself in what has several threads",
        .man = "Run under valgrind, whose helgrind looks for data races in a handler as it is. Two "
               "accesses to the same memory, one of them a write, with nothing that helgrind knows "
               "to put them in order, are a WARN of\n"
               ".Cm threads.no-data-race ,\n"
               "which names the lines of both, where both are in the handler or in what it brings "
               "along. It is no failure, for helgrind does not know atomics: a load and a store of "
               "them are the same instructions as of anything else, and what they put in order "
               "seems not to be. Where no atomics are used, each is a data race, and\n"
               ".Fl -strict\n"
               "makes it one; else\n"
               ".Fl -tsan\n"
               "tells. Without --run the properties are run that call from several threads.",
    },
    {
        .name = "tsan",
        .takers = RUN,
        FLAG(tsan),
        .help = "look for data races, in a handler that was compiled with\n"
                "-fsanitize=thread; by itself in what has several threads",
        .man = "Look for data races in a handler that was compiled with\n"
               ".Fl fsanitize Ns = Ns Cm thread ,\n"
               "whose runtime is loaded into this program first. Two accesses to the same memory, "
               "one of them a write, with nothing that puts them in order, are a failure of\n"
               ".Cm threads.no-data-race ,\n"
               "which names the lines of both, where both are in the handler or in what it brings "
               "along. Without --run the properties are run that call from several threads.",
    },
    {
        .name = "python",
        .argument = "PATH",
        .takers = BATTERY | PROGRAM | VERIFY | BENCH,
        .take = take_python,
        .help = "the interpreter to embed, such as venv/bin/python\n"
                "(repeatable: the battery is run in each)",
        .man = "The interpreter to embed, such as\n"
               ".Pa venv/bin/python :\n"
               "any CPython from 3.9 on, with its own packages, NumPy 1.22 or newer among them. "
               "A name without a slash is looked up in\n"
               ".Ev PATH\n"
               "first. Without the option, the first\n"
               ".Pa python3\n"
               "that has NumPy is taken, of the virtual environment that is active, then of the "
               "one that\n"
               ".Nm\n"
               "is installed in, then of the folders of\n"
               ".Ev PATH .\n"
               "Given more than once, the battery is run in each, one after the other, and the "
               "report is a table of what differs or is bad.",
    },
    {
        .name = "strict",
        .takers = BATTERY | COMPARE,
        FLAG(strict),
        .help = "count a WARN as a failure",
    },

    {
        .name = "expect",
        .argument = "FILE",
        .takers = RUN,
        TEXT(expect),
        .help = "failures that are known, in TOML, each with a reason, do not\n"
                "count; what passes against it fails (docs/reports.md)",
        .man = "A list of failures that are known, in TOML: tables\n"
               ".Li [[expect]]\n"
               "with\n"
               ".Cm id ,\n"
               "which may be a glob,\n"
               ".Cm verdict\n"
               "and\n"
               ".Cm reason ,\n"
               "and if wanted\n"
               ".Cm url ,\n"
               ".Cm until ,\n"
               "a date,\n"
               ".Cm numpy\n"
               "and\n"
               ".Cm python ,\n"
               "ranges of versions, and\n"
               ".Cm platform .\n"
               "A property that has the verdict of its entry does not count against the handler, "
               "and the last line says how many there are. Where what an entry is about passes, "
               "the run fails until the entry is taken out. What was to be expected once, and what "
               "there is not, is wrong usage.",
    },

    {
        .name = "repro",
        .argument = "FOLDER",
        .takers = RUN | SEARCH,
        TEXT(repro),
        .help = "for each failure write a C file to the folder that shows it\n"
                "without Python, NumPy and conform (docs/reports.md)",
        .man =
            "For each failure write a file of C that shows it to the folder, which is made where "
            "there is none. It needs no Python, no NumPy and nothing of ours, and says in its "
            "head how it is compiled. The property is run once more with its calls written down, "
            "which are then cut short for as long as four seconds; all of it has as long as "
            "--max-time says. A file is written where they show the defect, and none with libc's "
            "allocator. The report names the file, or says why there is none.",
    },

    {.heading = "A program instead of the battery"},
    {
        .name = "exec",
        .operands = "-- ARGUMENT ...",
        .takers = PROGRAM,
        .command = COMMAND_EXEC,
        .help = "run what python3 ARGUMENT ... would run, with the handler\n"
                "in force in every thread and every call audited",
        .man = "Run what\n"
               ".Ql python3 Ar ARGUMENT ...\n"
               "would run, a script,\n"
               ".Fl m Ar MODULE\n"
               "or\n"
               ".Fl c Ar CODE ,\n"
               "with the handler in force in every thread, and every call of either side audited. "
               "A summary goes to stderr.",
    },
    {
        .name = "stacks",
        .takers = EXEC | RECORD,
        FLAG(stacks),
        .help = "say which lines of Python asked for what is live at the end",
    },
    {
        .name = "record",
        .argument = "FILE",
        .takers = RECORD,
        .command = COMMAND_RECORD,
        TEXT(record),
        .help = "and write every call into a trace",
        .man = "Write every call into a trace, which can be read up to its last whole record "
               "whatever ends the program.",
    },
    {
        .name = "untimed",
        .takers = RECORD,
        FLAG(untimed),
        .help = "without times, so that the same program gives the same file",
        .man = "With --record, leave out the times, so that the same program gives the same file.",
    },
    {
        .name = "fail-each",
        .takers = FAIL_EACH,
        .command = COMMAND_FAIL_EACH,
        .help = "run it with request 1 refused, then with request 2, ...",
        .man = "Run it with the first request refused, then with the second, and so on.",
    },
    {
        .name = "keep-failing",
        .takers = FAIL_EACH,
        FLAG(keep_failing),
        .help = "and each time all requests after it as well",
        .man = "With --fail-each, refuse all requests after that one as well.",
    },
    {
        .name = "most-runs",
        .argument = "N",
        .takers = FAIL_EACH,
        COUNT(most_runs, 1000000000),
        .help = "at most so many times (default: 20000)",
        .man = "With --fail-each, run it at most N times, 20000 unless told. Where that is not "
               "enough the exit status is 5.",
    },

    {.heading = "A trace instead of the battery"},
    {
        .name = "replay",
        .argument = "FILE",
        .takers = REPLAY | PRINT,
        .command = COMMAND_REPLAY,
        TEXT(replay),
        .help = "drive the handler with the calls of a trace, without Python,\n"
                "and judge each",
    },
    {
        .name = "print",
        .takers = PRINT,
        .command = COMMAND_PRINT,
        .help = "show the trace as text instead; no handler is needed",
    },
    {
        .name = "unchecked",
        .takers = REPLAY | SEARCH,
        FLAG(unchecked),
        .help = "make the calls and judge none, to time them; with --search too",
    },

    {.heading = "Figures instead of the battery"},
    {
        .name = "bench",
        .argument = "quick",
        .may_lack_it = true,
        .takers = BENCH,
        .command = COMMAND_BENCH,
        .take = take_bench,
        .help = "how fast up to six --handler are beside NumPy's default one and\n"
                "libc, in a minute; =quick: in ten seconds",
        .man =
            "Measure up to six handlers beside NumPy's default one and libc, in turn and in one "
            "run, for a minute, or with =quick for ten seconds and at fewer sizes: the four "
            "functions, what NumPy does with them, threads, latency and memory. What is printed "
            "are multiples of what the default handler takes; --json and --html write them too. "
            "Nothing is judged, but a handler that crashes or hangs has no figures, and the exit "
            "status is 1.",
    },

    {.heading = "A search instead of the battery"},
    {
        .name = "search",
        .argument = "SECONDS",
        .may_lack_it = true,
        .takers = SEARCH,
        .command = COMMAND_SEARCH,
        SECONDS(search, 0.1, 1e6),
        .help = "make up histories of calls, without Python, judge each call,\n"
                "and cut what shows a defect short (default: 10)",
        .man = "Drive the handler with histories of calls that are made up from the seed, without "
               "Python, for 10 seconds unless told, and judge each call. All histories of a few "
               "calls are among them, and the sizes are those where this handler's classes of "
               "sizes end. The first history that shows a defect is cut short, for up to 30 "
               "seconds more, and printed as calls; the exit status is then 1. "
               "With\n"
               ".Fl -repro\n"
               "it is written as a file of C, too.",
    },
    {
        .name = "memory",
        .argument = "MIB",
        .takers = SEARCH,
        COUNT(memory, 1 << 20),
        .help = "what is live at once, at the most (default: 256)",
        .man = "With --search: have no more than so many MiB live at once, 256 unless told, or "
               "less where there is less.",
    },
    {
        .name = "trace",
        .argument = "FILE",
        .takers = SEARCH,
        TEXT(trace),
        .help = "write what shows a defect into a trace, for --replay",
        .man = "With --search: write the calls that show a defect into a trace, which --replay "
               "reads.",
    },

    {.heading = "What is different"},
    {
        .name = "compare",
        .operands = "OLD NEW",
        .takers = COMPARE,
        .command = COMMAND_COMPARE,
        .help = "say how the second of two reports of --json differs from\n"
                "the first: NEW, FIXED, CHANGED and GONE; nothing is run",
        .man = "Say in what the second of two reports, which --json wrote, differs from the first: "
               "what is\n"
               ".Cm NEW\n"
               "against the handler, what is\n"
               ".Cm FIXED ,\n"
               "which other verdicts have\n"
               ".Cm CHANGED ,\n"
               "and which properties are\n"
               ".Cm GONE .\n"
               "Properties that only the later one knows are counted apart. The reports may be of "
               "two versions of conform, and each of several handlers or interpreters.\n"
               ".Sq -\n"
               "is stdin, for one of them. Nothing is run.",
    },
    {
        .name = "baseline",
        .argument = "FILE",
        .takers = RUN | MERGE,
        TEXT(baseline),
        .help = "say the same of this run and an earlier report",
        .man = "Run the battery, and say in what its report differs from that earlier one.",
    },
    {
        .name = "fail-on",
        .argument = "new",
        .takers = RUN | COMPARE | MERGE,
        .take = take_fail_on,
        .help = "with one of these: status 1 only for what is NEW",
        .man = "With --compare or --baseline: end with 1 only where something about the handler "
               "fails that did not before; with --strict, or warns. What was judged before and is "
               "not now "
               "ends with 4, 5 or 77 as a battery does. The other statuses stay.",
    },

    {
        .heading = "What to print",
        .help = "FILE is - for stdout, which then takes the place of the text",
        .man = "The\n"
               ".Ar FILE\n"
               "of a report appears whole or not at all.\n"
               ".Sq -\n"
               "is stdout; the text for people is then left out.",
    },
    /* clang-format off */
    REPORT_FORMATS(REPORT_FORMAT_ROW)
    /* clang-format on */
    {
        .name = "from",
        .operands = "FILE ...",
        .takers = FROM,
        .command = COMMAND_FROM,
        .help = "write --html or --badge of reports that --json wrote, of\n"
                "several handlers or weeks; nothing is run",
        .man = "Write the\n"
               ".Fl -html\n"
               "or the\n"
               ".Fl -badge\n"
               "of reports that --json wrote: of several handlers, interpreters or weeks a table "
               "by property. The badge tells the worst. Nothing is run.",
    },
    {
        .name = "merge",
        .operands = "FILE ...",
        .takers = MERGE,
        .command = COMMAND_MERGE,
        .help = "report on the --json of all shards as on one run, with --html\n"
                "and the others; nothing is run",
        .man = "Report on the run of which these are the parts, as --json wrote each: what the "
               "whole battery in one run would have told, and end with its status. Parts of "
               "different runs are refused, and so is where one is missing. Nothing is run.",
    },
    {
        .name = "with-subject",
        .takers = BATTERY,
        FLAG(with_subject),
        .help = "with --bundle: and the handler's file",
    },
    {
        .name = "verify",
        .operands = "FILE ...",
        .takers = VERIFY,
        .command = COMMAND_VERIFY,
        .help = "say whether what --bundle wrote is as it was written and\n"
                "complete, and what it says",
        .man = "Say of each file that --bundle wrote whether it is as it was written, whether it "
               "is about each property of that version once, and what that says of which handler. "
               "The exit status is that of the run where it is so, 5 where it is not complete, and "
               "2 where it is not as it was written.",
    },
    {
        .name = "rerun",
        .takers = VERIFY,
        FLAG(rerun),
        .help = "and run it again, on the handler in it or --handler, and\n"
                "compare; status 1 where anything differs",
        .man = "With --verify: run the battery again as it was run then, on the handler that is in "
               "the file, or on --handler, which has to have the same SHA-256, and say what is "
               "different. Where anything is, the exit status is 1.",
    },
    {
        .name = "quiet",
        .letter = 'q',
        .takers = BATTERY | PROGRAM | REPLAY | COMPARE | MERGE | VERIFY | SEARCH | BENCH,
        FLAG(quiet),
        .help = "print only what is wrong",
    },
    {
        .name = "verbose",
        .letter = 'v',
        .takers = BATTERY | FAIL_EACH | MERGE,
        FLAG(verbose),
        .help = "print every property; with --fail-each, what each run prints",
        .man = "Print every property, with the time it took. With --fail-each, let through what "
               "the runs print.",
    },
    {
        .name = "color",
        .argument = "WHEN",
        .takers = BATTERY | MERGE,
        .take = take_color,
        .help = "auto, always or never; NO_COLOR is respected",
        .man = ".Cm auto ,\n"
               ".Cm always\n"
               "or\n"
               ".Cm never .\n"
               ".Cm auto ,\n"
               "the default, colors a terminal, unless\n"
               ".Ev NO_COLOR\n"
               "says no.",
    },

    {.heading = "Instead of testing"},
    {
        .name = "list",
        .letter = 'l',
        .takers = LIST,
        .command = COMMAND_LIST,
        .help = "list the properties (those of --run and --skip)",
        .man = "List the properties that --run and --skip leave: id, level, basis, clause.",
    },
    {
        .name = "list-handlers",
        .takers = LIST_HANDLERS,
        .command = COMMAND_LIST_HANDLERS,
        .help = "list the reference handlers",
    },
    {
        .name = "init",
        .argument = "FOLDER",
        .takers = INIT,
        .command = COMMAND_INIT,
        TEXT(init),
        .help = "write a handler to begin with there: C, its Makefile, and\n"
                "files for CI on GitHub and GitLab",
        .man = "Write a handler to begin with into the folder, which is made, or is empty: a file "
               "of C, its Makefile, which has\n"
               ".Ql make check ,\n"
               "and files for CI on GitHub and GitLab.",
    },
    {
        .name = "explain",
        .argument = "ID",
        .takers = EXPLAIN,
        .command = COMMAND_EXPLAIN,
        TEXT(explain),
        .help = "what a property tests, why, and what to do about it",
        .man = "Say what a property tests, where that is written, why it matters, and what to do "
               "where it does not hold.",
    },
    {
        .name = "clauses",
        .takers = CLAUSES,
        .command = COMMAND_CLAUSES,
        .help = "print all clauses as a page in Markdown",
    },
    {
        .name = "help",
        .letter = 'h',
        .take = take_help,
        .help = "print the options",
    },
    {
        .name = "version",
        .letter = 'V',
        .take = take_version,
        .help = "print the version, and what it works with",
    },
    {
        .name = "options-as-mdoc", /* hidden, as those below: for make docs */
        .take = take_mdoc,
    },
    {
        .name = "options-as-bash",
        .take = take_bash,
    },
    {
        .name = "options-as-zsh",
        .take = take_zsh,
    },
};

const size_t option_row_count = sizeof option_rows / sizeof *option_rows;
_Static_assert(sizeof option_rows / sizeof *option_rows <= MOST_OPTION_ROWS, "more options");
