/* SPDX-License-Identifier: BSD-3-Clause
 *
 * SIGINT, SIGTERM and SIGHUP: whoever sends one wants an end, and what is known so far.
 */
#ifndef CONFORM_INTERRUPT_H
#define CONFORM_INTERRUPT_H

#include <stdbool.h>

/* From now on they are noted.  What nohup or a shell had ignored stays ignored. */
void interrupt_catch(void);

/* The signal that came, or 0. */
int interrupt_came(void);

/* True if one came, for child_wait() and the shrinker.  Ignores `data`. */
bool is_interrupted(void *data);

/* The same for what came to this process alone, and not from a terminal to all that run there; 0
 * where it was asked for already.  To be passed on to a child. */
int interrupt_to_pass_on(void);

/* In a child: as if nothing had been caught. */
void interrupt_reset(void);

/* Says that the program was interrupted, and ends as that signal would have ended it. */
_Noreturn void interrupt_die(void);

/* From now on it says nothing: the parent will, which waits for this process. */
void interrupt_leave_words_to_another(void);

#endif
