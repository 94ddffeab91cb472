/* SPDX-License-Identifier: BSD-3-Clause
 *
 * realloc: what becomes of the other blocks, and of the old place.
 */
#include "block_checks.h"
#include "harness/growth.h"

/* ---- the old place --------------------------------------------------------------------------- */

/* Grown past a neighbour, so that they move, cut, and grown again; not always as often. */
static void move_about(void *data)
{
    size_t turn = ++*(size_t *)data;
    unsigned char *p = must_malloc(200), *small = must_calloc(1, 300);
    p = must_realloc(p, 262144);
    p[262143] = 1;
    small = must_realloc(small, 5000);
    void *blocker = must_malloc(100);
    p = must_realloc(p, 1000);
    for (size_t i = 0; i < turn % 3; i++)
        small = must_realloc(small, 6000 + 900 * i);
    p = must_realloc(p, 400000);
    small = must_realloc(small, 9000);
    p[0] = p[399999] = small[0] = small[8999] = 1;
    subject_free(blocker, 100);
    subject_free(small, 9000);
    subject_free(p, 400000);
}

/* The same sizes without a realloc. */
static void stay_there(void *data)
{
    static const size_t sizes[] = {200, 300, 262144, 5000, 100, 1000, 400000, 6900, 9000};
    (void)data;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        unsigned char *p = i % 2 == 0 ? must_malloc(sizes[i]) : must_calloc(1, sizes[i]);
        p[0] = p[sizes[i] - 1] = 1;
        subject_free(p, sizes[i]);
    }
}

/* Of such a block the old place is as large as many others; hardly a page is touched. */
static const size_t large[] = {(size_t)33 << 20, (size_t)160 << 20};

struct shrinking {
    bool shrinks;
    size_t made[2]; /* of each size: how often a block came before none did any more */
    bool ran_out[2];
};

static void shrink_large(void *data)
{
    enum { LITTLE = 5000 };
    struct shrinking *s = data;
    for (size_t i = 0; i < LENGTH(large); i++) {
        void *p = subject_malloc(large[i]);
        void *q = p != NULL && s->shrinks ? subject_realloc(p, LITTLE) : NULL;
        s->ran_out[i] = s->ran_out[i] || p == NULL;
        s->made[i] += !s->ran_out[i];
        subject_free(q != NULL ? q : p, q != NULL ? LITTLE : large[i]);
        subject_free(must_malloc(LITTLE), LITTLE);
    }
}

/* What the second shrinking cuts off stands before what the first one did. */
static void shrink_twice(void *unused)
{
    static const size_t sizes[] = {1000, 10000, 100000};
    (void)unused;
    for (size_t i = 0; i < LENGTH(sizes); i++) {
        void *p = must_realloc(must_malloc(sizes[i]), sizes[i] / 2);
        subject_free(must_realloc(p, sizes[i] / 4), sizes[i] / 4);
    }
}

static void shrink_once(void *unused)
{
    static const size_t sizes[] = {1000, 10000, 100000};
    (void)unused;
    for (size_t i = 0; i < LENGTH(sizes); i++)
        subject_free(must_realloc(must_malloc(sizes[i]), sizes[i] / 4), sizes[i] / 4);
}

static void free_large(void *data)
{
    (void)data;
    shrink_large(&(struct shrinking){.shrinks = false});
}

/* Where a size_t has 32 bits there are addresses for some twenty: then it does not grow, it ends.
 */
static void expect_large_to_come_back(const struct shrinking *s)
{
    for (size_t i = 0; i < LENGTH(large); i++)
        expect(s->made[i] == 0 || !s->ran_out[i],
               fmt("malloc(%zu) to return a block again, after such blocks were shrunk and freed",
                   large[i]),
               "NULL, after %zu of them", s->made[i]);
}

PROPERTY(realloc_releases_old,
    .id     = "realloc.releases-old", .level = SHOULD, .basis = BASIS_QOI, .quick = true,
    .title  = "a moved block's old place is freed",
    .clause = "If realloc moves a block, it frees the memory at the old address.",
    .source = "C17 7.22.3.5 paragraph 2: realloc deallocates the old object",
    .why    = "fromiter over a million items moves its block thirty times and would leak each old "
              "block.",
    .hint   = "Free the old block after you filled the new one, on every path that moves a block.",
    .looks  = "expected memory to stop growing while blocks are resized; seen 310000 KiB more "
              "mapped")
{
    size_t turn = 0;
    control_run(move_about, &turn, "where it is done once");
    expect_no_growth(300, move_about, stay_there, &turn,
                     "blocks of up to 400000 bytes are resized and freed");
    expect_no_growth(40, shrink_twice, shrink_once, NULL,
                     "blocks of up to 100000 bytes are shrunk twice and freed");
    if (subject_fills_blocks())
        return;
    struct shrinking s = {.shrinks = true};
    expect_no_growth(4, shrink_large, free_large, &s,
                     "blocks of up to 160 MiB are shrunk and freed");
    expect_large_to_come_back(&s);
}

/* ---- what a block lost when it shrank --------------------------------------------------- */

static const size_t written[] = {100000, 300000, 1200000, 5 << 19};
enum { LEFT = 100 };

/* What stands in each little block that stays. */
struct kept {
    struct kept *before;
};

static void keep(struct kept **last, struct kept *p)
{
    p->before = *last;
    *last = p;
}

static unsigned char *must_make_written(size_t size)
{
    unsigned char *p = must_malloc(size);
    for (size_t at = 0; at < size; at += 4096)
        p[at] = 0xb5;
    return p;
}

static void shrink_and_keep(void *last)
{
    for (size_t i = 0; i < LENGTH(written); i++)
        keep(last, must_realloc(must_make_written(written[i]), LEFT));
}

static void free_and_keep(void *last)
{
    for (size_t i = 0; i < LENGTH(written); i++) {
        subject_free(must_make_written(written[i]), written[i]);
        keep(last, must_malloc(LEFT));
    }
}

/* A handler may spend pages on each block, however small. */
static void skip_where_little_is_much(struct kept **last)
{
    enum { BLOCKS = 16, MUCH = 64 << 10 };
    size_t mapped = 0;
    for (size_t i = 0; i < 2 * BLOCKS; i++) {
        if (i == BLOCKS) /* of a pool the first have made what others share */
            mapped = mapped_bytes();
        keep(last, must_malloc(LEFT));
    }
    size_t now = mapped_bytes(), each = now > mapped ? (now - mapped) / BLOCKS : 0;
    if (each > MUCH)
        skip("each block of %d bytes takes %zu KiB by itself", LEFT, each >> 10);
}

PROPERTY(realloc_shrunk_gives_back,
    .id     = "realloc.shrunk-gives-back", .level = SHOULD, .basis = BASIS_QOI,
    .title  = "a shrunk block releases memory",
    .clause = "A live block that was shrunk to a small part of its size keeps only a small part of "
              "its memory.",
    .source = "good practice; C17 7.22.3.5 paragraph 2",
    .why    = "fromfile, fromstring and loadtxt shrink a block to what they read, and keep it.",
    .hint   = "Move a block that lost more than half of its size, or release the pages after it.",
    .looks  = "expected memory to stop growing while blocks are written, shrunk to 100, and kept")
{
    struct kept *last = NULL;
    skip_where_little_is_much(&last);
    expect_no_growth(1, shrink_and_keep, free_and_keep, &last,
                     "blocks of up to 2621440 bytes are written, shrunk to 100, and kept");
    while (last != NULL) {
        struct kept *p = last;
        last = p->before;
        subject_free(p, LEFT);
    }
}
