/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writing a trace.  A regular file is written through a shared mapping of the frame that is being
 * filled: a record costs no system call, and it is the kernel's as soon as it is complete, so that
 * no crash of the program loses it.
 */
#include "trace/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/interval_map.h"
#include "trace/trace_format.h"

/* A program under exec may close descriptors by their number: ours is out of its way. */
enum { DESCRIPTOR_FROM = 200 };

struct trace_writer {
    int fd;
    dev_t device;
    ino_t inode;
    bool regular;
    bool timed;
    bool called;         /* there was a call: too late for notes */
    unsigned forks;      /* of this process, when the trace began */
    const char *failure; /* what it was doing, and the error */
    int failure_error;
    int open_error; /* of the file, or 0 */

    unsigned char *window; /* what is mapped, or the buffer */
    size_t window_bytes;
    unsigned char *frame; /* in the window */
    off_t frame_at;       /* in the file */
    uint32_t frame_used;  /* bytes of its payload */
    uint32_t frame_index;

    uint32_t thread;
    bool gil;
    uint64_t time;
    uint32_t slot; /* of the record before */
    uint64_t calls, live;
    uint32_t notes;

    struct interval_map *map; /* of live blocks; their value is the slot */
    uint32_t *free_slots;     /* the last that became free is the first to be used again */
    uint32_t free_count, free_room;
    uint32_t slots; /* so many were ever used */
};

/* ---- failing -------------------------------------------------------------------------------- */

static bool fail(struct trace_writer *writer, const char *what, int error)
{
    if (writer->failure == NULL) {
        writer->failure = what;
        writer->failure_error = error;
    }
    return false;
}

/* Counts how often this process and its ancestors were forked since the first trace. */
static unsigned forks;

static void count_fork(void)
{
    forks++;
}

bool trace_works(const struct trace_writer *writer)
{
    return writer != NULL && writer->failure == NULL && writer->forks == forks;
}

/* ---- frames --------------------------------------------------------------------------------- */

static bool write_all(struct trace_writer *writer, const unsigned char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(writer->fd, bytes, length);
        if (written < 0 && errno != EINTR)
            return fail(writer, "cannot be written", errno);
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return true;
}

/* False if the program has closed our descriptor, or has another file there. */
static bool check_descriptor(struct trace_writer *writer)
{
    struct stat status;
    if (fstat(writer->fd, &status) == 0 && status.st_dev == writer->device &&
        status.st_ino == writer->inode)
        return true;
    writer->fd = -1;
    return fail(writer, "was closed by the program", 0);
}

/* Space is taken before it is mapped: a store into a mapping cannot report a full disk. */
static bool map_frame(struct trace_writer *writer)
{
    off_t before = writer->frame_at % sysconf(_SC_PAGESIZE);
    if (!check_descriptor(writer))
        return false;
    int error = posix_fallocate(writer->fd, writer->frame_at, FRAME_BYTES);
    if ((error == EOPNOTSUPP || error == EINVAL) &&
        ftruncate(writer->fd, writer->frame_at + FRAME_BYTES) == 0)
        error = 0;
    if (error != 0)
        return fail(writer, "cannot grow", error);
    writer->window_bytes = (size_t)before + FRAME_BYTES;
    void *window = mmap(NULL, writer->window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, writer->fd,
                        writer->frame_at - before);
    if (window == MAP_FAILED)
        return fail(writer, "cannot be mapped", errno);
    writer->window = window;
    writer->frame = writer->window + before;
    return true;
}

static bool begin_frame(struct trace_writer *writer)
{
    if (writer->regular && !map_frame(writer))
        return false;
    memset(writer->frame, 0, FRAME_HEADER_BYTES);
    put_u32(writer->frame + 4, writer->frame_index);
    put_u32(writer->frame, FRAME_SYNC);
    writer->frame_used = 0;
    return true;
}

/* Completes the frame with its length and sum. */
static bool end_frame(struct trace_writer *writer)
{
    unsigned char *frame = writer->frame;
    put_u32(frame + 8, writer->frame_used);
    put_u32(frame + 12, frame_crc(frame, writer->frame_used));
    writer->frame_at += FRAME_HEADER_BYTES + writer->frame_used;
    writer->frame_index++;
    if (!writer->regular)
        return check_descriptor(writer) &&
               write_all(writer, frame, FRAME_HEADER_BYTES + writer->frame_used);
    munmap(writer->window, writer->window_bytes);
    writer->window = NULL;
    return true;
}

/* The first byte is stored last: a record that a crash cuts short is not there at all. */
static void append(struct trace_writer *writer, const unsigned char *record, size_t length)
{
    if (writer->frame_used + length > FRAME_PAYLOAD && (!end_frame(writer) || !begin_frame(writer)))
        return;
    unsigned char *to = writer->frame + FRAME_HEADER_BYTES + writer->frame_used;
    memcpy(to + 1, record + 1, length - 1);
    atomic_signal_fence(memory_order_release);
    *(volatile unsigned char *)to = record[0];
    writer->frame_used += (uint32_t)length;
}

/* ---- beginning and ending ------------------------------------------------------------------- */

static bool open_file(struct trace_writer *writer, const char *path)
{
    struct stat status;
    bool there = stat(path, &status) == 0;
    int fd = there && !S_ISREG(status.st_mode)
                 ? open(path, O_WRONLY | O_CLOEXEC)
                 : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || fstat(fd, &status) != 0) {
        writer->open_error = errno;
        if (fd >= 0)
            close(fd);
        return fail(writer, "cannot be opened", writer->open_error);
    }
    writer->fd = fcntl(fd, F_DUPFD_CLOEXEC, DESCRIPTOR_FROM);
    if (writer->fd >= 0)
        close(fd);
    else
        writer->fd = fd; /* a limit on descriptors; then any will do */
    writer->regular = S_ISREG(status.st_mode);
    writer->device = status.st_dev;
    writer->inode = status.st_ino;
    return true;
}

static void write_header(struct trace_writer *writer)
{
    unsigned char header[TRACE_HEADER_BYTES] = TRACE_MAGIC;
    put_u32(header + 8, TRACE_VERSION | (uint32_t)(writer->timed ? TRACE_FLAG_TIMED : 0) << 16);
    put_u32(header + 12, header_crc(header));
    if (write_all(writer, header, sizeof header)) {
        writer->frame_at = sizeof header;
        begin_frame(writer);
    }
}

/* Leaves the file as it is. */
static void writer_free(struct trace_writer *writer)
{
    if (writer->window != NULL && writer->regular)
        munmap(writer->window, writer->window_bytes);
    else
        free(writer->window);
    if (writer->fd >= 0)
        close(writer->fd);
    interval_map_free(writer->map);
    free(writer->free_slots);
    free(writer);
}

static void explain(const struct trace_writer *writer, char *why, size_t room)
{
    snprintf(why, room, "%s%s%s", writer->failure, writer->failure_error != 0 ? ": " : "",
             writer->failure_error != 0 ? strerror(writer->failure_error) : "");
}

struct trace_writer *trace_create(const char *path, bool timed, char *why, size_t room)
{
    static bool counts_forks;
    struct trace_writer *writer = calloc(1, sizeof *writer);
    if (writer == NULL) {
        snprintf(why, room, "out of memory");
        errno = 0;
        return NULL;
    }
    writer->fd = -1;
    writer->timed = timed;
    writer->gil = true;
    writer->map = interval_map_new();
    writer->forks = forks;
    if (writer->map == NULL || (!counts_forks && pthread_atfork(NULL, NULL, count_fork) != 0))
        fail(writer, "cannot be begun", ENOMEM);
    counts_forks = true;
    if (writer->failure == NULL && open_file(writer, path)) {
        if (!writer->regular && (writer->frame = writer->window = malloc(FRAME_BYTES)) == NULL)
            fail(writer, "cannot be begun", ENOMEM);
        else
            write_header(writer);
    }
    if (writer->failure == NULL)
        return writer;
    explain(writer, why, room);
    int error = writer->open_error;
    writer_free(writer);
    errno = error;
    return NULL;
}

static size_t put_varint(unsigned char *to, uint64_t n)
{
    size_t length = 0;
    for (; n >= 0x80; n >>= 7)
        to[length++] = (unsigned char)(n | 0x80);
    to[length++] = (unsigned char)n;
    return length;
}

static size_t put_text(unsigned char *to, const char *text, size_t most)
{
    size_t length = strnlen(text, most), head = put_varint(to, length);
    memcpy(to + head, text, length);
    return head + length;
}

void trace_note(struct trace_writer *writer, const char *key, const char *value)
{
    unsigned char record[1 + 2 * VARINT_MOST + NOTE_KEY_MOST + NOTE_VALUE_MOST] = {RECORD_NOTE};
    if (!trace_works(writer) || writer->called || writer->notes == NOTES_MOST)
        return;
    writer->notes++;
    size_t length = 1 + put_text(record + 1, key, NOTE_KEY_MOST);
    append(writer, record, length + put_text(record + length, value, NOTE_VALUE_MOST));
}

void trace_begin_part(struct trace_writer *writer, const char *name)
{
    unsigned char record[1 + VARINT_MOST + PART_MOST] = {RECORD_PART};
    if (trace_works(writer))
        append(writer, record, 1 + put_text(record + 1, name, PART_MOST));
}

bool trace_close(struct trace_writer *writer, char *why, size_t room)
{
    unsigned char record[1 + 2 * VARINT_MOST] = {RECORD_END};
    size_t length = 1 + put_varint(record + 1, writer->calls);
    length += put_varint(record + length, writer->live);
    if (trace_works(writer)) {
        append(writer, record, length);
        if (writer->failure == NULL && end_frame(writer) && writer->regular &&
            check_descriptor(writer) && ftruncate(writer->fd, writer->frame_at) != 0)
            fail(writer, "cannot be cut to its length", errno);
    }
    bool done = writer->failure == NULL;
    if (!done)
        explain(writer, why, room);
    writer_free(writer);
    return done;
}

/* ---- blocks --------------------------------------------------------------------------------- */

/* A block that overlaps others takes their place: nobody can say whose the bytes are, and when the
 * others are freed they are foreign. */
static bool remember(struct trace_writer *writer, const void *p, uint64_t size, uint32_t slot)
{
    struct interval block = {(uintptr_t)p, size, slot}, other;
    enum interval_state state;
    while ((state = interval_map_insert(writer->map, block, &other)) == INTERVAL_OVERLAPS)
        interval_map_remove(writer->map, other.address, NULL);
    return state != INTERVAL_NO_MEMORY || fail(writer, "cannot be continued", ENOMEM);
}

static bool enter(struct trace_writer *writer, const void *p, uint64_t size)
{
    if (writer->free_count == 0 && writer->slots == TRACE_MOST_LIVE)
        return fail(writer, "cannot be continued: too many blocks are live", 0);
    writer->slot =
        writer->free_count > 0 ? writer->free_slots[--writer->free_count] : writer->slots++;
    writer->live++;
    return remember(writer, p, size, writer->slot);
}

static bool release(struct trace_writer *writer, uint32_t slot)
{
    if (writer->free_count == writer->free_room) {
        uint32_t room = writer->free_room != 0 ? writer->free_room * 2 : 256;
        uint32_t *slots = realloc(writer->free_slots, room * sizeof *slots);
        if (slots == NULL)
            return fail(writer, "cannot be continued", ENOMEM);
        writer->free_slots = slots;
        writer->free_room = room;
    }
    writer->free_slots[writer->free_count++] = slot;
    writer->live--;
    return true;
}

struct trace_given trace_give(struct trace_writer *writer, const void *p)
{
    struct interval block;
    if (p == NULL)
        return (struct trace_given){.pointer = TRACE_NULL};
    if (!trace_works(writer) || !interval_map_remove(writer->map, (uintptr_t)p, &block))
        return (struct trace_given){.pointer = TRACE_FOREIGN, .p = p};
    return (struct trace_given){TRACE_BLOCK, (uint32_t)block.value, block.size, p};
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* A record under way. */
struct record {
    unsigned char bytes[CALL_MOST];
    size_t length;
};

static struct record begin(struct trace_writer *writer, const struct trace_caller *caller,
                           unsigned first)
{
    struct record record = {.length = 1};
    if (caller->thread != writer->thread || caller->gil != writer->gil) {
        record.bytes[0] = (unsigned char)(RECORD_THREAD | (caller->gil ? BIT_GIL : 0));
        record.length += put_varint(record.bytes + 1, caller->thread);
        append(writer, record.bytes, record.length);
        writer->thread = caller->thread;
        writer->gil = caller->gil;
        record.length = 1;
    }
    record.bytes[0] = (unsigned char)first;
    return record;
}

static void add(struct record *record, uint64_t n)
{
    record->length += put_varint(record->bytes + record->length, n);
}

static void add_slot(struct trace_writer *writer, struct record *record, uint32_t slot)
{
    add(record, zigzag((int64_t)slot - writer->slot));
    writer->slot = slot;
}

static void finish(struct trace_writer *writer, const struct trace_caller *caller,
                   struct record *record)
{
    if (writer->timed) {
        if (!writer->called)
            writer->time = caller->time;
        add(record, zigzag((int64_t)(caller->time - writer->time)));
        writer->time = caller->time;
    }
    writer->called = true;
    writer->calls++;
    if (writer->failure == NULL)
        append(writer, record->bytes, record->length);
}

void trace_malloc(struct trace_writer *writer, const struct trace_caller *caller, size_t size,
                  const void *result)
{
    if (!trace_works(writer))
        return;
    struct record record = begin(writer, caller, STEP_MALLOC | (result ? 0 : BIT_REFUSED));
    add(&record, size);
    if (result == NULL || enter(writer, result, size))
        finish(writer, caller, &record);
}

void trace_calloc(struct trace_writer *writer, const struct trace_caller *caller, size_t nelem,
                  size_t elsize, const void *result)
{
    uint64_t size;
    if (!trace_works(writer))
        return;
    struct record record = begin(
        writer, caller, STEP_CALLOC | (result ? 0 : BIT_REFUSED) | (elsize == 1 ? 0 : BIT_ELSIZE));
    add(&record, nelem);
    if (elsize != 1)
        add(&record, elsize);
    if (__builtin_mul_overflow((uint64_t)nelem, (uint64_t)elsize, &size))
        size = UINT64_MAX;
    if (result == NULL || enter(writer, result, size))
        finish(writer, caller, &record);
}

void trace_realloc(struct trace_writer *writer, const struct trace_caller *caller,
                   struct trace_given given, size_t size, const void *result)
{
    if (!trace_works(writer))
        return;
    bool moved = result != NULL && given.pointer != TRACE_NULL && result != given.p;
    struct record record =
        begin(writer, caller,
              STEP_REALLOC | (result ? 0 : BIT_REFUSED) | (unsigned)given.pointer << POINTER_SHIFT |
                  (moved ? BIT_MOVED : 0));
    if (given.pointer == TRACE_BLOCK)
        add_slot(writer, &record, given.slot);
    add(&record, size);
    bool tracked = true;
    if (given.pointer == TRACE_BLOCK)
        tracked = result != NULL ? remember(writer, result, size, given.slot)
                                 : remember(writer, given.p, given.size, given.slot);
    else if (result != NULL)
        tracked = enter(writer, result, size);
    if (tracked)
        finish(writer, caller, &record);
}

void trace_free(struct trace_writer *writer, const struct trace_caller *caller,
                struct trace_given given, size_t size)
{
    if (!trace_works(writer))
        return;
    bool as_asked = given.pointer == TRACE_BLOCK && size == given.size;
    struct record record =
        begin(writer, caller,
              STEP_FREE | (as_asked ? 0 : BIT_SIZED) | (unsigned)given.pointer << POINTER_SHIFT);
    if (given.pointer == TRACE_BLOCK)
        add_slot(writer, &record, given.slot);
    if (!as_asked)
        add(&record, size);
    if (given.pointer != TRACE_BLOCK || release(writer, given.slot))
        finish(writer, caller, &record);
}
