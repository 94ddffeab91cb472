/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A hash table.  A thread writes an entry after it has replaced the address with BEING_WRITTEN, and
 * has read an entry whole if the address is the same before and afterwards.
 */
#include "harness/requested_size.h"

#include <stdatomic.h>
#include <stdint.h>

enum { UNUSED = 0, BEING_WRITTEN = 1 };

/* If a row is full, a block replaces the first of it. */
enum { ROWS = 1024, IN_ROW = 4 };
static struct entry {
    _Atomic uintptr_t address, pointer;
    _Atomic size_t size, first, second;
    atomic_int function, trouble; /* OUTSIDE unless it has size zero */
    atomic_bool freed;
} table[ROWS][IN_ROW];

/* For stores and loads between two accesses of the address. */
#define PUT(member, value) atomic_store_explicit(&(member), value, memory_order_release)
#define GET(member) atomic_load_explicit(&(member), memory_order_acquire)

/* Neighbors have neighboring rows, so that few blocks touch few pages. */
static struct entry *row_of(const void *p)
{
    uintptr_t region = (uintptr_t)p >> 15;
    return table[((uintptr_t)p / 32 + (region * 0x9e3779b97f4a7c15u >> 54)) % ROWS];
}

/* Makes the entry the caller's to write if its address is still `from`. */
static bool take_from(_Atomic uintptr_t *address, uintptr_t from)
{
    return from != BEING_WRITTEN && atomic_load_explicit(address, memory_order_relaxed) == from &&
           atomic_compare_exchange_strong(address, &from, BEING_WRITTEN);
}

/* Returns an entry of the row that was taken, or NULL if other threads were faster. */
static struct entry *take_entry(struct entry *row, uintptr_t address)
{
    for (int i = 0; i < IN_ROW; i++) {
        if (take_from(&row[i].address, address))
            return &row[i];
    }
    for (int i = 0; i < IN_ROW; i++) {
        if (take_from(&row[i].address, UNUSED))
            return &row[i];
    }
    return take_from(&row->address, atomic_load(&row->address)) ? row : NULL;
}

void requested_note(const void *p, size_t size, const struct step *maker)
{
    struct entry *entry = p != NULL ? take_entry(row_of(p), (uintptr_t)p) : NULL;
    if (entry == NULL)
        return;
    PUT(entry->size, size);
    PUT(entry->freed, false);
    PUT(entry->function, maker != NULL ? maker->kind : OUTSIDE);
    if (maker != NULL) {
        PUT(entry->pointer, (uintptr_t)maker->pointer);
        PUT(entry->first, maker->first);
        PUT(entry->second, maker->second);
        PUT(entry->trouble, maker->trouble);
    }
    PUT(entry->address, (uintptr_t)p);
}

/* Returns the entry of p, or NULL.  It may change while it is read. */
static struct entry *find(const void *p)
{
    struct entry *row = row_of(p);
    for (int i = 0; p != NULL && i < IN_ROW; i++) {
        if (GET(row[i].address) == (uintptr_t)p)
            return &row[i];
    }
    return NULL;
}

void requested_forget(const void *p)
{
    struct entry *entry = find(p);
    uintptr_t address = (uintptr_t)p;
    if (entry != NULL && GET(entry->function) != OUTSIDE)
        PUT(entry->freed, true);
    else if (entry != NULL)
        atomic_compare_exchange_strong(&entry->address, &address, UNUSED);
}

bool requested_size(const void *p, size_t *size)
{
    struct entry *entry = find(p);
    if (entry == NULL || GET(entry->freed))
        return false;
    *size = GET(entry->size);
    return GET(entry->address) == (uintptr_t)p;
}

struct step requested_maker(const void *p)
{
    struct step by = {.kind = OUTSIDE};
    struct entry *entry = find(p);
    if (entry == NULL || GET(entry->function) == OUTSIDE)
        return by;
    by.kind = (uint8_t)GET(entry->function);
    by.pointer = (const void *)GET(entry->pointer);
    by.first = GET(entry->first);
    by.second = GET(entry->second);
    by.trouble = (uint8_t)GET(entry->trouble);
    return GET(entry->address) == (uintptr_t)p ? by : (struct step){.kind = OUTSIDE};
}
