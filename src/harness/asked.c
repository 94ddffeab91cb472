/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two small tables.  An entry is written by whoever has put BEING_WRITTEN in the place of its
 * address, and has been read whole where the address is the same before and afterwards.
 */
#include "harness/asked.h"

#include <stdatomic.h>
#include <stdint.h>

enum { NOBODYS = 0, BEING_WRITTEN = 1 };

/* Where a row is full, a block replaces the first of it. */
enum { ROWS = 1024, IN_ROW = 4 };
struct asked {
    _Atomic uintptr_t address;
    _Atomic size_t size;
};
static struct asked asked[ROWS][IN_ROW];

/* Where one of these blocks cannot be freed, that was already wrong. */
enum { EMPTY_KEPT = 16 };
static struct {
    atomic_uint count;
    struct {
        _Atomic uintptr_t address, pointer;
        _Atomic size_t first, second;
        atomic_int function, trouble;
    } made[EMPTY_KEPT];
} empty;

static struct asked *row_of(const void *p)
{
    return asked[((uintptr_t)p >> 4) * 0x9e3779b97f4a7c15u >> 54];
}

/* Makes the entry the caller's to write, where its address is still that. */
static bool take_from(_Atomic uintptr_t *address, uintptr_t from)
{
    return from != BEING_WRITTEN && atomic_compare_exchange_strong(address, &from, BEING_WRITTEN);
}

/* An entry of the row that has been taken, or NULL: others are quicker. */
static struct asked *take_entry(struct asked *row, uintptr_t address)
{
    for (int i = 0; i < IN_ROW; i++) {
        if (take_from(&row[i].address, address))
            return &row[i];
    }
    for (int i = 0; i < IN_ROW; i++) {
        if (take_from(&row[i].address, NOBODYS))
            return &row[i];
    }
    return take_from(&row->address, atomic_load(&row->address)) ? row : NULL;
}

void asked_note(const void *p, size_t size)
{
    struct asked *entry = p != NULL ? take_entry(row_of(p), (uintptr_t)p) : NULL;
    if (entry == NULL)
        return;
    atomic_store_explicit(&entry->size, size, memory_order_release);
    atomic_store_explicit(&entry->address, (uintptr_t)p, memory_order_release);
}

void asked_forget(const void *p)
{
    struct asked *row = row_of(p);
    for (int i = 0; p != NULL && i < IN_ROW; i++) {
        uintptr_t address = (uintptr_t)p;
        if (atomic_load_explicit(&row[i].address, memory_order_relaxed) == address)
            atomic_compare_exchange_strong(&row[i].address, &address, NOBODYS);
    }
}

bool asked_size(const void *p, size_t *size)
{
    const struct asked *row = row_of(p);
    for (int i = 0; p != NULL && i < IN_ROW; i++) {
        if (atomic_load_explicit(&row[i].address, memory_order_acquire) != (uintptr_t)p)
            continue;
        *size = atomic_load_explicit(&row[i].size, memory_order_acquire);
        if (atomic_load_explicit(&row[i].address, memory_order_relaxed) == (uintptr_t)p)
            return true;
    }
    return false;
}

void asked_note_empty(const void *p, const struct call *by)
{
    unsigned i = atomic_fetch_add(&empty.count, 1) % EMPTY_KEPT;
    if (!take_from(&empty.made[i].address, atomic_load(&empty.made[i].address)))
        return;
    atomic_store_explicit(&empty.made[i].pointer, (uintptr_t)by->pointer, memory_order_release);
    atomic_store_explicit(&empty.made[i].first, by->first, memory_order_release);
    atomic_store_explicit(&empty.made[i].second, by->second, memory_order_release);
    atomic_store_explicit(&empty.made[i].function, (int)by->function, memory_order_release);
    atomic_store_explicit(&empty.made[i].trouble, by->trouble, memory_order_release);
    atomic_store_explicit(&empty.made[i].address, (uintptr_t)p, memory_order_release);
}

struct call asked_maker_of_empty(const void *p)
{
    unsigned count = atomic_load_explicit(&empty.count, memory_order_relaxed);
    for (unsigned i = 0; p != NULL && i < EMPTY_KEPT && i < count; i++) {
        if (atomic_load_explicit(&empty.made[i].address, memory_order_acquire) != (uintptr_t)p)
            continue;
        struct call by = {
            .function =
                (enum function)atomic_load_explicit(&empty.made[i].function, memory_order_acquire),
            .pointer =
                (const void *)atomic_load_explicit(&empty.made[i].pointer, memory_order_acquire),
            .first = atomic_load_explicit(&empty.made[i].first, memory_order_acquire),
            .second = atomic_load_explicit(&empty.made[i].second, memory_order_acquire),
            .trouble = atomic_load_explicit(&empty.made[i].trouble, memory_order_acquire),
        };
        if (atomic_load_explicit(&empty.made[i].address, memory_order_relaxed) == (uintptr_t)p)
            return by;
    }
    return (struct call){.function = OUTSIDE};
}
