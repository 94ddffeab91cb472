/* SPDX-License-Identifier: BSD-3-Clause
 *
 * _conform: what the .py files of the battery see of the harness.
 */
#ifndef CONFORM_PYTHON_MODULE_H
#define CONFORM_PYTHON_MODULE_H

/* Makes `import _conform` work in the interpreter that runs.  NULL, or one line on why not. */
const char *python_module_add(void);

#endif
