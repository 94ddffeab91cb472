/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ways to use the subject.  Other properties test what comes back of these calls.
 */
#ifndef CONFORM_ORDINARY_USE_H
#define CONFORM_ORDINARY_USE_H

#include <stddef.h>

/* A block that is resized, or as it was, and freed. */
void resize_and_free(void *p, size_t old, size_t new, size_t given);

/* What nobody can be given. */
void ask_too_much(void);

/* Large blocks, which are not touched: a handler that fills them is asked for small ones. */
void use_large_blocks(void);

/* Small blocks and some larger ones, which all live at once: as the body of a process. */
void use_and_free_all(void *unused);

#endif
