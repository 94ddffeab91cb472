/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The process of one property: how it begins, and the handler ("subject") in it.
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

/* The handler under test, and where it comes from. */
PyDataMem_Handler *subject_handler(void);
const struct subject *subject(void);
const struct subject_place *subject_place(void);

/* The claims that it makes, and those of the command line. */
struct claims subject_claims(void);

/* Gets its statistics; false if it has none. */
bool subject_statistics(nep49_statistics *figures);

/* Loads the handler unless it is loaded; ends the property if that fails.  Properties call it only
 * in FIXTURE_UNLOADED and FIXTURE_FRESH. */
void load_subject(void);

/* Only in FIXTURE_FRESH: starts the interpreter if needed, and imports NumPy; the GIL is then held.
 * The second function does not import NumPy. */
void start_python_now(void);
void start_python_bare_now(void);

/* Calls `function` of conformance/MODULE.py, with the GIL held.  The property fails if it raises.
 */
void python_call(const char *module, const char *function);

/* Installs the handler on this thread for good; needs the GIL.  An internal error if `handler` is
 * NULL or NumPy refuses it. */
void install_handler(PyDataMem_Handler *handler);

/* The name from scratch_name() for a folder of this property. */
const char *scratch_folder(void);

/* The property that runs. */
const struct property *running_property(void);

/* ---- for the worker --------------------------------------------------------------------- */

struct call_log;

struct property_setup {
    const struct property *property;
    const struct subject_place *place;
    struct record *record;
    struct load *load; /* to be filled in, or NULL */
    uint64_t seed;
    const char *python_path;
    const char *scratch;  /* see scratch_name() */
    bool data_races;      /* ThreadSanitizer looks for them */
    struct call_log *log; /* of its calls; or NULL */
    double limit;         /* seconds until this process is ended; 0: never */
    void (*at_end)(void); /* called instead of _exit (--no-fork), or NULL */
};

/* Makes this process the property's. */
void begin_property(const struct property_setup *setup);

/* Adds the module _conform to the interpreter.  Returns NULL, or why it failed. */
const char *python_module_add(void);

#endif
