/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Installing a handler, as a program does.
 */
#ifndef CONFORM_INSTALL_H
#define CONFORM_INSTALL_H

#include "nep49.h"

/* Puts it in force on this thread, for good; GIL held.  BROK where it is NULL or NumPy will not. */
void install_handler(PyDataMem_Handler *handler);

#endif
