/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What came of loading a handler in a child, said in one way by every command.
 */
#ifndef CONFORM_LOADED_H
#define CONFORM_LOADED_H

/* `state` is an enum load_state, and `why` a text that the child could write.
 * Starts `argv` again with more static TLS where that was what the handler had too little of, and
 * returns where it was not. */
void loaded_start_again(int state, const char *why, char **argv);

/* Leaves with one line and the exit code for it where no handler came of it, or none to judge;
 * `argument` is what --handler was given. */
void loaded_or_leave(const char *argument, int state, const char *why);

#endif
