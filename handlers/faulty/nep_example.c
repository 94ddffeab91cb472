/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A mutant that does what the sample code of NEP 49 does, including its defects, written anew: a
 * line of text in the 64 bytes before each block.  handlers/shift_header.c does the same without
 * them.
 *
 *     1 size + 64 wraps: malloc returns a block smaller than 64        malloc.too-large
 *     2 nelem + 64 wraps as well, and elsize multiplies that           calloc.overflow
 *     3 calloc of elsize 0 writes its line past an empty block         calloc.zero-arguments
 *     4 a realloc that fails returns NULL + 64                         realloc.failure-keeps-block
 *     5 realloc to SIZE_MAX shrinks the block instead of failing       realloc.failure-keeps-block
 *     6 realloc leaves the old size in the line                        env.quiet
 *     7 calloc's line has nelem instead of nelem * elsize              env.quiet
 *     8 atoi does not read sizes from 2 GiB on                         env.quiet
 *     9 a wrong size, NumPy's own guesses included, is printed         env.quiet
 *
 * Two more defects need a caller that is wrong first: the 64 bytes before a foreign pointer are
 * read, and realloc and free pass such a pointer to libc.
 */
#include <stdio.h>

#include "mutant.h"

#define MARK "block of data, size " /* with what follows, longer than libc's smallest block */

enum { ROOM = 64 };

struct beneath {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
};

static void *label(char *start, size_t size, const char *how)
{
    if (start == NULL)
        return NULL;
    snprintf(start, ROOM, MARK "%zu%s", size, how);
    return start + ROOM;
}
static bool is_labelled(const char *start)
{
    return strncmp(start, MARK, strlen(MARK)) == 0;
}
#define BENEATH ((const struct beneath *)ctx)
FUNCTION_RETURNS(malloc, example, label(BENEATH->malloc(size + ROOM), size, ""));
FUNCTION_RETURNS(calloc, example,
                 label(BENEATH->calloc(nelem + ROOM, elsize), nelem, ", by calloc"));
FUNCTION(realloc, example)
{
    if (p == NULL)
        return label(BENEATH->realloc(NULL, size + ROOM), size, ", by realloc");
    char *start = (char *)p - ROOM;
    if (!is_labelled(start)) {
        printf("nep_example: realloc of an unknown block\n");
        return realloc(p, size);
    }
    return (char *)BENEATH->realloc(start, size + ROOM) + ROOM;
}
FUNCTION(free, example)
{
    if (p == NULL)
        return;
    char *start = (char *)p - ROOM;
    if (!is_labelled(start)) {
        printf("nep_example: free of an unknown block\n");
        BENEATH->free((char *)p + 8); /* so that libc aborts */
        return;
    }
    size_t labelled = (size_t)atoi(start + strlen(MARK));
    if (labelled != size)
        fprintf(stderr, "nep_example: free(%p, %zu), but its size is %zu\n", p, size, labelled);
    BENEATH->free(start);
}
static struct beneath libc = {malloc, calloc, realloc, free};
OBJECT(nep_example, "malloc.too-large calloc.overflow calloc.zero-arguments", .ctx = &libc,
       FUNCTIONS(example));
