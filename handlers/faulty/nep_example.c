/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nep_example.c - a mutant: what NEP 49's own sample code does, defects included, written anew.
 *
 * It keeps a line of text in 64 bytes before each block.  handlers/shift_header.c is the same
 * idea without the defects, which are these, each with the property that has to catch it:
 *
 *     1 size + 64 wraps: malloc gives out a block smaller than 64     malloc.too-large
 *     2 nelem + 64 wraps as well, and elsize multiplies what wrapped  calloc.overflow
 *     3 calloc of elsize 0 writes its line past an empty block        calloc.zero-arguments
 *     4 a realloc that fails returns NULL + 64                        realloc.failure-keeps-block,
 *                                                                     realloc.retry-after-failure
 *     5 realloc to SIZE_MAX shrinks the block instead of failing      realloc.failure-keeps-block
 *     6 realloc leaves the old size in the line                       env.quiet
 *     7 calloc's line says nelem instead of nelem * elsize            env.quiet
 *     8 atoi does not read sizes from 2 GiB on                        env.quiet
 *     9 a wrong size, NumPy's own guesses included, is printed        env.quiet
 *
 * 6 to 9 show in one way only: free complains on stderr about sizes that are right.
 * Two defects no property can ask for, as the caller has to be wrong first: the 64 bytes before
 * a foreign pointer are read, and realloc and free hand such a pointer on to libc.
 * Sound: malloc(0), realloc(NULL, n), zeroing by calloc(n, 1), 16-byte alignment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nep49.h"

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

static int is_labelled(const char *start)
{
    return strncmp(start, MARK, strlen(MARK)) == 0;
}

static void *example_malloc(void *ctx, size_t size)
{
    const struct beneath *b = ctx;

    return label(b->malloc(size + ROOM), size, "");
}

/* Takes the number of elements for a size, and the size of one for their number. */
static void *example_calloc(void *ctx, size_t nelem, size_t elsize)
{
    const struct beneath *b = ctx;

    return label(b->calloc(nelem + ROOM, elsize), nelem, ", by calloc");
}

static void *example_realloc(void *ctx, void *ptr, size_t new_size)
{
    const struct beneath *b = ctx;

    if (ptr == NULL)
        return label(b->realloc(NULL, new_size + ROOM), new_size, ", by realloc");
    char *start = (char *)ptr - ROOM;
    if (!is_labelled(start)) {
        printf("nep_example: realloc of an unknown block\n");
        return realloc(ptr, new_size);
    }
    return (char *)b->realloc(start, new_size + ROOM) + ROOM;
}

static void example_free(void *ctx, void *ptr, size_t size)
{
    const struct beneath *b = ctx;

    if (ptr == NULL)
        return;
    char *start = (char *)ptr - ROOM;
    if (!is_labelled(start)) {
        printf("nep_example: free of an unknown block\n");
        b->free((char *)ptr + 8); /* so that libc aborts */
        return;
    }
    size_t labelled = (size_t)atoi(start + strlen(MARK));
    if (labelled != size)
        fprintf(stderr, "nep_example: free(%p, %zu), but its size is %zu\n", ptr, size, labelled);
    b->free(start);
}

static struct beneath libc = {malloc, calloc, realloc, free};

NEP49_EXPORT const char kills_nep_example[] = "malloc.too-large calloc.overflow "
                                              "calloc.zero-arguments";

NEP49_EXPORT PyDataMem_Handler nep49_handler = {
    .name = "nep_example",
    .version = 1,
    .allocator = {&libc, example_malloc, example_calloc, example_realloc, example_free},
};
