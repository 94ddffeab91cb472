/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What belongs to the process or to its threads, and not to a handler: noted before, and compared
 * after.  A comparison ends the property where something is not what it was; `when` says after
 * what, as in "after a call".
 */
#ifndef CONFORM_PROCESS_STATE_H
#define CONFORM_PROCESS_STATE_H

#include <signal.h>
#include <stdbool.h>

/* How this thread computes, without the flags that say what has happened so far. */
struct arithmetic {
    int rounding, traps;
    bool makes_subnormals, reads_subnormals;
    unsigned vector;       /* x86: the control bits of MXCSR, flush-to-zero among them */
    unsigned stack;        /* x86: the control word of the x87, its precision among them */
    unsigned in_use;       /* x86: a bit for each register of the x87 that is not empty */
    unsigned long control; /* AArch64: FPCR */
};
struct arithmetic note_arithmetic(void);
void expect_same_arithmetic(const struct arithmetic *before, const char *when);

/* The flags of past exceptions: all but inexact, which nearly all arithmetic raises and NumPy does
 * not look at.  Sets or clears all of them; and compares. */
void set_float_flags(bool raised);
void expect_float_flags(bool raised, const char *when);

struct signals {
    struct sigaction actions[NSIG];
    bool known[NSIG];
    sigset_t mask;
    stack_t stack;
};
void note_signals(struct signals *signals);
void expect_same_signals(const struct signals *before, const char *when);

/* What a process can set for itself and its children, each as words; and its environment. */
enum { SETTINGS = 40 };
struct settings {
    char *values[SETTINGS];
    char **environment;
};

/* Which of them: abi.loads-quietly names some. */
enum which_settings { ALL_SETTINGS, SETTINGS_NAMED_AT_LOAD, SETTINGS_NOT_NAMED_AT_LOAD };
void note_settings(struct settings *settings);
void expect_same_settings(const struct settings *before, enum which_settings which,
                          const char *when);

#endif
