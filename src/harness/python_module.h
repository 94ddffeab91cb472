/* SPDX-License-Identifier: BSD-3-Clause
 *
 * _conform: what the .py files of the battery see of the harness.
 */
#ifndef CONFORM_PYTHON_MODULE_H
#define CONFORM_PYTHON_MODULE_H

#include "nep49.h"

/* Makes `import _conform` work in the interpreter that runs.  NULL, or one line on why not. */
const char *python_module_add(void);

/* Installs the handler on this thread for good, as a program does; needs the GIL.  An internal
 * error if `handler` is NULL or NumPy refuses it. */
void install_handler(PyDataMem_Handler *handler);

#endif
