/* SPDX-License-Identifier: BSD-3-Clause
 *
 * --memcheck: this program once more, under valgrind.
 */
#ifndef CONFORM_UNDER_MEMCHECK_H
#define CONFORM_UNDER_MEMCHECK_H

#include <stdbool.h>

/* Before anything else, in the process that valgrind runs too: there it leaves it to the one that
 * waits for it to say that it was interrupted. */
void memcheck_look_for_parent(void);

/* Starts this program under valgrind, and leaves as that does.  Comes back in the process
 * that valgrind runs, with the folder for its reports.  The line on the terminal says so meanwhile.
 */
const char *memcheck_enter(char **argv, bool shows_progress);

/* Replaces this process by one under valgrind whose reports go to the same folder. */
_Noreturn void memcheck_start_again(char **argv, const char *folder);

#endif
