/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep49_claims and --claim: what a subject promises beyond the contract.
 */
#ifndef CONFORM_CLAIMS_H
#define CONFORM_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

/* On which side of a block the page lies that cannot be touched. */
enum guard { GUARD_NONE, GUARD_AFTER, GUARD_BEFORE };

/* Memory nodes by their numbers, as the kernel has them. */
enum { MOST_NODES = 1024, NODE_BITS = 8 * sizeof(long) };
struct nodes {
    unsigned long bits[MOST_NODES / NODE_BITS];
};

static inline bool has_node(const struct nodes *nodes, size_t node)
{
    return node < MOST_NODES && (nodes->bits[node / NODE_BITS] >> node % NODE_BITS & 1) != 0;
}

struct claims {
    size_t alignment;   /* every block's, a power of two; 0 where none is claimed */
    enum guard guard;   /* GUARD_NONE where none is claimed */
    size_t hugepage;    /* blocks from that size on lie in huge pages; 0 where none do */
    char numa[64];      /* "local", "interleave:NODES" or "bind:NODES"; "" where none is claimed */
    struct nodes nodes; /* those NODES */
    size_t numa_from;   /* for blocks from that size on */
    size_t pinned;      /* blocks from that size on are page-locked for CUDA; 0 where none are */
    size_t shm;         /* blocks from that size on can be mapped by name; 0 where none can */
};

/* Reads `words`, separated by white space.  Returns NULL, or one line on the first word that the
 * suite does not know or cannot read, or that cannot hold beside those before it (good until the
 * next call of fmt()). */
const char *claims_parse(const char *words, struct claims *claims);

/* The same, of words that are added to what was read before. */
const char *claims_add(const char *words, struct claims *claims);

#endif
