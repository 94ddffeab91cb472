/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing that file, and reading it back.
 */
#include "report/archive.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/text.h"

const char *const archive_names[BUNDLE_MEMBERS] = {
    ARCHIVE_FOLDER "MANIFEST",       ARCHIVE_FOLDER "report.json",  ARCHIVE_FOLDER "report.txt",
    ARCHIVE_FOLDER "properties.txt", ARCHIVE_FOLDER "waivers.toml", ARCHIVE_FOLDER "handler.so"};

enum { BLOCK = 512 };

void archive_hash(const void *bytes, size_t length, char hex[SHA256_HEX])
{
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, length, bytes);
    sha256_digest(&context, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

/* ---- the archive: POSIX's ustar ------------------------------------------------------------ */

struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], none[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static struct header make_header(const char *name, size_t size, uint64_t time)
{
    struct header header = {
        .mode = "0000644",
        .uid = "0000000",
        .gid = "0000000",
        .sum = {' ', ' ', ' ', ' ', ' ', ' ', ' ', ' '},
        .type = '0',
        .magic = "ustar",
        .version = {'0', '0'},
        .user = "root",
        .group = "root",
    };
    unsigned sum = 0;
    snprintf(header.name, sizeof header.name, "%s", name);
    memcpy(header.size, text("%011zo", size), 12);
    memcpy(header.mtime, text("%011llo", (unsigned long long)time), 12);
    for (size_t i = 0; i < BLOCK; i++)
        sum += ((const unsigned char *)&header)[i];
    memcpy(header.sum, text("%06o", sum), 7);
    return header;
}

static size_t padding(size_t length)
{
    return (BLOCK - length % BLOCK) % BLOCK;
}

static int write_tar(FILE *file, const struct bundle *bundle, uint64_t time)
{
    static const char zeros[2 * BLOCK];
    struct header header;
    for (int i = 0; i < BUNDLE_MEMBERS; i++) {
        const struct member *member = &bundle->of[i];
        if (member->bytes == NULL)
            continue;
        header = make_header(archive_names[i], member->length, time);
        fwrite(&header, sizeof header, 1, file);
        fwrite(member->bytes, 1, member->length, file);
        fwrite(zeros, 1, padding(member->length), file);
    }
    fwrite(zeros, 1, sizeof zeros, file);
    return ferror(file) ? -1 : 0;
}

static bool is_zero(const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != 0)
            return false;
    }
    return true;
}

/* Eleven octal digits and a NUL; or SIZE_MAX. */
static size_t octal(const char digits[12])
{
    size_t value = 0;
    for (int i = 0; i < 11; i++) {
        if (digits[i] < '0' || digits[i] > '7')
            return SIZE_MAX;
        value = value * 8 + (size_t)(digits[i] - '0');
    }
    return value;
}

/* The member that the header at `bytes` is of, none before `next`; or BUNDLE_MEMBERS where it is
 * not what is written for any of them. */
static int member_at(const char *bytes, int next, size_t *size, size_t *time)
{
    struct header header, made;
    memcpy(&header, bytes, sizeof header);
    *size = octal(header.size);
    size_t when = octal(header.mtime);
    if (*time == SIZE_MAX)
        *time = when;
    for (int i = next; i < BUNDLE_MEMBERS && *size <= ARCHIVE_LARGEST && when <= ARCHIVE_LATEST;
         i++) {
        made = make_header(archive_names[i], *size, *time);
        if (memcmp(&made, &header, sizeof header) == 0)
            return i;
    }
    return BUNDLE_MEMBERS;
}

const char *archive_read_tar(const char *bytes, size_t length, struct bundle *bundle)
{
    size_t at = 0, size, time = SIZE_MAX;
    int next = 0;
    while (length - at >= 3 * BLOCK) {
        int member = member_at(bytes + at, next, &size, &time);
        at += BLOCK;
        if (member == BUNDLE_MEMBERS || length - at - 2 * BLOCK < size + padding(size) ||
            !is_zero(bytes + at + size, padding(size)))
            return text("member %zu is none that --bundle writes in that place", (size_t)next + 1);
        struct member *place = &bundle->of[member];
        place->bytes = malloc(size + 1);
        if (place->bytes == NULL)
            return "there is no memory for it";
        memcpy(place->bytes, bytes + at, size);
        place->bytes[size] = '\0';
        place->length = size;
        at += size + padding(size);
        next = member + 1;
    }
    return length - at == 2 * BLOCK && is_zero(bytes + at, 2 * BLOCK)
               ? NULL
               : "it does not end as --bundle ends it";
}

/* ---- what is around it: gzip, with a hash in its header ------------------------------------ */

/* As RFC 1952 has it: deflate, a comment, no time, the best compression, Unix. */
static const char begin[] = "\x1f\x8b\x08\x10\0\0\0\0\x02\x03"
                            "conform bundle; SHA-256 of all behind this: ";
enum { BEGIN = sizeof begin - 1, HASHED = BEGIN + SHA256_HEX, TRAILER = 8 };

static void put_number(unsigned char *bytes, size_t number)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(number >> 8 * i);
}

/* All behind the header; the caller's to free, or NULL. */
static unsigned char *compress_tar(const char *tar, size_t length, size_t *packed)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)tar, .avail_in = (uInt)length};
    if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK)
        return NULL;
    size_t room = deflateBound(&stream, length);
    unsigned char *bytes = malloc(room + TRAILER);
    stream.next_out = bytes;
    stream.avail_out = (uInt)room;
    int result = bytes != NULL ? deflate(&stream, Z_FINISH) : Z_MEM_ERROR;
    *packed = stream.total_out;
    deflateEnd(&stream);
    if (result != Z_STREAM_END) {
        free(bytes);
        return NULL;
    }
    put_number(bytes + *packed, crc32(0, (const Bytef *)tar, (uInt)length));
    put_number(bytes + *packed + 4, length);
    *packed += TRAILER;
    return bytes;
}

/* What `packed` holds; the caller's to free.  NULL where it is none, or too large. */
static char *unpack(const unsigned char *packed, size_t length, size_t *unpacked)
{
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)packed, .avail_in = (uInt)length};
    size_t room = 1 << 16;
    char *bytes = malloc(room);
    int result = bytes != NULL ? inflateInit2(&stream, -MAX_WBITS) : Z_MEM_ERROR;
    bool begun = result == Z_OK;
    while (result == Z_OK) {
        if (stream.total_out == room) {
            char *longer = room < ARCHIVE_LARGEST ? realloc(bytes, 2 * room) : NULL;
            bytes = longer != NULL ? longer : bytes;
            room *= longer != NULL ? 2 : 1;
        }
        stream.next_out = (Bytef *)bytes + stream.total_out;
        stream.avail_out = (uInt)(room - stream.total_out);
        if (stream.avail_out == 0)
            break; /* too large */
        result = inflate(&stream, Z_NO_FLUSH);
    }
    *unpacked = stream.total_out;
    if (begun)
        inflateEnd(&stream);
    if (result == Z_STREAM_END && stream.avail_in == 0)
        return bytes;
    free(bytes);
    return NULL;
}

const char *archive_unseal(const char *bytes, size_t length, char **tar, size_t *unpacked)
{
    unsigned char trailer[TRAILER];
    char hex[SHA256_HEX];
    if (length < BEGIN || memcmp(bytes, begin, BEGIN) != 0)
        return "is nothing that --bundle writes";
    if (length < HASHED + TRAILER)
        return "is cut short";
    archive_hash(bytes + HASHED, length - HASHED, hex);
    if (memcmp(bytes + BEGIN, hex, SHA256_HEX) != 0)
        return "was changed or cut short: its SHA-256 is not the one that it says";
    *tar = unpack((const unsigned char *)bytes + HASHED, length - HASHED - TRAILER, unpacked);
    if (*tar == NULL)
        return "was not packed by --bundle";
    put_number(trailer, crc32(0, (const Bytef *)*tar, (uInt)*unpacked));
    put_number(trailer + 4, *unpacked);
    return memcmp(trailer, bytes + length - TRAILER, TRAILER) == 0 ? NULL
                                                                   : "was not packed by --bundle";
}

static int write_sealed(FILE *file, const char *tar, size_t length)
{
    char hex[SHA256_HEX];
    size_t packed;
    unsigned char *bytes = compress_tar(tar, length, &packed);
    if (bytes == NULL) {
        errno = ENOMEM;
        return -1;
    }
    archive_hash(bytes, packed, hex);
    fwrite(begin, 1, BEGIN, file);
    fwrite(hex, 1, SHA256_HEX, file); /* the NUL ends the comment */
    fwrite(bytes, 1, packed, file);
    free(bytes);
    return ferror(file) ? -1 : 0;
}

int archive_write(FILE *file, const struct bundle *bundle, uint64_t time)
{
    char *tar = NULL;
    size_t length;
    FILE *stream = open_memstream(&tar, &length);
    if (stream == NULL)
        return -1;
    int failed = write_tar(stream, bundle, time);
    failed = fclose(stream) != 0 || failed != 0 ? -1 : write_sealed(file, tar, length);
    int error = errno;
    free(tar);
    errno = error;
    return failed;
}
