/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words in pages.
 */
#include "base/page_marks.h"

#include <string.h>

#include "base/contents.h"

enum { PAGE = 4096 };

/* From one mark to the next one, in a block of that size. */
static size_t distance(size_t size)
{
    size_t pages = 1;
    while (size / PAGE / pages > PAGE_MARKS_MOST)
        pages *= 2;
    return pages * PAGE;
}

/* The offset of the first one in a block that begins at `begin`. */
static size_t first(uintptr_t begin, size_t apart)
{
    return (PAGE_MARK_AT - begin) & (apart - 1);
}

static void word_of(unsigned char word[PAGE_MARK_BYTES], uint64_t number, size_t at)
{
    for (size_t i = 0; i < PAGE_MARK_BYTES; i++)
        word[i] = contents_byte(number, at + i);
}

/* The first of the bytes at `at` that is not as in `word`. */
static size_t difference(const unsigned char *bytes, size_t at, const unsigned char *word)
{
    size_t i = 0;
    while (i < PAGE_MARK_BYTES && bytes[at + i] == word[i])
        i++;
    return at + i;
}

void page_marks_write(void *p, size_t size, uint64_t number)
{
    unsigned char *bytes = p;
    size_t apart = distance(size);
    for (size_t at = first((uintptr_t)p, apart); at + PAGE_MARK_BYTES <= size; at += apart)
        word_of(bytes + at, number, at);
}

size_t page_marks_check_kept(const void *p, size_t kept, uintptr_t before, size_t size,
                             uint64_t number)
{
    const unsigned char *bytes = p;
    unsigned char word[PAGE_MARK_BYTES];
    size_t apart = distance(size);
    for (size_t at = first(before, apart); at + PAGE_MARK_BYTES <= kept; at += apart) {
        word_of(word, number, at);
        if (memcmp(bytes + at, word, PAGE_MARK_BYTES) != 0)
            return difference(bytes, at, word);
    }
    return kept;
}

size_t page_marks_check(const void *p, size_t size, uint64_t number)
{
    return page_marks_check_kept(p, size, (uintptr_t)p, size, number);
}

size_t page_marks_check_zero(const void *p, size_t size)
{
    static const unsigned char zero[PAGE_MARK_BYTES];
    const unsigned char *bytes = p;
    size_t apart = distance(size);
    for (size_t at = first((uintptr_t)p, apart); at + PAGE_MARK_BYTES <= size; at += apart) {
        if (memcmp(bytes + at, zero, PAGE_MARK_BYTES) != 0)
            return difference(bytes, at, zero);
    }
    return size;
}
