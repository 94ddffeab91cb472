/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loops that --bench times, as a Python module for bench.py, which does everything else.
 */
#ifndef CONFORM_BENCH_H
#define CONFORM_BENCH_H

#include "nep49.h"

/* Does the tasks that `requests` has, with the handler, which is installed in NumPy, and with the
 * GIL; writes the results to `answers`.  Returns NULL at the end of `requests`, or what is wrong.
 */
const char *bench_serve(PyDataMem_Handler *handler, int requests, int answers);

#endif
