/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of the process and of the calling thread that belongs to the program and not to a
 * handler.  process_state.c has a table of its items, such as the umask.
 */
#ifndef CONFORM_PROCESS_STATE_H
#define CONFORM_PROCESS_STATE_H

#include <stdbool.h>

enum state_part {
    STATE_SIGNALS = 1 << 0,        /* dispositions, mask, alternate stack */
    STATE_AT_LOAD = 1 << 1,        /* locale, umask, limits, working directory */
    STATE_OTHER_SETTINGS = 1 << 2, /* all others, and the environment */
    STATE_SETTINGS = STATE_AT_LOAD | STATE_OTHER_SETTINGS,
    STATE_ARITHMETIC = 1 << 3,  /* rounding, traps, subnormal numbers, control registers */
    STATE_FLOAT_FLAGS = 1 << 4, /* of past exceptions, except inexact, which NumPy ignores */
    STATE_DESCRIPTORS = 1 << 5, /* that are open when the state is noted, some for this purpose */
    STATE_RANDOM_NUMBERS = 1 << 6, /* of libc; noting and comparing them seeds the sequences */
    STATE_OUTPUT = 1 << 7,
};

/* Reads the parts, a bitwise OR of enum state_part.  Returns memory for free(). */
struct state *state_note(unsigned parts);

/* Fails if an item is not what it was; `when` says after what, as in "after a call". */
void state_expect_same(struct state *before, const char *when);

/* Sets or clears all flags of past floating-point exceptions. */
void set_float_flags(bool raised);

#endif
