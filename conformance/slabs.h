/* SPDX-License-Identifier: BSD-3-Clause
 *
 * As many blocks as fill a slab, a run of pages or the cache of a class, and one more.
 */
#ifndef CONFORM_SLABS_H
#define CONFORM_SLABS_H

/* Fails where blocks of a class share memory with others of it, or of the class before. */
void check_slabs_disjoint(void);

/* Fails where blocks of a class share memory once mebibytes of it are live, some of which were
 * freed and made again. */
void check_full_classes_disjoint(void);

/* Fails where two blocks of about 32, 64, 128 or 256 pages share memory. */
void check_page_runs_disjoint(void);

/* Frees many blocks of one size in a row, and fails where what is made then, of that size and of
 * those beside it, shares memory. */
void check_rows(void);

#endif
