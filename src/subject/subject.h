/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The subject: the handler under test, how it is found, and how it is loaded.
 */
#ifndef CONFORM_SUBJECT_H
#define CONFORM_SUBJECT_H

#include <stdbool.h>
#include <stddef.h>

#include "model/claims.h"
#include "model/record.h"
#include "nep49.h"

/* Where the subject is: found by the coordinator, which loads nothing. */
struct subject_place {
    char *argument;             /* as it was given to --handler */
    char *path;                 /* absolute; of a Python subject, the argument once more */
    char *symbol;               /* or NULL for the two names of nep49.h */
    char *label;                /* short, for reports */
    char *module;               /* of a Python subject, whose attribute `symbol` is; else NULL */
    bool is_default;            /* such a one that is the handler which NumPy comes with */
    PyDataMem_Handler *handler; /* compiled into this program: nothing is loaded; else NULL */
    const char *claims; /* made for it from outside (not owned), which can be read; or NULL */
};

/* Finds what --handler names: a path, PATH:SYMBOL, python:MODULE[:ATTR], "default", or the name of
 * a reference handler in the build tree that this program stands in, at its top or one folder
 * below, or else where it was installed. Returns NULL and fills in `place` (freed by
 * subject_place_free), or one line, which names the argument, on what is wrong (good until the next
 * calls of fmt()). */
const char *subject_find(const char *argument, struct subject_place *place);
void subject_place_free(struct subject_place *place);

/* Calls `each` with the name of every reference handler that can be found, in order. */
void subject_each_reference(void (*each)(const char *name, void *data), void *data);

struct subject {
    void *object;
    PyDataMem_Handler *handler;
    PyDataMem_Handler *(*getter)(const char **why); /* or NULL */
    const char *claims;                             /* the words, "" where there are none */
    void (*get_statistics)(nep49_statistics *);     /* or NULL */
    char how[96]; /* of a Python subject, what kind of object it was */
};

/* Loads a shared object into this process: runs its constructors and its getter.  A Python subject
 * is for python_subject_load. Any load_state but LOAD_UNKNOWN; `why` then receives one line,
 * which does not name the subject. */
enum load_state subject_load(const struct subject_place *place, struct subject *subject, char *why,
                             size_t room);

/* What it claims, and what is claimed for it.  Words of its own that cannot be read are left out.
 */
struct claims subject_all_claims(const struct subject_place *place, const struct subject *subject);

/* An independent second copy of the object (from a copy of its file, as the loader keeps one
 * instance of a file), so that two subjects live side by side.  As subject_load. */
enum load_state subject_load_twin(const struct subject_place *place, struct subject *subject,
                                  char *why, size_t room);

/* Imports place->module, GIL held, and makes a handler of its attribute place->symbol, which may
 * be dotted: a capsule, an object or a class with one, a context manager, or a function that
 * returns one or installs it; where none comes of it, or it is "", what the import itself put in
 * force.  subject->how then says which of these it was.  The handler that was current before is
 * current afterwards.  As subject_load. */
enum load_state python_subject_load(const struct subject_place *place, struct subject *subject,
                                    char *why, size_t room);

/* Imports what of the standard library changes signals as it is imported, where a module may be
 * about to: that is Python's doing. */
void python_subject_prepare(const struct subject_place *place);

/* libc's allocator as a handler: one for the whole process.  The argument makes it a get_handler of
 * search/trial.h. */
PyDataMem_Handler *plain_handler(void *unused);

/* The same as a subject, for which nothing is loaded and which claims nothing. */
const struct subject_place *plain_place(void);

#endif
