/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of how long properties take, so that workers and shards have as much to do as each
 * other.
 */
#ifndef CONFORM_COST_H
#define CONFORM_COST_H

#include <stddef.h>

/* Milliseconds that the property of that id took with one worker; of those that take little, 0. */
unsigned cost_of(const char *id);

/* The shard of `count`, from 1, that a property of that id belongs to.  It hangs on the id alone
 * and on what cost.c has of those that cost much, so that no property changes shards where others
 * are added. */
size_t shard_of(const char *id, size_t count);

#endif
