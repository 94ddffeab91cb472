/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How much memory this process has, how much it may have, and whether there is any at an address.
 */
#ifndef CONFORM_PROC_COUNT_H
#define CONFORM_PROC_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Bytes that are in memory, and bytes that are mapped, touched or not. */
size_t resident_bytes(void);
size_t mapped_bytes(void);

/* The first of another process, or 0 where it has ended. */
size_t resident_bytes_of(pid_t pid);

/* Whether that many bytes there, at most a page, can be read.  It does not read them itself. */
bool is_readable(const void *p, size_t size);

/* From now on the kernel makes no huge pages for this process, whatever a handler advises, and the
 * advice succeeds as before: where a page is touched here and there, each would be 2 MiB of zeros.
 */
void forgo_huge_pages(void);

/* From now on this process can map `room` bytes more, and then no more (RLIMIT_AS).  SKIPs under
 * memcheck and the sanitizers, which map memory of their own as they go. */
void limit_mapped_bytes(size_t room);

/* The limit is again what it was before. */
void lift_limit(void);

/* Around requests that nobody can be given: 64 MiB can be mapped meanwhile, so that a handler that
 * cuts a size to 32 bits, or lets it wrap, has no gigabytes to fill.  Memcheck and the sanitizers
 * refuse such sizes by themselves: there nothing is limited. */
void absurd_begin(void);
void absurd_end(void);

size_t count_descriptors(void);
size_t count_threads(void);
size_t count_mappings(void);

/* From now on a process whose parent ends becomes a child of this one. */
void adopt_orphans(void);

/* Whether there is a child, be it one that has ended and that nobody has waited for. */
bool has_child(void);

#endif
