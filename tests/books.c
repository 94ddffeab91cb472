/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The books and the arena of the embedding demo by themselves: figures that are known, from one
 * thread and from several, and a fork while others are inside.
 */
#include "../embed_demo/books.h"
#include "../embed_demo/arena.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/instrumented.h"

/* Behind the books: libc, refusing whatever is bigger than ctx says. */
static void *small_malloc(void *ctx, size_t size)
{
    return size <= *(size_t *)ctx ? malloc(size) : NULL;
}

static void *small_calloc(void *ctx, size_t nelem, size_t elsize)
{
    return nelem == 0 || elsize <= *(size_t *)ctx / nelem ? calloc(nelem, elsize) : NULL;
}

static void *small_realloc(void *ctx, void *ptr, size_t size)
{
    return size <= *(size_t *)ctx ? realloc(ptr, size) : NULL;
}

static void small_free(void *ctx, void *ptr, size_t size)
{
    (void)ctx;
    (void)size;
    free(ptr);
}

static size_t limit = 100000;
static const PyDataMem_Handler small = {
    "small",
    1,
    {&limit, small_malloc, small_calloc, small_realloc, small_free},
};

static int count;

static void check(bool held, const char *what)
{
    printf("%s %d - %s\n", held ? "ok" : "not ok", ++count, what);
}

static bool all_free(const struct figures *f)
{
    return f->live_blocks == 0 && f->live_bytes == 0;
}

static void check_one_thread(void)
{
    static struct books books;
    struct figures f;
    check(books_open(&books, &small, "test") == NULL, "a sound handler is taken");
    check(strcmp(books.handler.name, "small") == 0, "under its own name");
    const PyDataMemAllocator *a = &books.handler.allocator;
    void *one = a->malloc(a->ctx, 100), *two = a->calloc(a->ctx, 20, 10), *none;
    one = a->realloc(a->ctx, one, 1000);
    books_read(&books, &f);
    check(f.live_blocks == 2 && f.live_bytes == 1200 && f.peak_bytes == 1200 && f.biggest == 1000,
          "live, peak and biggest");
    check(f.by[BOOKS_MALLOC].bytes == 100 && f.by[BOOKS_CALLOC].bytes == 200 &&
              f.by[BOOKS_REALLOC].bytes == 1000,
          "bytes by function");

    none = a->realloc(a->ctx, one, limit + 1);
    books_read(&books, &f);
    check(none == NULL && f.by[BOOKS_REALLOC].refused == 1 && f.live_bytes == 1200,
          "a realloc that fails changes nothing");
    check(a->malloc(a->ctx, limit + 1) == NULL && a->calloc(a->ctx, (size_t)-1, 2) == NULL,
          "nor do the others");
    one = a->realloc(a->ctx, one, 10);
    a->free(a->ctx, one, 1000);
    a->free(a->ctx, two, 200);
    a->free(a->ctx, NULL, 8);
    books_read(&books, &f);
    check(f.wrong_sizes == 1 && f.null_frees == 1 && f.strangers == 0,
          "a wrong size and a NULL are counted");
    check(f.by[BOOKS_MALLOC].refused == 1 && f.by[BOOKS_CALLOC].refused == 1, "refusals as well");
    check(all_free(&f) && f.by[BOOKS_FREE].calls == 3 && f.by[BOOKS_FREE].bytes == 210 &&
              f.peak_bytes == 1200,
          "all is given back");

    void *grown = a->realloc(a->ctx, malloc(5), 50);
    a->free(a->ctx, malloc(6), 6);
    a->free(a->ctx, a->realloc(a->ctx, NULL, 7), 7);
    books_read(&books, &f);
    check(f.strangers == 2 && f.live_bytes == 50, "strangers are let pass, and one is taken in");
    a->free(a->ctx, grown, 50);
    books_read(&books, &f);
    check(all_free(&f), "and out again");
}

static void count_books(struct books *books, void *data)
{
    (void)books;
    ++*(int *)data;
}

/* What proofs are made of: where blocks lie, and which there are. */
static void check_blocks(void)
{
    static struct books books;
    struct figures f;
    size_t size = 0, sizes[3] = {0};
    int before = 0, open = 0, after = 0;
    books_each(count_books, &before);
    books_open(&books, &small, "blocks");
    books_each(count_books, &open);
    books_read(&books, &f);
    check(f.lowest == NULL && strcmp(books.owner, "blocks") == 0, "nothing lies anywhere yet");
    const PyDataMemAllocator *a = &books.handler.allocator;
    char *one = a->malloc(a->ctx, 300), *two = a->malloc(a->ctx, 50);
    books_read(&books, &f);
    check(f.lowest == (one < two ? one : two) && f.highest == (one < two ? two + 50 : one + 300),
          "from the first byte to the end of the last");
    check(books_know(&books, one, &size) && size == 300 && !books_know(&books, one + 16, &size),
          "a block is known by its address alone");
    check(books_sizes(&books, sizes, 1) == 2 && sizes[1] == 0 &&
              books_sizes(&books, sizes, 3) == 2 && sizes[0] + sizes[1] == 350 && sizes[2] == 0,
          "the sizes of those alive, as far as there is room");
    a->free(a->ctx, one, 300);
    check(!books_know(&books, one, &size) && books_sizes(&books, sizes, 3) == 1, "and no more");
    a->free(a->ctx, two, 50);
    books_close(&books);
    books_each(count_books, &after);
    check(open == before + 1 && after == before, "books are opened and closed");
}

/* One that cannot be given everything, and what it does with what comes back. */
static void check_arena(void)
{
    static struct arena arena;
    size_t room = 64 * 1024;
    check(arena_open(&arena, "arena", &small.allocator, limit) != 0, "no region, no arena");
    check(arena_open(&arena, "arena", &small.allocator, room) == 0, "an arena");
    const PyDataMemAllocator *a = &arena.handler.allocator;
    char *one = a->malloc(a->ctx, 1000), *two = a->malloc(a->ctx, 30000);
    check(one >= arena.base && two + 30000 <= arena.end && (size_t)one % ARENA_STEP == 0 &&
              (size_t)two % ARENA_STEP == 0,
          "blocks in it, on lines of the cache");
    memset(one, 1, 1000);
    check(a->realloc(a->ctx, one, 30000) == NULL && a->malloc(a->ctx, room) == NULL &&
              one[0] == 1 && one[999] == 1,
          "what does not fit is refused, and changes nothing");
    check(a->realloc(a->ctx, one, 1010) == one, "a block that still fits stays");
    a->free(a->ctx, two, 0);
    check(a->calloc(a->ctx, 3, 10000) == two && two[29999] == 0, "one that is free is used again");
    arena_close(&arena);
}

enum { THREADS = 4, ROUNDS = 20000, BLOCKS = 8 };

/* Keeps a few blocks, and replaces or resizes one in each round. */
static void *hammer(void *argument)
{
    const PyDataMemAllocator *a = &((struct books *)argument)->handler.allocator;
    void *blocks[BLOCKS] = {NULL};
    size_t sizes[BLOCKS] = {0};
    for (int i = 0; i < ROUNDS; i++) {
        int slot = i * 5 % BLOCKS;
        size_t size = 1 + (size_t)i * 7 % 300;
        if (i % 3 == 0) {
            a->free(a->ctx, blocks[slot], sizes[slot]);
            blocks[slot] = a->malloc(a->ctx, size);
        } else {
            blocks[slot] = a->realloc(a->ctx, blocks[slot], size);
        }
        sizes[slot] = size;
    }
    for (int i = 0; i < BLOCKS; i++)
        a->free(a->ctx, blocks[i], sizes[i]);
    return NULL;
}

static bool child_gets_on(struct books *books)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        const PyDataMemAllocator *a = &books->handler.allocator;
        signal(SIGALRM, SIG_DFL);
        alarm(10); /* for a lock that nobody opens */
        a->free(a->ctx, a->malloc(a->ctx, 10), 10);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void check_threads(void)
{
    static struct books books;
    struct figures f;
    pthread_t threads[THREADS];
    bool fine = books_open(&books, &small, "test") == NULL, forks = true,
         can_fork = !CONFORM_SANITIZED;
    for (int i = 0; i < THREADS; i++)
        fine = pthread_create(&threads[i], NULL, hammer, &books) == 0 && fine;
    for (int i = 0; can_fork && forks && i < 100; i++)
        forks = child_gets_on(&books);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    books_read(&books, &f);
    check(fine && all_free(&f) && f.strangers == 0 && f.wrong_sizes == 0,
          "threads do not confuse the books");
    check(f.by[BOOKS_MALLOC].calls + f.by[BOOKS_REALLOC].calls == THREADS * ROUNDS,
          "and each of their calls is counted");
    check(forks, can_fork ? "a child that was forked among them gets on"
                          : "a fork among them # SKIP a sanitizer's own allocator locks itself up");
}

static void check_refused(void)
{
    static struct books books;
    PyDataMem_Handler wrong = small;
    wrong.version = 2;
    check(books_open(&books, &wrong, "test") != NULL, "another version is refused");
    wrong = small;
    wrong.allocator.free = NULL;
    check(books_open(&books, &wrong, "test") != NULL, "and so is a function that is not there");
    wrong = small;
    memset(wrong.name, 'x', sizeof wrong.name);
    check(books_open(&books, &wrong, "test") == NULL &&
              strlen(books.handler.name) < sizeof wrong.name,
          "a name without an end is given one");
}

int main(void)
{
    check_one_thread();
    check_blocks();
    check_arena();
    check_threads();
    check_refused();
    printf("1..%d\n", count);
    return 0;
}
