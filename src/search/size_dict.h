/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sizes that a search draws from: where bugs live in any handler, and the edges of the size
 * classes of this one, which are learnt from where its blocks lie.
 */
#ifndef CONFORM_SIZE_DICT_H
#define CONFORM_SIZE_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "nep49.h"

enum { MOST_EDGES = 160 };

/* Holds no pointer, as it is written by a process that may end half-way. */
struct size_dict {
    uint32_t count;
    uint32_t edge[MOST_EDGES]; /* sizes of which one byte more takes more room */
};

/* Learns the edges by some thousands of calls, as long as the clock is before `until`: up to 64
 * KiB, or where that is not too slow up to 2 MiB. */
void size_dict_learn(struct size_dict *size_dict, PyDataMem_Handler *handler, bool to_large_ones,
                     uint64_t until);

/* A size of up to `most`: mostly small, and mostly at an edge of some kind. */
size_t size_dict_size(const struct size_dict *size_dict, struct random *random, size_t most);

/* An edge from `least` on, or one or two bytes more, or one less; 0 where none is known. */
size_t size_dict_edge_from(const struct size_dict *size_dict, struct random *random, size_t least);

/* One that is near. */
size_t size_dict_neighbour(const struct size_dict *size_dict, struct random *random, size_t size);

#endif
