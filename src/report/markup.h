/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words in a page.
 */
#ifndef CONFORM_MARKUP_H
#define CONFORM_MARKUP_H

#include <stdio.h>

/* Whatever they are: as text, in an element or in quotes. */
void markup_put(FILE *file, const char *words);

#endif
