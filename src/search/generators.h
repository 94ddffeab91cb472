/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Generators of call sequences.  Each writes the same sequence for the same state of
 * writer->random, size dictionary and room.
 */
#ifndef CONFORM_GENERATORS_H
#define CONFORM_GENERATORS_H

#include "search/writer.h"

/* Blocks of 128 MiB to more than 4 GiB among them; only if size_t has 64 bits.  `zeroed`: the first
 * is zeroed memory, mostly of 4 GiB, which a handler may have to clear. */
void write_huge_blocks(struct writer *writer, bool zeroed);

/* A program that runs for long, for as long as there is room. */
void write_long_run(struct writer *writer);

/* ---- mutate.c: sequences in which something new was met, and others that are made of them ---- */

enum { MOST_KEPT = 256 };
struct corpus { /* zero-initialized: empty */
    struct kept {
        struct step *steps;
        size_t count;
    } kept[MOST_KEPT];
    size_t count;
};

/* Keeps a copy, perhaps in the place of another. */
void corpus_add(struct corpus *corpus, const struct step *steps, size_t count,
                struct random *random);

/* Writes one that is made of one or two of the corpus, which is not empty.  Returns its length. */
size_t corpus_mutate(const struct corpus *corpus, const struct size_dict *size_dict,
                     struct random *random, struct step *steps, size_t room);

#endif
