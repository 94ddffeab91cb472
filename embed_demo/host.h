/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The module `host`, by which scripts reach this program.
 */
#ifndef EMBED_DEMO_HOST_H
#define EMBED_DEMO_HOST_H

#include "books.h"

/* Makes `import host` possible.  Called before the interpreter is started.  0, or -1. */
int host_announce(void);

/* Where the books of the script's main thread are, and where arenas come from.  Called before the
 * script runs. */
void host_begin(struct books *books);

#endif
