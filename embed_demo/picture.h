/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A surface as a picture.
 */
#ifndef EMBED_DEMO_PICTURE_H
#define EMBED_DEMO_PICTURE_H

/* Writes the surface `heights` (side rows of side numbers) to a PNG file at `path`, lit from the
 * top left and coloured from trough to crest.  The file is there whole or not at all, and one that
 * was there before is only replaced by a whole one.  NULL, or one line on why there is no picture
 * (good until the next calls of text()). */
const char *picture_write(const char *path, const double *heights, int side);

#endif
