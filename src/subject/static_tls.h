/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Room for thread-local variables of objects that want theirs at a fixed place (static TLS), as
 * jemalloc does.  glibc sets little aside for those that are opened later, and says how much only
 * once, when a program starts: so a subject that wants more gets it by starting conform again.
 */
#ifndef CONFORM_STATIC_TLS_H
#define CONFORM_STATIC_TLS_H

#include <stdbool.h>

/* What helps, as a word of GLIBC_TUNABLES. */
#define STATIC_TLS_TUNABLE "glibc.rtld.optional_static_tls=8192"

/* True where a subject did not load for want of it, going by the loader's words in `why`. */
bool static_tls_was_short(const char *why);

/* Replaces this process by the same command with more room: in place, or by `start` (which does
 * not come back either).  Returns where that is of no use, because it has been done before or
 * GLIBC_TUNABLES already says how much there should be. */
void static_tls_start_again(char **argv, void (*start)(char **argv, void *data), void *data);

/* True in a process that was started again.  To be asked before the process forks. */
bool static_tls_is_wide(void);

/* Before a process is replaced by one that is to know the same. */
void static_tls_pass_on(void);

#endif
