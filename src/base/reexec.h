/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Starting this program again in place of itself: in the executable of an interpreter, under
 * valgrind, with preloaded libraries or with more static TLS.
 *
 * An interpreter without a shared libpython hosts this program.  Its executable is started with
 * conform-engine.so preloaded, which is this program again and replaces Python's main by its own
 * (src/preloaded.c).  All functions of Python are there then, and Python has not started.
 */
#ifndef CONFORM_REEXEC_H
#define CONFORM_REEXEC_H

#include <stdbool.h>

/* What the next process has to know: words in front of the user's command line, in this order.  A
 * word is "" if there is nothing to say. */
enum reexec_word {
    REEXEC_EXECUTABLE, /* the file that runs: this program, or the interpreter that hosts it */
    REEXEC_OPTION,     /* -c */
    REEXEC_OTHERWISE,  /* Python code that the interpreter runs if it ignores LD_PRELOAD */
    REEXEC_PYTHON,     /* sys.executable of the interpreter to embed */
    REEXEC_ENGINE,  /* conform-engine.so as LD_PRELOAD names it; "" if this program is no guest */
    REEXEC_PROGRAM, /* the file of this program */
    REEXEC_LIBRARY, /* libpython of the interpreter */
    REEXEC_STATIC_TLS, /* STATIC_TLS_TUNABLE if it was added to GLIBC_TUNABLES */
    REEXEC_REPORTS,    /* the folder of valgrind's reports */
    REEXEC_TMPDIR,     /* the user's TMPDIR, in place of which valgrind gets that folder */
    REEXEC_WORDS
};

/* True if reexec() has started a program with this command line. */
bool reexec_is_meant(int argc, char **argv);

/* To be called first in main: takes those words out of the command line, and the engine out of
 * LD_PRELOAD. */
void reexec_consume_argv(int *argc, char ***argv);

/* The word that this process was started with, or "". */
const char *reexec_word(enum reexec_word word);

/* sys.executable of the interpreter whose executable hosts this process, or NULL. */
const char *reexec_host(void);

/* Puts `libraries`, with colons in between, in front of what LD_PRELOAD has. */
void reexec_preload(const char *libraries);

/* Replaces this process: `launcher` has the words of a program that is to start it, up to a NULL;
 * `words` is the state to pass on, in which REEXEC_EXECUTABLE and REEXEC_ENGINE decide whether an
 * interpreter is the host.  The engine has any name before; reexec() finds its file.  Returns only
 * if that fails, with errno set, and why (good until the next calls of fmt()). */
const char *reexec(const char *const *launcher, const char *words[REEXEC_WORDS], char **argv);

/* Objects whose thread-local variables have a fixed place (static TLS), such as jemalloc, load only
 * if ld.so has set enough aside when the program started.  This word of GLIBC_TUNABLES asks for
 * more. */
#define STATIC_TLS_TUNABLE "glibc.rtld.optional_static_tls=8192"

/* True if that is why an object did not load; `why` is ld.so's message. */
bool static_tls_was_short(const char *why);

/* True if this process was started again with that tunable. */
bool static_tls_is_wide(void);

#endif
