/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reading and writing entries of a corpus.
 */
#include "fuzz/entry.h"

#include <string.h>
#include <sys/param.h>

#include "search/writer.h"
#include "trace/trace.h"
#include "trace/trace_format.h"

enum { HEAD_BYTES = TRACE_HEADER_BYTES + FRAME_HEADER_BYTES };

/* ---- reading --------------------------------------------------------------------------------- */

/* False for what did nothing, and for slots that no step can name. */
static bool step_of(const struct trace_call *call, struct step *step)
{
    *step = call->step;
    step->thread = 0;
    if (step->kind == STEP_FREE && step->first == call->old_size)
        step->second = STEP_RIGHT_SIZE;
    if (step->kind == STEP_FREE && call->pointer != TRACE_BLOCK)
        step->kind = STEP_FREE_NULL;
    return !call->refused && call->pointer != TRACE_FOREIGN && step->block < MOST_SLOTS;
}

size_t entry_read(const uint8_t *bytes, size_t length, struct step *steps, size_t room)
{
    char why[256];
    struct trace_call call;
    size_t count = 0;
    struct trace_reader *reader = trace_open_bytes(bytes, length, why, sizeof why);
    if (reader == NULL)
        return 0;
    while (count < room && trace_next(reader, &call) == TRACE_CALL)
        count += step_of(&call, &steps[count]);
    trace_reader_close(reader);
    return count;
}

/* ---- writing --------------------------------------------------------------------------------- */

#define NOT_LIVE UINT32_MAX

/* Blocks have the numbers of their steps here, and slots in the trace.  */
struct entry {
    uint8_t *bytes;
    size_t length, room;
    uint32_t last;             /* slot, of the record before */
    uint32_t slots, free;      /* that were used, and of them those below */
    uint32_t blocks;           /* all are below this */
    uint32_t slot[MOST_SLOTS]; /* of a block */
    uint32_t free_slot[MOST_SLOTS];
    uint64_t size[MOST_SLOTS]; /* of a block */
};

static void put_varint(struct entry *entry, uint64_t n)
{
    for (; n >= 0x80; n >>= 7)
        entry->bytes[entry->length++] = (uint8_t)(n | 0x80);
    entry->bytes[entry->length++] = (uint8_t)n;
}

/* A record: its first byte, the slot of a live block unless `slot` is NOT_LIVE, and numbers. */
static void put(struct entry *entry, int head, uint32_t slot, unsigned numbers, uint64_t first,
                uint64_t second)
{
    entry->bytes[entry->length++] = (uint8_t)head;
    if (slot != NOT_LIVE) {
        put_varint(entry, zigzag((int64_t)slot - entry->last));
        entry->last = slot;
    }
    if (numbers > 0)
        put_varint(entry, first);
    if (numbers > 1)
        put_varint(entry, second);
}

static void make(struct entry *entry, const struct step *step, uint32_t block)
{
    bool sized = step->kind == STEP_CALLOC && step->second != 1;
    bool is_realloc = step->kind == STEP_REALLOC;
    put(entry,
        step->kind | (sized ? BIT_ELSIZE : 0) | (is_realloc ? TRACE_NULL << POINTER_SHIFT : 0),
        NOT_LIVE, 1 + sized, step->first, step->second);
    entry->last = entry->free > 0 ? entry->free_slot[--entry->free] : entry->slots++;
    entry->slot[block] = entry->last;
    entry->size[block] = step_size(step);
}

/* One time of a step.  A block is made where none is, and goes where one is. */
static void write_once(struct entry *entry, const struct step *step, uint32_t block)
{
    uint32_t *slot = &entry->slot[block];
    uint64_t size = step->second == STEP_RIGHT_SIZE ? entry->size[block] : step->first;
    bool live = *slot != NOT_LIVE, sized = size != entry->size[block];
    entry->blocks = MAX(entry->blocks, block + 1);
    if (step_makes(step) && !live) {
        make(entry, step, block);
    } else if (step->kind == STEP_REALLOC) {
        put(entry, STEP_REALLOC, *slot, 1, step->first, 0);
        entry->size[block] = step->first;
    } else if (step->kind == STEP_FREE && live) {
        put(entry, STEP_FREE | (sized ? BIT_SIZED : 0), *slot, sized, size, 0);
        entry->free_slot[entry->free++] = *slot;
        *slot = NOT_LIVE;
    } else if (step->kind == STEP_FREE_NULL) {
        put(entry, STEP_FREE | BIT_SIZED | TRACE_NULL << POINTER_SHIFT, NOT_LIVE, 1, step->first,
            0);
    }
}

static bool has_room(const struct entry *entry)
{
    return entry->room - entry->length >= 2 * CALL_MOST;
}

static void write_step(struct entry *entry, const struct step *step)
{
    bool is_pair = step_is_pair(step);
    struct step first = *step, second = {.kind = STEP_FREE, .second = STEP_RIGHT_SIZE};
    if (is_pair)
        first.kind = (uint8_t)step_called(step);
    for (uint32_t i = 0; i < step->times && has_room(entry); i++) {
        uint32_t block = is_pair ? step->block : step->block + i;
        if (block >= MOST_SLOTS)
            return;
        write_once(entry, &first, block);
        if (is_pair)
            write_once(entry, &second, block);
    }
}

bool entry_mend(uint8_t *bytes, size_t length)
{
    if (length < HEAD_BYTES)
        return false;
    memset(bytes, 0, HEAD_BYTES);
    memcpy(bytes, TRACE_MAGIC, 8);
    put_u32(bytes + 8, TRACE_VERSION);
    put_u32(bytes + 12, header_crc(bytes));
    put_u32(bytes + TRACE_HEADER_BYTES, FRAME_SYNC);
    return true;
}

/* Fuzzers have one thread. */
static struct entry *begin(uint8_t *bytes, size_t room)
{
    static struct entry entry = {.blocks = MOST_SLOTS};
    memset(entry.slot, 0xff, entry.blocks * sizeof *entry.slot);
    entry.bytes = bytes;
    entry.room = MIN(room, (size_t)ENTRY_MOST);
    entry.length = HEAD_BYTES;
    entry.last = entry.slots = entry.free = entry.blocks = 0;
    return entry_mend(bytes, entry.room) ? &entry : NULL;
}

size_t entry_write(const struct step *steps, size_t count, uint8_t *bytes, size_t room)
{
    struct entry *entry = begin(bytes, room);
    for (size_t i = 0; entry != NULL && i < count && has_room(entry); i++)
        write_step(entry, &steps[i]);
    return entry != NULL ? entry->length : 0;
}
