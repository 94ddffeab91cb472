/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of the program know of each other.
 */
#ifndef EMBED_DEMO_H
#define EMBED_DEMO_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* NumPy's functions are reached through a table, which main.c fills in.  Without this name and
 * without NO_IMPORT_ARRAY each file would have a table of its own, and an empty one. */
#define PY_ARRAY_UNIQUE_SYMBOL embed_demo_numpy
#ifndef FILLS_IN_THE_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include <stdbool.h>
#include <stddef.h>

#include "handlers.h" /* after NumPy's header, from which it takes the struct of a handler */

/* ---- main.c: the interpreter, NumPy, and its handler ----------------------------------------- */

/* NumPy finds a handler in a capsule of this very name. */
#define HANDLER_CAPSULE "mem_handler"

/* Makes `handler` the one of every array that is born from now on in this thread's context.
 * Arrays keep the handler that they were born with, so it has to stay where it is for as long as
 * any of them may live: `unused`, if not NULL, is called with the handler's capsule when the last
 * of them is gone, and the last context that has it.  0, or -1 with an exception set. */
int install_handler(PyDataMem_Handler *handler, PyCapsule_Destructor unused);

/* ---- host.c: the module `host`, by which scripts reach this program -------------------------- */

/* Makes `import host` possible; its threads take their arenas from what is behind `tracker`.
 * Called before the interpreter is started.  0, or -1 without memory. */
int host_announce(const struct tracker *tracker);

/* ---- threads.c: threads that run Python, each with a handler and an arena of its own --------- */

enum { THREADS_MOST = 64 };

struct job {
    const char *name;   /* of the part that it does */
    int count;          /* threads, 1 to THREADS_MOST */
    size_t room;        /* bytes of each arena */
    PyObject *function; /* called by each thread as function(rank); returns a list of arrays */
    PyObject *abort;    /* called as abort() where the threads are to end early; or NULL */
};

/* Runs a job, with arenas from `below`, and returns a list of what the calls returned, by rank.
 * Where a call raised, or after a Ctrl-C, returns NULL with the exception set, and the other
 * threads are told by `abort`.
 *
 * Claims that every block that the threads were ever given lay in the arena of the thread it was
 * for; and that each array of the results owns a block of that thread's, with its size. */
PyObject *threads_run(const struct job *job, const PyDataMemAllocator *below);

/* ---- exchange.c: arrays across the border between C and Python ------------------------------- */

/* Lends 1000 numbers of C's to function(object), where the object is an array, whose numbers it
 * doubles, or with `by_dlpack` a capsule for __dlpack__() to return.  It returns an array over the
 * same memory.  Claims, under `name`, that this is so, that the result kept the memory alive, and
 * that it let go once when it went.  0, or -1 with an exception set. */
int exchange_lend(const char *name, PyObject *function, bool by_dlpack);

/* Takes the array of floats that function() returns, as it is, or with `by_dlpack` by its
 * __dlpack__ method; uses its data while Python does other things; and lets go.  Claims, under
 * `name`, that the data was a block of a handler of ours, alive while C used it and no longer than
 * that.  0, or -1 with an exception set. */
int exchange_borrow(const char *name, PyObject *function, bool by_dlpack);

/* ---- report.c: what is printed --------------------------------------------------------------- */

/* Prints a claim, and whether it passed.  `part` is the word that it goes by. */
void report_claim(bool passed, const char *part, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Notes what is alive, when the script has ended. */
void report_note_exit(void);

/* When Python has ended: claims that nothing is alive any more, and that no handler was given a
 * pointer of another's; prints the table, and a last line on whether everything passed.  `status`
 * is the script's; returns the program's. */
int report_end(int status);

#endif
