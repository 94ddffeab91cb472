/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Mutants that the properties of conformance/owndata.c catch.
 */
#include "meddle.h"

/* Finds warnings about memory a nuisance. */
static void *silences_warnings_malloc(void *ctx, size_t size)
{
    static bool done;
    if (!done && has_gil()) {
        done = true;
        run_python("import warnings; warnings.filterwarnings('ignore', '.*memory policy')");
    }
    return base_malloc(ctx, size);
}
MUTANT(silences_warnings, "owndata.warns", .malloc = silences_warnings_malloc);

/* Switches them on, for whoever uses it. */
static void switches_warnings_on_free(void *ctx, void *p, size_t size)
{
    static bool done;
    base_free(ctx, p, size);
    if (!done && has_gil()) {
        done = true;
        run_python("import os, numpy\n"
                   "os.environ['NUMPY_WARN_IF_NO_MEM_POLICY'] = '1'\n"
                   "core = getattr(numpy, '_core', None) or numpy.core\n"
                   "switch = getattr(core.multiarray._multiarray_umath,\n"
                   "                 '_set_numpy_warn_if_no_mem_policy', bool)\n"
                   "switch(True)\n");
    }
}
MUTANT(switches_warnings_on, "owndata.silent-unless-asked", .free = switches_warnings_on_free);
