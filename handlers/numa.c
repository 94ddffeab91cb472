/* SPDX-License-Identifier: BSD-3-Clause
 *
 * numa.c - on a machine of several memory nodes, says on which of them large blocks lie.
 *
 * NEP49_NUMA is one of
 *
 *     local              the node of the processor that first writes to a page (unless told)
 *     interleave         one page here, one there, over all nodes; interleave:0,2-3 over those
 *     bind:0,2-3         only on those nodes
 *
 * and holds for blocks of NEP49_NUMA_FROM bytes (1M unless told) or more.  A policy belongs to
 * whole pages, so that each of these has a mapping of its own; smaller ones are libc's.  Before
 * the block, in the mapping, stand its size and the mapping's.  A few mappings are kept when they
 * are freed, and given out again, unless the policy is local and there are several nodes.
 */
#define _GNU_SOURCE /* mremap */

#include <errno.h>
#include <numa.h>
#include <numaif.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nep49.h"
#include "nep49_advise.h"
#include "nep49_kept.h"
#include "nep49_setting.h"

#define POLICY "NEP49_NUMA"
#define FROM "NEP49_NUMA_FROM"

enum { PAGE = 4096, FIRST = 64 /* place of a block in its mapping */, MOST_NODES = 1024 };

struct header {
    _Alignas(16) size_t size; /* what was asked for */
    size_t length;            /* of the mapping, 0 where the block is libc's */
};

_Static_assert(sizeof(struct header) % _Alignof(max_align_t) == 0, "leaves libc's blocks aligned");

struct policy {
    int mode;
    unsigned long nodes[MOST_NODES / (8 * sizeof(long))];
};

static struct policy policy;
static size_t from; /* 0: not decided yet */

/* Are the pages of a freed block right for any other?  A local page is on the node of whoever wrote
 * to it, and the next one who does may run on another, if there is one. */
static bool keeps;

static void *finish(void *block, size_t size, size_t length)
{
    ((struct header *)block)[-1] = (struct header){.size = size, .length = length};
    return block;
}

static void *finish_libc(struct header *h, size_t size)
{
    return h ? finish(h + 1, size, 0) : NULL;
}

static size_t length_for(size_t size)
{
    return (size + FIRST + PAGE - 1) &
           -(size_t)PAGE; /* size is at most PTRDIFF_MAX - FIRST - PAGE */
}

/* MPOL_LOCAL takes no nodes.  The kernel wants to hear one more than the highest number. */
static int apply(const struct policy *p, void *start, size_t length)
{
    bool nodes = p->mode != MPOL_LOCAL;

    return (int)mbind(start, length, p->mode, nodes ? p->nodes : NULL, nodes ? MOST_NODES + 1 : 0,
                      0);
}

/* Nothing is written to before the policy is there, or the first page would be elsewhere. */
static void *map_block(size_t size)
{
    size_t length = length_for(size);
    char *start = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (start == MAP_FAILED)
        return NULL;
    if (apply(&policy, start, length) != 0) {
        munmap(start, length);
        return NULL;
    }
    return finish((char *)nep49_advise(start, length) + FIRST, size, length);
}

static void *numa_handler_malloc(void *ctx, size_t size)
{
    (void)ctx;
    if (size > PTRDIFF_MAX - FIRST - PAGE)
        return NULL;
    if (size >= from) {
        size_t length = length_for(size);
        char *start = nep49_take_kept(length, munmap);
        return start ? finish(start + FIRST, size, length) : map_block(size);
    }
    size_t total = size + sizeof(struct header);
    return finish_libc(nep49_advise(malloc(total), total), size);
}

static void *numa_handler_calloc(void *ctx, size_t nelem, size_t elsize)
{
    size_t size;

    (void)ctx;
    if (__builtin_mul_overflow(nelem, elsize, &size) || size > PTRDIFF_MAX - FIRST - PAGE)
        return NULL;
    if (size >= from)
        return map_block(size); /* all zero, unlike those that are kept */
    size_t total = size + sizeof(struct header);
    return finish_libc(nep49_advise(calloc(1, total), total), size);
}

static void numa_handler_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size; /* a guess of NumPy's, and not needed */
    if (ptr == NULL)
        return;
    struct header *h = (struct header *)ptr - 1;
    int saved = errno;
    if (h->length == 0)
        free(h);
    else if (keeps)
        nep49_keep((char *)ptr - FIRST, h->length, munmap);
    else
        munmap((char *)ptr - FIRST, h->length);
    errno = saved;
}

static void *numa_handler_realloc(void *ctx, void *ptr, size_t new_size)
{
    if (ptr == NULL)
        return numa_handler_malloc(ctx, new_size);
    if (new_size > PTRDIFF_MAX - FIRST - PAGE)
        return NULL;

    struct header *h = (struct header *)ptr - 1;
    size_t old = h->size;
    if (h->length == 0 && new_size < from)
        return finish_libc(realloc(h, new_size + sizeof(*h)), new_size);
    if (h->length != 0 && new_size >= from) { /* the policy goes with the mapping, and grows */
        size_t length = length_for(new_size);
        char *start = mremap((char *)ptr - FIRST, h->length, length, MREMAP_MAYMOVE);
        return start != MAP_FAILED ? finish(start + FIRST, new_size, length) : NULL;
    }
    void *moved = numa_handler_malloc(ctx, new_size);
    if (moved != NULL) {
        memcpy(moved, ptr, old < new_size ? old : new_size);
        numa_handler_free(ctx, ptr, old);
    }
    return moved;
}

static PyDataMem_Handler handler = {
    .name = "numa",
    .version = 1,
    .allocator = {NULL, numa_handler_malloc, numa_handler_calloc, numa_handler_realloc,
                  numa_handler_free},
};

NEP49_EXPORT char nep49_claims[128];

static bool add_node(struct policy *p, unsigned long node)
{
    if (node >= MOST_NODES || !numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)node))
        return false;
    p->nodes[node / (8 * sizeof(long))] |= 1ul << node % (8 * sizeof(long));
    return true;
}

/* Nodes as in 0,2-3; false where it is no such list, or one has no memory for this process.
 * libnuma's own function would print what it does not like. */
static bool parse_nodes(const char *text, struct policy *p)
{
    for (char *end; *text >= '0' && *text <= '9'; text = end + 1) {
        unsigned long first = strtoul(text, &end, 10), last = first;
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoul(end + 1, &end, 10);
        if (first > last || last >= MOST_NODES)
            return false;
        for (unsigned long node = first; node <= last; node++) {
            if (!add_node(p, node))
                return false;
        }
        if (*end == '\0')
            return true;
        if (*end != ',')
            return false;
    }
    return false;
}

static bool parse_policy(const char *text, struct policy *p)
{
    if (strcmp(text, "local") == 0) {
        p->mode = MPOL_LOCAL;
        return true;
    }
    if (strcmp(text, "interleave") == 0) {
        p->mode = MPOL_INTERLEAVE;
        for (unsigned long node = 0; node < MOST_NODES; node++)
            add_node(p, node);
        return true;
    }
    if (strncmp(text, "interleave:", 11) == 0) {
        p->mode = MPOL_INTERLEAVE;
        return parse_nodes(text + 11, p);
    }
    p->mode = MPOL_BIND;
    return strncmp(text, "bind:", 5) == 0 && parse_nodes(text + 5, p);
}

/* The claim, with the nodes written out. */
static void write_claim(const char *text, const struct policy *p)
{
    size_t word = strcspn(text, ":");
    int n = snprintf(nep49_claims, sizeof(nep49_claims), "numa=%.*s", (int)word, text);
    char separator = ':';

    for (unsigned node = 0; p->mode != MPOL_LOCAL && node < MOST_NODES; node++) {
        unsigned last = node;
        while (last < MOST_NODES &&
               p->nodes[last / (8 * sizeof(long))] >> last % (8 * sizeof(long)) & 1)
            last++;
        if (last == node)
            continue;
        n += snprintf(nep49_claims + n, sizeof(nep49_claims) - (size_t)n,
                      last - node > 1 ? "%c%u-%u" : "%c%u", separator, node, last - 1);
        if ((size_t)n > sizeof(nep49_claims) - 64) {
            *nep49_claims = '\0'; /* too many to say: nothing is claimed */
            return;
        }
        separator = ',';
        node = last;
    }
    snprintf(nep49_claims + n, sizeof(nep49_claims) - (size_t)n, "@%zu", from);
}

/* Decides once: blocks may be alive when it is called again. */
PyDataMem_Handler *nep49_get_handler(const char **why)
{
    const char *text = getenv(POLICY), *least = getenv(FROM);
    size_t bytes = nep49_parse_bytes(least, 1 << 20);
    struct policy wanted = {0};

    if (from != 0)
        return &handler;
    if (text == NULL)
        text = "local";
    if (bytes == 0)
        return nep49_refuse(
            why, FROM "='%.40s': only a number of bytes from 1 on is accepted, as in 1M", least);
    if (numa_available() < 0)
        return nep49_refuse(
            why,
            "this kernel has no NUMA, or does not let this process use it (get_mempolicy fails)");
    if (!parse_policy(text, &wanted))
        return nep49_refuse(why,
                            POLICY "='%.40s': only local, interleave, interleave:NODES and "
                                   "bind:NODES are accepted, with nodes that have memory, as in "
                                   "0,2-3",
                            text);
    policy = wanted;
    void *trial = map_block(1);
    if (trial == NULL)
        return nep49_refuse(why, POLICY "='%.40s': %s", text, strerror(errno));
    numa_handler_free(NULL, trial, 1);
    from = bytes;
    keeps = policy.mode != MPOL_LOCAL || numa_bitmask_weight(numa_all_nodes_ptr) == 1;
    write_claim(text, &policy);
    return &handler;
}
