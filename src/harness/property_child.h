/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process of one property: its beginning, and the subject in it.
 */
#ifndef CONFORM_PROPERTY_CHILD_H
#define CONFORM_PROPERTY_CHILD_H

#include <stdint.h>

#include "harness/calls.h"
#include "harness/limits.h"
#include "harness/process.h"
#include "harness/threads.h"
#include "harness/verdict.h"
#include "model/claims.h"
#include "model/property.h"
#include "model/record.h"
#include "nep49.h"
#include "subject/subject.h"

/* The handler that is driven, as it was handed over. */
PyDataMem_Handler *subject_handler(void);
const struct subject *subject(void);
const struct subject_place *subject_place(void);

/* Its claims, and those that were made for it. */
struct claims subject_claims(void);

/* What it counts of itself; false where it counts nothing. */
bool subject_statistics(nep49_statistics *figures);

/* Only in FIXTURE_UNLOADED and FIXTURE_FRESH: load the subject now.  It fails where that does.
 */
void load_subject(void);

/* Only in FIXTURE_FRESH: start the interpreter, if it is not up, and import NumPy now; the GIL is
 * then held. */
void start_python_now(void);

/* Likewise: start the interpreter alone. */
void start_python_bare_now(void);

/* Calls `function` of conformance/MODULE.py without arguments, GIL held.  Where it raises, the
 * property fails: it expected NumPy to work as it does with its default handler. */
void python_call(const char *module, const char *function);

/* ---- for the worker, which runs properties ---------------------------------------------- */

struct call_log;

struct property_setup {
    const struct property *property;
    const struct subject_place *place;
    struct record *record;
    struct load *load; /* to be filled in, or NULL */
    uint64_t seed;
    const char *python_path;
    const char *scratch;  /* see scratch_name() */
    bool data_races;      /* they are looked for */
    struct call_log *log; /* its calls are written there; or NULL */
    double limit;         /* seconds until this process is ended; 0: never */
    void (*at_end)(void); /* instead of leaving the process: --no-fork */
};

/* Makes this process the property's: remembers the set-up and catches fatal signals. */
void begin_property(const struct property_setup *setup);
void load_subject(void);

/* The name from scratch_name() for a folder of this property. */
const char *scratch_folder(void);

/* The property that runs. */
const struct property *running_property(void);

/* Makes `import _conform` work in the interpreter that runs.  NULL, or one line on why not. */
const char *python_module_add(void);

/* Installs the handler on this thread for good, as a program does; needs the GIL.  An internal
 * error if `handler` is NULL or NumPy refuses it. */
void install_handler(PyDataMem_Handler *handler);

#endif
