/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Words in a page.
 */
#ifndef CONFORM_MARKUP_H
#define CONFORM_MARKUP_H

#include <stdio.h>

/* Whatever they are: as text, in an element or in quotes. */
void markup_put(FILE *file, const char *words);

/* Writes the frame as it is, with one of the words in the place of each %. */
void markup_say(FILE *file, const char *frame, ...);

#endif
