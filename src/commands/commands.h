/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The commands that main() calls.  Each returns the exit status; argv is the command line of the
 * program, with which it may be started again.
 */
#ifndef CONFORM_COMMANDS_H
#define CONFORM_COMMANDS_H

#include "model/options.h"

/* Runs the test suite and reports.  This process, the coordinator, chooses properties, starts
 * workers, and sees to it that every property gets its verdict; it loads no handler. */
enum exit_code battery_run(const struct options *options, char **argv);

/* compare, report and verify: the Python package reads saved reports. */
enum exit_code saved_reports_run(const struct options *options);

/* replay: replays a trace on a handler in a child process; with --print, prints it as text. */
enum exit_code replay_command(const struct options *options, char **argv);

enum exit_code search_command(const struct options *options, char **argv);
enum exit_code bench_command(const struct options *options, char **argv);

/* debug: becomes gdb, on the property in a process of its own. */
_Noreturn int debug_command(const struct options *options);

/* init: writes the files of examples/c-make into the folder, which is created if it is missing.
 * Each of them appears as a whole or not at all. */
enum exit_code init_run(const char *folder);

#endif
