/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Making threads meet: on a busy machine, or on one core, those of a short test run one after the
 * other, and two of them are inside the subject at once by rare chance only.
 */
#ifndef CONFORM_PERTURB_H
#define CONFORM_PERTURB_H

#include <stddef.h>

/* The calling thread, number `number` of several, moves to a core of its own as far as there are
 * enough, and is stopped for some ten microseconds again and again, at moments that it does not
 * choose, whenever a timer finds it inside a call into the subject.  That goes on for thirty
 * milliseconds.  The timer's signal is SIGRTMIN, with SA_RESTART.  Does nothing under memcheck and
 * the sanitizers. */
void perturb_begin(size_t number);

/* No more of that. */
void perturb_end(void);

#endif
