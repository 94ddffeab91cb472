/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The histories in which something new was met, and others that are made of them.
 */
#ifndef CONFORM_MUTATE_H
#define CONFORM_MUTATE_H

#include "search/writer.h"

struct corpus;

/* NULL: no memory. */
struct corpus *corpus_new(void);
void corpus_free(struct corpus *corpus);
/* Keeps a copy, perhaps in the place of another. */
void corpus_add(struct corpus *corpus, const struct step *steps, size_t count,
                struct random *random);
size_t corpus_count(const struct corpus *corpus);

/* Writes one that is made of one or two of the corpus, which is not empty.  Returns its length. */
size_t corpus_mutate(const struct corpus *corpus, const struct size_dict *size_dict,
                     struct random *random, struct step *steps, size_t room);

#endif
