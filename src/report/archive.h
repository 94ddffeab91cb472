/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The file that a bundle is: POSIX's ustar within gzip (RFC 1952), with a hash of all that follows
 * it in gzip's comment.  What it reads is what it writes, byte for byte, and nothing else.
 */
#ifndef CONFORM_ARCHIVE_H
#define CONFORM_ARCHIVE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "report/bundle.h"

#define ARCHIVE_FOLDER "conform-bundle/"

/* Of the members, in their order, with the folder. */
extern const char *const archive_names[BUNDLE_MEMBERS];

/* Seconds since 1970: the latest time that a member may have. */
enum { ARCHIVE_LATEST = INT32_MAX };

/* Bytes of the members together: a handler's file is among them. */
enum { ARCHIVE_LARGEST = 256 << 20 };

/* SHA-256 in lower-case hexadecimal digits, with a NUL. */
void archive_hash(const void *bytes, size_t length, char hex[SHA256_HEX]);

/* Writes those members that are there, each with that time.  -1 with errno where it failed. */
int archive_write(FILE *file, const struct bundle *bundle, uint64_t time);

/* Each returns NULL, or in words why it is nothing that archive_write writes (good until the next
 * calls of text()).  The first has what is within the gzip, which is the caller's to free; the
 * second has the members of that, which are bundle_free's. */
const char *archive_unseal(const char *bytes, size_t length, char **tar, size_t *unpacked);
const char *archive_read_tar(const char *bytes, size_t length, struct bundle *bundle);

#endif
