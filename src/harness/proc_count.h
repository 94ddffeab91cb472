/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory, descriptors, threads, children and mappings of this process.
 */
#ifndef CONFORM_PROC_COUNT_H
#define CONFORM_PROC_COUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* Bytes in memory, and bytes mapped. */
size_t resident_bytes(void);
size_t mapped_bytes(void);

/* Bytes in memory of another process, or 0 if it has ended. */
size_t resident_bytes_of(pid_t pid);

/* True if that many bytes, at most a page, can be read; reads them by a system call only. */
bool is_readable(const void *p, size_t size);

/* Disables huge pages for this process: each page that is touched would be 2 MiB of zeros. */
void forgo_huge_pages(void);

/* Allows `room` more bytes to be mapped (RLIMIT_AS) until lift_limit().  SKIPs under memcheck and
 * the sanitizers, which map memory as they go. */
void limit_mapped_bytes(size_t room);
void lift_limit(void);

/* Around requests for impossible sizes: limits mapped memory, so that a handler that truncates or
 * wraps a size has no gigabytes to fill.  Not under memcheck and the sanitizers, which refuse such
 * sizes. */
void absurd_begin(void);
void absurd_end(void);

/* 0 if there is no descriptor left to count with; for descriptors as many as there may be. */
size_t count_descriptors(void);
size_t count_threads(void);
size_t count_mappings(void);

/* Makes processes whose parent ends children of this one. */
void adopt_orphans(void);

/* True if there is a child, also one that has ended and was not waited for. */
bool has_child(void);

#endif
