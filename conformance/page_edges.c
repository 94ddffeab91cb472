/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large blocks that end beside the edge of a page.  In a mapping that is a byte too short the last
 * one is behind it, where nothing may be or the next mapping begins; and blocks of up to 32 MiB
 * libc takes from its heap once such a one was freed, where the next block begins.
 */
#include "block_checks.h"

#include <fcntl.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20 };

/* What stands before a block, its own and libc's. */
static const size_t headers[] = {0, 8, 16, 24, 32, 48, 64, 80};

/* Three blocks, made as from one stack, of which the first goes, so that there is nothing behind
 * the second where mappings are made from the top down.  It grows where `more` is not its size. */
static void second_of_three(size_t size, size_t more)
{
    enum { COUNT = 3 };
    struct block at[COUNT];
    struct blocks blocks = {.at = at, .room = COUNT};
    for (void *p; blocks.count < COUNT && (p = subject_malloc(size)) != NULL;)
        fill_ends(&at[blocks_add_unwritten(&blocks, p, size)]);
    if (blocks.count == COUNT)
        blocks_free(&blocks, 0); /* the third takes its place */
    struct block *second = &at[1];
    void *q = blocks.count == COUNT - 1 && more != size ? subject_realloc(second->p, more) : NULL;
    if (q != NULL) {
        second->p = q;
        second->size = more;
    }
    for (size_t i = 0; i < blocks.count; i++)
        fill_ends(&at[i]);
    blocks_expect_disjoint(&blocks);
    for (size_t i = 0; i < blocks.count; i++)
        expect_ends(&at[i], fmt("after it and another block of %zu bytes were written", size));
    blocks_free_each(&blocks);
}

void check_page_edges_extent(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t edges[] = {40 * page, 5 * MIB, 17 * MIB, 25 * MIB + page, 39 * MIB + page};
    for (size_t i = 0; i < LENGTH(edges) && edges[i] < largest_to_try(); i++) {
        for (size_t j = 0; j < LENGTH(headers); j++)
            second_of_three(edges[i] + 1 - headers[j], edges[i] + 1 - headers[j]);
    }
}

void check_page_edges_growth(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t edges[] = {9 * page, 33 * page, 40 * page, MIB, 2 * MIB + page};
    for (size_t i = 0; i < LENGTH(edges) && edges[i] < largest_to_try(); i++) {
        for (size_t j = 0; j < LENGTH(headers); j++)
            second_of_three(edges[i] - 600, edges[i] - headers[j]);
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void expect_kernel_writes(int zeros, unsigned char *p, size_t size)
{
    enum { LENGTH = 64 };
    const size_t places[] = {0, (size - LENGTH) / 2, size - LENGTH};
    for (size_t i = 0; i < LENGTH(places); i++) {
        errno = 0;
        ssize_t got = read(zeros, p + places[i], LENGTH);
        expect(got == LENGTH,
               fmt("read(2) to put %d bytes into what malloc(%zu) gave, at byte %zu", LENGTH, size,
                   places[i]),
               "%zd, and %s", got, strerror(errno));
    }
}

void check_kernel_writes(void)
{
    static const size_t sizes[] = {100,     5000,        70000,       300 * KIB,
                                   MIB + 1, 5 * MIB + 1, 9 * MIB + 1, 17 * MIB};
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; zeros >= 0 && i < LENGTH(sizes); i++) {
        void *p = sizes[i] <= largest_to_try() ? subject_malloc(sizes[i]) : NULL;
        if (p != NULL)
            expect_kernel_writes(zeros, p, sizes[i]);
        give_back(p, sizes[i]);
    }
    if (zeros >= 0)
        close(zeros);
}
