/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading a trace.  Nothing in the file is trusted: a frame is read into a buffer of its largest
 * size and checked against its sum, a record is decoded within it, and blocks are only as many as
 * there were records that made one.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "trace/trace_format.h"

/* A slot that is live has a block's number; a free one the next free one in `size`. */
struct slot {
    uint64_t block;
    uint64_t size;
};

#define NO_SLOT UINT32_MAX

struct note {
    char *key, *value;
};

struct trace_reader {
    int fd; /* or -1: `bytes` */
    const unsigned char *bytes;
    size_t bytes_left;

    uint64_t offset; /* in the file, of what will be read next */
    unsigned char frame[FRAME_BYTES];
    uint64_t frame_offset;
    uint32_t frame_index; /* of the next one */
    uint32_t length;      /* of the payload that is there */
    uint32_t at;          /* in the payload: of the record that is read next */
    bool open;            /* the frame has no length: its writer ended too soon */
    bool short_frame;     /* the file ends inside the frame */
    uint32_t should_be;   /* its length, then */

    enum trace_state state; /* TRACE_CALL while there may be more */
    char wrong[192];
    bool timed;
    uint32_t thread;
    bool gil;
    uint64_t time;
    uint64_t calls, blocks, live;
    uint32_t last_slot; /* of the record before */

    struct slot *slot;
    uint32_t slots, slot_room, free_slot;
    struct note notes[NOTES_MOST];
    size_t note_count;
    char part[PART_MOST + 1];
    bool tells_parts, part_begins;
};

/* ---- what is wrong -------------------------------------------------------------------------- */

static enum trace_state stop(struct trace_reader *reader, enum trace_state state, uint64_t offset,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));
static enum trace_state stop(struct trace_reader *reader, enum trace_state state, uint64_t offset,
                             const char *format, ...)
{
    va_list arguments;
    size_t used =
        (size_t)snprintf(reader->wrong, sizeof reader->wrong, "offset %" PRIu64 ": ", offset);
    va_start(arguments, format);
    vsnprintf(reader->wrong + used, sizeof reader->wrong - used, format, arguments);
    va_end(arguments);
    return reader->state = state;
}

/* Of the record that begins at `at`. */
#define wrong_record(reader, ...)                                                                  \
    stop(reader, TRACE_WRONG, (reader)->frame_offset + FRAME_HEADER_BYTES + (reader)->at,          \
         __VA_ARGS__)

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Reads so many bytes, or as many as there are.  -1 where reading fails. */
static ssize_t take(struct trace_reader *reader, unsigned char *to, size_t count)
{
    size_t taken = 0;
    if (reader->fd < 0) {
        taken = count < reader->bytes_left ? count : reader->bytes_left;
        memcpy(to, reader->bytes, taken);
        reader->bytes += taken;
        reader->bytes_left -= taken;
    }
    while (reader->fd >= 0 && taken < count) {
        ssize_t got = read(reader->fd, to + taken, count - taken);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        taken += (size_t)got;
    }
    reader->offset += taken;
    return (ssize_t)taken;
}

static bool all_zero(const unsigned char *bytes, size_t count)
{
    while (count > 0 && bytes[count - 1] == 0)
        count--;
    return count == 0;
}

static enum trace_state cut_off(struct trace_reader *reader, uint64_t offset)
{
    return stop(reader, TRACE_CUT, offset,
                "the trace was not closed: the program that wrote it ended after call %" PRIu64,
                reader->calls);
}

static enum trace_state unreadable(struct trace_reader *reader)
{
    return stop(reader, TRACE_WRONG, reader->offset, "cannot be read: %s", strerror(errno));
}

/* Reads the next frame.  Anything but TRACE_CALL is the end. */
static enum trace_state read_frame(struct trace_reader *reader)
{
    unsigned char *frame = reader->frame;
    uint64_t at = reader->frame_offset = reader->offset;
    reader->at = reader->length = 0;
    ssize_t taken = take(reader, frame, FRAME_HEADER_BYTES);
    if (taken < 0)
        return unreadable(reader);
    if (all_zero(frame, (size_t)taken)) /* or nothing at all */
        return cut_off(reader, at);
    if (taken < FRAME_HEADER_BYTES)
        return stop(reader, TRACE_WRONG, at,
                    "the file ends inside the head of a frame: it is truncated");
    if (get_u32(frame) != FRAME_SYNC)
        return stop(reader, TRACE_WRONG, at,
                    "there should be a frame, and its first bytes are %02x %02x %02x %02x",
                    frame[0], frame[1], frame[2], frame[3]);
    if (get_u32(frame + 4) != reader->frame_index)
        return stop(reader, TRACE_WRONG, at,
                    "there should be frame %" PRIu32 ", and it is frame %" PRIu32,
                    reader->frame_index, get_u32(frame + 4));
    reader->frame_index++;
    reader->should_be = get_u32(frame + 8);
    reader->open = reader->should_be == 0;
    if (reader->open && get_u32(frame + 12) != 0)
        return stop(reader, TRACE_WRONG, at,
                    "a frame with a sum and without a length: it is damaged");
    if (reader->should_be > FRAME_PAYLOAD)
        return stop(reader, TRACE_WRONG, at,
                    "a frame of %" PRIu32 " bytes, and there are none of more than %d",
                    reader->should_be, FRAME_PAYLOAD);
    taken =
        take(reader, frame + FRAME_HEADER_BYTES, reader->open ? FRAME_PAYLOAD : reader->should_be);
    if (taken < 0)
        return unreadable(reader);
    reader->length = (uint32_t)taken;
    reader->short_frame = reader->length < reader->should_be; /* its whole records are read */
    if (!reader->open && !reader->short_frame &&
        get_u32(frame + 12) != frame_crc(frame, reader->length))
        return stop(reader, TRACE_WRONG, at,
                    "the frame of %" PRIu32 " bytes does not agree with its sum: it is damaged",
                    reader->should_be);
    return TRACE_CALL;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* The part of a record that was not decoded yet. */
struct cursor {
    const unsigned char *at, *end;
    bool bad;
};

static uint64_t varint_slow(struct cursor *cursor)
{
    uint64_t n = 0;
    for (unsigned shift = 0; cursor->at < cursor->end && shift < 64; shift += 7) {
        unsigned char byte = *cursor->at++;
        if (shift == 63 && byte > 1)
            break;
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return n;
    }
    cursor->bad = true; /* too long, or the payload ends inside it */
    return 0;
}

static inline uint64_t varint(struct cursor *cursor)
{
    if (__builtin_expect(cursor->at < cursor->end && *cursor->at < 0x80, 1))
        return *cursor->at++;
    return varint_slow(cursor);
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* Enters a block that the call has made.  Returns false if there cannot be another. */
static bool make_block(struct trace_reader *reader, struct trace_call *call)
{
    uint32_t at = reader->free_slot != NO_SLOT ? reader->free_slot : reader->slots;
    if (at == TRACE_MOST_LIVE) {
        wrong_record(reader, "more than %" PRIu32 " blocks are live", TRACE_MOST_LIVE);
        return false;
    }
    if (at == reader->slot_room) {
        uint32_t room = reader->slot_room != 0 ? reader->slot_room * 2 : 256;
        struct slot *slot = realloc(reader->slot, room * sizeof *slot);
        if (slot == NULL) {
            wrong_record(reader, "out of memory with %" PRIu64 " blocks live", reader->live);
            return false;
        }
        reader->slot = slot;
        reader->slot_room = room;
    }
    if (at == reader->slots)
        reader->slots++;
    else
        reader->free_slot = (uint32_t)reader->slot[at].size;
    reader->slot[at] = (struct slot){++reader->blocks, step_size(&call->step)};
    reader->live++;
    reader->last_slot = call->step.block = at;
    call->block = reader->blocks;
    return true;
}

/* The live block that the call names. */
static bool name_block(struct trace_reader *reader, struct trace_call *call, struct cursor *cursor)
{
    uint64_t at = reader->last_slot + (uint64_t)unzigzag(varint(cursor));
    if (cursor->bad)
        return true; /* told by whoever decodes the record */
    if (at >= reader->slots || reader->slot[at].block == 0) {
        wrong_record(reader, "the call names slot %" PRIu64 ", in which no block is live", at);
        return false;
    }
    reader->last_slot = call->step.block = (uint32_t)at;
    call->block = reader->slot[at].block;
    call->old_size = reader->slot[at].size;
    return true;
}

/* ---- records -------------------------------------------------------------------------------- */

/* The bits that a record's first byte may have beside its kind. */
static const unsigned char allowed_bits[16] = {
    [STEP_MALLOC] = BIT_REFUSED,
    [STEP_CALLOC] = BIT_REFUSED | BIT_ELSIZE,
    [STEP_REALLOC] = BIT_REFUSED | 3 << POINTER_SHIFT | BIT_MOVED,
    [STEP_FREE] = BIT_SIZED | 3 << POINTER_SHIFT,
    [RECORD_THREAD] = BIT_GIL,
};

/* What the call did to the blocks. */
static bool apply(struct trace_reader *reader, struct trace_call *call)
{
    if (call->step.kind == STEP_FREE) {
        if (call->pointer == TRACE_BLOCK) {
            reader->slot[call->step.block] = (struct slot){0, reader->free_slot};
            reader->free_slot = call->step.block;
            reader->live--;
        }
        return true;
    }
    if (call->refused)
        return true;
    if (call->step.kind != STEP_REALLOC || call->pointer != TRACE_BLOCK)
        return make_block(reader, call);
    reader->slot[call->step.block].size = call->step.first;
    return true;
}

static enum trace_state wrong_bits(struct trace_reader *reader, unsigned first)
{
    return wrong_record(reader, "a record begins with the byte 0x%02x, which means nothing", first);
}

static enum trace_state decode_call(struct trace_reader *reader, struct trace_call *call,
                                    struct cursor *cursor, unsigned first)
{
    unsigned pointer = first >> POINTER_SHIFT & 3;
    struct step *step = &call->step;
    *call = (struct trace_call){
        .step = {.kind = first & 15, .thread = reader->thread, .times = 1},
        .pointer = TRACE_NULL,
        .gil = reader->gil,
        .number = reader->calls + 1,
        .offset = reader->frame_offset + FRAME_HEADER_BYTES + reader->at,
    };
    if (step->kind >= STEP_REALLOC) {
        if (pointer > TRACE_FOREIGN ||
            (pointer != TRACE_BLOCK && step->kind == STEP_FREE && !(first & BIT_SIZED)))
            return wrong_bits(reader, first);
        call->pointer = (enum trace_pointer)pointer;
    }
    if (step->kind != STEP_FREE)
        call->refused = first & BIT_REFUSED;
    if (call->pointer == TRACE_BLOCK && !name_block(reader, call, cursor))
        return reader->state;
    switch (step->kind) {
    case STEP_MALLOC:
        step->first = varint(cursor);
        break;
    case STEP_CALLOC:
        step->first = varint(cursor);
        step->second = first & BIT_ELSIZE ? varint(cursor) : 1;
        break;
    case STEP_REALLOC:
        call->moved = first & BIT_MOVED;
        step->first = varint(cursor);
        break;
    case STEP_FREE:
        step->first = first & BIT_SIZED ? varint(cursor) : call->old_size;
        break;
    }
    if (reader->timed)
        reader->time += (uint64_t)unzigzag(varint(cursor));
    call->time = reader->time;
    if (cursor->bad || !apply(reader, call))
        return reader->state; /* the caller reports a bad cursor */
    reader->calls++;
    return TRACE_CALL;
}

/* Copies a text of at most `most` bytes, and ends it with a NUL. */
static void decode_text(struct cursor *cursor, char *to, size_t most)
{
    uint64_t length = varint(cursor);
    if (cursor->bad || length > most || length > (size_t)(cursor->end - cursor->at)) {
        cursor->bad = true;
        return;
    }
    memcpy(to, cursor->at, length);
    to[length] = '\0';
    cursor->at += length;
}

static void decode_note(struct trace_reader *reader, struct cursor *cursor)
{
    char key[NOTE_KEY_MOST + 1], value[NOTE_VALUE_MOST + 1];
    if (reader->calls > 0 || reader->note_count == NOTES_MOST) {
        wrong_record(reader, "a note, and there can be none %s",
                     reader->calls > 0 ? "after a call" : "after 64 of them");
        return;
    }
    decode_text(cursor, key, NOTE_KEY_MOST);
    if (!cursor->bad)
        decode_text(cursor, value, NOTE_VALUE_MOST);
    if (cursor->bad)
        return;
    struct note *note = &reader->notes[reader->note_count];
    *note = (struct note){strdup(key), strdup(value)};
    if (note->key != NULL && note->value != NULL)
        reader->note_count++;
    else
        wrong_record(reader, "out of memory");
}

static enum trace_state truncated(struct trace_reader *reader)
{
    return stop(reader, TRACE_WRONG, reader->offset,
                "the file is truncated: the frame at %" PRIu64 " should have %" PRIu32
                " bytes, and has %" PRIu32,
                reader->frame_offset, reader->should_be, reader->length);
}

/* A record that goes past the end of the payload: in a frame that was being written, or of which
 * the file has only a part, that is the end; otherwise it is damage. */
static enum trace_state record_ends_early(struct trace_reader *reader)
{
    if (reader->short_frame)
        return truncated(reader);
    if (reader->open)
        return cut_off(reader, reader->frame_offset + FRAME_HEADER_BYTES + reader->at);
    return wrong_record(reader, "a number in the record is too long, or is not all there");
}

/* Nothing may follow, and what it counts is what was read. */
static void decode_end(struct trace_reader *reader, struct cursor *cursor)
{
    unsigned char next;
    uint64_t calls = varint(cursor), live = varint(cursor);
    if (cursor->bad)
        return;
    if (calls != reader->calls || live != reader->live) {
        wrong_record(reader,
                     "the trace ends with %" PRIu64 " calls and %" PRIu64
                     " live blocks, and says that it has %" PRIu64 " and %" PRIu64,
                     reader->calls, reader->live, calls, live);
    } else if (reader->open) {
        cut_off(reader, reader->frame_offset); /* it was about to be closed */
    } else if (reader->short_frame) {
        truncated(reader);
    } else if (cursor->at != cursor->end || take(reader, &next, 1) != 0) {
        stop(reader, TRACE_WRONG,
             reader->frame_offset + FRAME_HEADER_BYTES +
                 (uint64_t)(cursor->at - reader->frame - FRAME_HEADER_BYTES),
             "there is more behind the end of the trace");
    } else {
        reader->state = TRACE_END;
    }
}

/* The record at `at`, and where it was a call true. */
static bool decode_record(struct trace_reader *reader, struct trace_call *call)
{
    const unsigned char *payload = reader->frame + FRAME_HEADER_BYTES;
    struct cursor cursor = {payload + reader->at, payload + reader->length, false};
    unsigned first = *cursor.at++;
    uint64_t number;
    bool was_call = false;
    if (first == 0 && reader->open) {
        cut_off(reader, reader->frame_offset + FRAME_HEADER_BYTES + reader->at);
        return false;
    }
    if ((first & 0xf0 & ~allowed_bits[first & 15]) != 0) {
        wrong_bits(reader, first);
        return false;
    }
    switch (first & 15) {
    case STEP_MALLOC:
    case STEP_CALLOC:
    case STEP_REALLOC:
    case STEP_FREE:
        was_call = decode_call(reader, call, &cursor, first) == TRACE_CALL && !cursor.bad;
        break;
    case RECORD_THREAD:
        number = varint(&cursor);
        if (number > UINT32_MAX)
            wrong_record(reader, "thread %" PRIu64 ", and they have 32 bits", number);
        reader->thread = (uint32_t)number;
        reader->gil = first & BIT_GIL;
        break;
    case RECORD_NOTE:
        decode_note(reader, &cursor);
        break;
    case RECORD_PART:
        decode_text(&cursor, reader->part, PART_MOST);
        reader->part_begins = !cursor.bad;
        break;
    case RECORD_END:
        decode_end(reader, &cursor);
        break;
    default:
        wrong_bits(reader, first);
    }
    if (cursor.bad)
        record_ends_early(reader);
    reader->at = (uint32_t)(cursor.at - payload);
    return was_call;
}

enum trace_state trace_next(struct trace_reader *reader, struct trace_call *call)
{
    while (reader->state == TRACE_CALL) {
        if (reader->at < reader->length) {
            if (decode_record(reader, call))
                return TRACE_CALL;
            if (reader->part_begins && reader->tells_parts) {
                reader->part_begins = false;
                return TRACE_PART;
            }
        } else if (reader->open) {
            return cut_off(reader, reader->offset);
        } else if (reader->short_frame) {
            return truncated(reader);
        } else {
            read_frame(reader);
        }
    }
    return reader->state;
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool read_header(struct trace_reader *reader)
{
    unsigned char header[TRACE_HEADER_BYTES] = {0};
    ssize_t taken = take(reader, header, sizeof header);
    uint32_t version = get_u32(header + 8) & 0xffff, flags = get_u32(header + 8) >> 16;
    if (taken < 0)
        unreadable(reader);
    else if (memcmp(header, TRACE_MAGIC, 8) != 0)
        stop(reader, TRACE_WRONG, 0, "not a trace of conform's: it does not begin as one");
    else if (taken < TRACE_HEADER_BYTES)
        stop(reader, TRACE_WRONG, (uint64_t)taken, "the file ends inside its head");
    else if (version != TRACE_VERSION)
        stop(reader, TRACE_WRONG, 8, "version %" PRIu32 " of the format, and only %d can be read",
             version, TRACE_VERSION);
    else if (get_u32(header + 12) != header_crc(header))
        stop(reader, TRACE_WRONG, 12, "the head does not agree with its sum: it is damaged");
    else if ((flags & ~(uint32_t)TRACE_FLAG_TIMED) != 0)
        stop(reader, TRACE_WRONG, 10, "flags 0x%04" PRIx32 ", which this program does not know",
             flags);
    reader->timed = flags & TRACE_FLAG_TIMED;
    return reader->state == TRACE_CALL;
}

/* The notes are in the first frame, before any call.  What is wrong with it, trace_next tells. */
static void read_notes(struct trace_reader *reader)
{
    struct trace_call unused;
    read_frame(reader);
    while (reader->state == TRACE_CALL && reader->at < reader->length &&
           reader->frame[FRAME_HEADER_BYTES + reader->at] == RECORD_NOTE)
        decode_record(reader, &unused);
}

static struct trace_reader *open_reader(int fd, const void *bytes, size_t length, char *why,
                                        size_t room)
{
    struct trace_reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        snprintf(why, room, "out of memory");
        return NULL;
    }
    reader->fd = fd;
    reader->bytes = bytes;
    reader->bytes_left = length;
    reader->gil = true;
    reader->free_slot = NO_SLOT;
    if (read_header(reader)) {
        read_notes(reader);
        return reader;
    }
    snprintf(why, room, "%s", reader->wrong);
    free(reader);
    return NULL;
}

struct trace_reader *trace_open(const char *path, char *why, size_t room)
{
    /* open() would wait for a writer of a FIFO; one without a writer is empty */
    int fd =
        strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && strcmp(path, "-") != 0)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    if (fd < 0) {
        snprintf(why, room, "cannot be opened: %s", strerror(errno));
        return NULL;
    }
    struct trace_reader *reader = open_reader(fd, NULL, 0, why, room);
    if (reader == NULL)
        close(fd);
    return reader;
}

struct trace_reader *trace_open_bytes(const void *bytes, size_t length, char *why, size_t room)
{
    return open_reader(-1, bytes, length, why, room);
}

void trace_tell_parts(struct trace_reader *reader)
{
    reader->tells_parts = true;
}

const char *trace_part(const struct trace_reader *reader)
{
    return reader->part;
}

const char *trace_wrong(const struct trace_reader *reader)
{
    return reader->wrong;
}

bool trace_noted(const struct trace_reader *reader, size_t index, const char **key,
                 const char **value)
{
    if (index >= reader->note_count)
        return false;
    *key = reader->notes[index].key;
    *value = reader->notes[index].value;
    return true;
}

struct trace_totals trace_totals(const struct trace_reader *reader)
{
    return (struct trace_totals){reader->timed, reader->calls, reader->live, reader->slots};
}

void trace_reader_close(struct trace_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->fd >= 0)
        close(reader->fd);
    for (size_t i = 0; i < reader->note_count; i++) {
        free(reader->notes[i].key);
        free(reader->notes[i].value);
    }
    free(reader->slot);
    free(reader);
}
