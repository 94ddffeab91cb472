/* SPDX-License-Identifier: BSD-3-Clause
 *
 * _conform: what the .py files of the battery see of the harness.
 */
#ifndef CONFORM_PYTHON_MODULE_H
#define CONFORM_PYTHON_MODULE_H

/* Makes `import _conform` work in the interpreter that starts next; 0, or -1. */
int python_module_register(void);

#endif
