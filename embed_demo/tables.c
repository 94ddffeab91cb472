/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Books to tables.
 */
#include "tables.h"

#include <stdio.h>

#include "tally.h"

static void note_exit(struct books *books, void *unused)
{
    (void)unused;
    books_read(books, &books->at_exit);
}

void tables_note_exit(void)
{
    books_each(note_exit, NULL);
}

struct totals {
    int books;
    size_t blocks_at_exit, bytes_at_exit, blocks, bytes;
    unsigned long strangers;
};

static void add_up(struct books *books, void *data)
{
    struct totals *totals = data;
    struct figures f;
    books_read(books, &f);
    totals->books++;
    totals->blocks_at_exit += books->at_exit.live_blocks;
    totals->bytes_at_exit += books->at_exit.live_bytes;
    totals->blocks += f.live_blocks;
    totals->bytes += f.live_bytes;
    totals->strangers += f.strangers;
}

void tables_prove_balance(void)
{
    struct totals t = {0};
    books_each(add_up, &t);
    tally(t.blocks == 0 && t.strangers == 0, "balance",
          "%zu blocks of %.1f MB outlived the script, %zu outlived Python, %lu freed by another",
          t.blocks_at_exit, (double)t.bytes_at_exit / 1e6, t.blocks, t.strangers);
}

static void print_functions(const struct books *books, const struct figures *f)
{
    static const char *const names[] = {"malloc", "calloc", "realloc", "free"};
    printf("\nWhat %s was asked for:\n\n", books->handler.name);
    printf("%-10s%12s%12s%18s\n", "", "calls", "refused", "bytes");
    for (int i = 0; i < BOOKS_FUNCTIONS; i++)
        printf("%-10s%12lu%12lu%18zu\n", names[i], f->by[i].calls, f->by[i].refused,
               f->by[i].bytes);
    printf("\n%-34s%18zu\n", "biggest block, in bytes", f->biggest);
    printf("%-34s%18zu\n", "most bytes alive at once", f->peak_bytes);
    printf("%-34s%18zu\n", "bytes alive when the script ended", books->at_exit.live_bytes);
    printf("%-34s%18zu\n", "bytes alive when Python had ended", f->live_bytes);
    printf("%-34s%18lu\n", "frees of NULL", f->null_frees);
    printf("%-34s%18lu\n", "frees with a size not asked for", f->wrong_sizes);
    printf("%-34s%18lu\n", "pointers from elsewhere", f->strangers);
}

static void print_owner(struct books *books, void *unused)
{
    struct figures f;
    size_t given = 0;
    (void)unused;
    books_read(books, &f);
    for (int i = BOOKS_MALLOC; i <= BOOKS_REALLOC; i++)
        given += f.by[i].bytes;
    printf("%-12s%-22s%14zu%12zu%12zu%12zu\n", books->owner, books->handler.name, given,
           f.peak_bytes, books->at_exit.live_bytes, f.live_bytes);
}

int tables_print(struct books *main_books)
{
    struct totals t = {0};
    struct figures f;
    books_read(main_books, &f);
    books_each(add_up, &t);
    if (t.books > 1) {
        printf("\nWho allocated what, in bytes:\n\n%-12s%-22s%14s%12s%12s%12s\n", "thread",
               "handler", "given", "peak", "at exit", "at the end");
        books_each(print_owner, NULL);
    }
    print_functions(main_books, &f);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : -1;
}
