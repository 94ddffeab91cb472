/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is printed at the end: the figures of all books.
 */
#ifndef EMBED_DEMO_TABLES_H
#define EMBED_DEMO_TABLES_H

#include "books.h"

/* Notes what is alive in each of the books, when the script has ended. */
void tables_note_exit(void);

/* Claims that nothing is alive any more in any of them, and that none was given a pointer of
 * another's.  When Python has ended. */
void tables_prove_balance(void);

/* Prints what the functions of one handler were asked for; and, where there were several, who
 * allocated what.  0, or -1 with errno set where that cannot be written. */
int tables_print(struct books *main_books);

#endif
