/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Large blocks that end beside the edge of a page, be there a header before them or none.
 */
#ifndef CONFORM_PAGE_EDGES_H
#define CONFORM_PAGE_EDGES_H

/* Fails where the last bytes of a large block cannot be written, or are another block's. */
void check_page_edges_extent(void);

/* The same of a block that has grown by less than a page. */
void check_page_edges_growth(void);

/* Fails where read(2) cannot write to a block that nobody has touched. */
void check_kernel_writes(void);

#endif
