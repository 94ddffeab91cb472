/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A word in pages of a large block, beside what contents.h writes.  It lies at the same place of
 * each page, whichever block that is in: what one block left in a page shows in the next one that
 * has the page, and so does a page that a block lost.  Of more than PAGE_MARKS_MOST pages each
 * 2nd, 4th and so on has one, as their addresses are multiples of that.
 */
#ifndef CONFORM_PAGE_MARKS_H
#define CONFORM_PAGE_MARKS_H

#include <stddef.h>
#include <stdint.h>

/* The words are those that contents.h has for these bytes: whoever writes both may in any order. */
enum { PAGE_MARKS_MOST = 64, PAGE_MARK_AT = 0x7f0, PAGE_MARK_BYTES = 8 };

/* Writes those of block `number`, which has `size` bytes at p, a multiple of 8. */
void page_marks_write(void *p, size_t size, uint64_t number);

/* The offset of a byte that is not as page_marks_write left it, or `size`. */
size_t page_marks_check(const void *p, size_t size, uint64_t number);

/* The offset of a byte that is not 0, of those that page_marks_write writes; or `size`. */
size_t page_marks_check_zero(const void *p, size_t size);

/* The same as page_marks_check of a block whose first `kept` bytes have come to p, and which had
 * `size` bytes when it was at `before`, where nothing is looked at; or `kept`. */
size_t page_marks_check_kept(const void *p, size_t kept, uintptr_t before, size_t size,
                             uint64_t number);

#endif
