/* SPDX-License-Identifier: BSD-3-Clause
 *
 * free and realloc: what is in a block, and in the one before it.
 */
#include "harness/harness.h"

enum { MOST_BYTES = 64, MOST_SIZE = 1024 };

/* What a block is filled with, from its end backwards, again and again. */
struct contents {
    unsigned char bytes[MOST_BYTES];
    size_t count;
    const char *what;
};

static void fill_with(unsigned char *p, size_t size, const struct contents *contents)
{
    for (size_t at = size, part; at > 0; at -= part) {
        part = MIN(at, contents->count);
        memcpy(p + at - part, contents->bytes + contents->count - part, part);
    }
}

static void expect_contents(const unsigned char *p, size_t size, const struct contents *contents,
                            const char *when)
{
    unsigned char right[MOST_SIZE];
    size_t at = 0;
    fill_with(right, size, contents);
    while (at < size && p[at] == right[at])
        at++;
    expect(at == size,
           fmt("byte %zu of %zu to be 0x%02x as it was written, %s, in blocks full of %s", at, size,
               at < size ? right[at] : 0, when, contents->what),
           "0x%02x, in the block at %p", p[at], (const void *)p);
}

/* Some blocks of that size, which are side by side in many handlers: every other one is resized,
 * and then all are freed and made anew. */
static void use_full_of(size_t size, const struct contents *contents)
{
    enum { COUNT = 8 };
    struct block at[COUNT];
    struct blocks blocks = {.at = at, .room = COUNT};
    while (blocks.count < COUNT)
        fill_with(at[blocks_add_unwritten(&blocks, must_malloc(size), size)].p, size, contents);
    step("resizing and freeing blocks of %zu bytes that are full of %s", size, contents->what);
    for (size_t i = 1; i < COUNT; i += 2) {
        at[i].p = must_realloc(at[i].p, size + size / 2 + 1);
        at[i].size = size + size / 2 + 1;
        expect_contents(at[i].p, size, contents, fmt("after realloc to %zu", at[i].size));
        expect_contents(at[i - 1].p, size, contents, "after realloc of another block");
    }
    for (size_t i = 0; i < COUNT; i++)
        subject_free(at[i].p, at[i].size);
    for (blocks.count = 0; blocks.count < COUNT;)
        blocks_add(&blocks, must_malloc(size), size);
    blocks_expect_disjoint(&blocks);
    blocks_verify(&blocks, "after blocks full of %s were freed", contents->what);
    blocks_free_each(&blocks);
}

static void use_all_sizes(const struct contents *contents)
{
    static const size_t sizes[] = {16, 24, 32, 48, 64, 128, 256, MOST_SIZE};
    for (size_t i = 0; i < LENGTH(sizes); i += stride(3))
        use_full_of(sizes[i], contents);
}

static void use_usual_contents(void *unused)
{
    struct contents contents = {.count = MOST_BYTES, .what = "numbers"};
    (void)unused;
    pattern_fill(contents.bytes, MOST_BYTES, 1);
    use_all_sizes(&contents);
}

/* Words that mark what is free, new, or a fence. */
static void use_marks(void)
{
    static const uint64_t marks[] = {
        0,
        UINT64_MAX,
        0xdddddddddddddddd,
        0xcdcdcdcdcdcdcdcd,
        0xfdfdfdfdfdfdfdfd,
        0xaaaaaaaaaaaaaaaa,
        0x5555555555555555,
        0xa5a5a5a5a5a5a5a5,
        0x5a5a5a5a5a5a5a5a,
        0xefbeaddeefbeadde,
        0xdeadbeefdeadbeef,
        0xfeeefeeefeeefeee,
    };
    for (size_t i = 0; i < LENGTH(marks); i++) {
        struct contents contents = {.count = sizeof *marks};
        memcpy(contents.bytes, &marks[i], sizeof *marks);
        contents.what = fmt("0x%016llx", (unsigned long long)marks[i]);
        use_all_sizes(&contents);
    }
}

/* What stands before a block of that size, as far as it can be read: a handler's header, mostly. A
 * block that has none has the end of another one there, where these bytes may be as well. */
static void use_what_stands_before(size_t size)
{
    struct contents contents = {.count = MOST_BYTES};
    unsigned char *p = subject_malloc(size);
    if (p == NULL)
        return;
    while (contents.count >= 8 && !is_readable(p - contents.count, contents.count))
        contents.count /= 2;
    if (contents.count >= 8) {
        memcpy(contents.bytes, p - contents.count, contents.count);
        contents.what = fmt("what stands before a block of %zu bytes", size);
        use_all_sizes(&contents);
    }
    subject_free(p, size);
}

PROPERTY(free_any_contents,
    .id     = "free.any-contents", .level = MUST, .basis = BASIS_C, .ends_process = true,
    .quick = true,
    .clause = "realloc and free accept a block whatever is in it and in the block before it",
    .source = "C17 7.22.3.3, 7.22.3.5: the pointer alone says which block; 6.2.6.1: any bytes",
    .why    = "an array can hold anything: a file, or memory that was freed before",
    .hint   = "identify a block by its address, not by a word in it or before it",
    .looks  = "CRASH: SIGABRT, inside free(0x7f1240, 64)")
{
    static const size_t sizes[] = {40, 200, 3000, 40000, 3 << 20};
    control_run(use_usual_contents, NULL, "with numbers in the blocks");
    use_marks();
    if (is_instrumented())
        return; /* before a block there may be nothing */
    for (size_t i = 0; i < LENGTH(sizes); i++)
        use_what_stands_before(sizes[i]);
}
