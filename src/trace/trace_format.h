/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What trace_writer.c and trace_reader.c agree on; docs/trace-format.md explains it.
 */
#ifndef CONFORM_TRACE_FORMAT_H
#define CONFORM_TRACE_FORMAT_H

#include <stdint.h>
#include <zlib.h>

/* The eighth byte and the first two of these break where a file is taken for text. */
#define TRACE_MAGIC "\x89NEP49\r\n"

enum {
    TRACE_VERSION = 1,
    TRACE_FLAG_TIMED = 1,
    TRACE_HEADER_BYTES = 16, /* magic, version and flags of 2 bytes, CRC-32 of those 12 */

    FRAME_HEADER_BYTES = 16, /* sync, index, length, CRC-32, of 4 bytes each */
    FRAME_BYTES = 1 << 16,   /* at the most, with its header */
    FRAME_PAYLOAD = FRAME_BYTES - FRAME_HEADER_BYTES,

    NOTES_MOST = 64,
    NOTE_KEY_MOST = 64,
    NOTE_VALUE_MOST = 4096,
    PART_MOST = 256,

    VARINT_MOST = 10,
    /* A record of a call with the one of its thread before it. */
    CALL_MOST = 1 + VARINT_MOST + 1 + 3 * VARINT_MOST,
};

#define FRAME_SYNC 0x454d5246u /* "FRME" */

/* The low half of a record's first byte: 0 is what was never written, 1 to 4 are STEP_MALLOC to
 * STEP_FREE of enum step_kind, and others are no call. */
enum record_kind {
    RECORD_THREAD = 5,
    RECORD_NOTE = 6,
    RECORD_END = 7,
    RECORD_PART = 8,
};

/* The high half. */
enum {
    BIT_REFUSED = 0x10, /* malloc, calloc, realloc */
    BIT_SIZED = 0x10,   /* free: the size was not the block's */
    BIT_GIL = 0x10,     /* thread */
    BIT_ELSIZE = 0x20,  /* calloc: elsize was not 1 */
    POINTER_SHIFT = 5,  /* realloc, free: an enum trace_pointer in two bits */
    BIT_MOVED = 0x80,   /* realloc */
};

/* Small for small numbers of either sign: 0, -1, 1, -2, ... become 0, 1, 2, 3, ... */
static inline uint64_t zigzag(int64_t n)
{
    return (uint64_t)n << 1 ^ (n < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t n)
{
    return (int64_t)(n >> 1 ^ -(n & 1));
}

/* Little-endian, whatever the machine. */
static inline void put_u32(unsigned char *to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(n >> 8 * i);
}

static inline uint32_t get_u32(const unsigned char *from)
{
    return from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}

/* Of all of the header but the sum itself. */
static inline uint32_t header_crc(const unsigned char header[TRACE_HEADER_BYTES])
{
    return (uint32_t)crc32(0, header, TRACE_HEADER_BYTES - 4);
}

/* Of the frame's index and length and of what is in it. */
static inline uint32_t frame_crc(const unsigned char *frame, uint32_t length)
{
    uint32_t crc = (uint32_t)crc32(0, frame + 4, 8);
    return (uint32_t)crc32(crc, frame + FRAME_HEADER_BYTES, length);
}

#endif
