/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading the command line with getopt_long.  It stops at the script, whose arguments are its own.
 */
#include "arguments.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_path.h"
#include "base/text.h"

enum { OPT_HELP = 256, OPT_ISOLATED, OPT_PYTHON, OPT_TRACEBACK, OPT_VERSION };

static const struct option long_options[] = {
    {"handler", required_argument, NULL, 'H'},
    {"help", no_argument, NULL, OPT_HELP},
    {"isolated", no_argument, NULL, OPT_ISOLATED},
    {"python", required_argument, NULL, OPT_PYTHON},
    {"traceback", no_argument, NULL, OPT_TRACEBACK},
    {"version", no_argument, NULL, OPT_VERSION},
    {NULL, 0, NULL, 0},
};

static const char help[] =
    "Usage: embed_demo [OPTION]... [SCRIPT [ARGUMENT]...]\n"
    "Run a Python script inside a C program that owns the memory of its NumPy arrays,\n"
    "and print what the memory's handler was asked for.  Without a SCRIPT, run demo.py, which\n"
    "shows all that the program can do and leaves a picture in wave.png.\n"
    "\n"
    "  -H, --handler=PATH[:SYMBOL]  a shared object that exports a handler (see nep49.h)\n"
    "      --handler=NAME           a reference handler (default: aligned)\n"
    "      --isolated               start Python as python -I does: no PYTHON* variables, no\n"
    "                               user site, no script's folder on sys.path\n"
    "      --python=PATH            the interpreter to embed, such as venv/bin/python\n"
    "      --traceback              where the script raises, print all of it, not just a line\n"
    "      --help, --version\n"
    "\n"
    "Exit status: the script's own, 1 where it raised or where what the program claims of the\n"
    "memory does not hold, 130 where it was interrupted;\n"
    "2 wrong usage, 3 the handler cannot be loaded, 4 the interpreter does not work,\n"
    "77 the handler says that it cannot work here.\n";

int complain(int status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fflush(stdout);
    fputs("embed_demo: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    return status;
}

static _Noreturn void print_and_leave(const char *words)
{
    fputs(words, stdout);
    if (fflush(stdout) != 0)
        exit(complain(STATUS_BROKE, "stdout cannot be written: %s", strerror(errno)));
    exit(0);
}

static const char *python_option(const char *value)
{
    char *absolute;
    const char *wrong = python_path_check(value, &absolute);
    if (wrong != NULL)
        exit(complain(STATUS_USAGE, "--python=%s: %s", text_safe(value), wrong));
    return absolute;
}

/* getopt_long leaves a letter, or the value of an option that takes no argument, in optopt. */
static _Noreturn void wrong_option(char **argv)
{
    const char *word = text_safe(argv[optind - 1]);
    if (optopt > 0 && optopt < OPT_HELP)
        exit(complain(STATUS_USAGE, "-%s: no such option; see embed_demo --help",
                      text_safe((char[]){(char)optopt, '\0'})));
    exit(complain(STATUS_USAGE, "%s: %s; see embed_demo --help", word,
                  optopt != 0 ? "takes no value" : "no such option, or short for more than one"));
}

void arguments_read(int argc, char **argv, struct arguments *arguments)
{
    *arguments = (struct arguments){.python = DEFAULT_PYTHON};
    opterr = 0;
    int option;
    while ((option = getopt_long(argc, argv, "+:H:", long_options, NULL)) != -1) {
        switch (option) {
        case 'H':
            if (arguments->handler != NULL)
                exit(complain(STATUS_USAGE, "--handler is given twice; give it once"));
            arguments->handler = optarg;
            break;
        case OPT_HELP:
            print_and_leave(help);
        case OPT_ISOLATED:
            arguments->isolated = true;
            break;
        case OPT_PYTHON:
            arguments->python = python_option(optarg);
            break;
        case OPT_TRACEBACK:
            arguments->traceback = true;
            break;
        case OPT_VERSION:
            print_and_leave("embed_demo " PACKAGE_VERSION "\n");
        case ':':
            exit(complain(STATUS_USAGE, "%s needs a value; see embed_demo --help",
                          text_safe(argv[optind - 1])));
        default:
            wrong_option(argv);
        }
    }
    if (arguments->handler == NULL)
        arguments->handler = "aligned";
    arguments->script_argc = argc - optind;
    arguments->script_argv = argv + optind;
}
