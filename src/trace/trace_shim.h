/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A shim that writes down every call that comes through it, in a trace.
 */
#ifndef CONFORM_TRACE_SHIM_H
#define CONFORM_TRACE_SHIM_H

#include "nep49.h"
#include "trace/trace.h"

struct trace_shim;

/* Puts one before `inner`; name and version are those of the handler behind.  The trace goes to a
 * new file at `path`, with times where `timed` is set.  NULL with one line in `why`, which does not
 * name the file, and errno as trace_create leaves it. */
struct trace_shim *trace_shim_create(PyDataMem_Handler *inner, const char *path, bool timed,
                                     char *why, size_t room);

PyDataMem_Handler *trace_shim_handler(struct trace_shim *shim);
struct trace_writer *trace_shim_writer(struct trace_shim *shim);

/* As trace_begin_part, from any thread. */
void trace_shim_begin_part(struct trace_shim *shim, const char *name);

/* Ends the trace; calls that come later go through and are not written.  As trace_close. */
bool trace_shim_close(struct trace_shim *shim, char *why, size_t room);

#endif
