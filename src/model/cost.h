/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of how long properties take, so that workers have as much to do as each other.
 */
#ifndef CONFORM_COST_H
#define CONFORM_COST_H

/* Milliseconds that the property of that id took with one worker; of those that take little, 0. */
unsigned cost_of(const char *id);

#endif
