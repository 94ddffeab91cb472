/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exec: the process of a Python program that runs with the handler installed wherever NumPy
 * allocates, and the auditor between the two.  Its findings are in shared memory, so that the
 * summary is printed whatever the program does.
 */
#ifndef CONFORM_AUDITED_PROCESS_H
#define CONFORM_AUDITED_PROCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "model/options.h"
#include "shims/auditor.h"

/* Runs options->operands as python3 would, and prints a summary to stderr.  Returns the program's
 * exit status, or EXIT_NOT_CONFORMANT if the handler broke the contract.  `argv` is executed again
 * if the handler needs more static TLS. */
int exec_run(const struct options *options, char **argv);

/* --fail-each: runs the program with no request refused, then with the first one refused, then with
 * the second, and so on, and prints the results.  Returns EXIT_NOT_CONFORMANT if the handler broke
 * the contract in any run. */
int fail_each_run(const struct options *options, char **argv);

/* From now on a fatal signal prints the block of the handler that is nearest to its address, and
 * the Python line of each thread.  `has_guard`: the handler claims guard pages.  Needs the GIL.
 * Returns false with an exception. */
bool crash_report_begin(struct auditor *auditor, bool has_guard);

/* Prints a line or two for each kind of violation. */
void exec_print_violations(FILE *file, const struct audit *audit);

/* --fail-each: a Python line whose request was refused, and what came of it; one for all runs that
 * ended in the same way up to the first colon. */
enum { BAD_PLACES = 100 };
struct bad_place {
    char outcome[512], where[256];
    size_t nth, runs; /* the first one */
};

/* Shared between this process and the program's. */
struct findings {
    struct audit audit;
    _Atomic int load; /* enum load_state, of the subject */
    char why[512];
    _Atomic bool no_trace,
        trace_broke; /* of --record: not to be opened, or to be written to its end */
    _Atomic bool in_force, imported, reached_end, uncaught, memory_error;
    _Atomic bool free_threaded, gil; /* the latter: in use, as far as the program came */
    _Atomic size_t pythons; /* processes with an interpreter of their own, which is not audited */
    _Atomic size_t own_handler; /* times that the program installed another handler */
    char own_handler_name[128]; /* of the first one */
    size_t refused;             /* by the injector */
    _Atomic bool has_left;      /* by the end of its main module, so that the next two are known */
    size_t blocks_at_exit, bytes_at_exit;
    size_t resident_peak, resident_at_exit;
    char live[8192]; /* table of what is live at the end */
    /* --fail-each */
    _Atomic size_t runs, with_memory_error, with_success, bad_runs, violating_runs;
    _Atomic bool incomplete;
    struct audit first_violating; /* of the first run in which the handler broke the contract */
    size_t first_violating_nth;
    size_t leaked_by_success;  /* bytes live after a run in which nothing was refused */
    char exception[256];       /* that ended this run */
    char first_exception[256]; /* that ended the run in which nothing was refused, or "" */
    char refused_at[256];      /* Python line of this run's refused request, or "" */
    struct bad_place bad[BAD_PLACES];
    size_t bad_places;
};

/* Finds the handler, tries in a child whether it loads, and makes room for the findings, all zero.
 * Leaves, or starts `argv` again, where the handler cannot be had otherwise. */
struct findings *program_prepare(const struct options *options, char **argv);

/* What the handler is called, in words. */
const char *program_handler_label(void);

/* Leaves where no handler came of loading it, or Python did not start. */
void program_check_started(const struct findings *findings);

/* In the program's process, in this order: starts Python with the program's arguments, and calls
 * that function of install_hook.py, or for a handler from a Python module, which wants a NumPy that
 * is whole, begin_behind_numpy. */
void program_start(const char *begin);

/* Runs the program to its end, and that of its process. */
_Noreturn void program_run(void);

/* In a process forked off one that program_start has prepared: findings of its own, and its nth
 * request refused (0: none). */
void program_begin_run(size_t nth, bool keep_failing);

/* Ends this process, with that reason in the findings. */
_Noreturn void program_cannot_start(const char *why);

#endif
