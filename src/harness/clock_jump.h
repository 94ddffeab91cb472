/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This program defines clock_gettime and its kin itself, so that time can pass for a subject
 * without being waited for.
 */
#ifndef CONFORM_CLOCK_JUMP_H
#define CONFORM_CLOCK_JUMP_H

/* From now on it is so many seconds later, for all that is in this process and asks libc. */
void clock_jump(unsigned seconds);

#endif
