/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What helgrind reports: which of the races in its logs are the subject's.
 */
#ifndef CONFORM_HELGRIND_REPORT_H
#define CONFORM_HELGRIND_REPORT_H

#include "model/record.h"
#include "runner/memcheck_report.h"

/* Adds the races in the log of process `pid`, as far as there is one, both of whose accesses are in
 * what the record knows as the subject, or in what copies and compares memory for it.  The memory
 * is a variable there, or was allocated when the subject was loaded: what else is allocated goes
 * from thread to thread, and helgrind does not see all that puts that in order.  Those at the same
 * two places are one. */
void helgrind_read_log(struct memcheck_errors *races, const char *folder, pid_t pid,
                       const struct record *record);

#endif
