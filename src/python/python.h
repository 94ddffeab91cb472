/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The embedded interpreter: starting it, and forking around it.
 *
 * python_api_open (python/api.h) comes before everything here but python_is_up, python_has_gil and
 * python_pending.
 */
#ifndef CONFORM_PYTHON_H
#define CONFORM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include "model/record.h"
#include "python/api.h"

/* Starts the interpreter whose executable is at `path` (that of a virtual environment gives its
 * packages) and imports NumPy; the GIL is held afterwards.  Fills in `environment`.  NULL, or one
 * line on what went wrong (good until the next calls of fmt()). */
const char *python_start(const char *path, struct environment *environment);

/* The same in a process that properties are forked off.  The garbage collector leaves alone what
 * there is by then: a collection in one of those would write to all of it, and have it copied. */
const char *python_start_to_fork(const char *path, struct environment *environment);

/* The same without NumPy, which python_start imports later. */
const char *python_start_bare(const char *path);

/* Starts it as python3 would with these arguments, the first of which is the path of its
 * executable, and nothing else.  NULL, or one line on what went wrong; *exit_code is then what the
 * arguments ask to end with (--version), or -1. */
const char *python_initialize(char *const *arguments, int *exit_code);

/* Makes a module of these functions, which have to stay, and puts it into sys.modules.  Unlike one
 * that is imported, it does not bring the GIL back.  NULL, or one line on what is wrong. */
const char *python_add_module(const char *name, PyMethodDef *methods);

/* "3.13.5t", with a t where it is free-threaded.  One of fmt()'s buffers. */
const char *python_version(void);

/* Whether it is a build that can do without a GIL. */
bool python_is_free_threaded(void);

/* Whether a GIL is in use now, GIL held.  A free-threaded Python turns it on when it imports a
 * module that wants it, or when PYTHON_GIL=1 says so. */
bool python_uses_gil(void);

/* Whether an interpreter runs in this process. */
bool python_is_up(void);

/* Makes NumPy's C-API usable in this program, GIL held.  NULL, or one line on why not. */
const char *python_import_array(void);

/* Around every fork of a process in which the interpreter runs, GIL held (CPython's
 * PyOS_BeforeFork and its kin: without the first, 3.13 and later abort in the child). */
void python_before_fork(void);
void python_after_fork_parent(void);
void python_after_fork_child(void);

/* Lets go of the GIL, and takes it again, on the thread that started the interpreter. */
void python_release(void);
void python_acquire(void);

/* Whether this thread has it. */
bool python_has_gil(void);

/* The type of the exception that is pending on this thread, borrowed; NULL where none is, and
 * without the GIL. */
const void *python_pending(void);

/* body(data) on a thread that has not, with the GIL. */
void python_call_with_gil(void (*body)(void *), void *data);

/* One of fmt()'s buffers. */
const char *python_type_name(PyObject *type);

/* The pending exception in one line, "ValueError: ... (file.py:12)", cleared.  Good until the next
 * calls of fmt(). */
const char *python_error(void);

/* The Python half of this program: our own .py files, which are compiled into it as data
 * (python_sources.h).  NAME.py is the module conform_NAME.  Call these with the GIL held.  They
 * return NULL, or one line on what is wrong, good until the next calls of fmt(). */

/* Imports GROUP.py and GROUP_*.py, where there are any, so that processes forked from here on need
 * not; the group is the first `length` characters. */
void python_half_prepare(const char *group, size_t length);

/* Whether there is such a function in MODULE.py. */
const char *python_half_has(const char *module, const char *function);

/* Calls it without arguments; what it raised is what is wrong. */
const char *python_half_run(const char *module, const char *function);

/* Writes "FILE:LINE" of the innermost line on this thread that is the program's own: the frames of
 * NumPy's package, and of an import that is on its way, are passed over, unless there are no
 * others.  "" without the GIL or a frame.  A pending exception stays. */
void python_line(char *to, size_t room);
/* The same on a thread that has let go of the GIL, which it waits for. */
void python_line_with_gil(char *to, size_t room);

#endif
